"""The knapsack problem: a table of lists of lists, and what was packed, read back from it."""

from __future__ import annotations

import numpy as np

import pcbatch
from examples.in_python import check


@pcbatch.batch
def knapsack(weights, values, capacity):
    """The greatest value of things whose weight is at most `capacity`, and which things they are."""
    best = [[0] * (capacity + 1) for _ in range(len(weights) + 1)]
    for i in range(1, len(weights) + 1):
        for room in range(capacity + 1):
            best[i][room] = best[i - 1][room]
            if weights[i - 1] <= room:
                best[i][room] = max(best[i][room], best[i - 1][room - weights[i - 1]] + values[i - 1])
    chosen, room = [], capacity
    for i in range(len(weights), 0, -1):
        if best[i][room] != best[i - 1][room]:
            chosen.append(i - 1)
            room -= weights[i - 1]
    return best[-1][capacity], chosen[::-1]


def main(lanes: int = 100, things: int = 6) -> None:
    """Pack random things into knapsacks of 0 to 20."""
    rng = np.random.default_rng(0)
    weights, values = rng.integers(1, 8, (lanes, things)), rng.integers(1, 20, (lanes, things))
    found = check(knapsack, weights, values, rng.integers(0, 21, lanes))
    print(f"knapsack: {lanes} knapsacks with {sum(len(c) for _, c in found)} things, all as in plain Python")


if __name__ == "__main__":
    main()
