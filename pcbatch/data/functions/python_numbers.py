"""Python's operators, `round` and methods of numbers on values of a lane, where Python's numbers and arrays differ.

A bool counts as a number for Python's own bools and not for arrays of bools; an integer to a negative power is a float.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, rules
from pcbatch.data.container import as_lane_list
from pcbatch.data.functions import number_checks
from pcbatch.data.functions.math_functions import integers, reals
from pcbatch.data.functions.math_functions.integers import magnitude, unsigned
from pcbatch.data.objects.tuples.operands import is_atom, number_of, plain_operands
from pcbatch.data.origins import Origin, Tracer, both, kind_of, note, number, origin_of, source_of
from pcbatch.data.rounding import exact_product, once
from pcbatch.data.sequences import list_reductions
from pcbatch.data.texts.byte_numbers import to_bytes
from pcbatch.data.values import Num, Value
from pcbatch.errors import Refusal

# Operations belong to the user's line, in the tracebacks and the metadata of JAX as well.
jax.extend.source_info_util.register_exclusion(__file__)

EQUALITIES = frozenset({"==", "!="})
ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**"})
BOOLS_HELP = "to count write `int(a) + int(b)`; for a bool of two bools write `a | b`, `a & b` or `a ^ b`"
NEGATIVE_POWER = "an integer to a negative power is a float: write `2.0 ** n` for `2 ** n`"
COMPLEX_POWER = "a negative number to a power that is not whole is complex: write `abs(x) ** y`, or `complex(x) ** y`"


def invert(a: Value) -> Value:
    """The operator `~a`; refuses a bool that may be Python's own, for which it is -1 or -2 and never false."""
    if is_bool(a) and isinstance(a, Tracer) and origin_of(a) is not Origin.ARRAY:
        title = "`~` of a bool is a number in Python: `~True` is -2, and true as a condition"
        reason = "only for arrays of bools is it a logical not"
        raise Refusal("PCB303", title, reason, helps=("write `not c`; for the number write `~int(c)`",))
    return note(operator.invert(a), source_of(a) or Origin.UNKNOWN) if isinstance(a, Tracer) else operator.invert(a)


def power(base: Num, exponent: Num) -> Value:
    """The operator `**`; the lane stops for an integer to a negative power, which is a float in Python."""
    if isinstance(exponent, Tracer) and origin_of(exponent) is not Origin.ARRAY and _may_be_negative(base, exponent):
        limit(exponent >= 0, NEGATIVE_POWER)
    return checked_power(base, exponent)


def iadd(a: Value, b: Value) -> Value:
    """The function `operator.iadd`."""
    return _arithmetic(operator.iadd, "+", a, b)


def ipow(base: Num, exponent: Num) -> Value:
    """The function `operator.ipow`."""
    of_lanes = isinstance(base, Tracer) or isinstance(exponent, Tracer)
    if of_lanes and not isinstance(base, np.ndarray):
        return power(base, exponent)
    return operator.ipow(base, exponent)  # type: ignore[no-untyped-call]


def is_power(base: Num, exponent: Num) -> Value:
    """Whether `base ** exponent` has the dtype that it has for all lanes: no negative power of an integer has it."""
    return exponent >= 0 if _may_be_negative(base, exponent) else True


def checked_power(base: Num, exponent: Num) -> Value:
    """The operator `**` in lanes where `is_power` holds."""
    whole = isinstance(base, Tracer) and base.shape == () and kind_of(base.dtype) in (bool, int)
    if whole and type(exponent) is int and exponent < 0 and origin_of(base) is not Origin.ARRAY:
        return _arithmetic(operator.pow, "**", note(base.astype(float), Origin.NUMBER), exponent)
    _require_real(base, exponent)
    return _arithmetic(operator.pow, "**", base, exponent)


def _require_real(base: Num, exponent: Num) -> None:
    """Let the lane stop where a power of two numbers of Python is complex."""
    of_lanes = isinstance(base, Tracer) or isinstance(exponent, Tracer)
    if not of_lanes or rules().math_errors == "nan" or not (_is_number(base) and _is_number(exponent)):
        return
    if both(source_of(base), source_of(exponent)) is Origin.ARRAY or kind_of(jnp.result_type(exponent)) is not float:
        return
    if isinstance(base, Tracer) or base < 0:
        if isinstance(exponent, Tracer) or exponent != exponent // 1:
            limit(~((base < 0) & (exponent != jnp.floor(exponent)) & ~jnp.isnan(exponent)), COMPLEX_POWER)


