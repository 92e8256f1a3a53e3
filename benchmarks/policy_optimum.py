"""How few visits any schedule could make: A* over simulated runs, for as many steps as one likes.

What is left is estimated by the longest chains of each block, summed, so that the estimate of the start is the lower
bound of the report. The paper's sufficient condition saves branches: where a block has all that could still wait for
it, it is visited next. If the search ends early, the least estimate that is left is a bound all the same.
"""

from __future__ import annotations

import heapq

import numpy as np

from pcbatch.learning.task_graph import Ints, TaskGraph

STEPS = 3000


class _Needs:
    """Whether executions have all that they need, for sets of executions as masks."""

    def __init__(self, needs: list[tuple[int, ...]]) -> None:
        n = len(needs)  # stands for an execution that is always there
        self.flat = np.array([p for some in needs for p in (n, *some)], np.int64)
        self.starts = np.cumsum([0, *(1 + len(some) for some in needs[:-1])])

    def met(self, done: Ints) -> Ints:
        """bool[executions]"""
        found: Ints = np.logical_and.reduceat(done[self.flat], self.starts)
        return found


def least_visits(graph: TaskGraph, steps: int = STEPS) -> tuple[int, bool]:
    """Return how many visits every schedule makes at least, and whether one makes no more. Widths do not count."""
    n, blocks = len(graph), range(len(graph.labels))
    needs, kin = _Needs(list(graph.needs)), _Needs(graph.kin)
    types, height = graph.types, _heights(graph)

    def estimate(done: Ints) -> int:
        left = ~done[:n]
        return sum(int(height[left & (types == k)].max(initial=0)) for k in blocks)

    start = np.zeros(n + 1, bool)
    start[n] = True
    heap, seen, number = [(estimate(start), 0, 0, np.packbits(start).tobytes())], dict[bytes, int](), 0
    for _ in range(steps):
        total, behind, _, key = heapq.heappop(heap)
        if seen.get(key, n) <= -behind:
            continue
        seen[key] = -behind
        done = np.unpackbits(np.frombuffer(key, np.uint8))[: n + 1].astype(bool)
        if done.all():
            return total, True
        ready, front = (~done[:n] & some.met(done) for some in (needs, kin))
        moves = [k for k in blocks if (ready & (types == k)).any()]
        whole = [k for k in moves if not ((front & ~ready) & (types == k)).any()]
        for k in whole[:1] or moves:
            after = done.copy()
            after[:n] |= ready & (types == k)
            number += 1
            bound = max(total, 1 - behind + estimate(after))
            heapq.heappush(heap, (bound, behind - 1, number, np.packbits(after).tobytes()))
    return heap[0][0], False


def _heights(graph: TaskGraph) -> Ints:
    """int[executions]: the length of the longest chain of its own block that begins at each."""
    found = np.ones(len(graph), np.int64)
    for v in range(len(graph) - 1, -1, -1):
        for p in graph.kin[v]:
            found[p] = max(found[p], found[v] + 1)
    return found
