"""Rules of calls, branches and loops: the jaxprs inside are evaluated by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.runtime.kernel.rules.evaluation import evaluate
from pcbatch.runtime.kernel.rules.padding import along, any_, masked, picked, reshaped, struct, where
from pcbatch.runtime.kernel.rules.registry import Unsupported, rule

CALLS = """jit pjit closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr remat remat2
checkpoint""".split()


def closed(jaxpr: Any) -> jex.ClosedJaxpr:
    """Return a jaxpr with its constants, of which an open one has none."""
    return jaxpr if isinstance(jaxpr, jex.ClosedJaxpr) else jex.ClosedJaxpr(jaxpr, ())


def inner(eqn: Any) -> jex.ClosedJaxpr:
    """Return the jaxpr that a call runs."""
    return closed(next(eqn.params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in eqn.params))


def run(jaxpr: Any, args: Sequence[Array]) -> list[Array]:
    """Evaluate a jaxpr that an equation holds."""
    whole = closed(jaxpr)
    return evaluate(whole.jaxpr, whole.consts, args)


@rule(*CALLS)
def call(eqn: Any, *xs: Array) -> Sequence[Array]:
    """Evaluate the function in place."""
    return run(inner(eqn), xs)


@rule("platform_index")
def platform_index(eqn: Any) -> Sequence[Array]:
    """Return which of several branches is the one for a GPU."""
    return [np.int32(platform(eqn.params["platforms"]))]  # type: ignore[list-item]


def platform(choices: Sequence[Any]) -> int:
    """Return the first branch that is for a GPU or for any platform."""
    for k, names in enumerate(choices):
        if names is None or {"cuda", "gpu"} & set(names):
            return k
    raise Unsupported("it has no branch for a GPU")


@rule("cond")
def branch(eqn: Any, index: Array, *xs: Array) -> Sequence[Array]:
    """Run one of several branches; the index is the same for the whole tile, as `vmap` makes selections of others."""
    branches = eqn.params["branches"]
    if not isinstance(index, jax.core.Tracer):
        return run(branches[min(max(int(index), 0), len(branches) - 1)], xs)
    if index.ndim:
        raise Unsupported("a branch by an array of indices")
    outs: Sequence[Array] = lax.switch(index.astype(jnp.int32), [partial(_branch, b) for b in branches], *xs)
    return outs


def _branch(jaxpr: Any, *xs: Array) -> list[Array]:
    return run(jaxpr, xs)


@rule("while")
def loop(eqn: Any, *xs: Array) -> Sequence[Array]:
    """Run a loop while its condition holds, of lanes with conditions of their own while that of any does."""
    p = eqn.params
    first, last = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    of_test, of_turn, start = xs[:first], xs[first:last], list(xs[last:])
    condition = closed(p["cond_jaxpr"]).jaxpr.outvars[0].aval

    def test(state: list[Array]) -> Array:
        return run(p["cond_jaxpr"], [*of_test, *state])[0]

    def turn(state: list[Array]) -> list[Array]:
        return run(p["body_jaxpr"], [*of_turn, *state])

    if not condition.shape:
        return looped(test, turn, start, 0)

    def here(state: list[Array]) -> Array:
        return masked(test(state), condition.shape, range(len(condition.shape)), False)

    return looped(here, turn, start, len(condition.shape), any_)


def looped(
    test: Callable[[list[Any]], Any],
    turn: Callable[[list[Any]], list[Any]],
    start: list[Any],
    lanes: int,
    any_of: Callable[[Any], Any] = jnp.any,
) -> list[Any]:
    """Run a loop whose condition is one truth value, or one for each index of `lanes` leading axes of all it carries.

    The latter is what `vmap` makes of a loop: it runs while any condition holds, and keeps what others have.
    """
    # Triton makes a counting loop of one that looks like it, and then drops the counter even where the body uses it.
    # A first carried value that is no integer keeps it a `while`.
    if not lanes:
        mark = jnp.zeros((), jnp.float32)
        return list(lax.while_loop(lambda s: test(s[1]), lambda s: (s[0], turn(s[1])), (mark, start))[1])

    def next_turn(state: tuple[Any, list[Any]]) -> tuple[Any, list[Any]]:
        holds, old = state
        new = [
            jnp.where(holds.reshape(holds.shape + (1,) * (b.ndim - holds.ndim)), a, b)
            for a, b in zip(turn(old), old, strict=True)
        ]
        return test(new), new

    return list(lax.while_loop(lambda s: any_of(s[0]), next_turn, (test(start), start))[1])


@rule("scan")
def scan(eqn: Any, *xs: Array) -> Sequence[Array]:
    """Run a loop over the first axis of arrays: each turn picks its element and puts its result at its place."""
    p = eqn.params
    fixed, carried, length = p["num_consts"], p["num_carry"], p["length"]
    consts, start, rows = xs[:fixed], list(xs[fixed : fixed + carried]), xs[fixed + carried :]
    outs = [struct(v.aval) for v in eqn.outvars[carried:]]
    body = closed(p["jaxpr"]).jaxpr
    shapes = [struct(v.aval).shape for v in body.invars[fixed + carried :]]

    def turn(i: Array, state: tuple[list[Array], list[Array]]) -> tuple[list[Array], list[Array]]:
        carry, stacked = state
        at = length - 1 - i if p["reverse"] else i
        elements = [reshaped(picked(x, 0, at), shape) for x, shape in zip(rows, shapes, strict=True)]
        results = run(p["jaxpr"], [*consts, *carry, *elements])
        stacked = [_put(old, at, new) for old, new in zip(stacked, results[carried:], strict=True)]
        return results[:carried], stacked

    state = start, [jnp.zeros(o.shape, o.dtype) for o in outs]
    if length == 0:
        return [*start, *state[1]]
    carry, stacked = lax.fori_loop(np.int32(0), np.int32(length), turn, state)
    return [*carry, *stacked]


def _put(rows: Array, at: Array, row: Array) -> Array:
    return where(along(rows.shape[0], 0, rows.ndim) == at, jnp.expand_dims(row, 0), rows)
