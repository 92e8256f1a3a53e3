"""Special functions in a kernel, against XLA's own over their whole range."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.runtime.kernel.arrays import SPECIAL
from tests.runtime.kernel.kernels import same

pytestmark = pytest.mark.share(16)

WIDE = np.concatenate([np.linspace(-12, 12, 203), np.logspace(-8, 8, 41), np.array(SPECIAL)])
FINITE = WIDE[np.isfinite(WIDE)]
OFF_POLES = FINITE[(FINITE > 0) | (np.abs(FINITE - np.round(FINITE)) > 0.01)]
RANGES = {
    "erf": WIDE,
    "erfc": WIDE,
    "erf_inv": np.linspace(-1, 1, 129),
    "lgamma": OFF_POLES,
    "digamma": OFF_POLES,
}


@pytest.mark.parametrize("name", RANGES)
def test_single_precision(name: str) -> None:
    same(getattr(lax, name), RANGES[name].astype(np.float32), tolerance=1e-5)


@pytest.mark.parametrize("name", RANGES)
def test_double_precision(name: str) -> None:
    with jax.enable_x64(True):
        same(getattr(lax, name), RANGES[name].astype(np.float64), tolerance=1e-12)


@pytest.mark.parametrize("name", RANGES)
def test_poles_and_infinities(name: str) -> None:
    fn = getattr(lax, name)
    x = np.float32([1.0, 2.0, -1.0, -3.0, np.inf, -np.inf, np.nan, 0.0, -0.0])
    x = x[: 7 if name == "digamma" else None]  # at zero, releases of XLA differ
    same(lambda x: (jnp.isnan(fn(x)), jnp.isposinf(fn(x)), jnp.isneginf(fn(x))), x)


def test_users_of_them() -> None:
    x = np.float32([-3, -0.2, 0.1, 0.9, 4])
    same(lambda x: (jax.nn.gelu(x, approximate=False), jax.scipy.stats.norm.logcdf(x)), x, tolerance=1e-5)
    same(lambda x: (jax.scipy.special.gammaln(x + 5), jax.scipy.stats.poisson.logpmf(3, x + 5)), x, tolerance=1e-5)
