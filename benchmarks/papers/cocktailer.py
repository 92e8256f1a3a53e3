"""Cocktailer (Zhang et al., OSDI 2023): figures 14 to 19, networks with control flow on the device and on the host."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from benchmarks import ablation, networks_by_hand
from benchmarks.common import Curve, interleaved_cpu_medians
from benchmarks.networks import flat
from benchmarks.papers.acrobat import gains
from benchmarks.papers.figure import Figure, Measured, Number, Paper, Row, attempted
from benchmarks.papers.host_control import NETWORKS, traced
from examples.networks import attention, check, data, run, tree_rae
from examples.networks.data import Example
from examples.networks.run import Settings, Task

OURS, HOST, SCRIPT, GRAPH = "pcbatch", "host control flow in JAX", "TorchScript", "traced graph"
SPEED, RATIO = "papers host", "papers skipped"
# What the paper reports over the fastest baseline, by network and batch size (section 5.1).
REPORTED: Mapping[tuple[str, int], str] = {
    ("lstm", 1): "1.75",
    ("lstm", 64): "1.93",
    ("nasrnn", 1): "2.10",
    ("attention", 1): "2.82",
    ("attention", 64): "1.01 over its own base",
    ("seq2seq", 1): "1.61",
    ("seq2seq", 64): "1.29",
    ("blockdrop", 1): "1.84",
    ("blockdrop", 64): "1.13",
    ("skipnet", 1): "1.41",
    ("tree_rae", 1): "8.22; PyTorch 9.35; JAX 328",
}
# Time over that of the traced graph at batch 1, as far as the text says it (section 5.2).
TRACED = {
    "lstm": "as Rammer's graph",
    "nasrnn": "below Rammer's graph",
    "attention": "below Rammer's graph",
    "seq2seq": "below Rammer's graph",
    "blockdrop": "1.11; others 1.34 or more",
    "tree_rae": "1.11",
}
PASSES = {"again": (), "loops not unrolled": ("unroll_loops",), "no merged blocks": ("superblocks",)}
GAINED = {
    "lstm": "4.95 (mean of loops), then 2.22",
    "nasrnn": "4.95 (mean of loops)",
    "attention": "4.95 (mean of loops), then 1.17",
    "seq2seq": "4.95 (mean of loops)",
    "blockdrop": "3.01, then 1.21",
    "skipnet": "1.38, then 1.02",
    "tree_rae": "3.54, then 1.99 and 1.17",
}
UNROLLED = {"nasrnn": 100}  # the graph of 1,000 cells takes XLA minutes
SHIFTS = (-1e3, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1e3)  # of the decisions of a network, from none to all


def settings(name: str, batch: int, quick: bool) -> Settings:
    """The sizes of the paper, or small ones."""
    if quick:
        return Settings(64, batch, 16, repeats=3)
    found = run.paper(name, Settings(batch=batch, repeats=7))
    assert found is not None
    return found


def task(name: str, sizes: Settings, longest: bool = False) -> Task:
    """A network with its examples; they are as long as they may be if asked for."""
    made = Task(name, sizes)
    most = 30 if sizes.most is None else sizes.most
    if not longest or name in ("seq2seq", "blockdrop", "skipnet"):
        return made
    rng = np.random.default_rng(sizes.seed)
    words = [rng.integers(0, data.WORDS, most).tolist() for _ in made.examples]
    inputs: list[Any] = words
    if name == "attention":
        inputs = [attention.Prompt(some[:1], most - 1) for some in words]
    elif name == "tree_rae":
        inputs = [data.parse(some, rng, tree_rae.Word, tree_rae.Phrase) for some in words]
    made.examples = [Example(x, example.label) for x, example in zip(inputs, made.examples, strict=True)]
    made.inputs = made.network.gather(inputs)
    return made


def said(some: Sequence[Any]) -> np.ndarray:
    """The numbers of all examples in a row, of what was said of each."""
    firsts = [one[0] if isinstance(one, tuple) else one for one in some]
    each = [np.asarray(x) for one in firsts for x in (one if isinstance(one, list) else [one])]
    return np.concatenate([np.ravel(x) for x in each]) if each else np.zeros(0)


def in_turn(made: Task) -> Callable[[], list[Any]]:
    """The examples one after the other, with control flow on the host."""
    one = NETWORKS[made.name]
    return lambda: [one(made.weights, example.x) for example in made.examples]


def scripted(made: Task) -> Callable[[], list[Any]] | None:
    """The same in TorchScript, if PyTorch is there."""
    if not check.has_torch():
        return None
    from benchmarks.papers import in_torchscript

    return in_torchscript.call(made.name, made.weights, [example.x for example in made.examples])


def shown(name: str, batch: int) -> str:
    """A network with its number of examples."""
    return f"{name}, {batch} example{'s' if batch > 1 else ''}"


def speed(name: str, batch: int, quick: bool) -> Row:
    """One network beside control flow on the host."""
    sizes = settings(name, batch, quick)
    made = task(name, sizes)
    calls: dict[str, Callable[[], Any]] = {OURS: made.predict, HOST: in_turn(made)}
    if (script := scripted(made)) is not None:
        calls[SCRIPT] = script
    expected = flat(made.predict())
    for way, call in calls.items():
        if way != OURS:
            check.compare(said(call()), expected, f"{name}, {way}")
    by_hand = {} if batch == 1 else networks_by_hand.ways(made)
    for way, one in by_hand.items():
        found = networks_by_hand.shown(made, one.predict(made.weights))
        check.compare(found, expected, f"{name}, {way}")
        calls[way] = partial(one.predict, made.weights)
    seconds = interleaved_cpu_medians(calls, sizes.repeats)
    more: dict[str, Number] = {"ms": 1e3 * seconds[OURS], f"{HOST}, ms": 1e3 * seconds[HOST]}
    more[f"{SCRIPT} / pcbatch"] = seconds[SCRIPT] / seconds[OURS] if SCRIPT in seconds else None
    hand = min((seconds[way] for way in by_hand), default=None)
    more["JAX by hand / pcbatch"] = None if hand is None else hand / seconds[OURS]
    return Row(shown(name, batch), REPORTED.get((name, batch), ""), seconds[HOST] / seconds[OURS], more)


def speeds(quick: bool) -> Measured:
    """Figure 14."""
    rows = []
    for name in NETWORKS:
        for batch in (1, 8) if quick else (1, 64):
            if not quick and (name, batch) == ("skipnet", 64):
                rows.append(Row(shown(name, batch), why="too much for one core; the paper has none either"))
                continue
            rows.append(attempted(shown(name, batch), partial(speed, name, batch, quick)))
    curves = []
    for row in rows:
        network, _, examples = row.of.partition(", ")
        curves.append(Curve(SPEED, examples, [network], [float(row.here or 0)]))
    return Measured(rows, curves)


def overhead(name: str, quick: bool) -> Row:
    """One network beside the graph of one example."""
    sizes = settings(name, 1, quick)
    if sizes.most is not None:
        sizes = replace(sizes, most=min(sizes.most, UNROLLED.get(name, sizes.most)))
    made = task(name, sizes, longest=True)
    x = made.examples[0].x
    graph, host = traced(name, made.weights, x), in_turn(made)
    image = jax.device_put(x) if name in ("blockdrop", "skipnet") else None
    calls: dict[str, Callable[[], Any]] = {OURS: made.predict, HOST: host, GRAPH: lambda: graph(made.weights, image)}
    expected = flat(made.predict())
    check.compare(said(host()), expected, f"{name}, {HOST}")
    check.compare(said([calls[GRAPH]()])[: len(expected)], expected, f"{name}, {GRAPH}")
    seconds = interleaved_cpu_medians(calls, sizes.repeats)
    more: dict[str, Number] = {f"{way}, ms": 1e3 * some for way, some in seconds.items()}
    more[f"{HOST} / {GRAPH}"] = seconds[HOST] / seconds[GRAPH]
    return Row(name, TRACED.get(name, ""), seconds[OURS] / seconds[GRAPH], more)


def overheads(plot: str, names: Sequence[str], quick: bool) -> Measured:
    """Figures 15, 16 and 18."""
    rows = [attempted(name, partial(overhead, name, quick)) for name in names]
    done = [row for row in rows if row.here is not None]
    curves = [
        Curve(plot, OURS, [row.of for row in done], [float(row.here or 0) for row in done]),
        Curve(plot, HOST, [row.of for row in done], [float(row.more[f"{HOST} / {GRAPH}"] or 0) for row in done]),
    ]
    return Measured(rows, curves)


def shifted(name: str, w: Any, shift: float) -> Any:
    """Weights with which a network decides for more or for fewer of its blocks."""
    part = "policy" if name == "blockdrop" else "gate"
    return w | {part: w[part] | {"head_bias": w[part]["head_bias"] + shift}}


def skipped(name: str, quick: bool) -> tuple[list[Row], list[Curve]]:
    """One network with decisions for more and more of its blocks, the graph of all blocks beside it."""
    made = task(name, settings(name, 1, quick))
    image = jax.device_put(made.examples[0].x)
    everything = shifted(name, made.weights, SHIFTS[-1])
    whole = traced(name, everything, made.examples[0].x)
    found: dict[int, Mapping[str, float]] = {}
    for shift in SHIFTS:
        w = shifted(name, made.weights, shift)
        ran = int(made.batched(w, made.inputs)[1][0])
        if ran not in found:
            one = partial(NETWORKS[name], w, made.examples[0].x)
            calls = {OURS: partial(made.batched, w, made.inputs), HOST: one, "all blocks": partial(whole, w, image)}
            check.compare(said([one()]), flat(calls[OURS]()), f"{name}, {ran} blocks")
            found[ran] = interleaved_cpu_medians(calls, repeats(quick))
    most = max(found)
    rows = []
    for ran, seconds in sorted(found.items()):
        paper = {("blockdrop", 0): "3.00 over JAX", ("skipnet", 0): "2.68 over JAX"}.get((name, ran), "")
        more = {f"{way}, ms": 1e3 * some for way, some in seconds.items()}
        rows.append(Row(f"{name}, {ran} of {most} blocks", paper, seconds[HOST] / seconds[OURS], more))
    shares = [ran / most for ran in sorted(found)]
    curves = [
        Curve(RATIO, f"{name}, {way}", shares, [found[ran][way] / found[ran]["all blocks"] for ran in sorted(found)])
        for way in (OURS, HOST)
    ]
    return rows, curves


def repeats(quick: bool) -> int:
    """How often each ratio is measured."""
    return 3 if quick else 7


def ratios(quick: bool) -> Measured:
    """Figure 17."""
    parts = [skipped(name, quick) for name in ("blockdrop", "skipnet")]
    return Measured([row for rows, _ in parts for row in rows], [curve for _, curves in parts for curve in curves])


def parts(name: str, quick: bool) -> Row:
    """One network on the host, on the device, and without some passes."""
    made = task(name, settings(name, 1, quick))
    model = ablation.Model(made.batched, (), (made.weights, made.inputs), False)
    base, found = gains(model, PASSES, repeats(quick))
    on_host = {HOST: partial(NETWORKS[name], made.weights, made.examples[0].x)}
    seconds = interleaved_cpu_medians(on_host, repeats(quick))[HOST]
    more: dict[str, Number] = {"ms": 1e3 * base, **found}
    if name == "tree_rae":
        forks = {fork: ablation.compiled(model, fork, ()) for fork in ("never", "always")}
        by_fork = interleaved_cpu_medians(forks, repeats(quick))
        more["calls not side by side"] = by_fork["never"] / by_fork["always"]
    return Row(name, GAINED[name], seconds / base, more)


def breakdown(quick: bool) -> Measured:
    """Figure 19."""
    rows = [attempted(name, partial(parts, name, quick)) for name in NETWORKS]
    done = [row.here for row in rows if row.here]
    return Measured([*rows, Row("geometric mean", "", statistics.geometric_mean(done))] if done else rows)


def _overhead(what: str, figure: str, names: Sequence[str], reported: str, here: str) -> Figure:
    """Figure 15, 16 or 18."""
    return Figure(
        f"overhead-{what}",
        figure,
        f"overhead of control flow over the traced graph: {what}, one example",
        reported,
        "The traced graph is the straight-line program of this one example, compiled by XLA: it knows beforehand "
        "what the example will do. " + here,
        "time / traced graph",
        partial(overheads, f"papers overhead {what}", names),
    )


PAPER = Paper(
    "Cocktailer: Analyzing and Optimizing Dynamic Control Flow in Deep Learning",
    "Zhang, Ma, Xue, Shi, Miao, Yang, Zhai, Yang, Yang, OSDI 2023",
    (
        Figure(
            "host",
            "Figure 14",
            "inference of seven networks over control flow on the host",
            "A plot on a V100. Over the fastest baseline of each network 1.85 times in geometric mean; over "
            "TorchScript 3.98, TensorFlow 18.45, JAX 3.05 times on average (section 5.1).",
            "CPU seconds of one thread. Host control flow in JAX: Python loops, branches and recursion, which call a "
            "jitted function for each basic block, for each example by itself (`benchmarks/papers/host_control.py`); "
            "`by hand`: one loop of JAX with masks for the whole batch. The sizes of the paper; a quick run has 64, "
            "sentences of up to 16 words and 8 examples instead of 64. The recursive network is in Python in "
            "PyTorch, as in the paper.",
            "host control flow / pcbatch",
            speeds,
        ),
        _overhead(
            "loops",
            "Figure 15",
            ("lstm", "nasrnn", "attention", "seq2seq"),
            "A plot. Cocktailer takes as long as Rammer's unrolled graph for the LSTM and less for the others; JAX "
            "runs NASRNN faster as a loop than unrolled (section 5.2).",
            "NASRNN has 100 words and not 1,000, since XLA compiles an unrolled graph.",
        ),
        _overhead(
            "branches",
            "Figure 16",
            ("blockdrop", "skipnet"),
            "For BlockDrop 11 % with Cocktailer and at least 34 % with the others (section 5.2).",
            "The decisions are those of random weights.",
        ),
        _overhead(
            "recursion",
            "Figure 18",
            ("tree_rae",),
            "11 % with Cocktailer; PyTorch and JAX, whose recursion is Python's, take much longer (section 5.2).",
            "A random tree of 64 words, 127 nodes; the paper's has 65 nodes.",
        ),
        Figure(
            "skipped",
            "Figure 17",
            "time against the share of blocks that run",
            "With no block running 3.00 and 2.68 times as fast as JAX for BlockDrop and SkipNet; skipping pays below "
            "20 % of the blocks with JAX for SkipNet, below 65 % with Cocktailer (section 5.2).",
            "A constant added to the decisions lets more or fewer blocks run. `all blocks` is the traced graph in "
            "which all of them run, its decisions computed as well.",
            "host control flow / pcbatch",
            ratios,
        ),
        Figure(
            "breakdown",
            "Figure 19",
            "what scheduling control flow on the device and each optimisation gain, one example",
            "Over control flow on the host: loops on the device 4.95 times on average, unrolling then 2.22 (LSTM) "
            "and 1.17 (Attention); branches 3.01 and 1.38 times, then 1.21 and 1.02; recursion 3.54, a stack in "
            "shared memory 1.99, calls side by side 1.17 (section 5.3).",
            "Column `here`: host control flow over pcbatch with all passes. Further columns: time without a pass "
            "over time with all; `again` is the noise. Its stacks in the GPU's memories need a GPU.",
            "host control flow / pcbatch",
            breakdown,
        ),
    ),
)