def _is_number(value: Value) -> bool:
    """Whether a value is a real number, of a lane or known."""
    if isinstance(value, Tracer):
        return value.shape == () and kind_of(value.dtype) in (int, float)
    return isinstance(value, int | float)


def _may_be_negative(base: Num, exponent: Num) -> bool:
    """Whether a power is one of an integer to a traced integer, which may be negative."""
    if not isinstance(exponent, Tracer) or exponent.shape != () or not jnp.issubdtype(exponent.dtype, np.signedinteger):
        return False
    if not isinstance(base, Tracer | np.ndarray | np.generic | int):
        return hasattr(base, "dtype") and kind_of(base.dtype) in (bool, int)
    return isinstance(base, int) or kind_of(base.dtype) in (bool, int)


def round_(a: Value, *digits: Num, **options: Value) -> Value:
    """The builtin `round`, for which a bool is a number; those of Python are rounded by their decimal value."""
    places = known_digits(digits[0]) if len(digits) == 1 and not options and digits[0] is not None else None
    if places is not None and isinstance(a, Tracer) and a.shape == () and origin_of(a) is Origin.NUMBER:
        kind = kind_of(a.dtype)
        if kind is float:
            return note(rounded_float(a, places), Origin.NUMBER)
        if kind is int:
            return a if places >= 0 else note(rounded_integer(a, places), Origin.NUMBER)
    return _unary(lambda x: round(x, *digits, **options), "round", a)


def divmod_(a: Value, b: Value) -> Value:
    """The builtin `divmod`, for which bools are numbers."""
    return (floordiv(a, b), mod(a, b)) if isinstance(a, Tracer) or isinstance(b, Tracer) else divmod(a, b)


def sum_(values: Value, /, start: Value = 0) -> Value:
    """The builtin `sum`, for which bools are numbers."""
    if (rows := as_lane_list(values)) is not None:
        return list_reductions.total(rows, start, add)
    items = values if isinstance(values, Tracer) else list(values)
    if isinstance(values, Tracer) or not any(isinstance(item, Tracer) for item in (start, *items)):
        return sum(items, start)
    for item in items:
        start = add(start, item)
    return start


def attribute(value: Value, name: str) -> Value:
    """The attribute `value.real` or `value.imag`; that of a Python number is a Python number."""
    if not isinstance(value, Tracer) or origin_of(value) is Origin.ARRAY:
        return getattr(value, name)
    return number(getattr(_as_integer(value) if is_bool(value) else value, name), value)


def _arithmetic(op: Callable[[Value, Value], Value], sign: str, a: Value, b: Value) -> Value:
    """Apply a binary operator for which Python's own bools are numbers."""
    if (isinstance(a, Tracer) or isinstance(b, Tracer)) and is_bool(a) and is_bool(b):
        origin = both(origin_of(a), origin_of(b))
        if origin is Origin.NUMBER:
            a, b = _as_integer(a), _as_integer(b)
        elif origin is Origin.UNKNOWN:
            title = f"`{sign}` of two bools is a number if they are Python's own, and a bool if they are arrays"
            reason = "they come from a function that is called as it is, or from paths that give different ones"
            raise Refusal("PCB303", title, reason, helps=(BOOLS_HELP,))
    return _with_origin(op, sign, a, b)


def _with_origin(op: Callable[[Value, Value], Value], sign: str, a: Value, b: Value) -> Value:
    if sign not in EQUALITIES:
        a, b = plain_operands(sign, a, b)
    a, b = _as_operand(a, sign, b), b if sign == "**" else _as_operand(b, sign, a)  # a power may be odd
    result = number_checks.binary(partial(once, op, sign), sign, a, b)
    if isinstance(result, Tracer) and result.shape == ():
        if sign in ("%", "//") and kind_of(result.dtype) is float and _is_number(a) and _is_number(b):
            if both(source_of(a), source_of(b)) is not Origin.ARRAY:
                result = _with_sign(sign, result, a, b)
        sources = (source_of(a), source_of(b))
        origin = both(*sources)
        if kind_of(result.dtype) is float and origin is not Origin.ARRAY:
            return _float(result, origin, sign, a, b)
        mixed = sign in "&|^" and Origin.MIXED in sources and result.dtype != np.bool_
        return note(result, Origin.MIXED if mixed else origin)
    return result


def _float(result: Value, origin: Origin, sign: str, a: Value, b: Value) -> Value:
    """Note the origin of a float. Where an operand may be an integer on some paths, so may the result, unless it is a
    quotient or the other operand is a float."""
    if sign == "/" or isinstance(a, float) or isinstance(b, float):
        return number(result)
    if origin is not Origin.UNKNOWN:
        return note(result, origin)
    # Origins decide only where an operand is surely a float: elsewhere one trace serves for all of them.
    sure = (v for v in (a, b) if isinstance(v, Tracer) and kind_of(v.dtype) is float)
    decided = any(source_of(v) is Origin.NUMBER and origin_of(v) is Origin.NUMBER for v in sure)
    return note(result, Origin.NUMBER if decided else origin)


