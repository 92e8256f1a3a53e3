"""A recursive autoencoder (Socher et al., EMNLP 2011): of all neighbours, those are merged that are coded best."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data


def code(w, left, right):
    """The vector of two neighbours."""
    return jnp.tanh(jnp.concatenate([left, right]) @ w["code"] + w["code_bias"])


def error(w, left, right):
    """How far what is decoded is from what was coded."""
    decoded = jnp.tanh(code(w, left, right) @ w["decode"] + w["decode_bias"])
    return jnp.sum((decoded - jnp.concatenate([left, right])) ** 2)


def encode(w, words):
    """The vector of a sentence, and the errors of all merges."""
    parts, total = [w["embedding"][word] for word in words], 0.0
    while len(parts) > 1:
        errors = [error(w, left, right) for left, right in zip(parts, parts[1:], strict=False)]
        best = errors.index(min(errors))
        total = total + errors[best]
        parts[best : best + 2] = [code(w, parts[best], parts[best + 1])]
    return parts[0], total


@pcbatch.batch(in_axes=(None, 0))
def predict(w, words):
    """A number for each class, and the errors of all merges."""
    h, total = encode(w, words)
    return h @ w["head"] + w["head_bias"], total


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, words, label):
    """The cross entropy, and a part of the errors."""
    scores, total = predict(w, words)
    return 0.1 * total - jax.nn.log_softmax(scores)[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "embedding": data.embedding(rng, hidden),
        "code": data.dense(rng, 2 * hidden, hidden),
        "code_bias": data.bias(rng, hidden),
        "decode": data.dense(rng, hidden, 2 * hidden),
        "decode_bias": data.bias(rng, 2 * hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=20):
    """Random sentences of up to so many words."""
    return data.classified(rng, [data.sentence(rng, most) for _ in range(count)])


gather, gather_labels = data.lists, data.arrays
