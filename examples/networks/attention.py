"""A decoder that continues sentences: attention (Vaswani et al., 2017) to more keys and values with each word."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

HEADS, PLACES = 4, 64  # words of a sentence at most
PAPER = {"hidden": 768, "most": 64, "heads": 12}


class Prompt(NamedTuple):
    """The words that a sentence starts with, and how many are to follow."""

    words: list[int]
    more: int


def read(w, word, place, keys, values):
    """The scores of what follows the word at a place, which sees those before it; keys and values with its own."""
    x = w["embedding"][word] + w["places"][place]
    heads, _, width = w["key"].shape
    keys, values = keys.at[place].set(x @ w["key"]), values.at[place].set(x @ w["value"])
    seen = jnp.einsum("hd,nhd->hn", x @ w["query"], keys) / width**0.5
    seen = jnp.where(jnp.arange(len(keys)) <= place, seen, -jnp.inf)
    mixed = jnp.einsum("hn,nhd->hd", jax.nn.softmax(seen), values)
    h = jnp.tanh(x + mixed.reshape(heads * width) @ w["project"])
    return h @ w["head"] + w["head_bias"], keys, values


def empty(w):
    """Room for the keys or values of all places."""
    heads, _, width = w["key"].shape
    return jnp.zeros((len(w["places"]), heads, width))


@pcbatch.batch(in_axes=(None, 0))
def predict(w, prompt):
    """The words that follow."""
    keys = values = empty(w)
    scores, place, said = w["head_bias"], 0, []
    for word in prompt.words:
        scores, keys, values = read(w, word, place, keys, values)
        place += 1
    for _ in range(prompt.more):
        said.append(jnp.argmax(scores))
        scores, keys, values = read(w, said[-1], place, keys, values)
        place += 1
    return said


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, prompt, follow):
    """The mean cross entropy of the words that should follow."""
    keys = values = empty(w)
    scores, place, total = w["head_bias"], 0, 0.0
    for word in prompt.words:
        scores, keys, values = read(w, word, place, keys, values)
        place += 1
    for word in follow:
        total = total - jax.nn.log_softmax(scores)[word]
        scores, keys, values = read(w, word, place, keys, values)
        place += 1
    return total / len(follow)


def weights(rng, hidden, heads=HEADS):
    """Random ones."""
    width = max(1, hidden // heads)
    return {
        "embedding": data.embedding(rng, hidden),
        "places": data.dense(rng, 1, PLACES, hidden, scale=0.5)[0],
        "query": data.dense(rng, heads, hidden, width),
        "key": data.dense(rng, heads, hidden, width),
        "value": data.dense(rng, heads, hidden, width),
        "project": data.dense(rng, heads * width, hidden),
        "head": data.dense(rng, hidden, data.WORDS),
        "head_bias": data.bias(rng, data.WORDS),
    }


def examples(rng, count, most=30):
    """Random sentences of up to so many words, each cut at a random place."""
    if most > PLACES:
        raise ValueError(f"a sentence has at most {PLACES} words, not {most}")
    found = []
    for _ in range(count):
        words = data.sentence(rng, most)
        cut = int(rng.integers(1, len(words)))
        found.append(data.Example(Prompt(words[:cut], len(words) - cut), words[cut:]))
    return found


gather, gather_labels = data.objects, data.lists
