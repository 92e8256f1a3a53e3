"""The raw result of a run, of which results, statistics and errors are made; and modes of JAX around a run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.contexts import setting
from pcbatch.jax_settings import trace_state


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["values", "status", "trips", "counts", "pc", "depths", "back", "shown", "line", "rows"],
    meta_fields=["depth"],
)
@dataclass(frozen=True, slots=True)
class RawResult:
    """The arrays that a run ends with; a pytree of JAX, with `depth` as its only static field."""

    values: tuple[Any, ...]  # the leaves of the result, [lanes, ...] each
    status: Any  # int32[lanes], values of `Status`
    trips: Any  # int32[]
    counts: Any  # `layout.PER_BLOCK`, uint32[blocks, 2] each, or () without statistics
    pc: Any  # int32[lanes], the last program counters
    depths: Any  # int32[lanes]; None where there are no calls, or where they are not known
    back: Any  # int32[lanes], the return addresses of the last bodies; None likewise
    shown: Any  # variable -> [lanes, ...]: the values that messages of failures show
    depth: int  # the nested calls that stacks had room for
    line: Any = ()  # for a profile the arrays of `timeline.KEYS` and the trips, [devices, ...] if there are several
    rows: Any = None  # of a packed one: `trips` in each lane, `pc`, `depths` and `back`, int32[2 or 4, lanes]

    def of_lanes(self, change: Callable[[Any], Any]) -> RawResult:
        """Return the result with each array that has an axis of lanes changed; trips and counts are as they are."""
        lanes = (self.values, self.status, self.pc, self.depths, self.back, self.shown)
        values, status, pc, depths, back, shown = jax.tree.map(change, lanes)
        return replace(self, values=values, status=status, pc=pc, depths=depths, back=back, shown=shown)

    def unpacked(self) -> RawResult:
        """Return the result with all its arrays, of which those that were packed are on the host; waits for them."""
        if self.rows is None:
            return self
        first, *others = np.asarray(self.rows)
        return replace(self, **dict(zip(PACKED, (first[0], *others), strict=False)), rows=None)


PACKED = ("trips", "pc", "depths", "back")


KEEPING: ContextVar[bool] = ContextVar("pcbatch_keeping", default=False)  # whether runs must not donate arguments


def debug_checks() -> tuple[str, ...]:
    """Return the values that JAX looks for in results: "nan" (`jax_debug_nans`), "inf" (`jax_debug_infs`)."""
    nans, infs = getattr(jax.config, "jax_debug_nans", False), getattr(jax.config, "jax_debug_infs", False)
    return ("nan",) * nans + ("inf",) * infs  # without a generator: every call asks


def replaying() -> bool:
    """Whether JAX runs a jitted function again, operation by operation, to find the one that gave a NaN."""
    error = sys.exc_info()[1]  # JAX does so while it handles the error
    return bool(debug_checks()) and error is not None and "FloatingPointError" in type(error).__name__


@contextmanager
def unsought() -> Iterator[None]:
    """Return a context in which JAX looks for no NaN and no infinity."""
    if not debug_checks():
        yield
        return
    with jax.debug_nans(False), jax.debug_infs(False):
        yield


def no_donation() -> AbstractContextManager[None]:
    """Return a context in which runs donate no argument."""
    return setting(KEEPING, True)


def is_tracing(args: Any) -> bool:
    """Whether a call with these arguments is part of a program that JAX is tracing."""
    # A call inside `jit` with concrete arguments is traced too: all that is computed there is.
    return is_staged() or any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(args))


@cache
def _plain_state() -> Any:
    """Return JAX's state where nothing is traced."""
    with jax.ensure_compile_time_eval():
        return trace_state()


def is_staged() -> bool:
    """Whether all that is computed now is traced, as inside `jax.jit`."""
    # JAX's state tells that sooner than a program does that computes.
    if (state := trace_state()) is not None and state == _plain_state():
        return False
    computed = jnp.zeros(()) if getattr(jax.config, "jax_disable_jit", False) else _nothing()
    return isinstance(computed, jax.core.Tracer)


@jax.jit
def _nothing() -> int:
    """Compute a constant: compiled once, it is the cheapest way to have JAX compute something."""
    return 0


def non_finite_lanes(outcome: RawResult) -> list[int]:
    """Return the numbers of the lanes that have not failed and have a result that is not finite."""
    bad = np.zeros(np.shape(outcome.status), bool)
    for value in outcome.values:
        if jnp.issubdtype(value.dtype, jnp.inexact):
            finite = np.isfinite(np.asarray(value))
            bad |= ~finite.reshape(len(bad), -1).all(axis=1)
    return [int(lane) for lane in np.flatnonzero(bad & (np.asarray(outcome.status) == 0))]
