"""Early exit from BERT (BERxiT; Xin et al., EACL 2021): an example leaves as soon as a classifier is sure of it.

All layers share their weights, as in the evaluation of ACRoBat (Fegade et al., 2023).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

LENGTH, LAYERS, WIDTH = 32, 12, 32  # words of a sentence, layers at most, numbers of a head
SURE = 0.5  # a probability


def normal(x):
    """Rows with mean 0 and variance 1."""
    x = x - jnp.mean(x, -1, keepdims=True)
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)


def attend(w, x):
    """Self-attention with several heads."""
    length, hidden = x.shape
    heads = hidden // min(WIDTH, hidden)
    q, k, v = jnp.split((x @ w["attend"]).reshape(length, heads, -1), 3, axis=-1)
    scores = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5)
    return jnp.einsum("hqk,khd->qhd", scores, v).reshape(length, hidden) @ w["project"]


def layer(w, x):
    """One layer of the encoder."""
    x = normal(x + attend(w, x))
    return normal(x + jax.nn.gelu(x @ w["up"] + w["up_bias"]) @ w["down"] + w["down_bias"])


@pcbatch.batch(in_axes=(None, 0))
def predict(w, words):
    """A number for each class, and how many layers it took."""
    x = w["embedding"][words]
    for depth in range(1, LAYERS + 1):  # noqa: B007 - it is returned
        x = layer(w, x)
        scores = x[0] @ w["head"] + w["head_bias"]
        if jnp.max(jax.nn.softmax(scores)) > SURE:
            break
    return scores, depth


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, words, label):
    """The cross entropy where it exits."""
    scores, _ = predict(w, words)
    return -jax.nn.log_softmax(scores)[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "embedding": data.embedding(rng, hidden),
        "attend": data.dense(rng, hidden, 3 * hidden),
        "project": data.dense(rng, hidden, hidden),
        "up": data.dense(rng, hidden, 4 * hidden),
        "up_bias": data.bias(rng, 4 * hidden),
        "down": data.dense(rng, 4 * hidden, hidden),
        "down_bias": data.bias(rng, hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=LENGTH):
    """Random sentences of so many words."""
    return data.classified(rng, [rng.integers(0, data.WORDS, most) for _ in range(count)])


gather, gather_labels = data.arrays, data.arrays
