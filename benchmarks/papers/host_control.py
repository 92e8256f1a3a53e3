"""Cocktailer's seven networks with their control flow on the host, for one example: Python calls JAX for basic blocks.

Also the graph of one example alone, as a trace has it: straight-line code in which every loop is unrolled and every
branch is taken beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examples.networks import attention, blockdrop, lstm, nasrnn, seq2seq, skipnet, tree_rae
from examples.networks.residual import block, layer, shrink

# Basic blocks


@jax.jit
def head(w, h):
    """A number for each class."""
    return h @ w["head"] + w["head_bias"]


@jax.jit
def _embedded(table, word):
    return table[word]


@jax.jit
def _lstm_word(w, word, states):
    x = w["embedding"][word]
    after = []
    for cell, state in zip(w["cells"], states, strict=True):
        after.append(lstm.step(cell, x, *state))
        x, _ = after[-1]
    return after


@jax.jit
def _nas_word(w, word, h, c):
    return nasrnn.cell(w, w["embedding"][word], h, c)


_read = jax.jit(attention.read)


@jax.jit
def _encoded(w, word, h, c):
    return seq2seq.step(w["encoder"], w["embedding"][word], h, c)


@jax.jit
def _written(w, word, h, c):
    h, c = seq2seq.step(w["decoder"], w["target"][word], h, c)
    return jnp.argmax(h @ w["head"] + w["head_bias"]), h, c


@jax.jit
def _first(w, image):
    return jax.nn.relu(layer(w, image))


@partial(jax.jit, static_argnums=2)
def _short(x, shift, stride):
    return shrink(x, shift.size, stride)


@partial(jax.jit, static_argnums=3)
def _added(w, x, short, stride):
    return jax.nn.relu(short + block(w, x, stride))


_policy, _relu = jax.jit(blockdrop.policy), jax.jit(jax.nn.relu)


@jax.jit
def _skip_first(w, image):
    return jax.nn.relu(layer(w, image, 2))


@jax.jit
def _decided(gate, see, x, h, c):
    return skipnet.decide(gate, jnp.mean(x, (0, 1)) @ see, h, c)


@jax.jit
def _pooled(w, x):
    return jnp.mean(x, (0, 1)) @ w["head"] + w["head_bias"]


_coded = jax.jit(tree_rae.code)

# Networks


def lstm_scores(w: Any, words: Any) -> Any:
    """The LSTM of several layers."""
    start = np.zeros_like(w["embedding"][0])
    states = [(start, start) for _ in w["cells"]]
    for word in words:
        states = _lstm_word(w, word, states)
    return head(w, states[-1][0])


def nasrnn_scores(w: Any, words: Any) -> Any:
    """The network with the cell that was searched for."""
    h = c = np.zeros_like(w["embedding"][0])
    for word in words:
        h, c = _nas_word(w, word, h, c)
    return head(w, h)


def continued(w: Any, prompt: Any) -> Any:
    """The decoder with attention."""
    keys = values = attention.empty(w)
    scores, place, said = w["head_bias"], 0, []
    for word in prompt.words:
        scores, keys, values = _read(w, word, place, keys, values)
        place += 1
    for _ in range(prompt.more):
        said.append(jnp.argmax(scores))
        scores, keys, values = _read(w, said[-1], place, keys, values)
        place += 1
    return said


def translated(w: Any, words: Any) -> Any:
    """Sequence to sequence: the host waits for each word."""
    h = c = np.zeros_like(w["embedding"][0])
    for word in words:
        h, c = _encoded(w, word, h, c)
    word, said = seq2seq.END, []
    while len(said) < seq2seq.MOST:
        word, h, c = _written(w, word, h, c)
        if int(word) == seq2seq.END:
            break
        said.append(word)
    return said


def blockdrop_scores(w: Any, image: Any) -> Any:
    """BlockDrop: the host waits for the policy."""
    keep = list(np.asarray(_policy(w["policy"], image)) > 0)
    x = _first(w["first"], image)
    for each, kept in zip((part for stage in w["stages"] for part in stage), keep, strict=True):
        shift = each[-1]["shift"]
        stride = 1 if x.shape[-1] == shift.size else 2
        short = _short(x, shift, stride)
        x = _added(each, x, short, stride) if kept else _relu(short)
    return _pooled(w, x), sum(keep)


def skipnet_scores(w: Any, image: Any) -> Any:
    """SkipNet: the host waits for each gate."""
    x, ran = _skip_first(w["first"], image), 0
    h = c = np.zeros(skipnet.GATE, np.float32)
    for depth, stage in enumerate(w["stages"]):
        for number, each in enumerate(stage["blocks"]):
            runs, h, c = _decided(w["gate"], stage["see"][number], x, h, c)
            stride = 2 if number == 0 and depth > 0 else 1
            short = _short(x, each[-1]["shift"], stride)
            if float(runs) > 0:
                x, ran = _added(each, x, short, stride), ran + 1
            else:
                x = short
    return _pooled(w, x), ran


def tree_scores(w: Any, tree: Any) -> Any:
    """The recursive autoencoder, by Python's recursion."""

    def encode(node: Any) -> Any:
        if isinstance(node, tree_rae.Word):
            return _embedded(w["embedding"], node.index)
        return _coded(w, encode(node.left), encode(node.right))

    return head(w, encode(tree))


