"""What can be told of a sentence without its tree: the commonest class, and the words in any order."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples.treelstm.data import CLASSES, WORDS, Trees

STEPS, RATE, DECAY = 400, 0.05, 1e-4


def majority(train: Trees, held_out: Trees) -> float:
    """The accuracy of always guessing the commonest class of the training set."""
    commonest = np.bincount(train.label[:, 0], minlength=len(CLASSES)).argmax()
    return float(np.mean(held_out.label[:, 0] == commonest))


def bag_of_words(train: Trees, held_out: Trees) -> float:
    """The accuracy of a softmax regression on how often each word occurs."""
    counts, labels = jnp.asarray(_counts(train)), jnp.asarray(train.label[:, 0])
    rule = optax.adam(RATE)

    def objective(w):  # type: ignore[no-untyped-def]
        scores = counts @ w
        surprise = jax.nn.logsumexp(scores, axis=1) - jnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
        return jnp.mean(surprise) + DECAY * jnp.sum(w**2)

    def step(_, carried):  # type: ignore[no-untyped-def]
        w, state = carried
        updates, state = rule.update(jax.grad(objective)(w), state)
        return optax.apply_updates(w, updates), state

    start = jnp.zeros((WORDS + 1, len(CLASSES)))
    w = jax.jit(lambda w: jax.lax.fori_loop(0, STEPS, step, (w, rule.init(w)))[0])(start)
    return float(np.mean(np.argmax(_counts(held_out) @ np.asarray(w), axis=1) == held_out.label[:, 0]))


def _counts(trees: Trees) -> np.ndarray:
    """[trees, words + 1]: the last column is 1."""
    counts = np.zeros((len(trees.word), WORDS + 1), np.float32)
    row, column = np.nonzero(trees.word >= 0)
    np.add.at(counts, (row, trees.word[row, column]), 1)
    counts[:, WORDS] = 1
    return counts
