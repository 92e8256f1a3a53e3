"""Small networks whose control flow is data, for `benchmarks.policies`: each with its inputs at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from examples.treelstm.data import generate
from examples.treelstm.model import initial_weights, sentiment

HIDDEN, LONGEST = 32, 40
Inputs = Callable[[int, int], tuple[Any, ...]]


def cell(w, x, h):
    """A gated cell."""
    z = jnp.concatenate([x, h]) @ w
    gate, new = jnp.split(z, 2)
    return h + jax.nn.sigmoid(gate) * (jnp.tanh(new) - h)


@pcbatch.batch(in_axes={"w": None}, plan=pcbatch.Plan(fork="always"))
def two_types(w, left, right, kind, node):
    """A tree whose inner nodes have weights of two kinds."""
    if left[node] < 0:
        return jnp.tanh(w["words"][kind[node]])
    a = two_types(w, left, right, kind, left[node])
    b = two_types(w, left, right, kind, right[node])
    if kind[node] % 2 == 0:
        return cell(w["even"], a, b)
    return cell(w["odd"], b, a)


@pcbatch.batch(in_axes={"w": None}, plan=pcbatch.Plan(fork="always"))
def three_types(w, left, right, kind, node):
    """A tree whose inner nodes have weights of three kinds."""
    if left[node] < 0:
        return jnp.tanh(w["words"][kind[node]])
    a = three_types(w, left, right, kind, left[node])
    b = three_types(w, left, right, kind, right[node])
    if kind[node] % 3 == 0:
        return cell(w["even"], a, b)
    if kind[node] % 3 == 1:
        return cell(w["odd"], b, a)
    return jnp.tanh(cell(w["even"], b, cell(w["odd"], a, b)))


@pcbatch.batch(in_axes={"w": None}, plan=pcbatch.Plan(fork="always"))
def forward(w, words, k):
    """The state after word k, left to right."""
    if k < 0:
        return jnp.zeros(HIDDEN)
    return cell(w["even"], w["words"][words[k]], forward(w, words, k - 1))


@pcbatch.batch(in_axes={"w": None}, plan=pcbatch.Plan(fork="always"))
def backward(w, words, k, n):
    """The state after word k, right to left."""
    if k >= n:
        return jnp.zeros(HIDDEN)
    return cell(w["odd"], w["words"][words[k]], backward(w, words, k + 1, n))


@pcbatch.batch(in_axes={"w": None}, plan=pcbatch.Plan(fork="always"))
def ends(w, words, n):
    """What both directions make of a sentence."""
    return forward(w, words, n - 1) * backward(w, words, 0, n)


@pcbatch.batch(in_axes={"w": None}, plan=pcbatch.Plan(fork="always"))
def matrices(w, left, right, kind, node):
    """A vector and a matrix for each node of a tree (MV-RNN)."""
    if left[node] < 0:
        v = jnp.tanh(w["words"][kind[node]])
        return v, jnp.outer(v[:8], v[:8])
    v1, m1 = matrices(w, left, right, kind, left[node])
    v2, m2 = matrices(w, left, right, kind, right[node])
    mixed = jnp.concatenate([m2 @ v1[:8], m1 @ v2[:8], v1[16:]])
    return cell(w["even"], mixed, v2), jnp.tanh(m1 @ m2)


@pcbatch.batch(in_axes={"w": None})
def lattice(w, words, starts):
    """A lattice LSTM: at each character the words that end there, then the character; cells of two kinds."""
    states = jnp.zeros((LONGEST + 1, HIDDEN))
    h = jnp.zeros(HIDDEN)
    k = 0
    while k < LONGEST and words[k] >= 0:
        size = 1
        while size < 4:
            if starts[k, size - 1]:
                h = h + cell(w["odd"], w["words"][words[k]], states[k - size])
            size = size + 1
        h = cell(w["even"], w["words"][words[k]], h)
        states = states.at[k].set(h)
        k = k + 1
    return h


def weights() -> dict[str, Any]:
    """The weights of all models."""
    rng = np.random.default_rng(0)
    square = (2 * HIDDEN, 2 * HIDDEN)
    shapes = {"even": square, "odd": square, "words": (100, HIDDEN)}
    return {name: jnp.asarray(rng.normal(size=shape) / 8, jnp.float32) for name, shape in shapes.items()}


def trees(count: int, seed: int) -> tuple[Any, ...]:
    """Trees; the kind of a node is a number."""
    rng, some = np.random.default_rng(seed), generate(count, seed)
    kind = rng.integers(0, 100, some.left.shape)
    return weights(), *(jnp.asarray(x, jnp.int32) for x in (some.left, some.right, kind)), jnp.zeros(count, jnp.int32)


def sentences(count: int, seed: int) -> tuple[Any, ...]:
    """Sentences."""
    rng = np.random.default_rng(seed)
    words, length = rng.integers(0, 100, (count, LONGEST)), rng.integers(5, 30, count)
    return weights(), jnp.asarray(words, jnp.int32), jnp.asarray(length, jnp.int32)


def lattices(count: int, seed: int) -> tuple[Any, ...]:
    """Sentences with the words that end at each character."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 100, (count, LONGEST))
    length = rng.integers(10, LONGEST, count)
    words[np.arange(LONGEST)[None] >= length[:, None]] = -1
    starts = rng.random((count, LONGEST, 3)) < 0.2
    starts &= np.arange(LONGEST)[None, :, None] > np.arange(3)[None, None, :]
    return weights(), jnp.asarray(words, jnp.int32), jnp.asarray(starts)


PROGRAMS: Mapping[str, tuple[Any, Inputs]] = {
    "TreeLSTM": (
        sentiment.with_options(plan=pcbatch.Plan(fork="always")),
        lambda count, seed: (initial_weights(HIDDEN, 0), jax.device_put(generate(count, seed))),
    ),
    "tree, two types": (two_types, trees),
    "tree, three types": (three_types, trees),
    "two chains": (ends, sentences),
    "MV-RNN": (matrices, trees),
    "lattice": (lattice, lattices),
}
