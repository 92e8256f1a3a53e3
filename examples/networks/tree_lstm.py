"""The binary TreeLSTM of Tai, Socher and Manning (ACL 2015), over parse trees that are objects of Python."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data


class Word(NamedTuple):
    """A leaf."""

    index: int


class Phrase(NamedTuple):
    """Two parts."""

    left: Word | Phrase
    right: Word | Phrase


def leaf(w, word):
    """The state of a word."""
    i, o, u = jnp.split(w["embedding"][word] @ w["leaf"] + w["leaf_bias"], 3)
    c = jax.nn.sigmoid(i) * jnp.tanh(u)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def compose(w, left, right):
    """The state of a phrase from the states of its parts."""
    (h_left, c_left), (h_right, c_right) = left, right
    i, f, g, o, u = jnp.split(jnp.concatenate([h_left, h_right]) @ w["node"] + w["node_bias"], 5)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + jax.nn.sigmoid(f) * c_left + jax.nn.sigmoid(g) * c_right
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def encode(w, tree):
    """The state of a tree: h and c."""
    match tree:
        case Word(index):
            return leaf(w, index)
        case _:
            return compose(w, encode(w, tree.left), encode(w, tree.right))


@pcbatch.batch(in_axes=(None, 0))
def predict(w, tree):
    """A number for each class."""
    h, _ = encode(w, tree)
    return h @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, tree, label):
    """The cross entropy."""
    return -jax.nn.log_softmax(predict(w, tree))[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "embedding": data.embedding(rng, hidden),
        "leaf": data.dense(rng, hidden, 3 * hidden),
        "leaf_bias": data.bias(rng, 3 * hidden),
        "node": data.dense(rng, 2 * hidden, 5 * hidden),
        "node_bias": data.bias(rng, 5 * hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=30):
    """Random trees of up to so many words."""
    trees = [data.parse(data.sentence(rng, most), rng, Word, Phrase) for _ in range(count)]
    return data.classified(rng, trees)


gather, gather_labels = data.objects, data.arrays
