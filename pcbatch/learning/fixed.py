"""Policies that are not learned: the lemma's, and those of the machines, each with blocks in an order of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

from pcbatch.learning.task_graph import Choose, Simulation


def shares(run: Simulation) -> int:
    """Choose the block of which the largest share waits, as the lemma says: it sees what is still to come."""
    return max((int(k) for k in run.choices()), key=run.share)


def earliest(order: Sequence[int]) -> Choose:
    """Choose the first block in order that something waits for."""
    return lambda run: next(k for k in order if run.waiting[k])


def largest(order: Sequence[int]) -> Choose:
    """Choose the block for which most waits, the first of several."""
    return lambda run: max(order, key=lambda k: int(run.waiting[k]))


def sweep(order: Sequence[int]) -> Choose:
    """Visit each block in order, again and again."""
    turns = (order[k % len(order)] for k in count())

    def choose(run: Simulation) -> int:
        return next(k for k in turns if run.waiting[k])

    return choose


def drain(cheap: Sequence[int], then: Callable[[Simulation], Iterator[int]], left_behind: float = 0.0) -> Choose:
    """Sweep over cheap blocks until none, or after a sweep that share of all, is left; then visit others by `then`."""

    def turns(run: Simulation) -> Iterator[int]:
        while True:
            few = 0
            while int(run.waiting[list(cheap)].sum()) > few:
                yield from (k for k in cheap if run.waiting[k])
                few = int(left_behind * run.waiting.sum())
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
