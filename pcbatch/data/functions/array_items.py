"""Assignments to elements of arrays, with the meaning of NumPy: `x[i] = v` gives the array after it.

Indices may be numbers of the lane, also negative ones, slices, arrays of integers and masks. An index out of range
raises IndexError in the lane, and nothing is stored. A value is converted to the type of the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import FullError, Room
from pcbatch.data.catalogue import Facts
from pcbatch.data.checks import require
from pcbatch.data.origins import Origin, source_of
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.values import Flag, Index, Value
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)

ARRAYS = (jax.Array, np.ndarray, np.generic)
MASK_HELP = "choose by element: `x = np.where(mask, v, x)`"


def store(array: Value, key: Value, value: Value) -> jax.Array:
    """Return the array after `array[key] = value`."""
    array = jnp.asarray(array)
    key = _index(key)
    mask = _mask(array, key)
    if mask is not None:
        value = _cast(value, array.dtype)
        _check_masked(value, mask, array)
        return jnp.where(_over(mask, array), value, array)
    ranged = _with_slice_of_lane(array, key, value)
    if ranged is not None:
        return ranged
    key = key if isinstance(key, tuple) else (key,)
    _check_range(array, key)
    value = _cast(value, array.dtype)
    if any(_is_list(part) for part in key):
        return _store_in_order(array, key, value)
    new: jax.Array = array.at[key].set(value, mode="drop")
    return new


def augment(array: Value, key: Value, change: Callable[[Value], Value]) -> jax.Array:
    """Return the array after `array[key] += v`; `change` gives the new elements for the old ones."""
    array = jnp.asarray(array)
    key = _index(key)
    mask = _mask(array, key)
    if mask is None:
        mask = _slice_mask(array, key)
    if mask is not None:
        changed = change(array)
        if jnp.shape(changed) != array.shape:
            raise Refusal("PCB304", "a value for each element of a mask must be a number", helps=(MASK_HELP,))
        _check_kind(array, changed)
        return jnp.where(_over(mask, array), _cast(changed, array.dtype), array)
    old = array[key]
    new = change(old)
    if jnp.ndim(old):
        _check_kind(array, new)
    return store(array, key, new)


def changed(array: Value, key: Value, change: Callable[[Value], Value]) -> Value:
    """Return the array after a change of `array[key]`, which is a view unless the index is an array."""
    array = jnp.asarray(array)
    key = _index(key)
    part = array[key]
    new = change(part)
    parts = key if isinstance(key, tuple) else (key,)
    if new is part or any(_is_list(each) for each in parts):  # NumPy has copied the elements
        return array
    if part.ndim == 0:
        raise TypeError(f"'{part.dtype}' object does not support item assignment")
    return store(array, key, new)


def merged(path: Sequence[Value]) -> tuple[Value, ...] | None:
    """Return the one index that means `x[i][j]`, for numbers and a last key that may be a slice; None for others."""
    *numbers, last = path
    if not all(_is_number(part) for part in numbers):
        return None
    return (*numbers, last) if _is_number(last) or isinstance(last, slice) else None


def is_basic(key: Value) -> bool:
    """Return whether `x[key]` is a view in NumPy: no part of the index is an array or a mask."""
    parts = key if isinstance(key, tuple) else (key,)
    return not any(_is_list(part) or isinstance(part, list | bool) or _is_bool_array(part) for part in parts)


def is_element(key: Value) -> bool:
    """Return whether an index has numbers only."""
    return all(map(_is_number, key if isinstance(key, tuple) else (key,)))


def _is_number(part: Value) -> bool:
    if isinstance(part, bool):
        return False
    return isinstance(part, int) or (isinstance(part, ARRAYS) and part.ndim == 0 and part.dtype != np.bool_)


Facts(changes=True, ambiguous=True).hold_for("fill")


def call(array: Value, name: str, args: Sequence[Value], options: dict[str, Value]) -> jax.Array:
    """Return the array after a method of NumPy's that changes it."""
    array = jnp.asarray(array)
    match name:
        case "fill":
            return jnp.full_like(array, _cast(args[0], array.dtype))
        case "sort" if array.ndim:
            return jnp.sort(array, *args, **options)
    raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")


