"""Six posteriors on which samplers are compared: log densities of one flat vector, in 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

LogDensity = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class Model:
    """A log density, and by how much starting points are jittered around zero."""

    name: str
    logp: LogDensity
    size: int
    jitter: float = 1.0

    def start(self, chains: int, seed: int = 0) -> np.ndarray:
        """Positions [chains, size] where chains start."""
        rng = np.random.default_rng(seed)
        return rng.uniform(-self.jitter, self.jitter, (chains, self.size)).astype(np.float32)


def regression(groups: int = 20, points: int = 10) -> Model:
    """A hierarchical regression, 24-d: an intercept for each of 20 groups, non-centred, a slope and three scales."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(groups), points)
    x = rng.normal(size=groups * points).astype(np.float32)
    intercept = 1.0 + 0.7 * rng.normal(size=groups)
    y = (intercept[group] + 0.5 * x + 0.8 * rng.normal(size=x.size)).astype(np.float32)

    def logp(q: jax.Array) -> jax.Array:
        mean, slope, log_tau, log_sigma, raw = q[0], q[1], q[2], q[3], q[4:]
        effect = mean + jnp.exp(log_tau) * raw
        residual = (y.reshape(groups, points) - effect[:, None] - slope * x.reshape(groups, points)) * jnp.exp(
            -log_sigma
        )
        prior = -0.5 * (mean**2 / 25 + slope**2 / 25 + log_tau**2 + log_sigma**2 + jnp.sum(raw**2))
        return prior - 0.5 * jnp.sum(residual**2) - x.size * log_sigma

    return Model("regression", logp, 4 + groups)


def volatility(days: int = 97) -> Model:
    """Stochastic volatility of 97 returns, 100-d, non-centred: log volatility is an AR(1) process, by a scan."""
    rng = np.random.default_rng(2)
    h = np.zeros(days)
    h[0] = rng.normal()
    for t in range(1, days):
        h[t] = 0.95 * h[t - 1] + 0.25 * rng.normal()
    returns = (np.exp(h / 2) * rng.normal(size=days)).astype(np.float32)

    def logp(q: jax.Array) -> jax.Array:
        mean, logit_phi, log_scale, noise = q[0], q[1], q[2], q[3:]
        phi, scale = jnp.tanh(logit_phi), jnp.exp(log_scale)

        def day(h: jax.Array, both: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            shock, found = both
            h = phi * h + scale * shock
            return h, -0.5 * (mean + h) - 0.5 * found**2 * jnp.exp(-(mean + h))

        terms = jax.lax.scan(day, jnp.zeros((), q.dtype), (noise, returns))[1]
        prior = -0.5 * (mean**2 + (logit_phi - 1.5) ** 2 + (log_scale + 1.5) ** 2) - 0.5 * jnp.sum(noise**2)
        return jnp.sum(terms) + prior

    return Model("volatility", logp, 3 + days)


def eight_schools() -> Model:
    """Effects of coaching in eight schools (Rubin 1981), non-centred, 10-d."""
    from examples.nuts.targets import eight_schools as made

    target = made()
    return Model("schools", target.logp, target.size)


def funnel(size: int = 10) -> Model:
    """Neal's funnel, 10-d: a Normal(0, 3) and nine coordinates with the scale exp(half of it)."""

    def logp(q: jax.Array) -> jax.Array:
        v, x = q[0], q[1:]
        return -0.5 * v**2 / 9 - 0.5 * jnp.sum(x**2) * jnp.exp(-v) - 0.5 * (size - 1) * v

    return Model("funnel", logp, size)


def logistic() -> Model:
    """Logistic regression on the breast cancer data, 31-d."""
    from examples.nuts.targets import breast_cancer

    target = breast_cancer()
    return Model("logistic", target.logp, target.size)


def gaussian() -> Model:
    """The Gaussian with covariance 0.9^|i-j|, 100-d."""
    from examples.nuts.targets import gaussian as made

    target = made()
    return Model("gaussian", target.logp, target.size)


MODELS: dict[str, Callable[[], Model]] = {
    "regression": regression,
    "volatility": volatility,
    "schools": eight_schools,
    "funnel": funnel,
    "logistic": logistic,
    "gaussian": gaussian,
}
