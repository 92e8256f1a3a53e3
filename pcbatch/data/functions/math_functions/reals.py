"""Functions of `math` on floats of a lane, in JAX's default float type.

Where Python's result is exact for numbers that a float of the lane holds, such as `log10(1000)` or `cbrt(27)`, so is
the result here: what JAX computes is replaced at those arguments, by a step that has no derivative.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, require, rules
from pcbatch.data.functions.math_functions.arguments import (
    does_not_fit,
    domain,
    harmless,
    iinfo,
    in_range,
    real,
    scalar,
    whole,
)
from pcbatch.data.origins import Tracer, kind_of
from pcbatch.data.rounding import once
from pcbatch.data.values import Flag, Index, Num, Value

finfo: Any = jnp.finfo
Unary = Callable[[Value], Value]


def plain(compute: Unary, name: str) -> Unary:
    """Return a function that is defined for all floats and never raises."""
    return lambda x: compute(real(name, x))


def within(compute: Unary, name: str, inside: Unary, instead: float, overflows: bool = False) -> Unary:
    """Return a function that raises ValueError outside its domain; NaN is always inside.

    `overflows`: whether it raises OverflowError where the result is infinite.
    """

    def run(x: Num) -> Num:
        x = real(name, x)
        holds = inside(x) | jnp.isnan(x)
        domain(holds)
        result = compute(harmless(holds, x, instead))
        return in_range(result, x) if overflows else result

    return run


LARGEST = {"math.exp": 709.8, "math.expm1": 709.8, "math.exp2": 1024.5, "math.sinh": 710.5, "math.cosh": 710.5}
"""Arguments from which on the results are too large for 64 bits."""


def growing(compute: Unary, name: str) -> Unary:
    """Return a function that raises OverflowError where the result of a finite argument is infinite."""

    def run(x: Num) -> Num:
        x = real(name, x)
        return in_range(compute(x), x, too_large=jnp.abs(x) > LARGEST[name] if name in LARGEST else False)

    return run


def at(result: Num, exact: Num, places: Flag) -> Num:
    """Return the result with exact values at some places; its derivative stays that of the result.

    Where the two are equal it is the result, whose zero has the sign that it has in Python: -0.0 is added.
    """
    return result + jax.lax.stop_gradient(jnp.where(places & (exact != result), exact - result, -0.0))


def _scale(x: Num) -> tuple[Num, Num, Num]:
    """Return powers of two `s` and `t` such that `x * s * t` is between 1 and 2, and the exponent of x."""
    _, exponent = jnp.frexp(jax.lax.stop_gradient(x))
    exponent = jnp.where(jnp.isfinite(x) & (x != 0), exponent - 1, 0)
    half = exponent // 2
    return _power_of_two(-half, x.dtype), _power_of_two(half - exponent, x.dtype), exponent


def _power_of_two(exponent: Num, dtype: Any) -> Num:
    """Return 2 to an integer that a normal number of the dtype has as its exponent, by its bits: `jnp.ldexp` computes
    the power."""
    form = finfo(dtype)
    bits = jnp.asarray(exponent + (form.maxexp - 1), f"int{form.bits}") << form.nmant
    return jax.lax.bitcast_convert_type(bits, dtype)


def log2(x: Num) -> Num:
    """The binary logarithm, exact for powers of two."""
    s, t, exponent = _scale(x)
    return exponent + jnp.log(x * s * t) * (1 / math.log(2))


def exp2(x: Num) -> Num:
    """The power of two, exact for whole numbers."""
    floor = jax.lax.stop_gradient(jnp.clip(jnp.floor(x), -2000, 2000))
    floor = jnp.where(jnp.isnan(x), 0.0, floor)
    return jnp.ldexp(jnp.exp2(jnp.where(jnp.isinf(x), x, x - floor)), floor.astype(np.int32))


def log10(x: Num) -> Num:
    """The decimal logarithm, exact for powers of ten."""
    return _at_powers(jnp.log10(x), x, 10, lambda power, _: math.log10(power), -30, 38)


def log(x: Num, base: Num = None) -> Num:
    """The function `math.log`, of one or two arguments."""
    x = _positive("math.log", x)
    if base is None:
        return jnp.log(x)
    known = base if isinstance(base, int) and not isinstance(base, bool) and base > 1 else None
    divisor = jnp.log(_positive("math.log", base))
    domain(divisor != 0, "ZeroDivisionError", "division by zero")
    result = jnp.log(x) / jnp.where(divisor == 0, jnp.nan, divisor)
    return result if known is None else _at_powers(result, x, known, math.log, 0, 64)


def _positive(name: str, x: Num) -> Num:
    x = jnp.asarray(real(name, x), float)
    holds = (x > 0) | jnp.isnan(x)
    domain(holds)
    return harmless(holds, x, 1.0)


def _at_powers(result: Num, x: Num, base: int, value: Callable[[Value, Value], float], low: int, high: int) -> Num:
    """Return a logarithm with Python's own value where `x` is a power of the base."""
    largest = float(finfo(x.dtype).max)
    exponents = [k for k in range(low, high) if float(base) ** k < min(largest, 2.0**62)]
    powers = jnp.asarray([float(base) ** k for k in exponents], x.dtype)
    exact = jnp.asarray([value(base**k, base) if k >= 0 else float(k) for k in exponents], x.dtype)
    place = jnp.clip(jnp.round(jnp.nan_to_num(result)).astype(np.int32) - low, 0, len(exponents) - 1)
    place = jax.lax.stop_gradient(place)
    return at(result, exact[place], powers[place] == x)


