"""Operations of signed integers as calls of their own in a jaxpr, which say what is known of their results.

    jit[name=checked_add ...] a b   gives the sum, and whether it is that of the whole numbers
    jit[name=exact_add ...] a b     the sum, which fits: a counter that a loop has tested
    jit[name=between ...] x 0 31    x, which lies there: the length of a list

Only compiling reads them: `low_bits` and `prove_checks` leave out checks, `remove_marks` makes plain operations of what
is left. Where such a call stays, it computes what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np
from jax.extend.core.primitives import convert_element_type_p

from pcbatch.data.values import Num, Value

jax.extend.source_info_util.register_exclusion(__file__)

iinfo: Any = jnp.iinfo

CALLS = ("jit", "pjit")
"""Names that releases of JAX give to the primitive that calls a jitted function."""

MARGIN = {4: 1 + 1e-5, 8: 1 + 1e-12}
"""Relative errors of a product of floats as wide as the integers are less than this, by bytes."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One such operation: `kind` is "checked", "exact" or "between", `name` that of the operation ("add")."""

    kind: str
    name: str = ""


def _sum_fits(a: Num, b: Num, result: Num) -> Num:
    return ((a ^ result) & (b ^ result)) >= 0


def _difference_fits(a: Num, b: Num, result: Num) -> Num:
    return ((a ^ b) & (a ^ result)) >= 0


def _product_fits(a: Num, b: Num, result: Num) -> Num:
    """Whether a product fits: a float tells its size, and near the limit what has wrapped has the wrong half."""
    info = iinfo(result.dtype)
    wide = jnp.float64 if info.bits == 64 else jnp.float32
    size = a.astype(wide) * b.astype(wide)
    most = (float(info.max) + 1) * MARGIN[max(4, info.bits // 8)]
    if info.min == 0:
        return abs(size) < most
    # By its bit: of a product of a number with itself XLA knows that it is not negative, whatever has wrapped.
    return (abs(size) < most) & ((size < 0) == ((result & result.dtype.type(info.min)) != 0))


def _shift_fits(a: Num, b: Num, result: Num) -> Num:
    bits = iinfo(result.dtype).bits
    back = result >> jnp.clip(b, 0, bits - 1)
    return (a == 0) | ((b < bits) & (back == a))


def _negative_fits(a: Num, result: Num) -> Num:
    """Whether a negated number fits, or one without its sign."""
    return a != iinfo(a.dtype).min


OPERATIONS: dict[str, tuple[Callable[..., Value], Callable[..., Value]]] = {
    "add": (jax.lax.add, _sum_fits),
    "sub": (jax.lax.sub, _difference_fits),
    "mul": (jax.lax.mul, _product_fits),
    "shift_left": (jax.lax.shift_left, _shift_fits),
    "neg": (jax.lax.neg, _negative_fits),
    "abs": (jax.lax.abs, _negative_fits),
}
SIGNS = {"+": "add", "-": "sub", "*": "mul", "<<": "shift_left"}


def _checked(name: str) -> Any:
    compute, fits = OPERATIONS[name]

    def run(*operands: Num) -> tuple[Num, Num]:
        result = compute(*operands)
        return result, jax.lax.convert_element_type(fits(*operands, result), bool)  # of no weak type

    return _named(f"checked_{name}", run)


def _named(name: str, fn: Callable[..., Value]) -> Any:
    fn.__name__ = fn.__qualname__ = name
    return jax.jit(fn)


_CHECKED = {name: _checked(name) for name in OPERATIONS}
_EXACT_ADD = _named("exact_add", lambda a, b: jax.lax.add(a, b))
_BETWEEN = _named("between", lambda x, low, high: jnp.copy(x))
MARKS = {
    **{f"checked_{name}": Mark("checked", name) for name in OPERATIONS},
    "exact_add": Mark("exact", "add"),
    "between": Mark("between"),
}


@lru_cache(maxsize=1024)
def specialised(name: str, known: tuple[int | None, ...], dtype: str) -> Any:
    """Return the jaxpr of a checked operation of which an operand is a known number: the other lies in an interval.

    Args:
        name: of the operation, as in `OPERATIONS`.
        known: the operands, None for the one that is not known.
        dtype: of both.

    Returns:
        The jaxpr, a closed one of as many parameters; None where there is no such interval.
    """
    limits = _limits(name, known, int(iinfo(dtype).min), int(iinfo(dtype).max))
    if limits is None:
        return None
    place, whole = known.index(None), iinfo(dtype)

    def run(*operands: Num) -> tuple[Num, Num]:
        result, x = OPERATIONS[name][0](*operands), operands[place]
        least, most = (np.asarray(end, dtype) for end in limits)
        sides = [x >= least] * (limits[0] > whole.min) + [x <= most] * (limits[1] < whole.max)
        return result, jax.lax.bitwise_and(*sides) if len(sides) > 1 else sides[0] if sides else jnp.asarray(True)

    struct: Any = jax.ShapeDtypeStruct
    return jax.make_jaxpr(run)(*[struct((), dtype)] * 2)


def _limits(name: str, known: Sequence[int | None], least: int, most: int) -> tuple[int, int] | None:
    """The least and the greatest operand with which an operation fits, if the other is known."""
    match name, *known:
        case ("add", int() as c, None) | ("add", None, int() as c):
            ends = least - c, most - c
        case "sub", None, int() as c:
            ends = least + c, most + c
        case "sub", int() as c, None:
            ends = c - most, c - least
        case ("mul", int() as c, None) | ("mul", None, int() as c) if c:
            ends = (-(-least // c), most // c) if c > 0 else (-(most // -c), least // c)
        case "shift_left", None, int() as c if 0 <= c < most.bit_length():
            ends = -(-least >> c), most >> c
        case "shift_left", int() as c, None if c > 0:
            ends = 0, (most // c).bit_length() - 1
        case _:
            return None
    return max(ends[0], least), min(ends[1], most)


def mark_of(eqn: Any) -> Mark | None:
    """Return the mark that an equation is; None for all others."""
    return MARKS.get(eqn.params.get("name", "")) if eqn.primitive.name in CALLS else None


def checked(name: str, *operands: Num) -> tuple[Num, Num]:
    """Return the result of an operation of integers of one dtype, and whether it is that of the whole numbers.

    Args:
        name: of the operation, as in `OPERATIONS`.
        operands: int[], numbers of Python among them.
    """
    dtype = jnp.result_type(*operands)
    cast = [_of(dtype, operand) for operand in operands]
    result, fits = _CHECKED[name](*cast)
    return result, fits


def exact_add(a: Num, b: Num) -> Num:
    """Return the sum of two integers that is known to fit."""
    dtype = jnp.result_type(a, b)
    return _EXACT_ADD(_of(dtype, a), _of(dtype, b))


def between(value: Num, low: int, high: int) -> Num:
    """Return an integer that is known to lie between two numbers; these are cut off at the limits of its dtype."""
    info = iinfo(value.dtype)
    ends = (np.asarray(min(max(end, info.min), info.max), value.dtype) for end in (low, high))
    return _BETWEEN(value, *ends)


def _of(dtype: Any, value: Num) -> Num:
    if isinstance(value, jax.Array):
        weak = value.dtype == np.bool_  # a bool counts as a number of Python: beside one the result is weak
        value = value if value.dtype == dtype else value.astype(dtype)
        return convert_element_type_p.bind(value, new_dtype=dtype, weak_type=True, sharding=None) if weak else value
    return value if type(value) is int and dtype == jnp.result_type(int) else np.dtype(dtype).type(value)
