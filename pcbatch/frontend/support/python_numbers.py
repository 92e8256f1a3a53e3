"""Python's operators on values of a lane, where Python's numbers and arrays differ.

A bool counts as a number for Python's own bools and not for arrays of bools; an integer to a negative power is a float.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np

from pcbatch.errors import Refusal
from pcbatch.origins import Origin, Tracer, both, kind_of, note, number, origin_of, source_of

# Operations belong to the user's line, in the tracebacks and the metadata of JAX as well.
jax.extend.source_info_util.register_exclusion(__file__)

BOOLS_HELP = "to count write `int(a) + int(b)`; for a bool of two bools write `a | b`, `a & b` or `a ^ b`"
POWER_HELP = "write `2.0 ** n`: a float has all powers"


def add(a: Any, b: Any) -> Any:
    """`a + b`."""
    return _arithmetic(operator.add, "+", a, b)


def sub(a: Any, b: Any) -> Any:
    """`a - b`."""
    return _arithmetic(operator.sub, "-", a, b)


def mul(a: Any, b: Any) -> Any:
    """`a * b`."""
    return _arithmetic(operator.mul, "*", a, b)


def floordiv(a: Any, b: Any) -> Any:
    """`a // b`."""
    return _arithmetic(operator.floordiv, "//", a, b)


def mod(a: Any, b: Any) -> Any:
    """`a % b`."""
    return _arithmetic(operator.mod, "%", a, b)


def lshift(a: Any, b: Any) -> Any:
    """`a << b`."""
    return _arithmetic(operator.lshift, "<<", a, b)


def rshift(a: Any, b: Any) -> Any:
    """`a >> b`."""
    return _arithmetic(operator.rshift, ">>", a, b)


def truediv(a: Any, b: Any) -> Any:
    """`a / b`."""
    return _noted(operator.truediv, a, b)


def and_(a: Any, b: Any) -> Any:
    """`a & b`."""
    return _noted(operator.and_, a, b)


def or_(a: Any, b: Any) -> Any:
    """`a | b`."""
    return _noted(operator.or_, a, b)


def xor(a: Any, b: Any) -> Any:
    """`a ^ b`."""
    return _noted(operator.xor, a, b)


def eq(a: Any, b: Any) -> Any:
    """`a == b`."""
    return _noted(operator.eq, a, b)


def ne(a: Any, b: Any) -> Any:
    """`a != b`."""
    return _noted(operator.ne, a, b)


def lt(a: Any, b: Any) -> Any:
    """`a < b`."""
    return _noted(operator.lt, a, b)


def le(a: Any, b: Any) -> Any:
    """`a <= b`."""
    return _noted(operator.le, a, b)


def gt(a: Any, b: Any) -> Any:
    """`a > b`."""
    return _noted(operator.gt, a, b)


def ge(a: Any, b: Any) -> Any:
    """`a >= b`."""
    return _noted(operator.ge, a, b)


def neg(a: Any) -> Any:
    """`-a`."""
    return _unary(operator.neg, "-", a)


def pos(a: Any) -> Any:
    """`+a`."""
    return _unary(operator.pos, "+", a)


def invert(a: Any) -> Any:
    """`~a`; of a bool of Python it is -1 or -2, and nobody means that."""
    if is_bool(a) and isinstance(a, Tracer) and origin_of(a) is not Origin.ARRAY:
        raise Refusal(
            "PCB303",
            "`~` of a bool is a number in Python: `~True` is -2, and true as a condition",
            "only for arrays of bools is it a logical not",
            helps=("write `not c`; for the number write `~int(c)`",),
        )
    return note(operator.invert(a), source_of(a) or Origin.UNKNOWN) if isinstance(a, Tracer) else operator.invert(a)


def power(base: Any, exponent: Any) -> Any:
    """`base ** exponent` where no lane can fail."""
    if isinstance(exponent, Tracer) and origin_of(exponent) is not Origin.ARRAY and _may_be_negative(base, exponent):
        raise Refusal(
            "PCB303",
            "an integer to a negative power is a float, and here no lane can fail if it comes to one",
            helps=(
                POWER_HELP,
                "write `p = 2 ** n` as a statement of the batched function; decorate a helper with `@pcbatch.inline`",
            ),
        )
    return checked_power(base, exponent)


def is_power(base: Any, exponent: Any) -> Any:
    """Has `base ** exponent` the type that it has for all lanes? An integer has no negative power that is one."""
    return exponent >= 0 if _may_be_negative(base, exponent) else True


def checked_power(base: Any, exponent: Any) -> Any:
    """`base ** exponent` where `is_power` holds."""
    whole = isinstance(base, Tracer) and base.shape == () and kind_of(base.dtype) in (bool, int)
    if whole and type(exponent) is int and exponent < 0 and origin_of(base) is not Origin.ARRAY:
        return note(base.astype(float) ** exponent, Origin.NUMBER)
    return _arithmetic(operator.pow, "**", base, exponent)


def _may_be_negative(base: Any, exponent: Any) -> bool:
    """Is this an integer to a power that only the lane knows?"""
    if not isinstance(exponent, Tracer) or exponent.shape != () or not jnp.issubdtype(exponent.dtype, np.signedinteger):
        return False
    if not isinstance(base, Tracer | np.ndarray | np.generic | int):
        return hasattr(base, "dtype") and kind_of(base.dtype) in (bool, int)
    return isinstance(base, int) or kind_of(base.dtype) in (bool, int)


def abs_(a: Any) -> Any:
    """`abs`."""
    return _unary(abs, "abs", a)


def round_(a: Any, *digits: Any, **options: Any) -> Any:
    """`round`."""
    return _unary(lambda x: round(x, *digits, **options), "round", a)


def divmod_(a: Any, b: Any) -> Any:
    """`divmod`."""
    return (floordiv(a, b), mod(a, b)) if isinstance(a, Tracer) or isinstance(b, Tracer) else divmod(a, b)


def sum_(values: Any, /, start: Any = 0) -> Any:
    """`sum`."""
    items = values if isinstance(values, Tracer) else list(values)
    if isinstance(values, Tracer) or not any(isinstance(item, Tracer) for item in (start, *items)):
        return sum(items, start)
    for item in items:
        start = add(start, item)
    return start


def attribute(value: Any, name: str) -> Any:
    """`value.real` and `value.imag`."""
    if not isinstance(value, Tracer) or origin_of(value) is Origin.ARRAY:
        return getattr(value, name)
    return number(getattr(_counted(value) if is_bool(value) else value, name), value)


def _arithmetic(op: Callable[[Any, Any], Any], sign: str, a: Any, b: Any) -> Any:
    """An operator for which bools are numbers."""
    if (isinstance(a, Tracer) or isinstance(b, Tracer)) and is_bool(a) and is_bool(b):
        origin = both(origin_of(a), origin_of(b))
        if origin is Origin.NUMBER:
            a, b = _counted(a), _counted(b)
        elif origin is Origin.UNKNOWN:
            raise Refusal(
                "PCB303",
                f"`{sign}` of two bools is a number if they are Python's own, and a bool if they are arrays",
                "they come from a function that is called as it is, or from paths that give different ones",
                helps=(BOOLS_HELP,),
            )
    return _noted(op, a, b)


def _noted(op: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    found = op(a, b)
    if isinstance(found, Tracer) and found.shape == ():
        return note(found, both(source_of(a), source_of(b)))
    return found


def _unary(op: Callable[[Any], Any], sign: str, a: Any) -> Any:
    if not isinstance(a, Tracer):
        return op(a)
    origin = origin_of(a) if is_bool(a) else source_of(a)
    if is_bool(a) and origin is Origin.UNKNOWN:
        title = f"`{sign}` of a bool is a number if it is Python's own, which is not known of this one"
        raise Refusal("PCB303", title, helps=("write `int(c)` for the number",))
    found = op(_counted(a) if is_bool(a) and origin is Origin.NUMBER else a)
    return found if found is a else note(found, origin or Origin.UNKNOWN)


def is_bool(value: Any) -> bool:
    """Is this one bool, of any origin?"""
    return isinstance(value, bool) or (
        isinstance(value, Tracer | np.generic | np.ndarray) and value.shape == () and value.dtype == np.bool_
    )


def _counted(value: Any) -> Any:
    """A bool as the integer that it is, of a weak type as Python's integers are."""
    return jnp.where(value, 1, 0) if isinstance(value, Tracer) else int(value)
