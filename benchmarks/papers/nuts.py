"""Program-counter autobatching (Radul et al., MLSys 2020): figures 6 and 7, the No-U-Turn Sampler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks import lanes
from benchmarks.common import Curve, interleaved_cpu_medians
from benchmarks.papers import tfp
from benchmarks.papers.figure import Figure, Measured, Paper, Row
from benchmarks.samplers import Setting, batches, correlated, regression

QUICK, CHAINS, MORE = (1, 10, 30), (1, 3, 10, 30, 100, 300), (1, 3, 10, 30, 100, 300, 1000)
THROUGHPUT, UTILISATION = "papers nuts throughput", "papers nuts utilisation"
STAN = {10: "program counter: as Stan", 300: "local, eager: as Stan"}


def of(chains: int) -> str:
    """So many chains."""
    return f"{chains} chain{'s' if chains > 1 else ''}"


def rates(setting: Setting, chains: int, repeats: int) -> dict[str, float]:
    """Useful gradients per CPU second of all ways on so many chains."""
    ways = lanes.calls(setting, chains)
    gradients = {way: int(np.asarray(call()[1]).sum()) for way, call in ways.items()}
    seconds = interleaved_cpu_medians(ways, repeats)
    return {way: gradients[way] / seconds[way] for way in ways}


def throughput(setting: Setting, sizes: Sequence[int], repeats: int, tfp_sizes: Sequence[int]) -> Measured:
    """Figure 6: gradients per CPU second against chains."""
    theirs, why = tfp.rates(setting, tfp_sizes, lanes.DRAWS) if tfp_sizes else ({}, "")
    alone = lanes.plain_rate(setting)
    found = {chains: rates(setting, chains, repeats) | theirs.get(chains, {}) for chains in sizes}
    ways = list(dict.fromkeys(way for some in found.values() for way in some))
    rows = [
        Row(of(chains), STAN.get(chains, ""), some[lanes.PC] / some[lanes.LOCAL], some | {lanes.PLAIN: alone})
        for chains, some in found.items()
    ]
    if why:
        rows.append(Row(f"{tfp.NAME}, the authors' own", why=why))
    curves = [Curve(THROUGHPUT, lanes.PLAIN, list(sizes), [alone] * len(sizes))]
    for way in ways:
        measured = {chains: some[way] for chains, some in found.items() if way in some}
        curves.append(Curve(THROUGHPUT, way, list(measured), list(measured.values())))
    return Measured(rows, curves)


def shares(setting: Setting, chains: int) -> dict[str, float]:
    """The share of batched gradients that are of use, by strategy."""
    found = {}
    for way, strategy in ((lanes.PC, "pc"), (lanes.LOCAL, "local")):
        count, wanted = batches(setting, chains, lanes.DRAWS, strategy=strategy)
        found[way] = float(wanted.sum()) / (chains * count)
    return found


def utilisation(setting: Setting, sizes: Sequence[int]) -> Measured:
    """Figure 7: the share of gradients that are of use against chains."""
    found = {chains: shares(setting, chains) for chains in sizes}
    paper = {30: "local 0.25, program counter twice that"}
    rows = [
        Row(of(chains), paper.get(chains, ""), some[lanes.PC] / some[lanes.LOCAL], some)
        for chains, some in found.items()
    ]
    curves = [
        Curve(UTILISATION, way, list(sizes), [some[way] for some in found.values()]) for way in (lanes.PC, lanes.LOCAL)
    ]
    return Measured(rows, curves)


PAPER = Paper(
    "Automatically Batching Control-Intensive Programs for Modern Accelerators",
    "Radul, Patton, Maclaurin, Hoffman, Saurous, MLSys 2020",
    (
        Figure(
            "nuts-throughput",
            "Figure 6",
            "throughput of NUTS on a Bayesian logistic regression (10,000 points, 100 regressors)",
            "A plot without numbers (section 4.1). Throughput grows linearly with chains until the hardware is "
            "saturated. On the CPU, batching by program counters under XLA reaches Stan at ten chains and local "
            "batching in TensorFlow Eager at a few hundred; at very many chains the hybrid of local batching with "
            "compiled blocks is fastest. Batching gains up to three orders of magnitude (section 6).",
            "Useful gradients per CPU second of one thread; ten draws of each chain. `local` is our local strategy, "
            "whose blocks XLA compiles: the paper's hybrid. Stan is no part of this; BlackJAX stands for a sampler "
            "by hand. TensorFlow Probability holds the authors' own implementation, which runs in a process of its "
            "own (`benchmarks/papers/tfp.py`), four leapfrog steps in a leaf as in the paper; here a leaf has two. A "
            "quick run has 1,000 points.",
            "program counter / local",
            lambda quick: (
                throughput(regression(1000), QUICK, 1, QUICK[-1:])
                if quick
                else throughput(regression(), CHAINS, 3, CHAINS)
            ),
        ),
        Figure(
            "nuts-utilisation",
            "Figure 7",
            "share of batched gradients that are of use, NUTS on a correlated Gaussian of 100 dimensions",
            "With local batching the longest trajectory is about four times the average, so utilisation is a quarter "
            "from 30 chains on; program counters, which batch across ten trajectories, recover a factor of about two "
            "(section 4.2).",
            "Counted, not timed: ten draws of each chain, covariance 0.9^|i-j|, one step size for all.",
            "program counter / local",
            lambda quick: utilisation(correlated(), QUICK if quick else MORE),
        ),
    ),
)
