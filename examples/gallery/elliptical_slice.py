"""Elliptical slice sampling (Murray, Adams, MacKay, 2010): angles are drawn until one is accepted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

SEEN, NOISE = jnp.array([1.0, -0.5, 0.0]), 0.1


def log_seen(f):
    """What was seen is `f` with Gaussian noise."""
    return -0.5 * jnp.sum((f - SEEN) ** 2) / NOISE


@pcbatch.batch(static_argnames="log_likelihood")
def sample(log_likelihood, key, f, draws):
    """The means of the draws and of their squares, under a standard normal prior."""
    mean = square = f * 0
    for _ in range(draws):
        key, prior, height, inside = jax.random.split(key, 4)
        other = jax.random.normal(prior, f.shape)
        level = log_likelihood(f) + jnp.log(jax.random.uniform(height))
        inside, now = jax.random.split(inside)
        angle = 2 * jnp.pi * jax.random.uniform(now)
        low, high = angle - 2 * jnp.pi, angle
        new = f * jnp.cos(angle) + other * jnp.sin(angle)
        while log_likelihood(new) <= level:
            if angle < 0:
                low = angle
            else:
                high = angle
            inside, now = jax.random.split(inside)
            angle = low + (high - low) * jax.random.uniform(now)
            new = f * jnp.cos(angle) + other * jnp.sin(angle)
        f = new
        mean += f / draws
        square += f**2 / draws
    return mean, square


def main(lanes: int = 100, draws: int = 500) -> None:
    """Compare moments with those of the posterior, within five standard errors that the spread of the chains tells."""
    keys = jax.random.split(jax.random.key(0), lanes)
    start = np.asarray(SEEN) / (1 + NOISE)  # the mean of the posterior
    found = sample.with_options(in_axes=(None, 0, None, None))(log_seen, keys, start, draws)
    variance = NOISE / (1 + NOISE)
    for values, known in zip(found, (start, start**2 + variance), strict=True):
        error = np.std(values, axis=0, ddof=1) / np.sqrt(lanes)
        np.testing.assert_array_less(np.abs(np.mean(values, axis=0) - known), 5 * error)
    print(f"elliptical_slice: {lanes} chains of {draws} draws, mean and variance as those of the posterior")


if __name__ == "__main__":
    main()
