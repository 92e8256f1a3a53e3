"""ED-Batch (Chen et al., ICML 2023): figure 7, batches by policy, and table 2, the layout of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from benchmarks import policies
from benchmarks.common import Curve, interleaved_cpu_medians
from benchmarks.papers import cells
from benchmarks.papers.figure import Figure, Measured, Paper, Row
from benchmarks.policy_graphs import GRAPHS
from benchmarks.trip_kernels import Kernels, per_trip
from examples.networks import check
from pcbatch.learning.q_learning import Training
from pcbatch.lowering.left_out import without

ENCODINGS = ("base", "max", "sort")
BATCHES = "papers batches"
REPORTED = {"TreeLSTM, two types": "1.23", "lattice LSTM": "1.44"}  # of the lower bound; the others reach it
LATENCY = {
    "GRUCell": ("1.54", "6 / 2", "666 / 14"),
    "LSTMCell": ("1.52", "4 / 1", "1,054 / 16"),
    "MVCell": ("0.96", "2 / 2", "260 / 260"),
    "TreeGRU-Internal": ("1.6", "8 / 2", "552 / 16"),
    "TreeGRU-Leaf": ("1.4", "4 / 2", "268 / 8"),
    "TreeLSTM-Internal": ("1.61", "7 / 3", "1,064 / 22"),
    "TreeLSTM-Leaf": ("1.27", "3 / 1", "396 / 6"),
}


def counted(name: str, episodes: int, encodings: Sequence[str], learnt: int, tested: int) -> dict[str, int]:
    """Batches of a graph by policy, on examples that nothing was learned from, and the lower bound."""
    others = policies.abstract(name, tested, policies.SEED + 1)
    found: dict[str, int] = {}
    for encoding in encodings:
        samples, training = policies.abstract(name, learnt, policies.SEED), Training(encoding, episodes, policies.SEED)
        counts = policies.row(name, "graph", samples, others, training)[-1]
        found |= {way: counts[way] for way in ("by depth", "agenda")}
        found[f"learned, {encoding}"] = counts["learned"]
    return found | {"lower bound": sum(others.graph.bounds())}


def batches(names: Sequence[str], episodes: int, encodings: Sequence[str], learnt: int, tested: int) -> Measured:
    """Figure 7, of graphs."""
    found = {name: counted(name, episodes, encodings, learnt, tested) for name in names}
    last = f"learned, {encodings[-1]}"
    rows = [Row(name, REPORTED.get(name, "1"), some[last] / some["lower bound"], some) for name, some in found.items()]
    curves = [
        Curve(BATCHES, way, list(found), [some[way] / some["lower bound"] for some in found.values()])
        for way in ("by depth", "agenda", last)
    ]
    return Measured(rows, curves)


def all_batches(names: Sequence[str], episodes: int) -> Measured:
    """Figure 7, of graphs and of programs."""
    found = batches(names, episodes, ENCODINGS, policies.LEARN, policies.TEST)
    return Measured([*found.rows, *programs(episodes)], found.curves)


def programs(episodes: int) -> list[Row]:
    """The same for programs that are compiled, in lanes or by tasks."""
    found = []
    for name, machine, others, counts in policies.programs(Training(ENCODINGS[-1], episodes, policies.SEED)):
        ways = {"learned": f"learned, {ENCODINGS[-1]}", "by depth": "by depth", "agenda": "agenda"}
        more = {shown: counts[way] for way, shown in ways.items() if way in counts}
        bound = sum(others.graph.bounds())
        found.append(Row(f"{name}, compiled, {machine}", "", counts["learned"] / bound, more | {"lower bound": bound}))
    return found


def compiled(name: str, left_out: Sequence[str], args: tuple[Any, ...]) -> tuple[Callable[[], Any], Kernels]:
    """A call of a cell's loop that is compiled without some passes, and the kernels of one of its trips."""
    f = cells.program(name)
    with without(*left_out):
        jax.block_until_ready(f(*args))
        kernels = per_trip(f.lower(*args).compile().as_text())
    return lambda: f(*args), kernels


def layout(names: Sequence[str], longest: int, repeats: int) -> Measured:
    """Table 2."""
    rows = []
    for name in names:
        args = cells.arguments(name, 64, 8, longest)
        (apart, before), (together, after) = (compiled(name, some, args) for some in (("fuse_products",), ()))
        check.compare(apart(), together(), name)
        seconds = interleaved_cpu_medians({"apart": apart, "together": together}, repeats)
        more = {
            "us of a cell, matrices apart": 1e6 * seconds["apart"] / longest,
            "us of a cell, as it is": 1e6 * seconds["together"] / longest,
            "kernels of a visit, apart": before.kernels,
            "kernels, as it is": after.kernels,
        }
        ratio, kernels, copied = LATENCY[name]
        paper = f"{ratio}; {kernels} memory kernels; {copied} kB copied"
        rows.append(Row(name, paper, seconds["apart"] / seconds["together"], more))
    return Measured(rows)


PAPER = Paper(
    "ED-Batch: Efficient Automatic Batching of Dynamic Neural Networks via Learned Finite State Machines",
    "Chen, Fegade, Chen, Gibbons, Mowry, ICML 2023",
    (
        Figure(
            "batches",
            "Figure 7",
            "number of batches by policy",
            "A plot; the text (section 5.3) says that the learned state machine reaches the lower bound on chains "
            "and trees and makes 23 % more batches than that on trees of two types and 44 % more on lattices. "
            "Against the depth and agenda policies it makes 37 % fewer batches on trees and up to 3.27 times fewer "
            "on lattices (section 5.2).",
            "Counted, not timed: the paper's graphs at random (`benchmarks/policy_graphs.py`; GRUs have the graphs "
            "of LSTMs), 64 examples that nothing was learned from (16 in a quick run). DyNet's agenda and TensorFlow "
            "Fold's depth are our own versions of those policies.",
            "learned / lower bound",
            lambda quick: batches(list(GRAPHS), 50, ENCODINGS[-1:], 8, 16) if quick else all_batches(list(GRAPHS), 300),
        ),
        Figure(
            "layout",
            "Table 2",
            "what the layout of memory saves in a cell (batch 8, size 64)",
            "Latency, kernels that move memory and kB that they move, with DyNet's allocation over those with a "
            "layout planned by PQ trees.",
            "What corresponds here: weights of gates that have one input are laid side by side, outside of the loop, "
            "so that a visit makes one product (the pass `fuse_products`), which is left out in the columns `apart`. "
            "Copies are not told apart here: what is counted is all kernels of a visit.",
            "latency apart / as it is",
            lambda quick: layout(list(LATENCY), 20, 3) if quick else layout(list(LATENCY), 200, 11),
        ),
    ),
)
