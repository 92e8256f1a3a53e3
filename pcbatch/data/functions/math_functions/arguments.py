"""Arguments of functions of `math`: a number of a lane as the float or the integer that Python makes of it.

Values that are known while compiling stay numbers of Python.
"""

from __future__ import annotations

import operator
from typing import Any

import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, require, rules
from pcbatch.data.origins import Tracer, kind_of
from pcbatch.data.rounding import to_float
from pcbatch.data.values import Flag, Num, Value
from pcbatch.errors import Refusal

PYTHON_BITS = 64  # of Python's floats

iinfo: Any = jnp.iinfo  # knows the small integers as well; untyped in some releases of JAX


def scalar(name: str, value: Num) -> Num:
    """Return a number; refuses arrays, of which these functions take none."""
    if isinstance(value, Tracer) and value.shape != ():
        title = f"`{name}` takes one number, not an array of shape {value.shape}"
        spelled = name.rpartition(".")[2]
        help = f"write `jnp.{spelled}(xs)`" if hasattr(jnp, spelled) else "write it for one element, in a loop"
        raise Refusal("PCB306", title, helps=(help,))
    return value


def real(name: str, value: Num) -> Num:
    """Return a number as a float, of JAX's default float type."""
    value = scalar(name, value)
    if not isinstance(value, Tracer):
        return float(value)
    if kind_of(value.dtype) not in (bool, int, float):
        raise TypeError("must be real number, not complex")
    return to_float(value)


def whole(name: str, value: Num) -> Num:
    """Return an integer, of at least 32 bits; raises TypeError for a float, as Python does."""
    value = scalar(name, value)
    if not isinstance(value, Tracer):
        return operator.index(value)
    kind = kind_of(value.dtype)
    if kind not in (bool, int):
        shown = "complex" if kind is None else kind.__name__
        raise TypeError(f"'{shown}' object cannot be interpreted as an integer")
    return value.astype(jnp.promote_types(value.dtype, np.int32) if kind is int else int)


def wholes(name: str, *values: Value) -> tuple[Num, ...]:
    """Return integers as arrays of one dtype."""
    numbers = [whole(name, value) for value in values]
    dtype = np.dtype(jnp.result_type(*(number for number in numbers if isinstance(number, Tracer))))
    if kind_of(dtype) is not int:
        raise TypeError(f"`{name}` of signed and unsigned integers of 64 bits has no type that holds both")
    return tuple(jnp.asarray(number, dtype) for number in numbers)


def domain(holds: Flag, exception: str = "ValueError", message: str = "math domain error") -> None:
    """Let the lane raise what a function of `math` raises, unless the rules of numbers keep NaN instead."""
    if rules().math_errors == "raise":
        require(holds, exception, message)


def harmless(holds: Flag, value: Num, instead: float) -> Num:
    """Replace an argument outside the domain, of which no more than NaN could come; not if that is to be kept."""
    if rules().math_errors == "nan" or isinstance(holds, bool):
        return value
    return jnp.where(holds, value, instead)


def in_range(result: Num, *arguments: Num, too_large: Flag = False) -> Num:
    """Return a float after the check that it is finite where all arguments are (see `require_range`)."""
    finite = jnp.asarray(True)
    for argument in arguments:
        finite = finite & jnp.isfinite(argument)
    require_range(~(finite & jnp.isinf(result)), result.dtype, too_large)
    return result


def require_range(holds: Flag, dtype: Any, too_large: Flag = False, message: str = "math range error") -> None:
    """Let the lane raise OverflowError where a float is too large for Python's 64 bits, as Python does.

    Where a lane's floats have fewer bits it stops instead, unless the number is known to be `too_large` for 64 bits.
    """
    if np.dtype(dtype).itemsize * 8 >= PYTHON_BITS:
        domain(holds, "OverflowError", message)
    elif rules().math_errors == "raise":
        if too_large is not False:
            require(holds | ~too_large, "OverflowError", message)
        limit(
            holds | too_large,
            f"the result does not fit {np.dtype(dtype).name}, which has fewer bits than Python's floats",
        )


def does_not_fit(name: str, dtype: Any) -> str:
    """The message about an integer that is too large for its dtype."""
    return f"the result of {name} does not fit {np.dtype(dtype).name}"
