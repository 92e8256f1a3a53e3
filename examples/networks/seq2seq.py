"""Sequence to sequence (Sutskever et al., 2014): an LSTM reads a sentence, another one writes until it says the end."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

END, MOST = 0, 50  # the word that ends a sentence, words at most
PAPER = {"hidden": 256, "most": 50}


def step(cell, x, h, c):
    """The state after one more word."""
    i, f, o, u = jnp.split(jnp.concatenate([x, h]) @ cell["weight"] + cell["bias"], 4)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def encode(w, words):
    """The state behind a sentence."""
    h = c = jnp.zeros_like(w["embedding"][0])
    for word in words:
        h, c = step(w["encoder"], w["embedding"][word], h, c)
    return h, c


@pcbatch.batch(in_axes=(None, 0))
def predict(w, words):
    """The translation, without the word that ends it."""
    h, c = encode(w, words)
    word, said = END, []
    while len(said) < MOST:
        h, c = step(w["decoder"], w["target"][word], h, c)
        word = jnp.argmax(h @ w["head"] + w["head_bias"])
        if word == END:
            break
        said.append(word)
    return said


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, words, translation):
    """The mean cross entropy of the words of a translation, which ends with `END`."""
    h, c = encode(w, words)
    before, total = END, 0.0
    for word in translation:
        h, c = step(w["decoder"], w["target"][before], h, c)
        total = total - jax.nn.log_softmax(h @ w["head"] + w["head_bias"])[word]
        before = word
    return total / len(translation)


def weights(rng, hidden):
    """Random ones; the end is as likely as makes translations of about ten words."""

    def cell():
        return {"weight": data.dense(rng, 2 * hidden, 4 * hidden, scale=2.0), "bias": data.bias(rng, 4 * hidden)}

    return {
        "embedding": data.embedding(rng, hidden),
        "encoder": cell(),
        "target": data.embedding(rng, hidden),
        "decoder": cell(),
        "head": data.dense(rng, hidden, data.WORDS, scale=4.0),
        "head_bias": data.bias(rng, data.WORDS).at[END].add(1.1),
    }


def examples(rng, count, most=30):
    """Random sentences of up to so many words, and random translations."""
    words = [data.sentence(rng, most) for _ in range(count)]
    return [data.Example(some, [max(1, word) for word in data.sentence(rng, most)] + [END]) for some in words]


gather, gather_labels = data.lists, data.lists
