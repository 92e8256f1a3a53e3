"""A recurrent network with the cell that architecture search found (Zoph and Le, ICLR 2017)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

PAPER = {"hidden": 256, "most": 1000}


def cell(w, x, h, c):
    """The state after one more input: eight pairs of an input and a state, joined as a tree."""
    xs = jnp.split(x @ w["input"] + w["bias"], 8)
    hs = jnp.split(h @ w["state"], 8)
    a = jnp.tanh(jax.nn.sigmoid(xs[0] + hs[0]) * jax.nn.relu(xs[1] + hs[1]))
    b = jnp.tanh(jax.nn.sigmoid(xs[2] + hs[2]) + jax.nn.relu(xs[3] * hs[3]))
    d = jnp.tanh(jnp.tanh(xs[4] + hs[4]) * jax.nn.sigmoid(xs[5] + hs[5]))
    e = jax.nn.sigmoid(jnp.tanh(xs[6] + hs[6]) + jax.nn.sigmoid(xs[7] + hs[7]))
    c = jnp.tanh(a + c) * b
    return jnp.tanh(c * jnp.tanh(d + e)), c


@pcbatch.batch(in_axes=(None, 0))
def predict(w, words):
    """A number for each class."""
    h = c = jnp.zeros_like(w["embedding"][0])
    for word in words:
        h, c = cell(w, w["embedding"][word], h, c)
    return h @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, words, label):
    """The cross entropy."""
    return -jax.nn.log_softmax(predict(w, words))[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "embedding": data.embedding(rng, hidden),
        "input": data.dense(rng, hidden, 8 * hidden),
        "state": data.dense(rng, hidden, 8 * hidden),
        "bias": data.bias(rng, 8 * hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=30):
    """Random sentences of up to so many words."""
    return data.classified(rng, [data.sentence(rng, most) for _ in range(count)])


gather, gather_labels = data.lists, data.arrays
