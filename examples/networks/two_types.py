"""A TreeLSTM whose nodes are of two kinds, each with weights of its own (as in ED-Batch; Chen et al., ICML 2023)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data


class Word(NamedTuple):
    """A leaf."""

    index: int


class Clause(NamedTuple):
    """Two parts, both of which count."""

    left: Word | Clause | Modified
    right: Word | Clause | Modified


class Modified(NamedTuple):
    """Two parts, of which one modifies the other."""

    head: Word | Clause | Modified
    modifier: Word | Clause | Modified


def leaf(w, word):
    """The state of a word."""
    i, o, u = jnp.split(w["embedding"][word] @ w["leaf"] + w["leaf_bias"], 3)
    c = jax.nn.sigmoid(i) * jnp.tanh(u)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def join(w, left, right):
    """The state of a node of two equal parts."""
    (h_left, c_left), (h_right, c_right) = left, right
    i, f, g, o, u = jnp.split(jnp.concatenate([h_left, h_right]) @ w["clause"] + w["clause_bias"], 5)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + jax.nn.sigmoid(f) * c_left + jax.nn.sigmoid(g) * c_right
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def modify(w, head, modifier):
    """The state of a node whose memory is that of its head, as far as it is kept."""
    (h_head, c_head), (h_modifier, _) = head, modifier
    f, o, u = jnp.split(jnp.concatenate([h_head, h_modifier]) @ w["modified"] + w["modified_bias"], 3)
    keep = jax.nn.sigmoid(f)
    c = keep * c_head + (1 - keep) * jnp.tanh(u)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def encode(w, tree):
    """The state of a tree: h and c."""
    match tree:
        case Word(index):
            return leaf(w, index)
        case Clause(left, right):
            return join(w, encode(w, left), encode(w, right))
        case _:
            return modify(w, encode(w, tree.head), encode(w, tree.modifier))


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
        "clause": data.dense(rng, 2 * hidden, 5 * hidden),
        "clause_bias": data.bias(rng, 5 * hidden),
        "modified": data.dense(rng, 2 * hidden, 3 * hidden),
        "modified_bias": data.bias(rng, 3 * hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=30):
    """Random trees of up to so many words, with nodes of random kinds."""
    node = lambda left, right: (Clause, Modified)[int(rng.integers(2))](left, right)  # noqa: E731
    return data.classified(rng, [data.parse(data.sentence(rng, most), rng, Word, node) for _ in range(count)])


gather, gather_labels = data.objects, data.arrays
