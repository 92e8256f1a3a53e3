"""An LSTM of several layers (Hochreiter and Schmidhuber, 1997) that reads sentences of any length."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

LAYERS = 3
PAPER = {"hidden": 256, "most": 64, "layers": 10}


def step(cell, x, h, c):
    """The state of a layer after one more input."""
    i, f, o, u = jnp.split(jnp.concatenate([x, h]) @ cell["weight"] + cell["bias"], 4)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def encode(w, words):
    """The state of the last layer behind the last word."""
    start = jnp.zeros_like(w["embedding"][0])
    states = [(start, start) for _ in w["cells"]]
    x = start
    for word in words:
        x = w["embedding"][word]
        for layer, cell in enumerate(w["cells"]):
            h, c = states[layer]
            states[layer] = step(cell, x, h, c)
            x, _ = states[layer]
    return x


@pcbatch.batch(in_axes=(None, 0))
def predict(w, words):
    """A number for each class."""
    return encode(w, words) @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, words, label):
    """The cross entropy."""
    return -jax.nn.log_softmax(predict(w, words))[label]


def weights(rng, hidden, layers=LAYERS):
    """Random ones."""
    cells = [
        {"weight": data.dense(rng, 2 * hidden, 4 * hidden), "bias": data.bias(rng, 4 * hidden)} for _ in range(layers)
    ]
    return {
        "embedding": data.embedding(rng, hidden),
        "cells": cells,
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=30):
    """Random sentences of up to so many words."""
    return data.classified(rng, [data.sentence(rng, most) for _ in range(count)])


gather, gather_labels = data.lists, data.arrays
