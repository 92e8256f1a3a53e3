"""Visits on the host: a run of a graph of executions in which only numbers count.

A visit of a block takes all that waits for it, at most its width, the newest first: what a machine does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pcbatch.learning.task_graph import Ints, TaskGraph


class Simulation:
    """A run of a graph, for some of its examples."""

    def __init__(self, graph: TaskGraph, examples: Ints | None = None) -> None:
        self.graph = graph
        n, kinds = len(graph), len(graph.labels)
        self.here = np.ones(n, bool) if examples is None else np.isin(graph.examples, examples)
        self.missing = np.array([*map(len, graph.needs), -1], np.int64)  # the last entry stands for no execution
        self.missing_kin = np.array([*map(len, graph.kin), -1], np.int64)
        start = self.here & (self.missing[:-1] == 0)
        self.ready: list[Ints] = [np.flatnonzero(start & (graph.types == k)) for k in range(kinds)]
        self.waiting = np.array([len(some) for some in self.ready], np.int64)
        first = graph.types[self.here & (self.missing_kin[:-1] == 0)]
        self.front = np.bincount(first, minlength=kinds)  # executions that need no more of their own block
        self.left = np.bincount(graph.types[self.here], minlength=kinds)
        self.depth_left = np.bincount(graph.types[self.here], graph.depths[self.here], minlength=kinds)
        self.visits = np.zeros(kinds, np.int64)

    @property
    def live(self) -> bool:
        """Whether some execution waits in the simulated run."""
        return bool(self.waiting.any())

    def choices(self) -> Ints:
        """Return the blocks that something waits for."""
        return np.flatnonzero(self.waiting)

    def share(self, block: int) -> float:
        """Return the share that waits, of the executions of a block that need no more of the same block.

        If it is 1, and a visit has room for all of it, some shortest run begins with a visit of this block: the first
        visit of the block in a shortest run holds nothing that does not wait already, so it may as well be made now.
        """
        return float(self.waiting[block] / self.front[block])

    def mean_depth(self, block: int) -> float:
        """Return the mean depth of the executions of a block that are left."""
        return float(self.depth_left[block] / self.left[block])

    def visit(self, block: int) -> None:
        """Run what waits for a block."""
        graph, some = self.graph, self.ready[block]
        width = graph.widths[block]
        now, rest = some[-width:], some[: max(0, len(some) - width)]
        self.ready[block] = rest
        self.waiting[block] = len(rest)
        self.visits[block] += 1
        self.left[block] -= len(now)
        self.depth_left[block] -= graph.depths[now].sum()
        self.front[block] += len(_ended(self.missing_kin, graph.kin_followers[now])) - len(now)
        new = _ended(self.missing, graph.followers[now])
        kinds = graph.types[new]
        for kind in np.unique(kinds):
            self.ready[kind] = np.concatenate([self.ready[kind], new[kinds == kind]])
            self.waiting[kind] = len(self.ready[kind])


def _ended(missing: Ints, followers: Ints) -> Ints:
    """Count down what executions miss, and return those that miss nothing more, in order."""
    end = len(missing) - 1
    flat = followers.ravel()
    flat = flat[flat < end]
    np.subtract.at(missing, flat, 1)
    return np.unique(flat[missing[flat] == 0])


Choose = Callable[[Simulation], int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The visits of a run of each block, and the share of the visits that took all of what could wait."""

    visits: Ints
    sufficient: float

    @property
    def total(self) -> int:
        """The number of visits of all blocks together."""
        return int(self.visits.sum())


def simulate(graph: TaskGraph, choose: Choose, examples: Ints | None = None) -> Outcome:
    """Run a graph to its end; `choose` gives the block of the next visit."""
    run = Simulation(graph, examples)
    whole = 0
    while run.live:
        block = choose(run)
        whole += run.waiting[block] == run.front[block] <= graph.widths[block]
        run.visit(block)
    total = int(run.visits.sum())
    return Outcome(run.visits, whole / total if total else 1.0)
