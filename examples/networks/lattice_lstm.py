"""The lattice LSTM of Zhang and Yang (ACL 2018): a chain of characters, and words that jump along it."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data


class Jump(NamedTuple):
    """A word of the dictionary that ends here: the place of its first character, and which word it is."""

    start: int
    word: int


class Character(NamedTuple):
    """A character, and the words that end with it."""

    index: int
    words: list[Jump]


class Sentence(NamedTuple):
    """Its characters."""

    characters: list[Character]


def character_cell(w, x, h):
    """The gates and the candidate of a character."""
    i, o, u = jnp.split(jnp.concatenate([x, h]) @ w["character"] + w["character_bias"], 3)
    return jax.nn.sigmoid(i), jax.nn.sigmoid(o), jnp.tanh(u)


def word_cell(w, x, h, c):
    """The memory of a word, from the state at its first character."""
    i, f, u = jnp.split(jnp.concatenate([x, h]) @ w["word"] + w["word_bias"], 3)
    return jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)


def encode(w, sentence):
    """The state of a sentence."""
    h = c = jnp.zeros_like(w["link_bias"])
    states = []
    for character in sentence.characters:
        x = w["characters"][character.index]
        i, o, u = character_cell(w, x, h)
        weight, memory = jnp.exp(i), jnp.exp(i) * u
        for jump in character.words:
            h_start, c_start = states[jump.start]
            c_word = word_cell(w, w["words"][jump.word], h_start, c_start)
            link = jnp.exp(jax.nn.sigmoid(jnp.concatenate([x, c_word]) @ w["link"] + w["link_bias"]))
            weight, memory = weight + link, memory + link * c_word
        c = memory / weight if len(character.words) > 0 else (1 - i) * c + i * u
        h = o * jnp.tanh(c)
        states.append((h, c))
    return h


@pcbatch.batch(in_axes=(None, 0))
def predict(w, sentence):
    """A number for each class."""
    return encode(w, sentence) @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, sentence, label):
    """The cross entropy."""
    return -jax.nn.log_softmax(predict(w, sentence))[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "characters": data.embedding(rng, hidden),
        "words": data.embedding(rng, hidden),
        "character": data.dense(rng, 2 * hidden, 3 * hidden),
        "character_bias": data.bias(rng, 3 * hidden),
        "word": data.dense(rng, 2 * hidden, 3 * hidden),
        "word_bias": data.bias(rng, 3 * hidden),
        "link": data.dense(rng, 2 * hidden, hidden),
        "link_bias": data.bias(rng, hidden),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def lattice(rng, characters):
    """Random words of two to four characters end at every other character or so."""
    found = []
    for place, index in enumerate(characters):
        starts = [place - back for back in (1, 2, 3) if back <= place and rng.random() < 0.3]
        found.append(Character(index, [Jump(start, int(rng.integers(data.WORDS))) for start in starts]))
    return Sentence(found)


def examples(rng, count, most=30):
    """Random sentences of up to so many characters."""
    return data.classified(rng, [lattice(rng, data.sentence(rng, most)) for _ in range(count)])


gather, gather_labels = data.objects, data.arrays
