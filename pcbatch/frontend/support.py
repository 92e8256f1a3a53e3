"""What compiled primitives call at run time where Python's own operators cannot work on traced values.

Every function here means the same as the Python construct it stands for when its arguments are plain values.
Primitives reach this module through a closure cell, so no user name can hide it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.errors import Refusal

ARRAYS = (jax.Array, np.ndarray, np.generic)
IN_PLACE = {"list": "`x = [*x, item]`", "dict": "`x = {**x, key: item}`", "set": "`x = x | {item}`"}


def truth(value: Any) -> Any:
    """The condition that `value` stands for: a bool, traced or not."""
    if not isinstance(value, ARRAYS):
        return bool(value)
    if value.shape != ():
        raise Refusal(
            "PCB308",
            f"a condition must be a scalar, not an array of shape {value.shape}",
            "Python, too, finds an array of several elements neither true nor false",
            helps=("reduce it with `jnp.all` or `jnp.any`, or choose by element with `jnp.where`",),
        )
    if value.dtype == np.bool_:
        return value
    return value != 0


def not_(value: Any) -> Any:
    """`not value`."""
    if not isinstance(value, ARRAYS):
        return not value
    return jnp.logical_not(truth(value)) if isinstance(value, jax.Array) else np.logical_not(truth(value))


def contains(item: Any, container: Any) -> Any:
    """`item in container`, also when the item or the container is traced."""
    if isinstance(container, jax.Array):
        return jnp.any(container == item)
    if isinstance(item, jax.Array) and isinstance(container, tuple | list | range | np.ndarray):
        if isinstance(container, np.ndarray):
            return jnp.any(jnp.asarray(container) == item)
        return _any_equal(item, tuple(container))
    return item in container


def lacks(item: Any, container: Any) -> Any:
    """`item not in container`."""
    return not_(contains(item, container))


def _any_equal(item: Any, candidates: tuple[Any, ...]) -> Any:
    found: Any = False
    for candidate in candidates:
        found = jnp.logical_or(found, truth(item == candidate))
    return found


def inplace(value: Any) -> Any:
    """The left side of `x += ...`: refuses values that Python would change in place."""
    if isinstance(value, list | dict | set | bytearray):
        kind = type(value).__name__
        raise Refusal(
            "PCB304",
            f"augmented assignment would change a {kind} in place",
            "a lane's values cannot be changed in place: other lanes are elsewhere in the program",
            helps=(f"make a new {kind}: {IN_PLACE.get(kind, 'convert it to a tuple first')}",),
        )
    return value


def range_length(start: Any, stop: Any, step: Any) -> Any:
    """`len(range(start, stop, step))` with traced bounds; never overflows."""
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        _check_integer(name, value)
    if isinstance(step, jax.Array):
        raise Refusal(
            "PCB312",
            "the step of range() must be a Python integer, the same for all lanes",
            "its sign decides how the loop is compiled",
            helps=("go over `range(count)` and compute `start + k * step` in the loop",),
        )
    step = int(step)
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    if not isinstance(start, jax.Array) and not isinstance(stop, jax.Array):
        return len(range(int(start), int(stop), step))
    return _traced_length(start, stop, step)


def _check_integer(name: str, value: Any) -> None:
    if isinstance(value, ARRAYS):
        good = value.shape == () and (jnp.issubdtype(value.dtype, jnp.integer) or value.dtype == np.bool_)
        found = f"{value.dtype}{list(value.shape)}"
    else:
        good, found = hasattr(type(value), "__index__"), type(value).__name__
    if not good:
        raise Refusal(
            "PCB312",
            f"the {name} of range() must be an integer, not {found}",
            helps=("convert it: `x.astype(int)` for an array, `int(x)` for a Python number",),
        )


def _traced_length(start: Any, stop: Any, step: int) -> jax.Array:
    dtype = np.dtype(jnp.result_type(start, stop))
    plain = [int(bound) for bound in (start, stop) if not isinstance(bound, jax.Array)]
    if dtype == np.bool_ or (dtype.itemsize < 4 and not all(_fits(bound, dtype) for bound in plain)):
        dtype = np.dtype(np.int32)
    start, stop = jnp.asarray(start, dtype), jnp.asarray(stop, dtype)
    low, high = (start, stop) if step > 0 else (stop, start)
    # The distance of two signed numbers may not fit their type; the wrapped difference as unsigned always does.
    unsigned = np.dtype(f"uint{dtype.itemsize * 8}")
    distance = high.astype(unsigned) - low.astype(unsigned)
    if abs(step) > np.iinfo(unsigned).max:
        steps = jnp.zeros_like(distance)
    else:
        steps = (distance - unsigned.type(1)) // unsigned.type(abs(step))
    return jnp.where(high > low, steps + unsigned.type(1), jnp.zeros_like(steps))


def _fits(value: int, dtype: np.dtype[Any]) -> bool:
    info = np.iinfo(dtype)
    return info.min <= value <= info.max


def iter_length(value: Any) -> int:
    """Length of the leading axis of what a `for` loop goes over."""
    if not isinstance(value, ARRAYS):
        raise Refusal(
            "PCB312",
            f"a `for` loop cannot go over a {type(value).__name__}",
            "in a lane it goes over `range(...)` or the leading axis of an array",
            helps=("make it an array first: `jnp.stack(values)`, or `jnp.array(list(d.values()))` for a dict",),
        )
    if value.shape == ():
        raise Refusal(
            "PCB312",
            "a `for` loop cannot go over a scalar",
            "in a lane it goes over `range(...)` or the leading axis of an array, and a scalar has no axis",
            helps=("write `range(n)` to count up to a number",),
        )
    return int(value.shape[0])


def row(values: Any, index: Any) -> Any:
    """`values[index]`, also for a NumPy array with a traced index."""
    if isinstance(values, np.ndarray) and isinstance(index, jax.Array):
        return jnp.asarray(values)[index]
    return values[index]


def single(value: Any) -> Any:
    """The value of `x` after `x, = value`."""
    (only,) = value
    return only
