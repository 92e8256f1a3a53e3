"""Edit distance: dynamic programming over a table, of which each lane needs a part of its own."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

import pcbatch


@pcbatch.batch
def distance(a, m, b, n):
    """How many letters must be put in, left out or changed to make `b[:n]` out of `a[:m]`."""
    table = jnp.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(m + 1):
        table = table.at[i, 0].set(i)
    for j in range(n + 1):
        table = table.at[0, j].set(j)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            change = table[i - 1, j - 1] + (0 if a[i - 1] == b[j - 1] else 1)
            drop = jnp.minimum(table[i - 1, j], table[i, j - 1]) + 1
            table = table.at[i, j].set(jnp.minimum(change, drop))
    return table[m, n]


def main(lanes: int = 1000) -> None:
    """Compare random words of different lengths, then each pair by the recursive definition."""
    rng = np.random.default_rng(0)
    pairs = [["".join(rng.choice(list("acgt"), rng.integers(0, 11))) for _ in range(2)] for _ in range(lanes)]
    a, b = (jnp.array([[ord(c) for c in pair[side].ljust(10)] for pair in pairs]) for side in range(2))
    m, n = (jnp.array([len(pair[side]) for pair in pairs]) for side in range(2))
    found = distance(a, m, b, n)
    np.testing.assert_array_equal(found, [by_definition(*pair) for pair in pairs])
    print(f"edit_distance: {lanes} pairs of words, distances 0 to {found.max()}, all as by the definition")


@functools.cache
def by_definition(a: str, b: str) -> int:
    """The recursive definition."""
    if not a or not b:
        return len(a) + len(b)
    change = by_definition(a[1:], b[1:]) + (a[0] != b[0])
    return min(change, by_definition(a[1:], b) + 1, by_definition(a, b[1:]) + 1)


if __name__ == "__main__":
    main()
