"""The rule of the lemma, for machines that cannot see what comes: what to expect is fitted to samples.

Of the executions of a block that need no more of the same block (`Simulation.share`), each lane or record that waits
for a block stands for so many, and for one of its own block. These numbers, none of them negative, are fitted by least
squares to the states that runs by the exact rule go through, of all samples and of some.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pcbatch.learning import fixed
from pcbatch.learning.task_graph import Ints, Simulation, TaskGraph

RUNS = 8  # of some of the samples
SWEEPS = 200  # over the numbers, of a fit
UNIT = 64


def ahead(graph: TaskGraph, seed: int) -> tuple[tuple[float, ...], ...]:
    """Return for each block that something waits for how much of each block is to come, in parts of `UNIT`."""
    waiting, front = (np.array(counts, float) for counts in zip(*_states(graph, seed), strict=True))
    squares, products = waiting.T @ waiting, waiting.T @ front
    found = np.eye(len(graph.labels))
    for _ in range(SWEEPS):
        for k in np.flatnonzero(squares.diagonal()):
            found[k] = np.maximum(0.0, found[k] + (products[k] - squares[k] @ found) / squares[k, k])
            found[k, k] = 1.0
    return tuple(tuple(row) for row in (np.round(UNIT * found) / UNIT).tolist())


def _states(graph: TaskGraph, seed: int) -> Iterator[tuple[Ints, Ints]]:
    rng, names = np.random.default_rng(seed), np.unique(graph.examples)
    for some in (names, *(rng.permutation(names)[: int(rng.integers(1, len(names) + 1))] for _ in range(RUNS))):
        run = Simulation(graph, some)
        while run.live:
            yield run.waiting.copy(), run.front.copy()
            run.visit(fixed.shares(run))
