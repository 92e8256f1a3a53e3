"""Functions of `cmath` on numbers of a lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import require
from pcbatch.data.functions.math_functions.arguments import domain, real, require_range, scalar
from pcbatch.data.origins import Tracer
from pcbatch.data.values import Num, Value


def number(name: str, value: Num) -> Num:
    """Return a number as a complex one, of JAX's default type."""
    value = scalar(name, value)
    return value.astype(complex) if isinstance(value, Tracer) else jnp.asarray(complex(value), complex)


def _finite(z: Num) -> Num:
    return jnp.isfinite(jnp.real(z)) & jnp.isfinite(jnp.imag(z))


def _nan(z: Num) -> Num:
    return jnp.isnan(jnp.real(z)) | jnp.isnan(jnp.imag(z))


def function(name: str, compute: Callable[[Value], Value]) -> Callable[[Any], Any]:
    """Return a function of one complex number.

    The lane raises ValueError where the result is NaN and the number was not, OverflowError where it is infinite.
    """

    def run(z: Num) -> Num:
        z = number(f"cmath.{name}", z)
        holds = _defined(name, z)
        domain(holds)
        result = _mirrored(name, compute, jnp.where(holds, z, 0.5))
        require_range(~(_finite(z) & holds & ~_finite(result)), jnp.real(result).dtype)
        domain(_nan(z) | ~_nan(result))
        return jnp.where(holds, result, jnp.asarray(np.nan, result.dtype))

    return run


def _mirrored(name: str, compute: Callable[[Value], Value], z: Num) -> Num:
    """Compute a function in the upper half plane, so that on cuts the sign of a zero tells the side, as in Python."""
    below, left = jnp.signbit(jnp.imag(z)), jnp.signbit(jnp.real(z))
    odd = name in ("asinh", "atan")  # whose cuts are on the imaginary axis
    re = jnp.abs(jnp.real(z)) if odd else jnp.real(z)
    result = compute(jax.lax.complex(re, jnp.abs(jnp.imag(z))))
    result = jnp.where(below, jnp.conj(result), result)
    return jnp.where(left, -jnp.conj(result), result) if odd else result


def _defined(name: str, z: Num) -> Num:
    match name:
        case "log" | "log10":
            return z != 0
        case "atanh":
            return (z != 1) & (z != -1)
        case "atan":
            return (z != 1j) & (z != -1j)
    return jnp.asarray(True)


def log(z: Num, *base: Num) -> Num:
    """The function `cmath.log`, of one or two arguments."""
    if not base:
        return function("log", jnp.log)(z)
    a, b = (_mirrored("log", jnp.log, number("cmath.log", value)) for value in (z, *base))
    domain((b != 0) & ~jnp.isinf(jnp.real(b)))  # the base is neither one nor zero
    return _quotient(a, b)


def _quotient(a: Num, b: Num) -> Num:
    """Return a quotient computed as Python computes it, in the same steps."""
    x, y, re, im = jnp.real(a), jnp.imag(a), jnp.real(b), jnp.imag(b)
    wide = jnp.abs(re) >= jnp.abs(im)
    ratio = jnp.where(wide, im / jnp.where(wide, re, 1.0), re / jnp.where(wide, 1.0, im))
    divisor = jnp.where(wide, re + im * ratio, re * ratio + im)
    real_part = jnp.where(wide, x + y * ratio, x * ratio + y) / divisor
    imaginary = jnp.where(wide, y - x * ratio, y * ratio - x) / divisor
    return jax.lax.complex(real_part, imaginary)


def log10(z: Num) -> Num:
    """The function `cmath.log10`."""
    return jnp.log(z) / float(np.log(10.0))


def phase(z: Num) -> Num:
    """The function `cmath.phase`."""
    z = number("cmath.phase", z)
    return jnp.arctan2(jnp.imag(z), jnp.real(z))


def polar(z: Num) -> Num:
    """The function `cmath.polar`."""
    return jnp.abs(number("cmath.polar", z)), phase(z)


def rect(r: Num, phi: Num) -> Num:
    """The function `cmath.rect`."""
    r, phi = jnp.asarray(real("cmath.rect", r), float), jnp.asarray(real("cmath.rect", phi), float)
    domain(~(jnp.isinf(phi) & (r != 0)))
    return jax.lax.complex(*(jnp.where(r == 0, 0.0, r * part) for part in (jnp.cos(phi), jnp.sin(phi))))


def isclose(a: Num, b: Num, *, rel_tol: Num = 1e-09, abs_tol: Num = 0.0) -> Num:
    """The function `cmath.isclose`."""
    a, b = number("cmath.isclose", a), number("cmath.isclose", b)
    rel_tol, abs_tol = jnp.asarray(real("cmath.isclose", rel_tol)), jnp.asarray(real("cmath.isclose", abs_tol))
    require((rel_tol >= 0) & (abs_tol >= 0), "ValueError", "tolerances must be non-negative")
    far = jnp.abs(a - b)
    close = (far <= rel_tol * jnp.abs(b)) | (far <= rel_tol * jnp.abs(a)) | (far <= abs_tol)
    return (a == b) | (close & _finite(a) & _finite(b))


NAMES = "acos acosh asin asinh atan atanh cos cosh exp sin sinh sqrt tan tanh".split()
FUNCTIONS: dict[str, Callable[..., Value]] = {name: function(name, getattr(jnp, name)) for name in NAMES}
FUNCTIONS |= {"log": log, "log10": function("log10", log10), "phase": phase, "polar": polar, "rect": rect}
FUNCTIONS |= {
    "isclose": isclose,
    "isfinite": lambda z: _finite(number("cmath.isfinite", z)),
    "isinf": lambda z: jnp.isinf(number("cmath.isinf", z)),
    "isnan": lambda z: jnp.isnan(number("cmath.isnan", z)),
}