NETWORKS: Mapping[str, Callable[[Any, Any], Any]] = {
    "lstm": lstm_scores,
    "nasrnn": nasrnn_scores,
    "attention": continued,
    "seq2seq": translated,
    "blockdrop": blockdrop_scores,
    "skipnet": skipnet_scores,
    "tree_rae": tree_scores,
}

# Traces of one example


def traced(name: str, w: Any, x: Any) -> Callable[[Any, Any], Any]:
    """A compiled function of weights and of the arrays of an example, whose control flow is that of this example."""
    match name:
        case "seq2seq":
            count = len(translated(w, x))
            return jax.jit(lambda w, _: _translated_to(w, x, count))
        case "blockdrop":
            keep = (np.asarray(_policy(w["policy"], x)) > 0).tolist()
            return jax.jit(lambda w, image: _blockdrop_with(w, image, keep))
        case "skipnet":
            keep = _gates(w, x)
            return jax.jit(lambda w, image: _skipnet_with(w, image, keep))
        case _:
            network = {"lstm": lstm, "nasrnn": nasrnn, "attention": attention, "tree_rae": tree_rae}[name]
            return jax.jit(lambda w, _: network.predict.plain(w, x))


def _translated_to(w: Any, words: Any, count: int) -> list[Any]:
    h, c = seq2seq.encode(w, words)
    word: Any = seq2seq.END
    said = []
    for _ in range(min(count + 1, seq2seq.MOST)):
        h, c = seq2seq.step(w["decoder"], w["target"][word], h, c)
        word = jnp.argmax(h @ w["head"] + w["head_bias"])
        said.append(word)
    return said


def _blockdrop_with(w: Any, image: Any, keep: list[bool]) -> Any:
    decided = blockdrop.policy(w["policy"], image)
    x, start = jax.nn.relu(layer(w["first"], image)), 0
    for blocks in w["stages"]:
        x = blockdrop.stage(blocks, keep[start : start + len(blocks)], x)
        start += len(blocks)
    return jnp.mean(x, (0, 1)) @ w["head"] + w["head_bias"], jnp.sum(decided > 0)


def _gates(w: Any, image: Any) -> list[bool]:
    """Whether each block of a SkipNet runs for an image."""
    keep: list[bool] = []

    def note(runs: Any) -> bool:
        keep.append(float(runs) > 0)
        return keep[-1]

    _skipped(w, image, note)
    return keep


def _skipnet_with(w: Any, image: Any, keep: list[bool]) -> Any:
    decided, rest = [], iter(keep)

    def given(runs: Any) -> bool:
        decided.append(runs > 0)
        return next(rest)

    scores = _skipped(w, image, given)
    return scores, sum(jnp.asarray(each, int) for each in decided)


def _skipped(w: Any, image: Any, decides: Callable[[Any], bool]) -> Any:
    """A SkipNet whose gates are answered by a function."""
    x = jax.nn.relu(layer(w["first"], image, 2))
    h = c = jnp.zeros(skipnet.GATE)
    for depth, stage in enumerate(w["stages"]):
        for number, each in enumerate(stage["blocks"]):
            runs, h, c = skipnet.decide(w["gate"], jnp.mean(x, (0, 1)) @ stage["see"][number], h, c)
            stride = 2 if number == 0 and depth > 0 else 1
            short = shrink(x, each[-1]["shift"].size, stride)
            x = jax.nn.relu(short + block(each, x, stride)) if decides(runs) else short
    return jnp.mean(x, (0, 1)) @ w["head"] + w["head_bias"]
