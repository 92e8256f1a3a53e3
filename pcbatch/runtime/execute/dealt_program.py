"""Programs whose lanes are dealt to the cores of a CPU: an execution for each core, each in a thread of its own.

Lanes that run one after the other do not wait for each other, so chunks of them give what all of them give, whatever
their number.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class DealtProgram:
    """A function of the lanes of a call that runs as several executions of one program of fewer lanes.

    Attributes:
        jitted: the jitted function of a chunk of lanes. It gives arrays [lanes, ...], and a last one [..., lanes].
        starts: the first lane of each chunk; the last chunk begins among the lanes of the one before if they do not
            come out even.
        width: the lanes of a chunk.
        mapped: which of the arguments have an axis of lanes.
    """

    jitted: Any
    starts: tuple[int, ...]
    width: int
    mapped: tuple[bool, ...]
    _compiled: dict[Hashable, Any] = field(default_factory=dict)

    def __call__(self, *args: Any) -> Any:
        """Return what the function gives for all lanes."""
        rows = [_on_host(arg) if mapped else arg for arg, mapped in zip(args, self.mapped, strict=True)]
        chunks = [
            [self._part(*each, start) for each in zip(args, rows, self.mapped, strict=True)] for start in self.starts
        ]
        # Compiled here: a thread has settings of JAX of its own.
        program = self._program(chunks[0])
        others = [_pool().submit(program, *chunk) for chunk in chunks[1:]]
        first = program(*chunks[0])
        behind = self.starts[-2] + self.width - self.starts[-1]
        return _joined([first, *(other.result() for other in others)], behind=behind)

    def _part(self, arg: Any, rows: Any, mapped: bool, start: int) -> Any:
        part = rows[start : start + self.width] if mapped else rows
        if isinstance(arg, jax.Array) and arg.committed:
            return jax.device_put(part, arg.sharding)
        # The thread makes it an array of JAX, which takes ten times as long as to cut it; but not one of 64 bits, of
        # which a thread does not know whether JAX has them.
        return part if isinstance(part, np.ndarray) and part.dtype.itemsize <= 4 else jnp.asarray(part)

    def _program(self, chunk: Sequence[Any]) -> Any:
        key = tuple(None if isinstance(array, np.ndarray) else array.sharding for array in chunk)
        if key not in self._compiled:
            self._compiled[key] = self.jitted.lower(*chunk).compile()
        return self._compiled[key]


def dealt(jitted: Any, lanes: int, width: int, mapped: Sequence[bool]) -> DealtProgram:
    """Return the function of all lanes; see `DealtProgram`. There are more lanes than the width of a chunk."""
    starts = [*range(0, lanes - width, width), lanes - width]
    return DealtProgram(jitted, tuple(starts), width, tuple(mapped))


@cache
def cores() -> int:
    """Return the number of cores that XLA computes on: those of this process, or the environment's `NPROC`."""
    told = os.environ.get("NPROC", "")
    if told.isdigit() and int(told):
        return int(told)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), "pcbatch-lanes")


def _on_host(array: Any) -> Any:
    """Return an array that is cut without a program of XLA, where that is possible: of keys it is not."""
    return array if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else np.asarray(array)


@partial(jax.jit, static_argnames="behind")
def _joined(parts: Sequence[Any], behind: int) -> Any:
    """Return the results of all chunks as those of one; `behind` lanes of the last chunk are in the one before it."""

    def join(*leaves: Any, axis: int) -> jax.Array:
        *most, last = leaves
        return jnp.concatenate([*most, jax.lax.slice_in_dim(last, behind, None, axis=axis)], axis)

    *firsts, rows = zip(*parts, strict=True)
    joined = [jax.tree.map(partial(join, axis=0), *each) for each in firsts]
    return (*joined, jax.tree.map(partial(join, axis=-1), *rows))
