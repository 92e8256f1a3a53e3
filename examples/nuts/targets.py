"""The distributions to sample from. Each is a log density of one flat vector, for one chain.

Data stand in closures, so every chain reads the same array and a product with it is one matrix product for the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

LogDensity = Callable[[jax.Array], jax.Array]


class Target(NamedTuple):
    """A distribution with names for its coordinates and overdispersed points to start chains at."""

    name: str
    logp: LogDensity
    names: tuple[str, ...]
    start: Callable[[int, int], np.ndarray]  # (seed, chains) -> positions

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    def logp_and_grad(self, q: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Log density and its gradient."""
        return jax.value_and_grad(self.logp)(q)


def gaussian(size: int = 100, correlation: float = 0.9) -> Target:
    """A normal distribution with covariance `correlation ** |i - j|`; chains start in it, as in a benchmark."""
    index = np.arange(size)
    covariance = correlation ** np.abs(index[:, None] - index[None, :])
    factor = np.linalg.cholesky(covariance)
    precision = np.linalg.inv(covariance).astype(jnp.result_type(float))

    def logp(q: jax.Array) -> jax.Array:
        return -0.5 * jnp.dot(q, jnp.dot(precision, q))

    def start(seed: int, chains: int) -> np.ndarray:
        return np.random.default_rng(seed).normal(size=(chains, size)) @ factor.T

    return Target("gaussian", logp, _indexed("x", size), start)


def logistic(points: int = 10_000, regressors: int = 100) -> Target:
    """Bayesian logistic regression on synthetic data, with a standard normal prior."""
    rng = np.random.default_rng(2020)
    x = rng.normal(size=(points, regressors))
    weights = rng.normal(size=regressors) / np.sqrt(regressors)
    y = rng.random(points) < 1 / (1 + np.exp(-x @ weights))
    return Target("logistic", _logistic_density(x, y, 1.0), _indexed("w", regressors), _uniform_start(regressors))


def breast_cancer() -> Target:
    """Benign or not, from 30 standardised measurements of 569 tumours: logistic regression, Normal(0, 1) prior."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    x = (data.data - data.data.mean(0)) / data.data.std(0)
    x = np.concatenate([np.ones((len(x), 1)), x], axis=1)
    names = ("intercept", *(str(name) for name in data.feature_names))
    return Target("breast-cancer", _logistic_density(x, data.target == 1, 1.0), names, _uniform_start(len(names)))


def eight_schools() -> Target:
    """Effects of coaching in eight schools (Rubin 1981), non-centred, in the coordinates mu, log(tau), eta."""
    effect = np.array([28, 8, -3, 7, -1, 1, 18, 12], jnp.result_type(float))
    error = np.array([15, 10, 16, 11, 9, 11, 10, 18], jnp.result_type(float))

    def logp(q: jax.Array) -> jax.Array:
        mu, log_tau, eta = q[0], q[1], q[2:]
        tau = jnp.exp(log_tau)
        residual = (effect - (mu + tau * eta)) / error
        half_cauchy = log_tau - jnp.log1p((tau / 5.0) ** 2)  # with the Jacobian of log
        prior = -0.5 * (mu / 5.0) ** 2 - 0.5 * jnp.sum(eta**2) + half_cauchy
        return prior - 0.5 * jnp.sum(residual**2)

    return Target("eight-schools", logp, ("mu", "log_tau", *_indexed("eta", 8)), _uniform_start(10))


TARGETS: dict[str, Callable[[], Target]] = {
    "gaussian": gaussian,
    "logistic": logistic,
    "breast-cancer": breast_cancer,
    "eight-schools": eight_schools,
}


def _logistic_density(x: np.ndarray, y: np.ndarray, prior_scale: float) -> LogDensity:
    """Log posterior of the weights. Rows are signed by their label, so that one product gives every margin."""
    signed = np.where(y, 1.0, -1.0)[:, None] * x
    signed = signed.astype(jnp.result_type(float))

    def logp(q: jax.Array) -> jax.Array:
        return jnp.sum(jax.nn.log_sigmoid(jnp.dot(signed, q))) - 0.5 * jnp.sum((q / prior_scale) ** 2)

    return logp


def _uniform_start(size: int) -> Callable[[int, int], np.ndarray]:
    """Positions in (-2, 2), as Stan starts its chains."""
    return lambda seed, chains: np.random.default_rng(seed).uniform(-2, 2, size=(chains, size))


def _indexed(name: str, size: int) -> tuple[str, ...]:
    return tuple(f"{name}[{i}]" for i in range(size))