def cbrt(x: Num) -> Num:
    """The cube root, exact for cubes of whole numbers."""
    result = jnp.cbrt(x)
    root = jnp.round(result)
    return at(result, root, (root * root * root == x) & jnp.isfinite(x))


def power(x: Num, y: Num) -> Num:
    """The function `math.pow`, exact for whole numbers while the power is not too large."""
    x, y = jnp.asarray(real("math.pow", x), float), jnp.asarray(real("math.pow", y), float)
    is_whole = (jnp.floor(y) == y) | jnp.isinf(y)
    holds = ~((x < 0) & jnp.isfinite(x) & ~is_whole & ~jnp.isnan(y)) & ~((x == 0) & (y < 0) & jnp.isfinite(y))
    domain(holds)
    result = jnp.power(harmless(holds, x, 1.0), y)
    few = (jnp.floor(x) == x) & is_whole & (y >= 0) & (jnp.abs(result) < 2.0 ** (finfo(x.dtype).nmant - 2))
    too_large = y * jnp.log2(jnp.abs(x)) > 1024.5
    return in_range(at(result, jnp.round(result), few & jnp.isfinite(x)), x, y, too_large=too_large)


def gamma(x: Num) -> Num:
    """The function `math.gamma`, exact for whole numbers."""
    x = jnp.asarray(real("math.gamma", x), float)
    holds = ~((x <= 0) & ((jnp.floor(x) == x) | jnp.isinf(x)))
    zero = (x == 0) & (rules().math_errors == "nan")
    domain(holds)
    safe = harmless(holds, x, 1.0)
    result = jnp.where(zero, jnp.copysign(jnp.inf, x), jax.scipy.special.gamma(safe))
    table = [float(math.factorial(k)) for k in range(34 if x.dtype.itemsize == 4 else 170)]
    place = jnp.clip(jnp.nan_to_num(x), 1, len(table)).astype(np.int32)
    return in_range(at(result, jnp.asarray(table, x.dtype)[place - 1], place == x), x, too_large=x > 171.7)


def lgamma(x: Num) -> Num:
    """The function `math.lgamma`."""
    x = jnp.asarray(real("math.lgamma", x), float)
    holds = ~((x <= 0) & (jnp.floor(x) == x) & jnp.isfinite(x))
    domain(holds)
    safe = harmless(holds, x, 1.0)
    result = at(jax.scipy.special.gammaln(safe), 0.0, (x == 1) | (x == 2))
    return in_range(jnp.where(jnp.isinf(x), jnp.inf, result), x)


def fmod(x: Num, y: Num) -> Num:
    """The function `math.fmod`."""
    x, y, holds = _divided("math.fmod", x, y)
    return jnp.fmod(x, harmless(holds, y, 1.0))


def remainder(x: Num, y: Num) -> Num:
    """The function `math.remainder`: the distance to the nearest multiple, to an even one of two as near."""
    x, y, holds = _divided("math.remainder", x, y)
    size = jnp.abs(harmless(holds, y, 1.0))
    finite = jnp.where(jnp.isinf(size), 1.0, size)
    part = jnp.fmod(jnp.abs(x), finite)
    other = finite - part
    even = part - 2.0 * jnp.fmod(0.5 * (jnp.abs(x) - part), finite)
    nearest = jnp.where(part < other, part, jnp.where(part > other, -other, even))
    result = jnp.copysign(1.0, x) * nearest
    return jnp.where(jnp.isinf(size) & jnp.isfinite(x), x, result)


def _divided(name: str, x: Num, y: Num) -> tuple[Num, Num, Num]:
    x, y = jnp.asarray(real(name, x), float), jnp.asarray(real(name, y), float)
    holds = (~jnp.isinf(x) & (y != 0)) | jnp.isnan(x) | jnp.isnan(y)
    domain(holds)
    return harmless(holds, x, 1.0), y, holds


def ldexp(x: Num, i: Index) -> Num:
    """The function `math.ldexp`."""
    x, i = jnp.asarray(real("math.ldexp", x), float), jnp.asarray(whole("math.ldexp", i))
    return in_range(jnp.ldexp(x, jnp.clip(i, -5000, 5000).astype(np.int32)), x)


def frexp(x: Num) -> Num:
    """The function `math.frexp`."""
    mantissa, exponent = jnp.frexp(real("math.frexp", x))
    return mantissa, exponent.astype(int)


def modf(x: Num) -> Num:
    """The function `math.modf`."""
    x = real("math.modf", x)
    return jnp.copysign(jnp.where(jnp.isinf(x), 0.0, x - jnp.trunc(x)), x), jnp.trunc(x)


