"""A doubly recurrent network (Alvarez-Melis and Jaakkola, ICLR 2017), which grows a tree from a vector, from the top.

A node's state comes from its parent and from the sibling before it. Whether it has children, and whether another
sibling follows, the network decides itself.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

SIBLINGS, INPUTS = 3, 16  # children of a node at most, numbers that a tree grows from


class Seed(NamedTuple):
    """What a tree grows from: a vector; and how many levels it may have."""

    vector: jax.Array
    levels: int


def cell(w, parent, sibling):
    """The state of a node."""
    up = jnp.tanh(parent @ w["up"] + w["up_bias"])
    across = jnp.tanh(sibling @ w["across"] + w["across_bias"])
    return jnp.tanh(jnp.concatenate([up, across]) @ w["join"])


def grow(w, parent, sibling, levels, more):
    """What all nodes say that grow here: this one, those below it and the siblings that follow; and their number."""
    h = cell(w, parent, sibling)
    below, after = h @ w["stop"] + w["stop_bias"]
    children = siblings = (jnp.zeros_like(w["head_bias"]), 0)
    if below > 0 and levels > 0:
        children = grow(w, h, jnp.zeros_like(h), levels - 1, SIBLINGS - 1)
    if after > 0 and more > 0:
        siblings = grow(w, parent, h, levels, more - 1)
    said = h @ w["head"] + w["head_bias"]
    return said + children[0] + siblings[0], 1 + children[1] + siblings[1]


@pcbatch.batch(in_axes=(None, 0))
def predict(w, seed):
    """For each class the mean over all nodes of the tree, and their number."""
    root = jnp.tanh(seed.vector @ w["root"])
    said, nodes = grow(w, root, jnp.zeros_like(root), seed.levels - 1, 0)
    return said / nodes, nodes


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, seed, label):
    """The cross entropy."""
    scores, _ = predict(w, seed)
    return -jax.nn.log_softmax(scores)[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "root": data.dense(rng, INPUTS, hidden),
        "up": data.dense(rng, hidden, hidden, scale=2.0),
        "up_bias": data.bias(rng, hidden),
        "across": data.dense(rng, hidden, hidden, scale=2.0),
        "across_bias": data.bias(rng, hidden),
        "join": data.dense(rng, 2 * hidden, hidden, scale=2.0),
        "stop": data.dense(rng, hidden, 2),
        "stop_bias": jnp.array([0.3, 0.3]),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=8):
    """Random vectors, and trees of so many levels at most."""
    return data.classified(rng, [Seed(rng.normal(size=INPUTS).astype("float32"), most) for _ in range(count)])


gather, gather_labels = data.arrays, data.arrays
