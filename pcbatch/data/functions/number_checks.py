"""Checks of arithmetic on numbers of a lane where Python has a larger integer or raises, as far as the rules ask.

Nothing is checked for arrays, which wrap around in plain Python as well, and for unsigned numbers, which Python lacks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, require, rules
from pcbatch.data.functions.math_functions.integers import product_fits
from pcbatch.data.integer_marks import SIGNS, checked
from pcbatch.data.origins import Origin, Tracer, both, kind_of, source_of
from pcbatch.data.values import Num, Value

jax.extend.source_info_util.register_exclusion(__file__)

Operator = Callable[[Value, Value], Value]
DIVISIONS = frozenset({"/", "//", "%"})
SHIFTS = frozenset({"<<", ">>"})
SMALL_POWER = 8  # a power by a known exponent up to here is written as products
GROWING = frozenset({"+", "-", "*", "//", "<<", "**"})
iinfo: Any = jnp.iinfo


def binary(op: Operator, sign: str, a: Value, b: Value) -> Value:
    """Return `op(a, b)` with the checks that the rules ask for; `sign` is the operator in the source."""
    in_force = rules()
    plain = in_force.overflow == "wrap" and not in_force.division and sign not in SHIFTS
    if plain or not _are_numbers(a, b):
        return op(a, b)
    if sign in SHIFTS:
        require(b >= 0, "ValueError", "negative shift count")
        b = jnp.maximum(b, 0) if isinstance(b, Tracer) and in_force.overflow == "fail" and sign in GROWING else b
    if in_force.division:
        b = _nonzero(op, sign, a, b)
    if in_force.overflow == "fail" and sign in GROWING:
        return _fitting(op, sign, a, b)
    return op(a, b)


def unary(op: Callable[[Value], Value], sign: str, a: Value) -> Value:
    """Return `op(a)`, `-a` or `abs(a)`, with the check that the rules ask for."""
    if rules().overflow == "fail" and sign in ("-", "abs") and _are_numbers(a, 0) and _is_checked(a.dtype):
        result, fits = checked("abs" if sign == "abs" else "neg", a)
        _require(fits, sign, a.dtype)
        return result
    return op(a)


def _are_numbers(a: Value, b: Value) -> bool:
    """Whether an operation is one of scalars that may be numbers of Python, one of them a lane's."""
    if not (isinstance(a, Tracer) or isinstance(b, Tracer)) or both(source_of(a), source_of(b)) is Origin.ARRAY:
        return False
    return all(
        value.shape == () if isinstance(value, Tracer) else isinstance(value, int | float | complex) for value in (a, b)
    )


def _is_checked(dtype: Any) -> bool:
    return kind_of(dtype) is int and iinfo(dtype).min < 0


def _kind(*values: Value) -> type | None:
    return kind_of(np.dtype(jnp.result_type(*values)))


def _nonzero(op: Operator, sign: str, a: Value, b: Value) -> Value:
    """Return the right operand, replaced where it is zero and the lane raises ZeroDivisionError."""
    if sign == "**":
        if not isinstance(b, Tracer) and not isinstance(b, complex) and b >= 0:
            return b
        wrong = (jnp.asarray(a) == 0) & (jnp.real(jnp.asarray(b)) < 0)
        require(~wrong, "ZeroDivisionError", _message(op, _kind(a, b), -1))
        return jnp.where(wrong, jnp.ones_like(b), b) if isinstance(b, Tracer) else b
    if sign not in DIVISIONS or (not isinstance(b, Tracer) and b != 0):
        return b
    zero = jnp.asarray(b) == 0
    require(~zero, "ZeroDivisionError", _message(op, _kind(a, b), 0))
    return jnp.where(zero, jnp.ones_like(b), b) if isinstance(b, Tracer) else type(b)(1)


def _message(op: Operator, kind: type | None, right: int) -> str:
    """The text of the error that Python raises for such a division."""
    kind = int if kind is bool or kind is None else kind
    try:
        op(kind(0 if right else 1), kind(right))
    except ZeroDivisionError as error:
        return str(error)
    return "division by zero"


def _require(fits: Value, sign: str, dtype: Any) -> None:
    limit(fits, f"the result of `{sign}` does not fit {np.dtype(dtype).name}")


def _fitting(op: Operator, sign: str, a: Value, b: Value) -> Value:
    """Return the result of an operator of integers; the lane stops where it does not fit."""
    dtype = np.dtype(jnp.result_type(a, b))
    if not _is_checked(dtype):
        return op(a, b)
    if sign == "**":
        return _power(a, b, dtype)
    if sign == "//":
        result, info = op(a, b), iinfo(dtype)
        if isinstance(b, Tracer) or b == -1:
            _require(~((a == info.min) & (b == -1)), sign, dtype)
        return result
    result, fits = checked(SIGNS[sign], a, b)
    _require(fits, sign, dtype)
    return result


def _power(base: Num, exponent: Num, dtype: Any) -> Value:
    """Return a power of integers by squaring; exponents are not negative here."""
    if isinstance(exponent, int) and 0 < exponent <= SMALL_POWER:
        result = base
        for _ in range(exponent - 1):
            result = _fitting(operator.mul, "*", result, base)
        return result
    base, exponent = jnp.asarray(base, dtype), jnp.asarray(exponent, dtype)

    def step(k: Num, state: tuple[Value, ...]) -> tuple[Value, ...]:
        result, square, fits, square_fits = state
        taken = (exponent >> k.astype(dtype)) & 1 == 1
        good = square_fits & product_fits(result, square)
        return (
            jnp.where(taken, result * square, result),
            square * square,
            fits & (good | ~taken),
            square_fits & product_fits(square, square),
        )

    true = jnp.asarray(True)
    bits = jnp.minimum(dtype.itemsize * 8 - jax.lax.clz(exponent).astype(np.int32), int(iinfo(dtype).bits) - 1)
    result, _, fits, _ = jax.lax.fori_loop(0, bits, step, (jnp.ones((), dtype), base, true, true))
    _require(fits, "**", dtype)
    return result