def rounded(name: str, compute: Unary) -> Unary:
    """Return `math.floor`, `ceil` or `trunc`, whose results are integers; the lane raises unless they fit."""

    def run(x: Num) -> Num:
        x = scalar(name, x)
        if kind_of(x.dtype) in (bool, int):
            return whole(name, x)
        return to_integer(compute(real(name, x)), name)

    return run


def to_integer(x: Num, name: str) -> Num:
    """Return a whole float as an integer; the lane raises for NaN and infinity, and stops for what does not fit."""
    dtype = np.dtype(jnp.result_type(int))
    x = x.astype(jnp.promote_types(x.dtype, np.float32))
    least = float(iinfo(dtype).min)
    require(~jnp.isnan(x), "ValueError", "cannot convert float NaN to integer")
    require(~jnp.isinf(x), "OverflowError", "cannot convert float infinity to integer")
    holds = (x >= least) & (x < -least)
    limit(holds | ~jnp.isfinite(x), does_not_fit(name, dtype))
    return jnp.where(holds, x, 0.0).astype(dtype)


def two(compute: Callable[[Value, Value], Value], name: str) -> Callable[[Value, Value], Value]:
    """Return a function of two floats that never raises."""
    return lambda x, y: compute(real(name, x), real(name, y))


def ulp(x: Num) -> Num:
    """The function `math.ulp`, of the lane's dtype."""
    x = jnp.abs(real("math.ulp", x))
    return jnp.where(jnp.isinf(x), x, jnp.spacing(x))


def isclose(a: Num, b: Num, *, rel_tol: Num = 1e-09, abs_tol: Num = 0.0) -> Num:
    """The function `math.isclose`."""
    a, b, rel_tol, abs_tol = (jnp.asarray(real("math.isclose", v), float) for v in (a, b, rel_tol, abs_tol))
    require((rel_tol >= 0) & (abs_tol >= 0), "ValueError", "tolerances must be non-negative")
    far = jnp.abs(a - b)
    close = (far <= rel_tol * jnp.abs(b)) | (far <= rel_tol * jnp.abs(a)) | (far <= abs_tol)
    return (a == b) | (close & jnp.isfinite(a) & jnp.isfinite(b))


def fma(x: Num, y: Num, z: Num) -> Num:
    """The function `math.fma`, but rounded twice."""
    x, y, z = (real("math.fma", v) for v in (x, y, z))
    return in_range(x * y + z, x, y, z)


def is_integer(x: Num) -> Num:
    """The method `x.is_integer()`."""
    return jnp.isfinite(x) & (jnp.floor(x) == x) if isinstance(x, Tracer) else float(x).is_integer()


one: Callable[[str, Unary], tuple[str, Unary]] = lambda name, compute: (name, plain(compute, f"math.{name}"))  # noqa: E731
FUNCTIONS: dict[str, Callable[..., Value]] = dict(
    [
        *(one(name, getattr(jnp, name)) for name in "asinh atan fabs tanh".split()),
        *(one(name, getattr(jnp, name)) for name in "isfinite isinf isnan".split()),
        one("degrees", lambda x: once(operator.mul, "*", x, 180 / math.pi)),
        one("radians", lambda x: once(operator.mul, "*", x, math.pi / 180)),
        one("cbrt", cbrt),
        one("erf", jax.scipy.special.erf),
        one("erfc", jax.scipy.special.erfc),
        *((name, growing(getattr(jnp, name), f"math.{name}")) for name in "cosh sinh exp expm1".split()),
        ("exp2", growing(exp2, "math.exp2")),
        *(
            (name, within(getattr(jnp, name), f"math.{name}", lambda x: ~jnp.isinf(x), 0.0))
            for name in ("sin", "cos", "tan")
        ),
        *(
            (name, within(getattr(jnp, name), f"math.{name}", lambda x: jnp.abs(x) <= 1, 0.0))
            for name in ("asin", "acos")
        ),
        ("atanh", within(jnp.arctanh, "math.atanh", lambda x: jnp.abs(x) < 1, 0.0)),
        ("acosh", within(jnp.arccosh, "math.acosh", lambda x: x >= 1, 2.0)),
        ("sqrt", within(jnp.sqrt, "math.sqrt", lambda x: x >= 0, 1.0)),
        ("log1p", within(jnp.log1p, "math.log1p", lambda x: x > -1, 0.0)),
        ("log2", within(log2, "math.log2", lambda x: x > 0, 1.0)),
        ("log10", within(log10, "math.log10", lambda x: x > 0, 1.0)),
        *((name, rounded(f"math.{name}", getattr(jnp, name))) for name in ("ceil", "floor", "trunc")),
        ("atan2", two(jnp.arctan2, "math.atan2")),
        ("copysign", two(jnp.copysign, "math.copysign")),
        ("nextafter", two(jnp.nextafter, "math.nextafter")),
    ]
)
FUNCTIONS |= {f.__name__: f for f in (log, gamma, lgamma, fmod, remainder, ldexp, frexp, modf, ulp, isclose, fma)}
FUNCTIONS["pow"] = power
