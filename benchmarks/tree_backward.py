"""A backward pass by hand for the batches by hand: what an expert makes of `jax.grad` of `by_hand.states`.

JAX's own adds dense arrays as large as all states, and one as large as the weights, for every row. Here a row leaves
its children's cotangents in a place of their own, where the rows of the children find them, and those of its gates, for
one matrix product at the end.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from examples.treelstm import by_hand
from examples.treelstm.by_hand import Plan
from examples.treelstm.model import State, leaf, surprise


def cell(gates: jax.Array, left: jax.Array, right: jax.Array) -> State:
    """`model.compose` from the gates on, of the children's memory cells."""
    i, f, g, o, u = jnp.split(gates, 5)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + jax.nn.sigmoid(f) * left + jax.nn.sigmoid(g) * right
    return State(jax.nn.sigmoid(o) * jnp.tanh(c), c)


def value_and_grad(w: dict[str, jax.Array], todo: Plan) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Of `by_hand.mean_loss`."""
    slots = by_hand.states(w, todo)

    def total(w: Any, h: jax.Array) -> jax.Array:
        return jnp.sum(todo.weight * jax.vmap(surprise, (None, 0, 0))(w, h, todo.label))

    value, (slope, over_h) = jax.value_and_grad(total, (0, 1))(w, slots.h)
    over_leaves, over_gates = _rows(w, todo, slots, over_h)
    of_leaves = jax.vjp(lambda w: jax.vmap(leaf, (None, 0))(w, todo.word), w)[1](over_leaves)[0]
    children = jnp.concatenate([slots.h[todo.left.ravel()], slots.h[todo.right.ravel()]], axis=1)
    slope = jax.tree.map(jnp.add, slope, of_leaves)
    return value, slope | {"node": children.T @ over_gates, "node_bias": over_gates.sum(axis=0)}


def _rows(w: dict[str, jax.Array], todo: Plan, slots: State, over_h: jax.Array) -> tuple[State, jax.Array]:
    """The cotangents of the leaves, and of the gates of all other nodes; the last row first."""
    rows, width = todo.left.shape
    size, place = slots.h.shape[1], _places(todo)

    def told(left: State, start: Any, count: int) -> State:
        where = jax.lax.dynamic_slice(place, (start,), (count,))
        return State(jax.lax.dynamic_slice(over_h, (start, 0), (count, size)) + left.h[where], left.c[where])

    def row(left: State, where: Any) -> tuple[State, jax.Array]:
        number, one, other = where
        gates = jnp.concatenate([slots.h[one], slots.h[other]], axis=1) @ w["node"] + w["node_bias"][None]
        mine = told(left, len(todo.word) + width * number, width)
        over_gates, over_one, over_other = jax.vjp(jax.vmap(cell), gates, slots.c[one], slots.c[other])[1](mine)
        below = over_gates @ w["node"].T
        new = State(jnp.concatenate(jnp.split(below, 2, axis=1)), jnp.concatenate([over_one, over_other]))
        put = lambda old, some: jax.lax.dynamic_update_slice(old, some, (2 * width * number, 0))  # noqa: E731
        return jax.tree.map(put, left, new), over_gates

    nothing = jnp.zeros((2 * rows * width + 1, size), slots.h.dtype)
    steps = (jnp.arange(rows), todo.left, todo.right)
    left, gates = jax.lax.scan(row, State(nothing, nothing), steps, reverse=True)
    return told(left, 0, len(todo.word)), gates.reshape(rows * width, -1)


def _places(todo: Plan) -> jax.Array:
    """Where the parent of each slot leaves its cotangent; a root finds zeros, behind the last place."""
    rows, width = todo.left.shape
    places = jnp.arange(2 * rows * width).reshape(rows, 2, width)
    children = jnp.stack([jnp.asarray(todo.left), jnp.asarray(todo.right)], axis=1)
    padded = jnp.asarray(todo.left == todo.right)[:, None]
    slots = len(todo.label)
    found = jnp.full(slots, places.size, places.dtype)
    return found.at[jnp.where(padded, slots, children).ravel()].set(places.ravel(), mode="drop")
