"""ACRoBat (Fegade et al., 2023): table 4, speed over DyNet, and figure 5, what optimisations gain."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial

from benchmarks import ablation, networks
from benchmarks.common import Curve, interleaved_cpu_seconds
from benchmarks.networks import BY_HAND, DYNET, FORKS, TORCH, WAYS_OF_DYNET
from benchmarks.papers.figure import Figure, Measured, Number, Paper, Row, attempted, number
from examples.networks import check
from examples.networks.run import Settings

OURS, SPEED, GAIN = FORKS["auto"], "papers speed over DyNet", "papers gain of passes"
# The speed over DyNet of table 4: hidden size small or large, batch of 8 or 64.
SPEEDUPS: Mapping[str, Mapping[tuple[str, int], str]] = {
    "tree_lstm": {("small", 8): "2.93", ("small", 64): "4.51", ("large", 8): "1.92", ("large", 64): "2.33"},
    "mv_rnn": {("small", 8): "3.96", ("small", 64): "8.47", ("large", 8): "2.19", ("large", 64): "3.13"},
    "birnn": {("small", 8): "1.45", ("small", 64): "2.49", ("large", 8): "0.9", ("large", 64): "0.93"},
    "nested_rnn": {("small", 8): "0.95", ("small", 64): "1.29", ("large", 8): "1.3", ("large", 64): "0.95"},
    "drnn": {("small", 8): "3.87", ("small", 64): "4.84", ("large", 8): "3.45", ("large", 64): "2.66"},
    "berxit": {("small", 8): "1.66", ("large", 8): "1.76"},  # DyNet ran out of memory with 64
    "stack_rnn": {("small", 8): "2.11", ("small", 64): "5.48", ("large", 8): "1.48", ("large", 64): "2.66"},
}
HIDDEN = {"mv_rnn": {"small": 64, "large": 128}, "berxit": {"small": 64, "large": 128}}
USUAL = {"small": 256, "large": 512}  # those of the paper; berxit is BERT there
QUICK = {"mv_rnn": 32}  # instead of 64
# The models of `benchmarks.ablation` that are the paper's, and its passes beside those of the paper.
MODELS = ("TreeLSTM", "MV-RNN", "BiRNN", "StackRNN", "early exit", "DRNN", "NestedRNN")
PASSES = {
    "again": "again",
    "no merged blocks": "no merged blocks (grain size coarsening)",
    "no sharing": "no sharing (parameter reuse, hoisting)",
    "no copies": "no copies (code duplication)",
    "no fused products": "no fused products (horizontal fusion)",
    "no phases": "no phases (program phases)",
}


def shown(name: str, size: str, batch: int) -> str:
    """A network with its sizes."""
    return f"{name}, {size}, {batch} examples"


def speed(name: str, size: str, settings: Settings) -> Row:
    """One network beside DyNet."""
    found = networks.measure(name, settings, training=False, forks=("auto",))
    seconds = {way: some.seconds for way, some in found.items()}
    dynet = min((seconds[way] for way in WAYS_OF_DYNET if way in seconds), default=None)
    of = shown(name, size, settings.batch)
    paper = SPEEDUPS[name].get((size, settings.batch), "DyNet out of memory")
    more: dict[str, Number] = {
        "ms": 1e3 * seconds[OURS],
        "DyNet, ms": None if dynet is None else 1e3 * dynet,
        "PyTorch one by one / pcbatch": seconds[TORCH] / seconds[OURS] if TORCH in seconds else None,
        "JAX by hand / pcbatch": seconds[BY_HAND] / seconds[OURS] if BY_HAND in seconds else None,
    }
    if dynet is None:
        return Row(of, paper, None, more, f"DyNet is not installed (`make dynet` makes {DYNET.parents[1].name})")
    return Row(of, paper, dynet / seconds[OURS], more)


def over_dynet(quick: bool) -> Measured:
    """Table 4."""
    rows = []
    for name in SPEEDUPS:
        for size in ("small",) if quick else ("small", "large"):
            for batch in (8,) if quick else (8, 64):
                hidden = QUICK.get(name, 64) if quick else HIDDEN.get(name, USUAL)[size]
                most = 12 if quick else None
                settings = Settings(hidden, batch, most, repeats=3 if quick else 7)
                rows.append(attempted(shown(name, size, batch), partial(speed, name, size, settings)))
    curves = []
    for row in rows:
        network, _, sizes = row.of.partition(", ")
        curves.append(Curve(SPEED, sizes, [network], [float(row.here or 0)]))
    return Measured(rows, curves)


def gains(model: ablation.Model, left_out: Mapping[str, Sequence[str]], repeats: int) -> tuple[float, dict[str, float]]:
    """The seconds with all passes, and those without some as multiples."""
    ways = {"all passes": (), **left_out}
    calls = {title: ablation.compiled(model, "auto", passes) for title, passes in ways.items()}
    want = calls["all passes"]()
    for title, call in calls.items():
        check.compare(call(), want, title)
    times = interleaved_cpu_seconds(calls, repeats)
    base = times.pop("all passes")
    ratios = {title: statistics.median(t / b for t, b in zip(some, base, strict=True)) for title, some in times.items()}
    return statistics.median(base), ratios


def passes(quick: bool) -> Measured:
    """Figure 5."""
    hidden, batch = (64, 8) if quick else (256, 64)
    left_out = {shown: ablation.LEFT_OUT[title] for title, shown in PASSES.items()}
    rows = []
    for name, model in ablation.models(hidden, batch).items():
        if name not in MODELS:
            continue
        seconds, ratios = gains(model, left_out, 3 if quick else 11)
        more = {"ms": 1e3 * seconds} | ratios
        largest = max(ratio for title, ratio in ratios.items() if title != "again")
        rows.append(Row(f"{name}, {hidden}, {batch} examples", "", largest, more))
        print(f"  {rows[-1].of}: {number(rows[-1].here)}", flush=True)
    curves = [
        Curve(GAIN, title, [row.of.partition(",")[0] for row in rows], [float(row.more[title] or 0) for row in rows])
        for title in left_out
    ]
    return Measured(rows, curves)


PAPER = Paper(
    "ACRoBat: Optimizing Auto-batching of Dynamic Deep Learning at Compile Time",
    "Fegade, Chen, Gibbons, Mowry, 2023",
    (
        Figure(
            "dynet",
            "Table 4",
            "inference of seven networks over DyNet, the better of its two schedules",
            "Latencies and speedups on an RTX 3070, 2.3 times over all configurations (section 7.2.1).",
            "CPU seconds of one thread. DyNet 2.2 with automatic batching by its agenda and by depth, the better of "
            "both, in a process of its own. Random examples (`examples/networks`); hidden sizes are those of the "
            "paper (small 256, large 512; MV-RNN 64 and 128) but for BERxiT, whose BERT is too large for one core "
            "(64 and 128). A quick run has 64, 8 examples, and sentences of up to 12 words.",
            "DyNet / pcbatch",
            over_dynet,
        ),
        Figure(
            "passes",
            "Figure 5",
            "what each optimisation gains",
            "A plot without numbers of latencies (large size, batch 64) as optimisations are added one by one: "
            "fusion of kernels gains for all models; coarser grains and depths computed inline most where control "
            "flow is most (TreeLSTM, MV-RNN); program phases for BiRNN, ghost operators for StackRNN, fused gathers "
            "for some models and not for others (section 7.3).",
            "One pass is left out at a time, not added; a pass that has a counterpart in the paper names it. Time "
            "without it over time with all, in CPU seconds; `again` is the same program once more, the noise. Fusion "
            "of kernels and of gathers is XLA's and cannot be left out; depths and ghost operators belong to a "
            "scheduler at run time, which there is none of here. Models as in `benchmarks/ablation.py`.",
            "largest gain",
            passes,
        ),
    ),
)
