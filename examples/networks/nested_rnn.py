"""An RNN in a GRU: for each step of the outer loop the inner one reads on until it has had enough.

The numbers of steps are drawn beforehand, as in the evaluation of ACRoBat (Fegade et al., 2023).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data


def gru(w, x, h):
    """A step of the outer loop."""
    z, r = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, h]) @ w["gates"] + w["gates_bias"]), 2)
    new = jnp.tanh(jnp.concatenate([x, r * h]) @ w["new"] + w["new_bias"])
    return z * h + (1 - z) * new


@pcbatch.batch(in_axes=(None, 0))
def predict(w, counts):
    """A number for each class, from as many outer steps as there are counts."""
    h = w["start"]
    for count in counts:
        inner = h
        for _ in range(count):
            inner = jnp.tanh(inner @ w["inner"] + w["inner_bias"])
        h = gru(w, inner, h)
    return h @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, counts, label):
    """The cross entropy."""
    return -jax.nn.log_softmax(predict(w, counts))[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "start": data.dense(rng, 1, hidden)[0],
        "inner": data.dense(rng, hidden, hidden),
        "inner_bias": data.bias(rng, hidden),
        "gates": data.dense(rng, 2 * hidden, 2 * hidden),
        "gates_bias": data.bias(rng, 2 * hidden),
        "new": data.dense(rng, 2 * hidden, hidden),
        "new_bias": data.bias(rng, hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=40):
    """Random numbers of inner steps, from a half to the whole of `most`; of outer steps likewise."""
    least = most // 2
    steps = lambda number: rng.integers(least, most + 1, number)  # noqa: E731
    return data.classified(rng, [steps(int(steps(None))).tolist() for _ in range(count)])


gather, gather_labels = data.lists, data.arrays
