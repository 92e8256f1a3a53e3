"""The MV-RNN of Socher et al. (EMNLP 2012): words and phrases have a matrix besides, which acts on the neighbour."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

WORDS = 100  # each has a matrix


class Word(NamedTuple):
    """A leaf."""

    index: int


class Phrase(NamedTuple):
    """Two parts."""

    left: Word | Phrase
    right: Word | Phrase


def encode(w, tree):
    """The vector and the matrix of a tree."""
    match tree:
        case Word(index):
            return w["vectors"][index], w["matrices"][index]
        case _:
            a, A = encode(w, tree.left)
            b, B = encode(w, tree.right)
            vector = jnp.tanh(jnp.concatenate([b @ A, a @ B]) @ w["compose"] + w["bias"])
            return vector, jnp.concatenate([A, B]).T @ w["compose_matrix"]


@pcbatch.batch(in_axes=(None, 0))
def predict(w, tree):
    """A number for each class."""
    vector, _ = encode(w, tree)
    return vector @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, tree, label):
    """The cross entropy."""
    return -jax.nn.log_softmax(predict(w, tree))[label]


def weights(rng, hidden):
    """Random ones; matrices near 1, as the paper begins."""
    return {
        "vectors": data.dense(rng, 1, WORDS, hidden, scale=0.5 * WORDS**0.5)[0],
        "matrices": jnp.eye(hidden) + data.dense(rng, WORDS, hidden, hidden, scale=0.1),
        "compose": data.dense(rng, 2 * hidden, hidden),
        "bias": data.bias(rng, hidden),
        "compose_matrix": data.dense(rng, 2 * hidden, hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=30):
    """Random trees of up to so many words."""
    words = [[word % WORDS for word in data.sentence(rng, most)] for _ in range(count)]
    return data.classified(rng, [data.parse(some, rng, Word, Phrase) for some in words])


gather, gather_labels = data.objects, data.arrays
