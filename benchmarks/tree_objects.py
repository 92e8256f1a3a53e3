"""TreeLSTM over packed objects against the same trees as arrays: `NPROC=1 python -m benchmarks.tree_objects`

Trees as a user has them, objects of a dataclass that refer to their parts, packed once by `pcbatch.pack`; and the same
trees as arrays `left[node]` with an axis of examples. Cells, weights and shapes are one. Inference, and the mean loss
with its gradient by all weights, outside of `jit` and inside, where the tape has a fixed length. Results are compared
before anything is timed. CPU seconds, both ways in turn, medians of the ratios of pairs; the goal is a ratio of at most
1.05. Making the arrays and packing are no part of them; packing has a row of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import Row, paired_cpu, report
from examples.treelstm.data import Trees, generate
from examples.treelstm.model import compose, initial_weights, leaf, logits, surprise

GOAL = 1.05
PARTS = ("inference", "training", "training in jit")
FORKS = ("auto", "always", "never")
Call = Callable[[], Any]


@dataclass(frozen=True)
class Tree:
    """A word, or a phrase of two parts."""

    word: int
    left: Tree | None = None
    right: Tree | None = None


class Arrays(NamedTuple):
    """Trees as arrays [trees, nodes]; -1 for no part."""

    left: jax.Array
    right: jax.Array
    word: jax.Array


def encode(w, tree):  # type: ignore[no-untyped-def]
    """The state of a tree of objects."""
    if tree.left is None:
        return leaf(w, tree.word)
    return compose(w, encode(w, tree.left), encode(w, tree.right))


@pcbatch.batch(in_axes=(None, 0))
def objects(w, tree):  # type: ignore[no-untyped-def]
    """A number for each class."""
    return logits(w, encode(w, tree).h)


@pcbatch.batch(in_axes=(None, 0, 0))
def objects_loss(w, tree, label):  # type: ignore[no-untyped-def]
    """The cross entropy of a tree."""
    return surprise(w, encode(w, tree).h, label)


def encode_row(w, trees, node):  # type: ignore[no-untyped-def]
    """The state of a node of arrays."""
    if trees.left[node] < 0:
        return leaf(w, trees.word[node])
    return compose(w, encode_row(w, trees, trees.left[node]), encode_row(w, trees, trees.right[node]))


@pcbatch.batch(in_axes=(None, 0))
def arrays(w, tree):  # type: ignore[no-untyped-def]
    """A number for each class."""
    return logits(w, encode_row(w, tree, 0).h)


@pcbatch.batch(in_axes=(None, 0, 0))
def arrays_loss(w, tree, label):  # type: ignore[no-untyped-def]
    """The cross entropy of a tree."""
    return surprise(w, encode_row(w, tree, 0).h, label)


def as_objects(trees: Trees) -> list[Tree]:
    """Trees as objects."""

    def made(k: int, node: int) -> Tree:
        left, right = int(trees.left[k, node]), int(trees.right[k, node])
        return Tree(int(trees.word[k, node])) if left < 0 else Tree(0, made(k, left), made(k, right))

    return [made(k, 0) for k in range(len(trees.left))]


def pair(part: str, hidden: int, batch: int, fork: str) -> tuple[Call, Call]:
    """One part over objects, and over arrays."""
    host, w = generate(batch, 1), initial_weights(hidden, 0)
    packed = pcbatch.pack(as_objects(host))
    given = Arrays(*(jnp.asarray(x, jnp.int32) for x in (host.left, host.right, host.word)))
    label = jnp.asarray(host.label[:, 0], jnp.int32)
    if part == "inference":
        f, g = objects.with_options(plan=pcbatch.Plan(fork=fork)), arrays.with_options(plan=pcbatch.Plan(fork=fork))
        return lambda: f(w, packed), lambda: g(w, given)
    more = {"max_tape": host.left.shape[-1]} if part == "training in jit" else {}
    f, g = (each.with_options(plan=pcbatch.Plan(fork=fork), **more) for each in (objects_loss, arrays_loss))
    if part == "training":
        return lambda: step(f, w, packed, label), lambda: step(g, w, given, label)
    one, other = jax.jit(lambda *args: step(f, *args)), jax.jit(lambda *args: step(g, *args))
    return lambda: one(w, packed, label), lambda: other(w, given, label)


def step(model: Any, w: Any, trees: Any, label: Any) -> Any:
    """The mean loss, and its gradient."""
    return jax.value_and_grad(lambda w: jnp.mean(model(w, trees, label)))(w)


def measure(part: str, hidden: int, batch: int, fork: str, repeats: int) -> list[Row]:
    """Compare, then time."""
    mine, by_hand = pair(part, hidden, batch, fork)
    for found, wanted in zip(*map(jax.tree.leaves, (mine(), by_hand())), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-4)
    ours, theirs, ratio = paired_cpu(mine, by_hand, repeats)
    title = f'TreeLSTM, {part}, hidden {hidden}, {batch} trees, fork="{fork}"'
    return [
        Row(f"{title}: objects", 1e3 * ours, "ms"),
        Row(f"{title}: arrays", 1e3 * theirs, "ms"),
        Row(f"{title}: objects / arrays", ratio, "x", GOAL),
    ]


def packing(batch: int, repeats: int) -> Row:
    """How long it takes to pack the objects."""
    trees = as_objects(generate(batch, 1))
    seconds = paired_cpu(lambda: pcbatch.pack(trees), lambda: pcbatch.pack(trees), repeats)[0]
    return Row(f"packing {batch} trees", 1e3 * seconds, "ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--trees", type=int, nargs="*", default=[8, 64])
    parser.add_argument("--fork", nargs="*", choices=FORKS, default=["auto"])
    parser.add_argument("--repeats", type=int, default=41)
    options = parser.parse_args()
    rows = [packing(batch, options.repeats) for batch in options.trees]
    for part in options.only:
        for batch in options.trees:
            for fork in options.fork:
                rows += measure(part, options.hidden, batch, fork, options.repeats)
    report("trees of objects against trees as arrays", rows)


if __name__ == "__main__":
    main()
