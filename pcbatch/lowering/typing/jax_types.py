"""Conversion between the types of the IR and those of JAX, and between values and their storage in the machine."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core.primitives import convert_element_type_p

from pcbatch.ir.types import ArrayType

KEY_IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")


@cache
def _key_dtypes() -> dict[str, tuple[Any, str]]:
    def dtype_of(impl: str) -> Any:
        return jax.eval_shape(lambda: jax.random.key(0, impl=impl)).dtype

    return {str(dtype_of(impl)): (dtype_of(impl), impl) for impl in KEY_IMPLS}


def is_key(type_: ArrayType) -> bool:
    """Return whether a type is that of typed PRNG keys."""
    return type_.dtype.startswith("key<")


def jax_dtype(type_: ArrayType) -> Any:
    """Return the dtype object that JAX uses for a type."""
    return _key_dtypes()[type_.dtype][0] if is_key(type_) else jnp.dtype(type_.dtype)


def integer_limits(dtype: Any) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer dtype, int4 and its like included."""
    iinfo: Any = jnp.iinfo  # untyped in some releases of JAX
    info = iinfo(dtype)
    return int(info.min), int(info.max)


def is_symbolic(size: object) -> bool:
    """Return whether a size is unknown while tracing, as in programs exported for any number of lanes."""
    return not isinstance(size, int | np.integer)


array_struct: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX


def to_aval(type_: ArrayType, lanes: tuple[int, ...] = ()) -> jax.ShapeDtypeStruct:
    """Return the abstract value that JAX traces a type with; `lanes` are leading axes before its shape."""
    aval: jax.ShapeDtypeStruct = array_struct(lanes + type_.shape, jax_dtype(type_), weak_type=type_.weak)
    return aval


def from_aval(aval: Any, drop: int = 0) -> ArrayType:
    """Return the IR type of an abstract or concrete value, without its first `drop` axes."""
    weak = bool(getattr(aval, "weak_type", False))
    return ArrayType(str(aval.dtype), tuple(map(int, aval.shape[drop:])), weak)


@cache
def _key_data_shape(dtype: str) -> tuple[int, ...]:
    impl = _key_dtypes()[dtype][1]
    shape = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0, impl=impl))).shape
    return tuple(map(int, shape))


def storage_type(type_: ArrayType) -> ArrayType:
    """Return the type in which the machine stores a value: typed keys as their raw words, all else as it is."""
    if is_key(type_):
        return ArrayType("uint32", type_.shape + _key_data_shape(type_.dtype))
    return ArrayType(type_.dtype, type_.shape)


def to_storage(value: Any, type_: ArrayType) -> Any:
    """Convert a value, with any leading axes, to the form in which the machine stores it."""
    return jax.random.key_data(value) if is_key(type_) else jnp.asarray(value, jax_dtype(type_))


def from_storage(value: Any, type_: ArrayType) -> Any:
    """Convert a stored value back; the inverse of `to_storage`."""
    return jax.random.wrap_key_data(value, impl=_key_dtypes()[type_.dtype][1]) if is_key(type_) else value


def as_result(value: Any, type_: ArrayType) -> Any:
    """Convert a stored value to the result that users get: typed keys as such, weak types as under `jax.vmap`."""
    value = from_storage(value, type_)
    if not type_.weak:
        return value
    # No function of jax.numpy or jax.lax makes an array weak; the primitive that JAX itself uses for it is public.
    return convert_element_type_p.bind(value, new_dtype=value.dtype, weak_type=True, sharding=None)


def zeros(type_: ArrayType, lanes: tuple[int, ...], xp: Any = jnp) -> Any:
    """Return an initial value for a register or a stack; `type_` is a storage type already."""
    return xp.zeros(lanes + type_.shape, np.dtype(jax_dtype(type_)))
