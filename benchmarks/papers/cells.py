"""The cells of table 2 of ED-Batch (Chen et al., ICML 2023), in a loop of any length; a gate has matrices of its own.

The loop is what makes them programs here: a visit of its block is one batched cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

Cell = Callable[[Any, Any, Any], tuple[Any, Any]]
GATES = ("i", "f", "g", "o", "u")


def lstm(w, h, c):
    """An LSTM whose input is the other half of its state."""
    i, f, o, u = (w[f"w{k}"] @ c + w[f"u{k}"] @ h + w[f"b{k}"] for k in "ifou")
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def gru(w, h, x):
    """A GRU."""
    i, f = (jax.nn.sigmoid(w[f"w{k}"] @ x + w[f"u{k}"] @ h + w[f"b{k}"]) for k in "if")
    new = jnp.tanh(w["wu"] @ x + w["uu"] @ (f * h) + w["bu"])
    return i * h + (1 - i) * new, x


def mv(w, h, m):
    """A node of an MV-RNN, whose right part is its left one mirrored."""
    other, n = h[::-1], m.T
    vector = jnp.tanh(w["wi"] @ (n @ h) + w["ui"] @ (m @ other) + w["bi"])
    return vector, w["wf"] @ m + w["uf"] @ n


def tree_lstm_node(w, h, c):
    """An inner node of a binary TreeLSTM."""
    other, d = h[::-1], c[::-1]
    i, f, g, o, u = (w[f"w{k}"] @ h + w[f"u{k}"] @ other + w[f"b{k}"] for k in GATES)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + jax.nn.sigmoid(f) * c + jax.nn.sigmoid(g) * d
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def tree_lstm_leaf(w, h, _):
    """A leaf of a TreeLSTM."""
    i, o, u = (w[f"w{k}"] @ h + w[f"b{k}"] for k in "iou")
    c = jax.nn.sigmoid(i) * jnp.tanh(u)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def tree_gru_node(w, h, c):
    """An inner node of a binary TreeGRU."""
    other = h[::-1]
    i, f, g = (jax.nn.sigmoid(w[f"w{k}"] @ h + w[f"u{k}"] @ other + w[f"b{k}"]) for k in "ifg")
    new = jnp.tanh(w["wu"] @ (f * h) + w["uu"] @ (g * other) + w["bu"])
    return i * (h + other) + (1 - i) * new, c


def tree_gru_leaf(w, h, c):
    """A leaf of a TreeGRU."""
    i, u = (w[f"w{k}"] @ h + w[f"b{k}"] for k in "iu")
    return jax.nn.sigmoid(i) * jnp.tanh(u), c


CELLS: Mapping[str, Cell] = {
    "GRUCell": gru,
    "LSTMCell": lstm,
    "MVCell": mv,
    "TreeGRU-Internal": tree_gru_node,
    "TreeGRU-Leaf": tree_gru_leaf,
    "TreeLSTM-Internal": tree_lstm_node,
    "TreeLSTM-Leaf": tree_lstm_leaf,
}


def program(name: str) -> pcbatch.Batched:
    """The cell in a loop, batched over states and lengths."""
    cell = CELLS[name]

    def steps(w, h, c, n):
        """So many steps."""
        for _ in range(n):
            h, c = cell(w, h, c)
        return h

    return pcbatch.batch(steps, in_axes=(None, 0, 0, 0))


def arguments(name: str, size: int, batch: int, longest: int) -> tuple[Any, ...]:
    """Random weights and states; lanes differ in their number of steps, the last makes most."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.normal(size=shape) * shape[-1] ** -0.5, jnp.float32)

    w = {f"{kind}{k}": normal(size, size) for kind in "wu" for k in GATES} | {f"b{k}": normal(size) for k in GATES}
    state = (batch, size, size) if name == "MVCell" else (batch, size)
    steps = np.linspace(longest / 2, longest, batch).astype(np.int32)
    return w, normal(batch, size), normal(*state), jnp.asarray(steps)
