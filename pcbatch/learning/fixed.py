"""Policies that are not learned, to compare with: those of other systems and those of the machines here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import numpy as np

from pcbatch.learning.task_graph import Choose, Simulation, TaskGraph


def depth_based(graph: TaskGraph) -> int:
    """Return the visits where each holds executions of one block and one depth, as in TensorFlow Fold."""
    pairs = graph.depths * len(graph.labels) + graph.types
    kinds, numbers = np.unique(pairs, return_counts=True)
    return sum(
        -(-int(n) // graph.widths[int(pair) % len(graph.labels)]) for pair, n in zip(kinds, numbers, strict=True)
    )


def agenda(run: Simulation) -> int:
    """Choose the block whose executions that are left have the least mean depth, as DyNet does."""
    return min((int(k) for k in run.choices()), key=run.mean_depth)


def largest(run: Simulation) -> int:
    """Choose the block for which most waits."""
    return int(np.argmax(run.waiting))


def sweep(order: Sequence[int]) -> Choose:
    """Visit each block in order, again and again."""
    turns = (order[k % len(order)] for k in count())

    def choose(run: Simulation) -> int:
        return next(k for k in turns if run.waiting[k])

    return choose


def drain(cheap: Sequence[int], then: Callable[[Simulation], Iterator[int]]) -> Choose:
    """Sweep over cheap blocks until none is left; then visit expensive ones as `then` says."""

    def turns(run: Simulation) -> Iterator[int]:
        while True:
            while run.waiting[list(cheap)].any():
                yield from (k for k in cheap if run.waiting[k])
            yield from then(run)

    begun: list[Iterator[int]] = []

    def choose(run: Simulation) -> int:
        if not begun:
            begun.append(turns(run))
        return next(begun[0])

    return choose


def each(expensive: Sequence[int], ends: frozenset[int], run: Simulation) -> Iterator[int]:
    """Visit each expensive block, those in `ends` again and again, as the machine of lists does by itself."""
    for k in expensive:
        while run.waiting[k]:
            yield k
            if k not in ends:
                break


def fullest(expensive: Sequence[int], run: Simulation) -> Iterator[int]:
    """Visit the expensive block for which most waits, as the schedule "drain" of the machine of lanes does."""
    if run.live:
        yield max(expensive, key=lambda k: int(run.waiting[k]))
