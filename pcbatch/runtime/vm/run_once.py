"""Conditional execution by a loop of at most one iteration.

XLA must update the carry of a while loop in place, but copies what goes through a conditional; and it cannot mix the
operations of a loop's body with those that come after the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

Carry = TypeVar("Carry")
Result = TypeVar("Result")


def run_once(pred: jax.Array, body: Callable[[Carry], Carry], carry: Carry) -> Carry:
    """Return `body(carry)` where `pred` (bool[]) is true, and `carry` where it is false.

    `carry` is a pytree of arrays; `body` gives one of the same structure, shapes and dtypes. Under `vmap` the body runs
    for all elements if it runs for one, and those whose `pred` is false keep their carry.
    """
    result: Carry = jax.lax.while_loop(lambda c: c[0], lambda c: (jnp.zeros((), bool), body(c[1])), (pred, carry))[1]
    return result


def isolated(compute: Callable[[], Result]) -> Result:
    """Return `compute()`, computed in a loop of its own.

    All that it reads is read before anything after it is written: XLA then updates a buffer in place that both touch,
    instead of copying it. `compute` gives a pytree of arrays.
    """
    shapes = jax.eval_shape(compute)
    unused = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    result: Result = run_once(jnp.ones((), bool), lambda _: compute(), unused)
    return result