def _index(key: Value) -> Value:
    """Return an index with lists of indices as arrays."""
    if isinstance(key, tuple):
        return tuple(_index(part) for part in key)
    return jnp.asarray(key) if isinstance(key, list) else key


def _is_list(part: Value) -> bool:
    """Whether a part of an index is an array of several positions."""
    return isinstance(part, ARRAYS) and part.ndim > 0


def _mask(array: jax.Array, key: Value) -> Value:
    """The mask that an index is; None for other indices."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    parts = key if isinstance(key, tuple) else (key,)
    masks = [part for part in parts if isinstance(part, bool | np.bool_) or _is_bool_array(part)]
    if not masks:
        return None
    if isinstance(key, tuple):
        raise Refusal("PCB304", "a mask beside other indices is not supported", helps=(MASK_HELP,))
    shape = jnp.shape(key)
    if shape != array.shape[: len(shape)]:
        raise IndexError(f"boolean index of shape {shape} does not match an array of shape {array.shape}")
    return key


def _is_bool_array(part: Value) -> bool:
    return isinstance(part, ARRAYS) and part.dtype == np.bool_


def _over(mask: Flag, array: jax.Array) -> jax.Array:
    """A mask of the leading axes, for all elements."""
    whole: jax.Array = jnp.asarray(mask)
    return whole.reshape(whole.shape + (1,) * (array.ndim - whole.ndim))


def _check_masked(value: Value, mask: Flag, array: jax.Array) -> None:
    """Refuse values of which there is one for each element that a mask chooses."""
    rest = array.shape[jnp.ndim(mask) :]
    if value.ndim > len(rest) or any(n not in (1, m) for n, m in zip(value.shape[::-1], rest[::-1], strict=False)):
        note = "how many elements it chooses depends on the lane"
        raise Refusal("PCB304", "an assignment to a mask takes one value for all elements", note, helps=(MASK_HELP,))


def _with_slice_of_lane(array: jax.Array, key: Value, value: Value) -> jax.Array | None:
    """Return the array after an assignment to a slice whose bounds are numbers of the lane; None for other indices."""
    mask = _slice_mask(array, key)
    if mask is None:
        return None
    value = _cast(value, array.dtype)
    if value.ndim < array.ndim or value.shape[0] == 1:  # the same for all elements of the slice
        return jnp.where(_over(mask, array), value, array)
    key = key[0] if isinstance(key, tuple) else key
    start, count, step = _bounds(key, array.shape[0])
    have = value.shape[0]
    require(count == have, "ValueError", "could not broadcast input array of ", have, " elements into ", count)
    positions = start + step * jnp.arange(have)
    inside = jnp.logical_and(count == have, positions >= 0)
    new: jax.Array = array.at[jnp.where(inside, positions, array.shape[0])].set(value, mode="drop")
    return new


def _slice_mask(array: jax.Array, key: Value) -> jax.Array | None:
    """The rows that a slice with bounds of the lane chooses; None for other indices."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(_has_lane_bounds(part) for part in parts):
        return None
    if len(parts) > 1:
        note = "write a loop over the rows, or choose with a mask"
        raise Refusal("PCB304", "a slice of the lane beside other indices is not supported", helps=(note,))
    start, count, step = _bounds(parts[0], array.shape[0])
    offset = jnp.arange(array.shape[0]) - start
    return jnp.logical_and(offset % step == 0, jnp.logical_and(offset // step >= 0, offset // step < count))


def _has_lane_bounds(part: Value) -> bool:
    return isinstance(part, slice) and any(isinstance(b, jax.Array) for b in (part.start, part.stop, part.step))


def _bounds(part: slice, size: int) -> tuple[Value, Value, Value]:
    """The start, the number of elements and the step of a slice of so many elements, by Python's rules."""
    step: Index = 1 if part.step is None else part.step
    if isinstance(step, jax.Array):
        require(step != 0, "ValueError", "slice step cannot be zero")
        step = jnp.where(step == 0, 1, step)
    elif step == 0:
        raise ValueError("slice step cannot be zero")
    up = step > 0
    low, high = jnp.where(up, 0, -1), jnp.where(up, size, size - 1)

    def end(value: Value, default: Value) -> Value:
        if value is None:
            return default
        value = jnp.asarray(value)
        return jnp.clip(jnp.where(value < 0, value + size, value), low, high)

    start = end(part.start, jnp.where(up, low, high))
    stop = end(part.stop, jnp.where(up, high, low))
    count = jnp.where(up, (stop - start + step - 1) // step, (start - stop - step - 1) // -step)
    return start, jnp.maximum(count, 0), step


def _check_range(array: jax.Array, key: tuple[Value, ...]) -> None:
    """Let the lane raise IndexError where an index is out of range."""
    taken = sum(part is not None and part is not Ellipsis for part in key)
    axis = 0
    for part in key:
        if part is Ellipsis:
            axis += array.ndim - taken
            continue
        if part is None:
            continue
        if axis >= array.ndim:
            raise IndexError(f"too many indices for array: array is {array.ndim}-dimensional")
        if not isinstance(part, slice):
            _check_index(part, axis, array.shape[axis])
        axis += 1


def _check_index(part: Value, axis: int, size: int) -> None:
    if isinstance(part, ARRAYS) and not jnp.issubdtype(part.dtype, jnp.integer):
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    inside = (part >= -size) & (part < size)
    if isinstance(part, ARRAYS) and part.ndim:
        require(jnp.all(inside), "IndexError", f"an index is out of bounds for axis {axis} with size {size}")
    else:
        require(inside, "IndexError", "index ", part, f" is out of bounds for axis {axis} with size {size}")


def _store_in_order(array: jax.Array, key: tuple[Value, ...], value: jax.Array) -> jax.Array:
    """Store values at positions that may repeat: the last one counts, as in NumPy."""
    positions = jnp.arange(array.size).reshape(array.shape).at[key].get(mode="fill", fill_value=array.size)
    values = jnp.broadcast_to(value, positions.shape).ravel()
    numbers = jnp.arange(values.size)
    last = jnp.full((array.size,), -1, numbers.dtype).at[positions.ravel()].max(numbers, mode="drop")
    flat = jnp.where(last >= 0, values[last], array.ravel())
    return flat.reshape(array.shape)


def _cast(value: Value, dtype: Any) -> jax.Array:
    """Return a value converted to the type of an array, as NumPy does when it stores one."""
    if isinstance(value, list | tuple):
        value = jnp.asarray(value)
    number = source_of(value) is Origin.NUMBER
    if number and jnp.issubdtype(dtype, jnp.integer):
        _check_fits(value, dtype)
    new = jnp.asarray(value)
    if new.dtype == dtype:
        return new
    if jnp.issubdtype(new.dtype, jnp.complexfloating) and not jnp.issubdtype(dtype, jnp.complexfloating):
        raise TypeError("a complex number cannot be stored in an array of real ones")
    return new.astype(dtype)


def _check_fits(value: Value, dtype: Any) -> None:
    """Raise OverflowError for a number of Python that an array of integers cannot hold."""
    limits: Any = jnp.iinfo  # untyped in some releases of JAX
    info = limits(dtype)
    low, high = int(info.min), int(info.max)
    if isinstance(value, int):
        require(low <= value <= high, "OverflowError", f"Python integer {value} out of bounds for {dtype}")
    elif isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.integer):
        own = limits(value.dtype)
        if low > int(own.min) or high < int(own.max):
            inside = (value >= max(low, int(own.min))) & (value <= min(high, int(own.max)))
            require(inside, "OverflowError", "Python integer ", value, f" out of bounds for {dtype}")


def _check_kind(array: jax.Array, new: Value) -> None:
    """Raise TypeError where NumPy cannot store the result of an operator in the array that it changes."""
    if not np.can_cast(jnp.asarray(new).dtype, array.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast the output of an operator from dtype('{jnp.asarray(new).dtype}') to "
            f"dtype('{array.dtype}') with casting rule 'same_kind'"
        )


def axis_first(array: Value, axis: int) -> Value:
    """The array of `jax.vmap` with the mapped axis in front."""
    return jnp.moveaxis(array, axis, 0)


def stacked_results(results: Value, mapped: Value) -> Value:
    """The results of a call for each element of an array, put together along a new first axis."""
    size = len(mapped)
    if not isinstance(results, LaneList):
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)
    if results.capacity < size:
        raise FullError(Room(size))
    return jax.tree.map(lambda column: column[:size], results.columns)
