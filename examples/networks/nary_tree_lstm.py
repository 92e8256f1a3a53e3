"""The child-sum TreeLSTM of Tai, Socher and Manning (ACL 2015): any number of children."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data


class Node(NamedTuple):
    """A word and what depends on it."""

    word: int
    children: list[Node]


def encode(w, node):
    """The state of a node: h and c. Each child has a forget gate of its own."""
    x = w["embedding"][node.word]
    below = kept = jnp.zeros_like(x)
    for child in node.children:
        h, c = encode(w, child)
        below = below + h
        kept = kept + jax.nn.sigmoid(x @ w["forget_input"] + h @ w["forget"] + w["forget_bias"]) * c
    i, o, u = jnp.split(x @ w["input"] + below @ w["below"] + w["bias"], 3)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + kept
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


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
        "input": data.dense(rng, hidden, 3 * hidden),
        "below": data.dense(rng, hidden, 3 * hidden),
        "bias": data.bias(rng, 3 * hidden),
        "forget_input": data.dense(rng, hidden, hidden),
        "forget": data.dense(rng, hidden, hidden),
        "forget_bias": data.bias(rng, hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def dependencies(rng, words):
    """A random tree: the first word is the root, the others are shared out among its children."""
    rest, children = words[1:], []
    while rest:
        size = int(rng.integers(1, len(rest) + 1))
        children.append(dependencies(rng, rest[:size]))
        rest = rest[size:]
    return Node(words[0], children)


def examples(rng, count, most=30):
    """Random trees of up to so many words."""
    return data.classified(rng, [dependencies(rng, data.sentence(rng, most)) for _ in range(count)])


gather, gather_labels = data.objects, data.arrays
