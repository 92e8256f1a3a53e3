"""Random examples and random weights. What the networks compute matters here, not what they learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

Rng = np.random.Generator
WORDS, CLASSES = 500, 5


def dense(rng: Rng, *shape: int, scale: float = 1.0) -> Any:
    """Weights for a vector of `shape[-2]` numbers, such that products are as large as the vector."""
    fan_in = shape[-2] if len(shape) > 1 else 1
    return jnp.asarray(scale * fan_in**-0.5 * rng.normal(size=shape), jnp.float32)


def bias(rng: Rng, size: int) -> Any:
    """Small numbers: zeros would hide that a bias is forgotten."""
    return dense(rng, size, scale=0.1)


def embedding(rng: Rng, hidden: int) -> Any:
    """A vector for each word."""
    return dense(rng, 1, WORDS, hidden, scale=0.5 * WORDS**0.5)[0]


def sentence(rng: Rng, most: int, least: int = 2) -> list[int]:
    """Random words; how many of them is random as well."""
    return rng.integers(0, WORDS, rng.integers(min(least, most), most + 1)).tolist()


def parse(words: Sequence[int], rng: Rng, leaf: Callable[[int], Any], node: Callable[[Any, Any], Any]) -> Any:
    """A random binary tree over some words."""
    if len(words) == 1:
        return leaf(words[0])
    cut = int(rng.integers(1, len(words)))
    return node(parse(words[:cut], rng, leaf, node), parse(words[cut:], rng, leaf, node))


class Example(NamedTuple):
    """One example: what the network is given, and what it should say."""

    x: Any
    label: Any


def classified(rng: Rng, inputs: Sequence[Any]) -> list[Example]:
    """Examples with a random class each."""
    return [Example(x, int(rng.integers(0, CLASSES))) for x in inputs]


def arrays(values: Sequence[Any]) -> Any:
    """The arrays or numbers of all examples as one array; tuples of them likewise."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *values)


lists, objects = pcbatch.ragged, pcbatch.pack