def _as_operand(a: Value, sign: str, other: Value) -> Value:
    """Return a known integer that no integer of a lane can be as a float, where Python does as if it were one.

    Python makes a float of it in arithmetic with a float. It compares both as they are, and rounds a quotient of two
    integers once: there only a float that is exactly the integer will do.
    """
    if type(a) is not int or a.bit_length() < 32 or not isinstance(other, Tracer):
        return a
    kind = kind_of(other.dtype)
    if a.bit_length() < 8 * jnp.result_type(int).itemsize or not (kind is float or (sign == "/" and kind is int)):
        return a
    dtype = other.dtype if kind is float else jnp.result_type(float)
    if abs(a) > float(finfo(dtype).max):
        return a
    if kind is float:
        exact = sign in ARITHMETIC or float(np.asarray(float(a), dtype)) == a
    else:
        exact = float(a) == a
    return float(a) if exact else a


def _with_sign(sign: str, result: Value, a: Value, b: Value) -> Value:
    """Return a remainder or quotient whose zeros have the signs that Python gives them; derivatives stay."""
    signed = jnp.copysign(jnp.zeros_like(result), b)
    if sign == "//":
        signed = jnp.copysign(signed, jnp.copysign(jnp.ones_like(result), a) * jnp.copysign(jnp.ones_like(result), b))
    return jnp.where(result == 0, signed - (jax.lax.stop_gradient(result) - result), result)


def _unary(op: Callable[[Value], Value], sign: str, a: Value) -> Value:
    if is_atom(a):
        a = number_of(a, sign)
    if not isinstance(a, Tracer):
        return op(a)
    origin = origin_of(a) if is_bool(a) else source_of(a)
    if is_bool(a) and origin is Origin.UNKNOWN:
        title = f"`{sign}` of a bool is a number if it is Python's own, which is not known of this one"
        raise Refusal("PCB303", title, helps=("write `int(c)` for the number",))
    result = number_checks.unary(op, sign, _as_integer(a) if is_bool(a) and origin is Origin.NUMBER else a)
    origin = Origin.NUMBER if origin is Origin.MIXED else origin
    return result if result is a else note(result, origin or Origin.UNKNOWN)


def is_bool(value: Value) -> bool:
    """Whether a value is one bool, of any origin."""
    return isinstance(value, bool) or (
        isinstance(value, Tracer | np.generic | np.ndarray) and value.shape == () and value.dtype == np.bool_
    )


def _as_integer(value: Value) -> Value:
    """Convert a bool to an integer, of a weak type as Python's integers are."""
    return jnp.where(value, 1, 0) if isinstance(value, Tracer) else int(value)


def _rest(a: Value, b: Value) -> Value:
    """The operator `%`; by a power of two, that is a mask, which needs the low bits of a number only."""
    is_whole = isinstance(a, Tracer) and kind_of(a.dtype) is int
    return a & (b - 1) if is_whole and type(b) is int and b > 0 and b & (b - 1) == 0 else operator.mod(a, b)


# The binary operators; bools count as numbers in those with a sign.
add = partial(_arithmetic, operator.add, "+")
sub = partial(_arithmetic, operator.sub, "-")
mul = partial(_arithmetic, operator.mul, "*")
floordiv = partial(_arithmetic, operator.floordiv, "//")
mod = partial(_arithmetic, _rest, "%")
lshift = partial(_arithmetic, operator.lshift, "<<")
rshift = partial(_arithmetic, operator.rshift, ">>")
truediv = partial(_with_origin, operator.truediv, "/")
and_ = partial(_with_origin, operator.and_, "&")
or_ = partial(_with_origin, operator.or_, "|")
xor = partial(_with_origin, operator.xor, "^")
eq = partial(_with_origin, operator.eq, "==")
ne = partial(_with_origin, operator.ne, "!=")
lt = partial(_with_origin, operator.lt, "<")
le = partial(_with_origin, operator.le, "<=")
gt = partial(_with_origin, operator.gt, ">")
ge = partial(_with_origin, operator.ge, ">=")

neg = partial(_unary, operator.neg, "-")
pos = partial(_unary, operator.pos, "+")
abs_ = partial(_unary, abs, "abs")


finfo: Any = jnp.finfo


