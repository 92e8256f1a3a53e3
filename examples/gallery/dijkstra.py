"""Dijkstra's algorithm with `heapq`: a heap of pairs in every lane."""

from __future__ import annotations

import heapq

import numpy as np

import pcbatch
from examples.in_python import check


@pcbatch.batch
def distances(lengths, start):
    """The length of the shortest way from one node of a graph to each; a length of zero is no edge."""
    shortest = [float("inf")] * len(lengths)
    shortest[start] = 0.0
    heap = [(0.0, start)]
    while heap:
        distance, node = heapq.heappop(heap)
        if distance > shortest[node]:
            continue
        for other, length in enumerate(lengths[node]):
            if length > 0 and distance + length < shortest[other]:
                shortest[other] = distance + length
                heapq.heappush(heap, (shortest[other], other))
    return shortest


def main(lanes: int = 100, nodes: int = 8) -> None:
    """Measure random graphs, whose lengths are whole numbers."""
    rng = np.random.default_rng(0)
    graphs = rng.integers(1, 10, (lanes, nodes, nodes)) * (rng.random((lanes, nodes, nodes)) < 0.25)
    found = check(distances, graphs.astype(np.float32), rng.integers(0, nodes, lanes))
    reached = sum(distance < np.inf for row in found for distance in row)
    print(f"dijkstra: {reached} of {lanes * nodes} nodes reached, all as in plain Python")


if __name__ == "__main__":
    main()
