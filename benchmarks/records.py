"""Programs over objects against the same over arrays written by hand: `python -m benchmarks.records [--lanes 256]`

Trees of random shapes, packed by `pcbatch.pack`. The peer of each program has the same source but for its reads: arrays
`left[node]` that it takes as arguments, in place of `node.left`. Results are compared before anything is timed. A row
shows how many objects a second are packed on one core.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import paired

SEED = 7
REPEATS = 21  # pairs of runs
WIDTH = 64  # of the vectors at nodes


class Node(NamedTuple):
    """A node of a binary tree; a leaf has a word."""

    left: Node | None
    right: Node | None
    word: int


class Arrays(NamedTuple):
    """Trees as arrays written by hand: rows of children, -1 for none."""

    left: jax.Array
    right: jax.Array
    word: jax.Array


class Weights(NamedTuple):
    """The weights of a recursive network."""

    words: jax.Array
    left: jax.Array
    right: jax.Array


def make_tree(draw: random.Random, leaves: int) -> Node:
    """Make a tree of a random shape."""
    if leaves == 1:
        return Node(None, None, draw.randrange(100))
    first = draw.randrange(1, leaves)
    return Node(make_tree(draw, first), make_tree(draw, leaves - first), 0)


@pcbatch.batch(in_axes=(None, 0))
def encode(weights, node):  # type: ignore[no-untyped-def]
    """Encode a tree by a recursive network."""
    if node.left is None:
        return weights.words[node.word]
    return jnp.tanh(encode(weights, node.left) @ weights.left + encode(weights, node.right) @ weights.right)


@pcbatch.batch(in_axes=(None, None, 0))
def encode_by_hand(weights, trees, node):  # type: ignore[no-untyped-def]
    """Encode a tree that is given by its row."""
    if trees.left[node] < 0:
        return weights.words[trees.word[node]]
    return jnp.tanh(
        encode_by_hand(weights, trees, trees.left[node]) @ weights.left
        + encode_by_hand(weights, trees, trees.right[node]) @ weights.right
    )


@pcbatch.batch
def total(node):  # type: ignore[no-untyped-def]
    """Add all words of a tree."""
    if node is None:
        return 0
    return node.word + total(node.left) + total(node.right)


@pcbatch.batch(in_axes=(None, 0))
def total_by_hand(trees, node):  # type: ignore[no-untyped-def]
    """Add all words of a tree that is given by its row."""
    if node < 0:
        return 0
    return trees.word[node] + total_by_hand(trees, trees.left[node]) + total_by_hand(trees, trees.right[node])


@pcbatch.batch
def deepest(node):  # type: ignore[no-untyped-def]
    """Go to the left until there is nothing."""
    steps = 0
    while node.left is not None:
        node = node.left if node.word % 2 == 0 else node.right
        steps += node.word
    return steps


@pcbatch.batch(in_axes=(None, 0))
def deepest_by_hand(trees, node):  # type: ignore[no-untyped-def]
    """Go to the left until there is nothing, by rows."""
    steps = 0
    while trees.left[node] >= 0:
        node = trees.left[node] if trees.word[node] % 2 == 0 else trees.right[node]
        steps += trees.word[node]
    return steps


def packing_rate(trees: list[Node], nodes: int) -> float:
    """Measure the objects that are packed in a second of the processor, the best of some runs."""
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        jax.block_until_ready(pcbatch.pack(trees))
        best = min(best, time.thread_time() - start)
    return nodes / best


def count(node: Node | None) -> int:
    """Count the nodes of a tree."""
    return 0 if node is None else 1 + count(node.left) + count(node.right)


def main() -> None:
    """Run the comparison, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lanes", type=int, default=256)
    parser.add_argument("--leaves", type=int, default=40)
    options = parser.parse_args()
    draw = random.Random(SEED)
    trees = [make_tree(draw, draw.randrange(2, options.leaves)) for _ in range(options.lanes)]
    many = trees * 1 + [make_tree(draw, draw.randrange(2, options.leaves)) for _ in range(8000)]
    nodes = sum(map(count, many))
    print(f"packing: {packing_rate(many, nodes):,.0f} objects a second ({nodes:,} objects)")
    packed = pcbatch.pack(trees)
    by_hand = Arrays(*packed.columns)
    rows = packed.ids
    keys = jax.random.split(jax.random.key(SEED), 3)
    weights = Weights(
        jax.random.normal(keys[0], (100, WIDTH)),
        jax.random.normal(keys[1], (WIDTH, WIDTH)) / WIDTH**0.5,
        jax.random.normal(keys[2], (WIDTH, WIDTH)) / WIDTH**0.5,
    )
    programs = {
        "recursive network": (lambda: encode(weights, packed), lambda: encode_by_hand(weights, by_hand, rows)),
        "sum of a tree": (lambda: total(packed), lambda: total_by_hand(by_hand, rows)),
        "a way down": (lambda: deepest(packed), lambda: deepest_by_hand(by_hand, rows)),
    }
    for name, (ours, theirs) in programs.items():
        np.testing.assert_allclose(ours(), theirs(), rtol=1e-5)
        hand, mine, ratio = paired(theirs, ours, REPEATS)
        print(f"{name}: {mine * 1e3:.2f} ms over objects, {hand * 1e3:.2f} ms by hand, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