def rounded_integer(n: Num, digits: int) -> Value:
    """Return an integer rounded to a power of ten."""
    if digits >= 0:
        return n
    step = 10**-digits
    if step > np.iinfo(n.dtype).max:
        return jnp.zeros_like(n)
    word = magnitude(n)
    size = unsigned(n.dtype).type(step)
    below = word % size
    down = word - below
    up = (below > size - below) | ((below == size - below) & (down // size % 2 == 1))
    result = jnp.where(up, down + size, down)
    return jnp.where(n < 0, 0 - result, result).astype(n.dtype)


def rounded_float(x: Num, digits: int) -> Value:
    """Return a float rounded to so many decimal places, the float that is nearest to the decimal number."""
    info = finfo(x.dtype)
    most = 10 if x.dtype.itemsize == 4 else 22  # powers of ten that a float holds exactly
    if digits > most:
        return x if digits > info.precision + 40 else jnp.round(x, digits)
    if digits < 0:
        return _to_power(x, -digits) if -digits <= most else jnp.copysign(0.0, x)
    scale = np.asarray(10.0**digits, x.dtype)
    product, error = exact_product(x, scale)
    whole = jnp.round(product)
    part = product - whole  # exact; the error decides where it is a half
    whole = jnp.where((part == 0.5) & (error > 0), whole + 1, whole)
    whole = jnp.where((part == -0.5) & (error < 0), whole - 1, whole)
    small = jnp.abs(product) < 2.0 ** (info.nmant + 1)  # beyond, the nearest decimal number is the float itself
    # XLA multiplies by the reciprocal of a constant, which rounds twice; this divisor is none.
    result = jnp.where(small, jnp.copysign(whole / jnp.where(small, scale, 1.0), x), x)
    # The derivative is zero, as that of `jnp.round`.
    return jax.lax.stop_gradient(result)


def _to_power(x: Num, digits: int) -> Value:
    size = float(10**digits)
    below = jnp.fmod(jnp.abs(x), size)
    odd = jnp.fmod(jnp.abs(x), 2 * size) >= size
    up = (below > size - below) | ((below == size - below) & odd)
    result = jnp.copysign(jnp.where(up, jnp.abs(x) + (size - below), jnp.abs(x) - below), x)  # each rounded once
    return jax.lax.stop_gradient(jnp.where(jnp.isfinite(x), result, x))


def known_digits(digits: Num) -> int | None:
    """Return the second argument of `round`; None if it is a value of a lane or no integer."""
    return None if isinstance(digits, jax.core.Tracer) or not hasattr(digits, "__index__") else operator.index(digits)


ATTRIBUTES = frozenset({"numerator", "denominator"})
REFUSED = {
    "as_integer_ratio": "its two integers have no bound: write `math.frexp(x)` for a fraction and a power of two",
    "hex": "the value itself is compared and computed with; its text can only be shown",
}


def method(value: Value, name: str) -> Callable[..., Value]:
    """Return the method `value.name`; that of a number of a lane gives a number of Python."""
    kind = kind_of(value.dtype) if isinstance(value, Tracer) and value.shape == () else None
    if kind is None or origin_of(value) is not Origin.NUMBER:
        found: Callable[..., Value] = getattr(value, name)
        return found
    if not hasattr(kind, name):
        raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
    if name in REFUSED:
        raise Refusal("PCB306", f"`{name}` is not there for numbers of a lane", helps=(REFUSED[name],))
    return functools.partial(_METHODS[name], value)


def part(value: Value, name: str) -> Value:
    """Return the attribute `value.numerator` or `value.denominator` of an integer of a lane."""
    if kind_of(value.dtype) not in (bool, int) or value.shape != () or origin_of(value) is not Origin.NUMBER:
        return getattr(value, name)
    whole = attribute(value, "real")
    return whole if name == "numerator" else 1


def _whole(compute: Callable[[Value], Value], n: Num) -> Value:
    with jax.numpy_dtype_promotion("standard"):
        return number(compute(n), n)


def _is_integer(value: Value) -> Value:
    return number(reals.is_integer(value), value) if kind_of(value.dtype) is float else True


def _conjugate(value: Value) -> Value:
    return number(jnp.conj(value), value) if kind_of(value.dtype) is complex else attribute(value, "real")


_METHODS: dict[str, Callable[..., Value]] = {
    "to_bytes": to_bytes,
    "bit_length": lambda n: _whole(integers.bit_length, n),
    "bit_count": lambda n: _whole(integers.bit_count, n),
    "is_integer": _is_integer,
    "conjugate": _conjugate,
}
METHODS = frozenset({*_METHODS, *REFUSED})
"""The methods of numbers that traced values lack."""
