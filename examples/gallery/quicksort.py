"""Quicksort: a loop that partitions, two recursive calls on ranges that differ between lanes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import pcbatch


@pcbatch.batch
def quicksort(a, low, high):
    """`a` with the elements from `low` to `high`, both included, in ascending order."""
    if low >= high:
        return a
    pivot = a[(low + high) // 2]
    i, j = low, high
    while i <= j:
        while a[i] < pivot:
            i += 1
        while a[j] > pivot:
            j -= 1
        if i <= j:
            a = a.at[i].set(a[j]).at[j].set(a[i])
            i += 1
            j -= 1
    a = quicksort(a, low, j)
    return quicksort(a, i, high)


@pcbatch.batch
def sort(a):
    """`a` in ascending order."""
    return quicksort(a, 0, len(a) - 1)


def main(lanes: int = 1000, length: int = 32) -> None:
    """Sort random arrays, some of them sorted or constant already, and compare with `numpy.sort`."""
    rng = np.random.default_rng(0)
    arrays = rng.integers(0, 100, (lanes, length))
    arrays[::5].sort(axis=1)
    arrays[1::5] = 7
    np.testing.assert_array_equal(sort(jnp.array(arrays)), np.sort(arrays, axis=1))
    print(f"quicksort: {lanes} arrays of {length} integers sorted, all as numpy.sort does")


if __name__ == "__main__":
    main()
