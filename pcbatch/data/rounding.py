"""Floats of a lane as plain Python has them: each result is rounded by itself, once.

A compiler may compute something else of equal value on paper. XLA divides by a constant with its reciprocal, so that
`math.ceil(n / 7)` is one too many in 32 bits; it adds the constants of `x + 0.1 + 0.2` first; and the code generator of
a CPU computes `a * b - b * a` in one step that rounds only one of the products, so that it is not zero. A test, a floor
or a loop that ends then goes another way than in Python.

    c = pcbatch_rounded b of      b, or NaN where `of` is NaN

XLA cannot look through the choice, and it costs one comparison beside the operation. Derivatives pass by it. An integer
that becomes a float is hidden likewise: what is known to be no NaN would let the choice be left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np
from jax.extend.core.primitives import convert_element_type_p
from jax.interpreters import ad, batching, mlir

from pcbatch.data.checks import rules
from pcbatch.data.origins import Tracer, kind_of
from pcbatch.data.values import Flag, Num, Value

jax.extend.source_info_util.register_exclusion(__file__)

Operator = Callable[[Value, Value], Value]
SIGNS = frozenset({"+", "-", "*", "/", "**"})

finfo: Any = jnp.finfo

rounded_p: Any = jex.Primitive("pcbatch_rounded")


def rounded(value: Value, of: Value = None) -> Value:
    """Return a float as it is, hidden from compilers.

    Args:
        value: float[], of a lane unless `of` is.
        of: float[] or int[] of which the value is computed, so that it is NaN where that is; the value itself unless
            given.
    """
    return rounded_p.bind(value, value if of is None else of)


def as_float(value: Num, dtype: Any, weak: bool = False) -> Value:
    """Return an integer or bool of a lane as a float."""
    result = convert_element_type_p.bind(value, new_dtype=np.dtype(dtype), weak_type=weak, sharding=None)
    return rounded(result, value) if kind_of(value.dtype) is int else result


def to_float(value: Num) -> Value:
    """Return a number of a lane as a float of JAX's default float type."""
    if _is_integer(value) and _as_in_python():
        return as_float(value, jnp.result_type(float))
    return value.astype(float)


def once(op: Operator, sign: str, a: Value, b: Value) -> Value:
    """Return `op(a, b)`; a float that two scalars give is that of plain Python, bit for bit.

    Args:
        op: the operator.
        sign: how it is written.
        a: any value.
        b: any value.
    """
    if sign not in SIGNS or not (_is_scalar(a) and _is_scalar(b)) or not _as_in_python():
        return op(a, b)
    if _is_integer(a) or _is_integer(b):
        if sign == "**":
            return op(a, b)
        form = op(a, b)  # for its type only
        if not _is_float(form):
            return form
        a, b = (as_float(v, form.dtype, form.weak_type) if _is_integer(v) else v for v in (a, b))
    if not (_is_float(a) or _is_float(b)):
        return op(a, b)
    match sign:
        case "/":
            return _quotient(op, a, b)
        case "+" | "-" if isinstance(a, Tracer) and isinstance(b, Tracer):
            return op(a, b)
        case "*" if _is_power_of_two(a) or _is_power_of_two(b):  # such a product is exact
            return op(a, b)
        case _:
            result = op(a, b)
            return rounded(result) if _is_float(result) else result


def exact_product(x: Num, scale: Num) -> tuple[Value, Value]:
    """Return a product as it is rounded, and the error of rounding, from factors cut in halves by their bits."""
    half = (finfo(x.dtype).nmant + 2) // 2
    product = x * scale
    a, b = _upper(x, half), _upper(jnp.asarray(scale), half)
    c, d = x - a, scale - b
    error = ((a * b - product) + a * d + c * b) + c * d
    return product, jnp.where(jnp.isfinite(product), error, 0.0)


def _upper(x: Num, bits: int) -> Value:
    """Return a float rounded to fewer bits of its fraction, so that the rest has as few."""
    word = jax.lax.bitcast_convert_type(x, np.dtype(f"uint{x.dtype.itemsize * 8}"))
    mask = word.dtype.type(~((1 << bits) - 1) & ((1 << (word.dtype.itemsize * 8)) - 1))
    return jax.lax.bitcast_convert_type((word + word.dtype.type(1 << (bits - 1))) & mask, x.dtype)


def _quotient(op: Operator, a: Value, b: Value) -> Value:
    """Return a quotient whose operands XLA knows nothing of: neither a constant, nor a quotient, nor a root."""
    if not isinstance(a, Tracer):
        return op(a, rounded(b))
    if isinstance(b, Tracer):
        return op(rounded(a), rounded(b, a))
    if _is_power_of_two(b) or not math.isfinite(b):
        return op(a, b)
    weak = not isinstance(b, np.generic)
    divisor = convert_element_type_p.bind(b, new_dtype=a.dtype, weak_type=weak, sharding=None)
    return op(rounded(a), rounded(divisor, a))


def _is_power_of_two(value: Value) -> bool:
    """Whether a value is a known number with which products and quotients are exact."""
    return not isinstance(value, Tracer) and abs(value) < 1e300 and abs(math.frexp(value)[0]) in (0, 0.5)


def _as_in_python() -> bool:
    return rules().math_errors == "raise"


def _is_scalar(value: Value) -> bool:
    return value.shape == () if isinstance(value, Tracer) else isinstance(value, int | float | np.generic)


def _is_float(value: Value) -> bool:
    return isinstance(value, Tracer) and kind_of(value.dtype) is float


def _is_integer(value: Value) -> bool:
    return isinstance(value, Tracer) and kind_of(value.dtype) is int


def _kept(value: Value, of: Value) -> Value:
    return jnp.where(_holds(of), value, jnp.asarray(np.nan, value.dtype))


def _holds(of: Value) -> Flag:
    """Return a condition that holds unless `of` is NaN, and that no compiler finds to be constant."""
    if jnp.issubdtype(of.dtype, jnp.floating):
        return of == of
    shifted = jax.lax.shift_right_logical
    return shifted(of, of.dtype.type(3)) <= shifted(of, of.dtype.type(1))


def _batched(args: Sequence[Value], axes: Sequence[Any]) -> tuple[Value, int]:
    size = next(x.shape[axis] for x, axis in zip(args, axes, strict=True) if axis is not None)
    rows = [
        jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(args, axes, strict=True)
    ]
    return rounded_p.bind(*rows), 0


def _jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    return rounded_p.bind(*primals), tangents[0]


def _of_type(value: Any, of: Any) -> Any:
    return of.update(dtype=value.dtype, weak_type=value.weak_type)


rounded_p.def_impl(_kept)
rounded_p.def_abstract_eval(_of_type)
batching.primitive_batchers[rounded_p] = _batched
ad.primitive_jvps[rounded_p] = _jvp
mlir.register_lowering(rounded_p, mlir.lower_fun(_kept, multiple_results=False))
