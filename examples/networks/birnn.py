"""A bidirectional RNN (Schuster and Paliwal, 1997) that gives every word of a sentence a tag."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data


def read(cell, vectors):
    """The states of an RNN after each of the words."""
    h, states = jnp.zeros_like(cell["bias"]), []
    for x in vectors:
        h = jnp.tanh(x @ cell["input"] + h @ cell["state"] + cell["bias"])
        states.append(h)
    return states


@pcbatch.batch(in_axes=(None, 0))
def predict(w, words):
    """For each word, a number for each tag."""
    vectors = [w["embedding"][word] for word in words]
    before = read(w["forward"], vectors)
    after = read(w["backward"], vectors[::-1])[::-1]
    return [jnp.concatenate([a, b]) @ w["head"] + w["head_bias"] for a, b in zip(before, after, strict=False)]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, words, tags):
    """The mean cross entropy of the tags."""
    total = 0.0
    for scores, tag in zip(predict(w, words), tags, strict=False):
        total = total - jax.nn.log_softmax(scores)[tag]
    return total / len(words)


def weights(rng, hidden):
    """Random ones."""

    def cell():
        return {
            "input": data.dense(rng, hidden, hidden),
            "state": data.dense(rng, hidden, hidden),
            "bias": data.bias(rng, hidden),
        }

    return {
        "embedding": data.embedding(rng, hidden),
        "forward": cell(),
        "backward": cell(),
        "head": data.dense(rng, 2 * hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=30):
    """Random sentences of up to so many words."""
    words = [data.sentence(rng, most) for _ in range(count)]
    return [data.Example(some, rng.integers(0, data.CLASSES, len(some)).tolist()) for some in words]


gather, gather_labels = data.lists, data.lists
