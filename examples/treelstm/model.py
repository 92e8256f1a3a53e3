"""A binary TreeLSTM (Tai, Socher and Manning, ACL 2015) for ONE tree, as the paper's equations read."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from examples.treelstm.data import CLASSES, WORDS

FORGET = 1.0  # bias of the forget gates at first: remember


class State(NamedTuple):
    """Of a node: what it shows (h) and its memory cell (c)."""

    h: jax.Array
    c: jax.Array


def leaf(w, word):
    """The state of a word: there is nothing to forget."""
    i, o, u = jnp.split(w["embedding"][word] @ w["leaf"] + w["leaf_bias"], 3)
    c = jax.nn.sigmoid(i) * jnp.tanh(u)
    return State(jax.nn.sigmoid(o) * jnp.tanh(c), c)


def compose(w, left, right):
    """The state of a phrase from those of its two parts, each with a forget gate of its own."""
    gates = jnp.concatenate([left.h, right.h]) @ w["node"] + w["node_bias"]
    i, f, g, o, u = jnp.split(gates, 5)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + jax.nn.sigmoid(f) * left.c + jax.nn.sigmoid(g) * right.c
    return State(jax.nn.sigmoid(o) * jnp.tanh(c), c)


def logits(w, h):
    """A number for each class."""
    return h @ w["head"] + w["head_bias"]


def surprise(w, h, label):
    """Cross entropy of the class of one node."""
    scores = logits(w, h)
    return jax.nn.logsumexp(scores) - scores[label]


@pcbatch.batch
def encode(w, tree, node):
    """The state of a node."""
    if tree.left[node] < 0:
        return leaf(w, tree.word[node])
    left = encode(w, tree, tree.left[node])
    right = encode(w, tree, tree.right[node])
    return compose(w, left, right)


@pcbatch.batch
def annotate(w, tree, node):
    """The state of a node, and the loss of all nodes from there down."""
    if tree.left[node] < 0:
        state, below = leaf(w, tree.word[node]), 0.0
    else:
        left, one = annotate(w, tree, tree.left[node])
        right, other = annotate(w, tree, tree.right[node])
        state, below = compose(w, left, right), one + other
    return state, below + tree.weight[node] * surprise(w, state.h, tree.label[node])


@pcbatch.batch(in_axes=(None, 0))
def sentiment(w, tree):
    """A number for each class of the sentence."""
    return logits(w, encode(w, tree, 0).h)


@pcbatch.batch(in_axes=(None, 0))
def loss(w, tree):
    """What training makes small."""
    return annotate(w, tree, 0)[1]


def initial_weights(hidden: int, seed: int, words: int = WORDS) -> dict[str, jax.Array]:
    """Random products, no biases but those of the forget gates."""
    rng = np.random.default_rng(seed)

    def normal(rows: int, columns: int, scale: float) -> jax.Array:
        return jnp.asarray(scale * rng.normal(size=(rows, columns)), jnp.float32)

    return {
        "embedding": normal(words, hidden, 0.5),
        "leaf": normal(hidden, 3 * hidden, hidden**-0.5),
        "leaf_bias": jnp.zeros(3 * hidden),
        "node": normal(2 * hidden, 5 * hidden, (2 * hidden) ** -0.5),
        "node_bias": jnp.repeat(jnp.array([0, FORGET, FORGET, 0, 0], jnp.float32), hidden),
        "head": normal(hidden, len(CLASSES), hidden**-0.5),
        "head_bias": jnp.zeros(len(CLASSES)),
    }
