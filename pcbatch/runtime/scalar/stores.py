"""Scatters of one lane as stores of one window after the other, each in place.

before:  c:i32[9] = scatter[mode=FILL_OR_DROP] a i x
after:   c:i32[9] = jit[jaxpr={ ... read a window, choose, and store it ... }] a i x

A window that does not fit is dropped, by one of three ways: a small one is read and stored again; of many, those go to
a place behind the array; a large one is stored in a loop of at most one iteration, which costs the most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.data.conditional_stores import FEW
from pcbatch.runtime.scalar.native import own_call
from pcbatch.runtime.vm.run_once import run_once

MUCH = 16  # elements of an array for each window that is stored in it, up to which it may be copied

DROP = jax.lax.GatherScatterMode.FILL_OR_DROP


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a scatter.

    Attributes:
        updates: what is stored, [windows, *shape].
        indices: where, [windows, indexed axes].
        shape: of one of them, with the axes of the array.
        room: the greatest start along each axis of the array.
        numbers: JAX's `ScatterDimensionNumbers`.
        batch: the sizes of the axes that go over windows.
    """

    updates: jax.Array
    indices: jax.Array
    shape: tuple[int, ...]
    room: tuple[int, ...]
    numbers: Any
    batch: tuple[int, ...]

    @classmethod
    def of(cls, operand: Any, indices: Any, updates: Any, numbers: Any) -> Windows:
        """Return the windows that a scatter stores."""
        axes = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
        count = math.prod(indices.shape[:-1])
        in_order = jnp.transpose(updates, (*axes, *numbers.update_window_dims))
        sizes = iter(updates.shape[d] for d in numbers.update_window_dims)
        thin = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        shape = tuple(1 if d in thin else next(sizes) for d in range(operand.ndim))
        room = tuple(size - width for size, width in zip(operand.shape, shape, strict=True))
        batch = tuple(updates.shape[d] for d in axes)
        rows = indices.reshape(count, indices.shape[-1])
        return cls(in_order.reshape(count, *shape), rows, shape, room, numbers, batch)

    def __len__(self) -> int:
        return len(self.indices)

    def start(self, row: Any, dtype: Any) -> list[Any]:
        """Return the first index of a window along each axis of the array, in this dtype."""
        at: list[Any] = [jnp.zeros((), dtype)] * len(self.shape)
        for k, d in enumerate(self.numbers.scatter_dims_to_operand_dims):
            at[d] = self.indices[row, k].astype(dtype)
        if self.numbers.operand_batching_dims:
            places = jnp.unravel_index(row, self.batch)
            pairs = zip(self.numbers.operand_batching_dims, self.numbers.scatter_indices_batching_dims, strict=True)
            for d, b in pairs:
                at[d] = places[b].astype(dtype)
        return at


def scatter(name: str, operand: Any, indices: Any, updates: Any, **params: Any) -> jax.Array:
    """Store one window after the other, as the scatter of this name does: one of `COMBINE`."""
    windows = Windows.of(operand, indices, updates, params["dimension_numbers"])
    drops, combine = params["mode"] == DROP, COMBINE[name]
    if name == "scatter" and params["update_jaxpr"] is not None:  # `x.at[i].apply(function)`
        combine = _applied(params["update_jaxpr"], params["update_consts"])
    behind = _axis_behind(windows, operand) if drops else None
    at_once = drops and behind is None and math.prod(windows.shape) <= FEW
    # Narrow integers may not hold a size. Without their sign, negative indices are too large: one comparison for both.
    signed = jnp.issubdtype(indices.dtype, jnp.signedinteger) and not drops
    dtype = jnp.dtype(f"{'int' if signed else 'uint'}{8 * max(indices.dtype.itemsize, 4)}")

    def store(row: jax.Array, array: jax.Array) -> jax.Array:
        update = windows.updates[row]
        pairs = [(s, np.asarray(m, dtype)) for s, m in zip(windows.start(row, dtype), windows.room, strict=True)]
        at = [jnp.clip(start, 0, most).astype(jnp.int32) for start, most in pairs]
        fits = reduce(jnp.logical_and, [start <= most for start, most in pairs], jnp.ones((), bool))

        def stored(array: jax.Array) -> jax.Array:
            new = update
            if combine is not None or at_once:
                old = sliced(array, at, windows.shape)
                new = update if combine is None else combine(old, update).astype(array.dtype)
                new = _either(fits, new, old) if at_once else new
            return jax.lax.dynamic_update_slice(array, new, at, allow_negative_indices=False)

        if behind is not None:
            at[behind] = jnp.where(fits, at[behind], operand.shape[behind])
        return run_once(fits, stored, array) if drops and behind is None and not at_once else stored(array)

    if len(windows) == 1:
        return store(jnp.int32(0), operand)
    if behind is None:
        return jax.lax.fori_loop(0, len(windows), store, operand)  # type: ignore[no-any-return]
    more = jax.lax.slice_in_dim(operand, 0, windows.shape[behind], axis=behind)
    new = jax.lax.fori_loop(0, len(windows), store, jnp.concatenate([operand, more], behind))
    return jax.lax.slice_in_dim(new, 0, operand.shape[behind], axis=behind)


def _axis_behind(windows: Windows, operand: Any) -> int | None:
    """Return the axis along which an array gets room for the windows that do not fit; None if it gets none."""
    if not 1 < operand.size <= MUCH * len(windows) or len(windows) == 1:
        return None
    axes = windows.numbers.scatter_dims_to_operand_dims
    return next((d for d in axes if windows.shape[d] <= operand.shape[d]), None)


def sliced(operand: Any, starts: Sequence[Any], sizes: tuple[int, ...]) -> jax.Array:
    """Return a slice of an array, read in a function of its own: XLA copies an array that is stored into otherwise."""
    free = [d for d, size in enumerate(sizes) if size < operand.shape[d]]
    if not free:
        return operand  # type: ignore[no-any-return]

    def load(array: Any, *given: Any) -> jax.Array:
        at = dict(zip(free, given, strict=True))
        all_starts = [at.get(d, jnp.zeros((), given[0].dtype)) for d in range(array.ndim)]
        return jax.lax.dynamic_slice(array, all_starts, sizes, allow_negative_indices=False)

    out: jax.Array = own_call(load, operand, *(starts[d] for d in free))
    return out


def _either(condition: Any, a: Any, b: Any) -> Any:
    """Return `where(condition, a, b)`; small integers are chosen as words.

    LLVM reads a word for a byte that has just been stored by itself, and a processor waits for such a store.
    """
    small = a.dtype.itemsize == 1 and (a.dtype == np.bool_ or jnp.issubdtype(a.dtype, jnp.integer))
    word = jnp.int32 if small else a.dtype
    return jnp.where(condition, a.astype(word), b.astype(word)).astype(a.dtype)


def _applied(jaxpr: jex.Jaxpr, constants: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """Return a function of old elements and updates that computes each new element by a jaxpr of two numbers."""
    compute = jax.vmap(jex.jaxpr_as_fun(jex.ClosedJaxpr(jaxpr, list(constants))))
    return lambda old, update: compute(old.reshape(-1), update.reshape(-1))[0].reshape(old.shape)


COMBINE: dict[str, Callable[[Any, Any], Any] | None] = {
    "scatter": None,
    "scatter-add": jnp.add,
    "scatter-mul": jnp.multiply,
    "scatter-min": jnp.minimum,
    "scatter-max": jnp.maximum,
}
