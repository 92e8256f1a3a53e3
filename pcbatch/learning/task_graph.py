"""The graph of a run: executions of blocks for one example each, and which of them needs which other.

The type of an execution is the number of its block. Executions of several examples never need each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

Ints = np.ndarray


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """A graph of executions, in an order in which each comes after those that it needs.

    Attributes:
        labels: the labels of the blocks.
        types: int[executions]: the block of each.
        examples: int[executions]: the example of each.
        needs: of each, the executions that it needs.
        widths: the most executions of each block in one visit.
    """

    labels: tuple[str, ...]
    types: Ints
    examples: Ints
    needs: Sequence[tuple[int, ...]]
    widths: tuple[int, ...]
    _found: dict[str, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.types)

    @cached_property
    def followers(self) -> Ints:
        """int[executions, most]: those that need each; `len(self)` where there are no more."""
        return _followers(self.needs)

    @cached_property
    def kin(self) -> list[tuple[int, ...]]:
        """For each execution, the nearest ones of its own block that it needs, directly or through others."""
        later = self._types_after()
        near: list[dict[int, frozenset[int]]] = []
        found: list[tuple[int, ...]] = []
        for v, needed in enumerate(self.needs):
            mine: dict[int, frozenset[int]] = {}
            for p in needed:
                for kind, some in near[p].items():
                    mine[kind] = mine[kind] | some if kind in mine else some
            kind = int(self.types[v])
            found.append(tuple(mine.get(kind, ())))
            mine[kind] = frozenset((v,))
            near.append({a: some for a, some in mine.items() if later[v] >> a & 1})
        return found

    @cached_property
    def kin_followers(self) -> Ints:
        """int[executions, most]: those of which each is among the nearest of their block that they need."""
        return _followers(self.kin)

    @cached_property
    def ranks(self) -> Ints:
        """int[executions]: the length of the longest chain of its own block that ends at each."""
        found = np.ones(len(self), np.int64)
        for v, kin in enumerate(self.kin):
            if kin:
                found[v] = 1 + max(found[p] for p in kin)
        return found

    def bounds(self) -> tuple[int, ...]:
        """Return how often each block is visited at least.

        The executions of a chain, of which each needs the one before, directly or through other blocks, are in
        different visits; and a visit holds no more than its width. The paper counts chains of executions that need
        each other directly, which are never longer.
        """
        found = []
        for kind, width in enumerate(self.widths):
            mine = self.types == kind
            found.append(max(int(self.ranks[mine].max()), -(-int(mine.sum()) // width)) if mine.any() else 0)
        return tuple(found)

    def part(self, kept: Ints, kinds: Sequence[int]) -> TaskGraph:
        """Return the graph of the executions in a mask that are of some blocks; others run before all, or after."""
        new = {kind: k for k, kind in enumerate(kinds)}
        rows = np.flatnonzero(kept & np.isin(self.types, list(kinds)))
        places = {v: k for k, v in enumerate(rows.tolist())}
        return TaskGraph(
            labels=tuple(self.labels[k] for k in kinds),
            types=np.array([new[int(k)] for k in self.types[rows]], np.int64),
            examples=self.examples[rows],
            needs=[tuple(places[p] for p in self.needs[v] if p in places) for v in places],
            widths=tuple(self.widths[k] for k in kinds),
        )

    def _types_after(self) -> list[int]:
        """For each execution, the blocks of those that need it, as bits."""
        found = [0] * len(self)
        for v in range(len(self) - 1, -1, -1):
            bits = found[v] | 1 << int(self.types[v])
            for p in self.needs[v]:
                found[p] |= bits
        return found


def _followers(needs: Sequence[tuple[int, ...]]) -> Ints:
    lists: list[list[int]] = [[] for _ in needs]
    for v, needed in enumerate(needs):
        for p in needed:
            lists[p].append(v)
    found = np.full((len(needs) + 1, max([1, *map(len, lists)])), len(needs), np.int64)
    for v, some in enumerate(lists):
        found[v, : len(some)] = some
    return found


def of_chains(labels: tuple[str, ...], chains: Sequence[Sequence[int]]) -> TaskGraph:
    """Return the graph of lanes that run these blocks, one after the other."""
    types: list[int] = []
    examples: list[int] = []
    needs: list[tuple[int, ...]] = []
    for lane, chain in enumerate(chains):
        for k, kind in enumerate(chain):
            needs.append((len(types) - 1,) if k else ())
            types.append(kind)
            examples.append(lane)
    width = max(1, len(chains))
    return TaskGraph(labels, np.array(types, np.int64), np.array(examples, np.int64), needs, (width,) * len(labels))


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

    def visit(self, block: int) -> None:
        """Run what waits for a block."""
        graph, some = self.graph, self.ready[block]
        width = graph.widths[block]
        now, rest = some[-width:], some[: max(0, len(some) - width)]
        self.ready[block] = rest
        self.waiting[block] = len(rest)
        self.visits[block] += 1
        self.left[block] -= len(now)
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
    """The visits that a simulated run makes, and how good they are.

    Attributes:
        visits: of each block.
        sufficient: the share of the visits that took all of what could wait.
        time: of all visits.
    """

    visits: Ints
    sufficient: float
    time: float = 0.0

    @property
    def total(self) -> int:
        """The number of visits of all blocks together."""
        return int(self.visits.sum())


@dataclass(frozen=True, slots=True)
class Visits:
    """The way in which a machine visits blocks: the time and the repeats of a visit.

    Attributes:
        time: of a visit of a block, by its number, for which so many wait.
        spins: of the mode of each block.
    """

    time: Callable[[int, int], float] = lambda block, waiting: 1.0
    spins: Sequence[int] = ()


def simulate(graph: TaskGraph, choose: Choose, visits: Visits = Visits()) -> Outcome:
    """Run a graph to its end; `choose` gives the block of the next visit."""
    run, spins = Simulation(graph), visits.spins
    whole, time = 0, 0.0
    while run.live:
        block = choose(run)
        start, debt, repeats = int(run.waiting[block]), 0, spins[block] if spins else 0
        while True:
            for _ in range(max(1, repeats)):
                if run.waiting[block]:
                    whole += run.waiting[block] == run.front[block] <= graph.widths[block]
                    time += visits.time(block, min(int(run.waiting[block]), graph.widths[block]))
                    run.visit(block)
            debt += repeats * (start - int(run.waiting[block]))  # visits that those which have left it sat out
            if not repeats or not run.waiting[block] or debt >= start:
                break
    total = int(run.visits.sum())
    return Outcome(run.visits, whole / total if total else 1.0, time)
