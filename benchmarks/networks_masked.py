"""Networks of `examples.networks` that decide as they run, batched by hand in JAX; for `benchmarks.networks`.

One loop for all examples: each computes every step, layer or block, and a mask keeps what it does not need from its
state. Loops whose ends the network decides are a `jax.lax.while_loop` until the last example is done.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from examples.networks import blockdrop, lstm, nasrnn, seq2seq, skipnet
from examples.networks.residual import block, layer, shrink


def classes(w: Any, h: Any) -> Any:
    """A number for each class."""
    return h @ w["head"] + w["head_bias"]


def lstm_scores(w: Any, words: Any, length: Any) -> Any:
    """The scores of a sentence by the LSTM of several layers, as if alone; `jax.vmap` batches it."""
    start = jnp.zeros_like(w["embedding"][0])

    def read(states: Any, now: Any) -> Any:
        place, x = now
        found = []
        for cell, (h, c) in zip(w["cells"], states, strict=True):
            new = lstm.step(cell, x, h, c)
            x = new[0]
            found.append(new)
        return jax.tree.map(partial(jnp.where, place < length), found, states), None

    given = jnp.arange(len(words)), w["embedding"][words]
    return classes(w, jax.lax.scan(read, [(start, start) for _ in w["cells"]], given)[0][-1][0])


def nasrnn_scores(w: Any, words: Any, length: Any) -> Any:
    """The scores of a sentence by NASRNN."""
    start = jnp.zeros_like(w["embedding"][0])

    def read(state: Any, now: Any) -> Any:
        place, x = now
        new = nasrnn.cell(w, x, *state)
        return jax.tree.map(partial(jnp.where, place < length), new, state), None

    given = jnp.arange(len(words)), w["embedding"][words]
    return classes(w, jax.lax.scan(read, (start, start), given)[0][0])


def continued(w: Any, words: Any, length: Any, total: Any, longest: int) -> Any:
    """The words of sentences that attention continues; -1 where the sentence starts with a word, and behind its end."""
    from examples.networks.attention import empty, read

    def more(state: Any, place: Any) -> Any:
        scores, keys, values = state
        said = jnp.argmax(scores)
        given = place < length
        word = jnp.where(given, words[jnp.minimum(place, len(words) - 1)], said)
        return read(w, word, place, keys, values), jnp.where(given | (place >= total), -1, said)

    start = w["head_bias"], empty(w), empty(w)
    return jax.lax.scan(more, start, jnp.arange(longest))[1]


def attention_loss(w: Any, words: Any, length: Any, total: Any) -> Any:
    """The mean cross entropy of the words of one sentence behind those that are given."""
    from examples.networks.attention import empty, read

    def more(state: Any, now: Any) -> Any:
        (scores, keys, values), (place, word) = state, now
        counts = (place >= length) & (place < total)
        surprise = jnp.where(counts, -jax.nn.log_softmax(scores)[word], 0)
        return read(w, word, place, keys, values), surprise

    start = w["head_bias"], empty(w), empty(w)
    each = jax.lax.scan(more, start, (jnp.arange(len(words)), words))[1]
    return jnp.sum(each) / (total - length)


def seq2seq_state(w: Any, words: Any, length: Any) -> Any:
    """The state of the encoder behind a sentence."""
    start = jnp.zeros_like(w["embedding"][0])

    def read(state: Any, now: Any) -> Any:
        place, x = now
        new = seq2seq.step(w["encoder"], x, *state)
        return jax.tree.map(partial(jnp.where, place < length), new, state), None

    return jax.lax.scan(read, (start, start), (jnp.arange(len(words)), w["embedding"][words]))[0]


def translated(w: Any, words: Any, length: Any) -> Any:
    """The translation of a sentence; -1 behind its end. `jax.vmap` of the loop goes on until all are done."""
    h, c = seq2seq_state(w, words, length)

    def goes_on(state: Any) -> Any:
        *_, size, done = state
        return (size < seq2seq.MOST) & ~done

    def write(state: Any) -> Any:
        h, c, before, said, size, _ = state
        h, c = seq2seq.step(w["decoder"], w["target"][before], h, c)
        word = jnp.argmax(classes(w, h)).astype(jnp.int32)
        done = word == seq2seq.END
        said = said.at[size].set(jnp.where(done, -1, word))
        return h, c, word, said, size + 1, done

    start = jnp.full(seq2seq.MOST, -1, jnp.int32), jnp.int32(0), jnp.array(False)
    return jax.lax.while_loop(goes_on, write, (h, c, jnp.int32(seq2seq.END), *start))[3]


def seq2seq_loss(w: Any, words: Any, length: Any, label: Any, labels: Any) -> Any:
    """The mean cross entropy of a translation that is given."""

    def write(state: Any, now: Any) -> Any:
        place, before, word = now
        state = seq2seq.step(w["decoder"], w["target"][before], *state)
        surprise = -jax.nn.log_softmax(classes(w, state[0]))[word]
        return state, jnp.where(place < labels, surprise, 0)

    before = jnp.concatenate([jnp.full(1, seq2seq.END, label.dtype), label[:-1]])
    state = seq2seq_state(w, words, length)
    return jnp.sum(jax.lax.scan(write, state, (jnp.arange(len(label)), before, label))[1]) / labels


def blockdrop_scores(w: Any, image: Any) -> Any:
    """The scores of an image by BlockDrop, all of whose blocks are computed."""
    keep = blockdrop.policy(w["policy"], image)
    x = jax.nn.relu(layer(w["first"], image))
    for number, each in enumerate(part for stage in w["stages"] for part in stage):
        channels = each[-1]["shift"].size
        stride = 1 if x.shape[-1] == channels else 2
        x = jax.nn.relu(shrink(x, channels, stride) + jnp.where(keep[number] > 0, block(each, x, stride), 0))
    return classes(w, jnp.mean(x, (0, 1)))


def skipnet_scores(w: Any, image: Any) -> Any:
    """The scores of an image by SkipNet, all of whose blocks are computed."""
    x = jax.nn.relu(layer(w["first"], image, 2))
    h = c = jnp.zeros(skipnet.GATE)
    for depth, stage in enumerate(w["stages"]):
        for number, each in enumerate(stage["blocks"]):
            runs, h, c = skipnet.decide(w["gate"], jnp.mean(x, (0, 1)) @ stage["see"][number], h, c)
            stride = 2 if number == 0 and depth > 0 else 1
            short = shrink(x, each[-1]["shift"].size, stride)
            x = jnp.where(runs > 0, jax.nn.relu(short + block(each, x, stride)), short)
    return classes(w, jnp.mean(x, (0, 1)))
