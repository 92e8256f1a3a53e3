"""A recursive autoencoder over parses that are given (Socher et al., 2011): every node is coded from its two parts."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

PAPER = {"hidden": 512, "most": 64}  # 64 words are 127 nodes


class Word(NamedTuple):
    """A leaf."""

    index: int


class Phrase(NamedTuple):
    """A node with two parts."""

    left: Word | Phrase
    right: Word | Phrase


def code(w, left, right):
    """The vector of two parts."""
    return jnp.tanh(jnp.concatenate([left, right]) @ w["code"] + w["code_bias"])


def encode(w, tree):
    """The vector of a tree."""
    match tree:
        case Word(index):
            return w["embedding"][index]
        case _:
            return code(w, encode(w, tree.left), encode(w, tree.right))


@pcbatch.batch(in_axes=(None, 0))
def predict(w, tree):
    """A number for each class."""
    return encode(w, tree) @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, tree, label):
    """The cross entropy."""
    return -jax.nn.log_softmax(predict(w, tree))[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "embedding": data.embedding(rng, hidden),
        "code": data.dense(rng, 2 * hidden, hidden),
        "code_bias": data.bias(rng, hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=30):
    """Random trees of up to so many words."""
    return data.classified(rng, [data.parse(data.sentence(rng, most), rng, Word, Phrase) for _ in range(count)])


gather, gather_labels = data.objects, data.arrays
