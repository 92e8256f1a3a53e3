"""Nearest neighbours in a k-d tree of Python objects: each lane leaves out what is too far from its point."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import pcbatch


class Node(NamedTuple):
    """A point, and the points below and above it along an axis."""

    point: np.ndarray
    axis: int
    below: Node | None
    above: Node | None


def build(points, axis=0):
    """Make a tree of points, split at their median along each axis in turn."""
    if not len(points):
        return None
    points = points[np.argsort(points[:, axis])]
    middle, other = len(points) // 2, (axis + 1) % points.shape[1]
    return Node(points[middle], axis, build(points[:middle], other), build(points[middle + 1 :], other))


@pcbatch.batch
def nearest(node, x, best, distance):
    """Look for a point nearer to `x` than `best` in a tree; return the nearest one and its distance, squared."""
    if node is None:
        return best, distance
    d = jnp.sum((node.point - x) ** 2)
    if d < distance:
        best, distance = node, d
    side = x[node.axis] - node.point[node.axis]
    near, far = (node.below, node.above) if side < 0 else (node.above, node.below)
    best, distance = nearest(near, x, best, distance)
    if side**2 < distance:
        best, distance = nearest(far, x, best, distance)
    return best, distance


@pcbatch.batch(in_axes=(None, 0))
def find(tree, x):
    """The node nearest to `x`."""
    best, _ = nearest(tree, x, None, jnp.inf)
    return best


def main(lanes: int = 1000) -> None:
    """Look for the nearest of many points, then compare with all of them."""
    rng = np.random.default_rng(0)
    points, xs = rng.random((500, 2), np.float32), rng.random((lanes, 2), np.float32)
    tree = pcbatch.pack([build(points)])
    found = np.stack([node.point for node in find(tree[0], xs).unpack()])
    expected = points[np.argmin(np.sum((points - xs[:, None]) ** 2, -1), axis=1)]
    np.testing.assert_array_equal(found, expected)
    print(f"kd_tree: the nearest of {len(points)} points for {lanes} others, all as by trying each")


if __name__ == "__main__":
    main()
