"""What a run leaves behind, for those who make results and errors of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["values", "status", "trips", "counts", "pc", "depths", "back", "shown", "line"],
    meta_fields=["depth"],
)
@dataclass(frozen=True, slots=True)
class RawResult:
    """The leaves of a run: result leaves and status per lane, trips, statistics (visits, active and offered lanes per
    block, or nothing), final program counters, depths and return addresses, and by variable what the messages of
    failures show.

    `line`: for a profile the arrays of `timeline.KEYS` and the trips; the devices in front where there are several.
    `depths` and `back` are None where there are no calls, or nobody knows. `depth`: what stacks had room for."""

    values: tuple[Any, ...]
    status: Any
    trips: Any
    counts: Any
    pc: Any
    depths: Any
    back: Any
    shown: Any
    depth: int
    line: Any = ()


KEEPING: ContextVar[bool] = ContextVar("pcbatch_keeping", default=False)  # may a run use up no argument?


def debug_checks() -> tuple[str, ...]:
    """What JAX is told to look for in results: "nan" (`jax_debug_nans`), "inf" (`jax_debug_infs`)."""
    return tuple(kind for kind in ("nan", "inf") if getattr(jax.config, f"jax_debug_{kind}s", False))


def replaying() -> bool:
    """Does JAX run a jitted function again, one operation after another, to find out which of them gave a NaN?"""
    error = sys.exc_info()[1]  # it does so while it handles the error
    return bool(debug_checks()) and error is not None and "FloatingPointError" in type(error).__name__


@contextmanager
def unsought() -> Iterator[None]:
    """Inside, JAX looks for no NaN."""
    if not debug_checks():
        yield
        return
    with jax.debug_nans(False), jax.debug_infs(False):
        yield


@contextmanager
def no_donation() -> Iterator[None]:
    """Runs inside use up no argument."""
    token = KEEPING.set(True)
    try:
        yield
    finally:
        KEEPING.reset(token)


def is_tracing(args: Any) -> bool:
    """Is this call part of a program that JAX is tracing?"""
    # A call inside `jit` with concrete arguments is traced too: all that is computed there is.
    computed = jnp.zeros(()) if getattr(jax.config, "jax_disable_jit", False) else _nothing()
    return any(isinstance(leaf, jax.core.Tracer) for leaf in (computed, *jax.tree.leaves(args)))


@jax.jit
def _nothing() -> int:
    """Called once or a million times, it is compiled once: the cheapest way to have JAX compute something."""
    return 0


def non_finite_lanes(outcome: RawResult) -> list[int]:
    """Lanes that have not failed and give something that is not finite."""
    bad = np.zeros(np.shape(outcome.status), bool)
    for value in outcome.values:
        if jnp.issubdtype(value.dtype, jnp.inexact):
            finite = np.isfinite(np.asarray(value))
            bad |= ~finite.reshape(len(bad), -1).all(axis=1)
    return [int(lane) for lane in np.flatnonzero(bad & (np.asarray(outcome.status) == 0))]
