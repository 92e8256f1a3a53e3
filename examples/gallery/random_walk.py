"""A random walk on a lattice until it leaves a disc: every lane has its own key and its own length."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

MOVES = jnp.array([[1, 0], [-1, 0], [0, 1], [0, -1]])


@pcbatch.batch
def walk(key, radius):
    """How many steps it takes, and where the walk ends."""
    position = jnp.array([0, 0])
    steps = 0
    while jnp.sum(position**2) < radius**2:
        key, now = jax.random.split(key)
        position = position + MOVES[jax.random.randint(now, (), 0, 4)]
        steps += 1
    return steps, position


def main(lanes: int = 100, radius: int = 4) -> None:
    """Walk with many keys, then with each of them alone in plain Python."""
    keys = jax.random.split(jax.random.key(0), lanes)
    steps, ends = walk.with_options(in_axes=(0, None))(keys, radius)
    for key, count, end in zip(keys, steps, ends, strict=True):
        alone, place = walk.plain(key, radius)
        np.testing.assert_equal(int(count), alone)
        np.testing.assert_array_equal(end, place)
    print(f"random_walk: {lanes} walks of {steps.min()} to {steps.max()} steps, all as in plain Python")


if __name__ == "__main__":
    main()
