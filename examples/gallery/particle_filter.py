"""A bootstrap particle filter (Gordon, Salmond, Smith, 1993) that resamples only where few particles still count."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

KEEP, NOISE = 0.9, 0.5  # the state goes on as KEEP * x + a standard normal number, and is seen with noise


def resample(key, particles, weights):
    """As many particles, each about as often as its weight says (systematic resampling)."""
    count = len(particles)
    places = (jnp.arange(count) + jax.random.uniform(key)) / count
    return particles[jnp.minimum(jnp.searchsorted(jnp.cumsum(weights), places), count - 1)]


@pcbatch.batch(static_argnames="count")
def log_likelihood(key, seen, count):
    """The estimated density of one series of any length, as a logarithm, and how often particles were resampled."""
    key, now = jax.random.split(key)
    particles = jax.random.normal(now, (count,))
    weights = jnp.full(count, 1 / count)
    total, resampled = 0.0, 0
    for value in seen:
        if 1 / jnp.sum(weights**2) < 0.5 * count:
            key, now = jax.random.split(key)
            particles, weights = resample(now, particles, weights), jnp.full(count, 1 / count)
            resampled += 1
        key, now = jax.random.split(key)
        particles = KEEP * particles + jax.random.normal(now, (count,))
        heights = -0.5 * ((value - particles) / NOISE) ** 2 - jnp.log(NOISE * jnp.sqrt(2 * jnp.pi))
        weights = jnp.log(weights) + heights
        total += jax.nn.logsumexp(weights)
        weights = jax.nn.softmax(weights)
    return total, resampled


def kalman(seen):
    """The density itself, by the Kalman filter."""
    mean, variance, total = 0.0, 1.0, 0.0
    for value in seen:
        mean, variance = KEEP * mean, KEEP**2 * variance + 1
        spread = variance + NOISE**2
        total += -0.5 * (value - mean) ** 2 / spread - 0.5 * np.log(2 * np.pi * spread)
        mean, variance = mean + variance / spread * (value - mean), variance * NOISE**2 / spread
    return total


def series(rng, length):
    """A series from the model."""
    x, seen = rng.normal(), []
    for _ in range(length):
        x = KEEP * x + rng.normal()
        seen.append(float(x + NOISE * rng.normal()))
    return seen


def main(lanes: int = 100, count: int = 100) -> None:
    """Compare densities with the Kalman filter's, within five standard errors that the spread of the series tells."""
    rng = np.random.default_rng(0)
    data = [series(rng, int(length)) for length in rng.integers(5, 30, lanes)]
    keys = jax.random.split(jax.random.key(0), lanes)
    found, resampled = log_likelihood.with_options(in_axes=(0, 0, None))(keys, pcbatch.ragged(data), count)
    ratios = np.exp(found - np.array([kalman(seen) for seen in data]))
    error = np.std(ratios, ddof=1) / np.sqrt(lanes)
    np.testing.assert_allclose(np.mean(ratios), 1, atol=5 * float(error))
    share = np.sum(resampled) / sum(map(len, data))
    print(f"particle_filter: {lanes} series of 5 to 29 numbers, densities right, resampled at {share:.0%} of them")


if __name__ == "__main__":
    main()
