"""The Mandelbrot set: the shortest program with loops of very different lengths."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import pcbatch


@pcbatch.batch
def escape(c, limit=50):
    """After how many steps z leaves the disc of radius 2; `limit` if it does not."""
    z = 0
    for n in range(limit):
        if abs(z) > 2:
            return n
        z = z * z + c
    return limit


def main(lanes: int = 4000) -> None:
    """Colour the points of a grid and compare with numpy, all points in step."""
    width = int(lanes**0.5)
    x, y = np.linspace(-2, 0.5, width), np.linspace(-1.2, 1.2, -(-lanes // width))
    points = (x + 1j * y[:, None]).ravel()[:lanes].astype(np.complex64)
    counts = escape(jnp.array(points))
    np.testing.assert_array_equal(counts, in_step(points, 50))
    print(f"mandelbrot: {lanes} points, {int((counts == 50).sum())} do not escape, all as in numpy")


def in_step(c: np.ndarray, limit: int) -> np.ndarray:
    """The same for all points at once, as numpy does it."""
    z, counts = np.zeros_like(c), np.full(c.shape, limit)
    for n in range(limit):
        counts[(counts == limit) & (abs(z) > 2)] = n
        z = np.where(counts == limit, z * z + c, z)
    return counts


if __name__ == "__main__":
    main()
