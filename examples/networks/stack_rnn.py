"""A shift-reduce parser in the manner of stack LSTMs (Dyer et al., ACL 2015), with RNN cells.

What to do next is the network's own decision: nobody knows the tree before it is there.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pcbatch
from examples.networks import data

SHIFT, REDUCE = 0, 1


def cell(w, name, *parts):
    """A layer over some vectors."""
    return jnp.tanh(jnp.concatenate(parts) @ w[name] + w[f"{name}_bias"])


def action(w, h, waiting, size):
    """What to do: what the scores say, among what is possible."""
    if size < 2:
        return SHIFT
    if waiting == 0:
        return REDUCE
    return jnp.argmax(h @ w["action"] + w["action_bias"])


def encode(w, words):
    """The state at the end."""
    h = jnp.zeros_like(w["history_bias"])
    stack, place = [], 0
    while place < len(words) or len(stack) > 1:
        if action(w, h, len(words) - place, len(stack)) == SHIFT:
            stack.append(w["embedding"][words[place]])
            place += 1
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(cell(w, "reduce", left, right))
        h = cell(w, "history", h, stack[-1])
    return h


@pcbatch.batch(in_axes=(None, 0))
def predict(w, words):
    """A number for each class."""
    return encode(w, words) @ w["head"] + w["head_bias"]


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, words, label):
    """The cross entropy."""
    return -jax.nn.log_softmax(predict(w, words))[label]


def weights(rng, hidden):
    """Random ones."""
    return {
        "embedding": data.embedding(rng, hidden),
        "reduce": data.dense(rng, 2 * hidden, hidden),
        "reduce_bias": data.bias(rng, hidden),
        "history": data.dense(rng, 2 * hidden, hidden),
        "history_bias": data.bias(rng, hidden),
        "action": data.dense(rng, hidden, 2),
        "action_bias": jnp.zeros(2),
        "head": data.dense(rng, hidden, data.CLASSES),
        "head_bias": data.bias(rng, data.CLASSES),
    }


def examples(rng, count, most=30):
    """Random sentences of up to so many words."""
    return data.classified(rng, [data.sentence(rng, most) for _ in range(count)])


gather, gather_labels = data.lists, data.arrays
