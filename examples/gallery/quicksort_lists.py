"""Quicksort with list comprehensions, on lists of any length: recursion over lists that each lane makes."""

from __future__ import annotations

import numpy as np

import pcbatch
from examples.in_python import check


@pcbatch.batch
def quicksort(xs):
    """The numbers of a list in ascending order."""
    if len(xs) <= 1:
        return xs
    pivot, rest = xs[0], xs[1:]
    below = [x for x in rest if x < pivot]
    above = [x for x in rest if x >= pivot]
    return quicksort(below) + [pivot] + quicksort(above)


def main(lanes: int = 200) -> None:
    """Sort lists of 0 to 30 numbers."""
    rng = np.random.default_rng(0)
    lists = [rng.integers(0, 100, rng.integers(31)).tolist() for _ in range(lanes)]
    found = check(quicksort, lists)
    print(f"quicksort_lists: {sum(map(len, found))} numbers in {lanes} lists sorted, all as in plain Python")


if __name__ == "__main__":
    main()
