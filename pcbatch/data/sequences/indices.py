"""Indices and slices of lists of the lane, as Python understands them."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, require
from pcbatch.data.columns import iinfo
from pcbatch.data.optional import Optional, unwrapped
from pcbatch.data.values import Flag, Index, Value
from pcbatch.diagnostics.lane_words import type_name

LARGEST = 2**31 - 1


def integer(value: Value, refusal: str) -> Value:
    """Return an index as an int, or as a scalar of int32 or int64; raises TypeError with this text for others."""
    if not isinstance(value, jax.Array):
        try:
            return operator.index(value)
        except TypeError:
            raise TypeError(f"{refusal}, not {type_name(value)}") from None
    if value.shape != () or not (jnp.issubdtype(value.dtype, jnp.integer) or value.dtype == np.bool_):
        raise TypeError(f"{refusal}, not {value.dtype}{list(value.shape)}")
    if value.dtype.itemsize < 4 or value.dtype == np.bool_:
        return value.astype(np.int32)
    if jnp.issubdtype(value.dtype, jnp.unsignedinteger):
        return jnp.minimum(value, LARGEST).astype(np.int32)
    return value


def narrowed(value: Value) -> Value:
    """Return an index of int64 as the nearest one of int32, the type of lengths: both are beyond any list."""
    if isinstance(value, jax.Array) and value.dtype == np.int64:
        return jnp.clip(value, -LARGEST, LARGEST).astype(np.int32)
    return value


def repeated(length: Index, times: Index) -> Value:
    """Return the length of a sequence that is repeated, at most the greatest number of int32, which no list has."""
    if isinstance(length, int) and isinstance(times, int):
        return length * times
    most = LARGEST // (max(length, 1) if isinstance(length, int) else jnp.maximum(length, 1))
    return jnp.where(times > most, LARGEST, length * times)


def checked_index(index: Index, length: Index, capacity: int, message: str) -> tuple[Value, Value]:
    """Return the place of an element to read and one to store to; let the lane raise IndexError if there is none.

    The second is out of range, at `capacity`, where the index is: a store there is dropped.
    """
    index = narrowed(integer(unwrapped(index), "list indices must be integers or slices"))
    place: Index
    if isinstance(index, int) and isinstance(length, int):
        require(-length <= index < length, "IndexError", message)
        place = index + length if index < 0 else index
        return place, place
    if isinstance(index, int):
        place = index if index >= 0 else length + index
    else:
        place = jnp.where(index < 0, index + length, index)
    holds = place < length if isinstance(place, int) else jnp.logical_and(place >= 0, place < length)
    require(holds, "IndexError", message)
    return place, jnp.where(holds, place, capacity)


@dataclass(frozen=True, slots=True)
class SliceRange:
    """The elements of a slice: `count` of them, from index `start` on, at a distance of `step`."""

    start: Index
    count: Index
    step: Index

    def holds(self, index: Index) -> Value:
        """Whether the slice has the element at an index, or at each of an array of indices."""
        distance = (index - self.start) * jnp.sign(self.step)
        size = jnp.maximum(jnp.abs(self.step), 1)
        return (distance >= 0) & (distance % size == 0) & (distance // size < self.count)


def slice_range(part: slice, length: Index) -> SliceRange:
    """Return the elements that a slice of a list of this length has."""
    refusal = "slice indices must be integers or None or have an __index__ method"
    start, stop, step = (_known_or_none(bound, refusal) for bound in (part.start, part.stop, part.step))
    if isinstance(step, Optional):
        step = jnp.where(step.present, step.value, 1)
    step = 1 if step is None else step
    require(step != 0, "ValueError", "slice step cannot be zero")
    if not any(isinstance(value, jax.Array | Optional) for value in (start, stop, step, length)):
        known = range(*slice(start, stop, step).indices(length))
        return SliceRange(known.start, len(known), step)
    forward = step > 0
    low = where(forward, 0, -1)
    high = where(forward, length, length - 1)
    start = _bounded(start, where(forward, low, high), low, high, length)
    stop = _bounded(stop, where(forward, high, low), low, high, length)
    distance: Value
    size: Index
    if isinstance(step, int):
        if step == 1 and isinstance(start, int) and start == 0:
            return SliceRange(0, stop, 1)
        distance, size = (stop - start, step) if step > 0 else (start - stop, -step)
    else:
        distance = jnp.where(forward, stop - start, start - stop)
        size = jnp.maximum(jnp.abs(step), 1)
    count = jnp.maximum(distance, 0) if isinstance(size, int) and size == 1 else -(-jnp.maximum(distance, 0) // size)
    return SliceRange(start, count, step)


def _known_or_none(bound: Value, refusal: str) -> Value:
    """Return a bound of a slice as an integer, as None, or as an integer that may be None."""
    if isinstance(bound, Optional):
        return Optional(narrowed(integer(bound.value, refusal)), bound.present)
    return None if bound is None else narrowed(integer(bound, refusal))


def _bounded(bound: Value, end: Value, low: Value, high: Value, length: Index) -> Value:
    """Return the bound of a slice as an index; where it is None, it is that end of the list."""
    if isinstance(bound, Optional):
        return jnp.where(bound.present, _clamped(bound.value, low, high, length), end)
    return end if bound is None else _clamped(bound, low, high, length)


def _clamped(bound: Value, low: Value, high: Value, length: Index) -> Value:
    """Return the bound of a slice as an index between the least and the greatest."""
    if isinstance(bound, int):
        if bound >= 0:
            return bound if bound == 0 and isinstance(low, int) and low == 0 else jnp.minimum(bound, high)
        return jnp.maximum(bound + length, low)
    return jnp.clip(jnp.where(bound < 0, bound + length, bound), low, high)


def where(condition: Flag, a: Value, b: Value) -> Value:
    """Return `a` where a condition holds, which may be known, and `b` elsewhere."""
    if isinstance(condition, jax.Array):
        return jnp.where(condition, a, b)
    return a if condition else b


def length_of_range(start: Index, stop: Index, step: Index) -> Value:
    """Return the length of a range, of int32."""
    bounds = [integer(value, "range() needs integers") for value in (start, stop, step)]
    require(bounds[2] != 0, "ValueError", "range() arg 3 must not be zero")
    if not any(isinstance(value, jax.Array) for value in bounds):
        return len(range(*bounds))
    start, stop, step = bounds
    if isinstance(start, int) and start == 0 and isinstance(step, int) and step > 0:
        return narrowed(-(-jnp.maximum(stop, 0) // step))
    length = traced_range_length(start, stop, step)
    limit(length <= LARGEST, f"the range has more than {LARGEST} elements")
    return jnp.minimum(length, LARGEST).astype(np.int32)


def traced_range_length(start: Index, stop: Index, step: Index) -> jax.Array:
    """Return the length of a range, an unsigned number; never overflows. A step of zero of a lane gives zero."""
    varying = isinstance(step, jax.Array)
    dtype = np.dtype(jnp.result_type(start, stop, step) if varying else jnp.result_type(start, stop))
    plain = [int(bound) for bound in (start, stop) if not isinstance(bound, jax.Array)]
    if dtype == np.bool_ or (dtype.itemsize < 4 and not all(_fits(bound, dtype) for bound in plain)):
        dtype = np.dtype(np.int32)
    start, stop = jnp.asarray(start, dtype), jnp.asarray(stop, dtype)
    # The distance of two signed numbers may not fit their type; the wrapped difference as unsigned always does.
    unsigned = np.dtype(f"uint{dtype.itemsize * 8}")
    if varying:
        low, high = jnp.where(step > 0, start, stop), jnp.where(step > 0, stop, start)
        size = jnp.where(step > 0, step.astype(unsigned), unsigned.type(0) - step.astype(unsigned))
        nonempty = jnp.logical_and(high > low, step != 0)
    else:
        low, high = (start, stop) if step > 0 else (stop, start)
        size, nonempty = abs(step), high > low
    distance = high.astype(unsigned) - low.astype(unsigned)
    # The distance divided by the step and rounded up, without a sum that may overflow.
    steps = _quotient(distance - unsigned.type(1), size)
    return jnp.where(nonempty, steps + unsigned.type(1), jnp.zeros_like(steps))


def _quotient(distance: jax.Array, size: Index) -> jax.Array:
    """The quotient `distance // size`, without an overflow or a division by zero."""
    if isinstance(size, jax.Array):
        return distance // jnp.maximum(size, jnp.ones_like(size))
    dtype = np.dtype(distance.dtype)
    return jnp.zeros_like(distance) if size > iinfo(dtype).max else distance // dtype.type(size)


def _fits(value: int, dtype: np.dtype[Any]) -> bool:
    info = iinfo(dtype)
    return bool(info.min <= value <= info.max)


def at_least_zero(n: Index) -> Value:
    """Return an integer, or zero if it is negative."""
    return max(n, 0) if isinstance(n, int) else jnp.maximum(n, 0)


def in_range(index: Index, n: Index) -> Value:
    """Return whether an index is one of `n` elements; True if that is known."""
    if type(index) is int and type(n) is int:
        return True
    return jnp.logical_and(index < n, index >= -n)


def repetitions(times: Index) -> Value:
    """Return how many times a sequence is repeated that is multiplied by a number."""
    return at_least_zero(narrowed(integer(times, "can't multiply sequence by non-int")))
