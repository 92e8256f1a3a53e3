"""What JAX offers for many inputs of unequal cost: all at once, in rounds, or one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks.queues.problem import Loop

ROUNDS = (32, 128, 512)


def single(loop: Loop) -> Callable[..., Any]:
    """One example."""
    return lambda *x: loop.out(jax.lax.while_loop(loop.live, loop.step, loop.init(*x)))


def together(one: Callable[..., Any]) -> Callable[..., Any]:
    """A lane for every input: all wait for the last."""
    return jax.jit(jax.vmap(one))


def in_rounds(one: Callable[..., Any], lanes: int) -> Callable[..., Any]:
    """So many lanes at a time: each round waits for its last."""

    @jax.jit
    def run(*x: Any) -> Any:
        rows = jax.tree.leaves(x)[0].shape[0]
        folded = jax.tree.map(lambda a: a.reshape(rows // lanes, lanes, *a.shape[1:]), x)
        out = jax.lax.map(lambda part: jax.vmap(one)(*part), folded)
        return jax.tree.map(lambda a: a.reshape(rows, *a.shape[2:]), out)

    return run


def one_by_one(one: Callable[..., Any]) -> Callable[..., Any]:
    """No batch at all."""
    return jax.jit(lambda *x: jax.lax.map(lambda each: one(*each), x))


def peers(loop: Loop, count: int) -> dict[str, Callable[..., Any]]:
    """Every way that suits so many inputs, by name."""
    one = single(loop)
    rounds = {f"rounds of {n}": in_rounds(one, n) for n in ROUNDS if count % n == 0}
    return {"vmap of all": together(one), **rounds, "lax.map": one_by_one(one)}


def utilisation(steps: np.ndarray, lanes: int) -> float:
    """The share of lane-steps that are of use when rounds of so many lanes each wait for their longest."""
    rounds = steps.reshape(-1, lanes)
    return float(steps.sum() / (rounds.max(axis=1).sum() * lanes))
