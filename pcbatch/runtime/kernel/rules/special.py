"""Rules of special functions that Triton lacks: the expansions that XLA itself makes of them.

Approximations of erf and erfc are those of S. L. Moshier's Cephes library (double and single precision), erf of single
precision is a rational function as in Eigen; lgamma and digamma are those of C. Lanczos ("A precision approximation of
the gamma function", SIAM J. Numer. Anal. B 1, 1964) with g = 7 and 9 terms. XLA computes the same ones, so results
agree to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.runtime.kernel.rules.elementwise import clipped, in_float32
from pcbatch.runtime.kernel.rules.padding import where
from pcbatch.runtime.kernel.rules.registry import rule

ERF_ALPHA = (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
             -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02)  # fmt: skip
ERF_BETA = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
            -1.42647390514189e-02)  # fmt: skip
ERF_T32 = (7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2,
           1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710)  # fmt: skip
ERFC_P32 = (2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1,
            6.210004621745983e-1, -4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1,
            5.638259427386472e-1)  # fmt: skip
ERFC_R32 = (-1.047766399936249e1, 1.297719955372516e1, -7.495518717768503, 2.921019019210786, -1.015265279202700,
            4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1)  # fmt: skip
ERF_T64 = (9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3, 7.00332514112805075473e3,
           5.55923013010394962768e4)  # fmt: skip
ERF_U64 = (1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
           2.26290000613890934246e4, 4.92673942608635921086e4)  # fmt: skip
ERFC_P64 = (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
            4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2, 9.34528527171957607540e2,
            1.02755188689515710272e3, 5.57535335369399327526e2)  # fmt: skip
ERFC_Q64 = (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
            9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3,
            5.57535340817727675546e2)  # fmt: skip
ERFC_R64 = (5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0, 6.16021097993053585195e0,
            7.40974269950448939160e0, 2.97886665372100240670e0)  # fmt: skip
ERFC_S64 = (1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1,
            1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0)  # fmt: skip
LANCZOS_G = 7
LANCZOS_BASE = 0.99999999999980993227684700473478
LANCZOS = (676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
           -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707,
           9.984369578019570859563e-6, 1.50563273514931155834e-7)  # fmt: skip


def number(x: Array, value: float) -> Array:
    """Return a number of the type and shape of an array."""
    return jnp.full(x.shape, value, x.dtype)


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Evaluate a polynomial, the coefficient of the highest power first."""
    out = number(x, coefficients[0])
    for c in coefficients[1:]:
        out = out * x + number(x, c)
    return out


@rule("erf")
@in_float32
def erf(eqn: Any, x: Array) -> Sequence[Array]:
    """Compute the error function."""
    if x.dtype == jnp.float64:
        small = abs(x) < number(x, 1)
        return [where(small, _erf_small(x), number(x, 1) - _erfc_large(x))]
    x = clipped(x, number(x, -4), number(x, 4))
    found = x * polynomial(x * x, ERF_ALPHA) / polynomial(x * x, ERF_BETA)
    return [clipped(found, number(x, -1), number(x, 1))]


@rule("erfc")
@in_float32
def erfc(eqn: Any, x: Array) -> Sequence[Array]:
    """Compute the complement of the error function."""
    return [where(abs(x) < number(x, 1), number(x, 1) - _erf_small(x), _erfc_large(x))]


def _erf_small(x: Array) -> Array:
    """The error function up to 1."""
    if x.dtype == jnp.float64:
        return x * polynomial(x * x, ERF_T64) / polynomial(x * x, ERF_U64)
    return x * polynomial(x * x, ERF_T32)


def _erfc_large(x: Array) -> Array:
    """The complement from 1 on."""
    double = x.dtype == jnp.float64
    size, square, one = abs(x), x * x, number(x, 1)
    power = lax.exp(number(x, 0) - square)
    if double:
        near = power * polynomial(size, ERFC_P64) / polynomial(size, ERFC_Q64)
        far = power * polynomial(size, ERFC_R64) / polynomial(size, ERFC_S64)
        found = where(size < number(x, 8), near, far)
    else:
        inverse = one / square
        terms = where(size < number(x, 2), polynomial(inverse, ERFC_P32), polynomial(inverse, ERFC_R32))
        found = power * (one / size) * terms
    limit = 7.09782712893383996843e2 if double else 88.72283905206835
    found = where(square > number(x, limit), number(x, 0), found)
    return where(x < number(x, 0), number(x, 2) - found, found)


@rule("erf_inv")
@in_float32
def erf_inv(eqn: Any, x: Array) -> Sequence[Array]:
    """Invert the error function; JAX's lowering to Triton expands it."""
    return [lax.erf_inv(x)]


def _lanczos(x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Compute what lgamma and digamma share: whether to reflect, the reflected x - 1, log(t), a and its derivative."""
    reflect, one = x < number(x, 0.5), number(x, 1)
    z = where(reflect, number(x, 0) - x, x - one)
    a, slope = number(x, LANCZOS_BASE), number(x, 0)
    for k, c in enumerate(LANCZOS, 1):
        term = z + number(x, k)
        a = a + number(x, c) / term
        slope = slope - number(x, c) / (term * term)
    shift = number(x, LANCZOS_G + 0.5)
    log_t = number(x, math.log(LANCZOS_G + 0.5)) + lax.log1p(z / shift)
    return reflect, z, log_t, a, slope


@rule("lgamma")
@in_float32
def lgamma(eqn: Any, x: Array) -> Sequence[Array]:
    """Compute the logarithm of the absolute value of the gamma function."""
    reflect, z, log_t, a, _ = _lanczos(x)
    half, one, t = number(x, 0.5), number(x, 1), z + number(x, LANCZOS_G + 0.5)
    direct = number(x, (math.log(2) + math.log(math.pi)) / 2) + (z + half - t / log_t) * log_t + lax.log(a)
    # |sin(pi x)|, of the fraction of |x|, which is turned round beyond a half: precise near the poles.
    size = abs(x)
    part = size - lax.floor(size)
    part = where(part > half, one - part, part)
    sine = lax.log(lax.sin(number(x, math.pi) * part))
    reflected = where(lax.is_finite(sine), number(x, math.log(math.pi)) - sine - direct, number(x, 0) - sine)
    found = where(reflect, reflected, direct)
    return [where(size == number(x, np.inf), number(x, np.inf), found)]


@rule("digamma")
@in_float32
def digamma(eqn: Any, x: Array) -> Sequence[Array]:
    """Compute the derivative of lgamma."""
    reflect, z, log_t, a, slope = _lanczos(x)
    t, pi, zero = z + number(x, LANCZOS_G + 0.5), number(x, math.pi), number(x, 0)
    direct = log_t + slope / a - number(x, LANCZOS_G) / t
    near = x + abs(lax.floor(x + number(x, 0.5)))  # in [-0.5, 0.5]
    reflected = direct - pi * lax.cos(pi * near) / lax.sin(pi * near)
    found = where(reflect, reflected, direct)
    return [where((x <= zero) & (x == lax.floor(x)), number(x, np.nan), found)]
