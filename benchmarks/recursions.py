"""Recursive functions of one example, and the same with a stack by hand, as `jax.vmap` needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

NOWHERE = -1  # a slot that no stack has


def fib(n):
    """The usual definition, with fib(0) = fib(1) = 1."""
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


def ackermann(m, n):
    """Calls in the arguments of calls."""
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def queens(board, columns, left, right):
    """Ways to place the rest of the queens: `board` has a bit for each column, the others say which are attacked."""
    if columns == board:
        return 1
    solutions = 0
    free = board & ~(columns | left | right)
    while free != 0:
        queen = free & -free
        free = free ^ queen
        solutions += queens(board, columns | queen, (left | queen) << 1, (right | queen) >> 1)
    return solutions


def _set(stack: jax.Array, at: jax.Array, value: jax.Array) -> jax.Array:
    """`stack` with one slot changed: by a selection, which XLA fuses on CPUs where it does not a scatter."""
    return jnp.where(jnp.arange(stack.shape[0]) == at, value, stack)


def fib_by_hand(n: jax.Array) -> jax.Array:
    """A stack of calls that wait; every leaf adds one, since that is what a sum of calls comes to."""

    def body(s: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        n, depth, stack, total = s
        leaf = n <= 1
        stack = _set(stack, jnp.where(leaf, NOWHERE, depth), n - 1)
        depth = jnp.where(leaf, depth - 1, depth + 1)
        n = jnp.where(leaf, stack[jnp.maximum(depth, 0)], n - 2)
        return n, depth, stack, jnp.where(leaf, total + 1, total)

    start = (n, jnp.int32(0), jnp.zeros(16, n.dtype), jnp.int32(0))
    return jax.lax.while_loop(lambda s: s[1] >= 0, body, start)[3]


def ackermann_by_hand(m: jax.Array, n: jax.Array) -> jax.Array:
    """A stack of the first arguments that wait for their second."""

    def body(s: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        m, n, depth, stack = s
        nested = (m > 0) & (n > 0)
        stack = _set(stack, jnp.where(nested, depth, NOWHERE), m - 1)
        depth = jnp.where(nested, depth + 1, jnp.where(m == 0, depth - 1, depth))
        below = jnp.where(m == 0, stack[jnp.maximum(depth, 0)], jnp.where(n == 0, m - 1, m))
        return below, jnp.where(m == 0, n + 1, jnp.where(n == 0, 1, n - 1)), depth, stack

    start = (m, n, jnp.int32(0), jnp.zeros(64, m.dtype))
    return jax.lax.while_loop(lambda s: s[2] >= 0, body, start)[1]


def queens_by_hand(board: jax.Array, columns: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    """Backtracking: a frame for each row of the board; a step places a queen or gives up a row."""

    def body(s: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        row, rows, here, total = s
        columns, left, right, free = here
        queen = free & -free
        rest = jnp.stack([columns, left, right, free ^ queen])
        columns, left, right = columns | queen, (left | queen) << 1, (right | queen) >> 1
        below = jnp.stack([columns, left, right, board & ~(columns | left | right)])
        solved = (queen != 0) & (columns == board)
        down = (queen != 0) & ~solved
        slot = (jnp.arange(rows.shape[1]) == jnp.where(down, row, NOWHERE))[None, :]
        rows = jnp.where(slot, rest[:, None], rows)
        row = jnp.where(down, row + 1, jnp.where(rest[3] == 0, row - 1, row))
        stay = solved & (rest[3] != 0)
        here = jnp.where(down, below, jnp.where(stay, rest, rows[:, jnp.maximum(row, 0)]))
        return row, rows, here, jnp.where(solved, total + 1, total)

    start = (jnp.int32(0), jnp.zeros((4, 8), board.dtype), jnp.stack([columns, left, right, board]), jnp.int32(0))
    return jax.lax.while_loop(lambda s: s[0] >= 0, body, start)[3]


class Recursion(NamedTuple):
    """A recursive function, the same by hand, inputs, and how deep they nest."""

    title: str
    solve: Callable[..., Any]
    by_hand: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    depth: int
    lanes: int


def _uniform(low: int, high: int, count: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).integers(low, high + 1, count).astype(np.int32))


def _boards(count: int) -> tuple[jax.Array, ...]:
    nothing = jnp.zeros(count, jnp.int32)
    return (1 << _uniform(4, 8, count)) - 1, nothing, nothing, nothing


RECURSIONS = {
    "fib": Recursion("fib, n in 0..15", fib, fib_by_hand, lambda n: (_uniform(0, 15, n),), 32, 16384),
    "ackermann": Recursion(
        "Ackermann, m and n in 0..3",
        ackermann,
        ackermann_by_hand,
        lambda n: (_uniform(0, 3, n), _uniform(0, 3, n, 1)),
        64,
        1024,
    ),
    "queens": Recursion("queens, boards of 4..8", queens, queens_by_hand, _boards, 16, 1024),
}
