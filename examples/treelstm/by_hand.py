"""The same model batched by hand, which is what one writes without pcbatch: level by level, over all trees at once.

All leaves first, then the nodes of height 1, of height 2 and so on: nodes of one height do not need each other. A level
is cut into rows of equal width, so that one `lax.scan` over rows computes them all; a row is padded where its level
ends. Nodes are renumbered in that order (their *slots*), so a row is stored in one piece and only children are looked
up. The plan is made on the host, by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from examples.treelstm import model
from examples.treelstm.data import Trees, heights
from examples.treelstm.model import logits, surprise

NOBODY = -1  # in a padded place


class Plan(NamedTuple):
    """What is computed when. The slots are those of the leaves, then row by row."""

    word: np.ndarray  # [leaves]
    left: np.ndarray  # [rows, width]: slots of the children
    right: np.ndarray
    label: np.ndarray  # [slots]
    weight: np.ndarray  # [slots]: part in the mean loss of the trees; 0 for padding
    root: np.ndarray  # [trees]


def plan(trees: Trees, width: int, multiple: int = 1) -> Plan:
    """The rows, and the leaves in units of `width`, are padded to a multiple: plans of equal size run one program."""
    count, nodes = trees.left.shape
    exists = np.arange(nodes)[None] < trees.nodes()[:, None]
    words, rows = _levels(np.where(exists, heights(trees), NOBODY).ravel(), width)
    words, rows = _padded(words, width * multiple), _padded(rows, width * multiple)
    who = np.concatenate([words, rows])  # the node in each slot, counted over all trees
    slot = np.zeros(count * nodes, np.int32)
    slot[who[who != NOBODY]] = np.flatnonzero(who != NOBODY)
    base = rows - rows % nodes  # the root of the same tree
    left, right = (
        np.where(rows == NOBODY, 0, slot[base + child.ravel()[rows]]).reshape(-1, width).astype(np.int32)
        for child in (trees.left, trees.right)
    )
    weight = np.where(who == NOBODY, 0, trees.weight.ravel()[who] / count).astype(np.float32)
    return Plan(trees.word.ravel()[words], left, right, trees.label.ravel()[who], weight, slot[::nodes])


def _levels(height: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The leaves; the other nodes by height, each level padded to whole rows."""
    by_height = [np.flatnonzero(height == h) for h in range(height.max() + 1)]
    return by_height[0], np.concatenate([_padded(level, width) for level in by_height[1:]])


def _padded(nodes: np.ndarray, multiple: int) -> np.ndarray:
    return np.pad(nodes, (0, -len(nodes) % multiple), constant_values=NOBODY)


def states(
    w: Any, todo: Plan, leaf: Callable[..., Any] = model.leaf, compose: Callable[..., Any] = model.compose
) -> Any:
    """Of all slots: what `leaf` says of a word and `compose` of two states, which may be any pytrees of arrays."""
    words = jax.vmap(leaf, (None, 0))(w, todo.word)
    leaves, (rows, width) = len(todo.word), todo.left.shape

    def row(slots, where):  # type: ignore[no-untyped-def]
        start, left, right = where
        new = jax.vmap(compose, (None, 0, 0))(w, _pick(slots, left), _pick(slots, right))
        return jax.tree.map(
            lambda old, some: jax.lax.dynamic_update_slice_in_dim(old, some, start, 0), slots, new
        ), None

    room = jax.tree.map(lambda array: jnp.pad(array, ((0, rows * width), *[(0, 0)] * (array.ndim - 1))), words)
    return jax.lax.scan(row, room, (leaves + width * jnp.arange(rows), todo.left, todo.right))[0]


def _pick(slots: Any, which: jax.Array) -> Any:
    return jax.tree.map(lambda array: array[which], slots)


def mean_loss(w: dict[str, jax.Array], todo: Plan) -> jax.Array:
    """The mean over the trees of what `model.loss` gives."""
    return jnp.sum(todo.weight * jax.vmap(surprise, (None, 0, 0))(w, states(w, todo).h, todo.label))


def sentiments(w: dict[str, jax.Array], todo: Plan) -> jax.Array:
    """Of all trees, what `model.sentiment` gives."""
    return jax.vmap(logits, (None, 0))(w, states(w, todo).h[todo.root])
