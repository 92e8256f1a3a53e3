"""Slice sampling with stepping out (Neal, 2003): three loops in a loop, each as long as the draw needs it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch


def log_gamma_density(x):
    """The gamma distribution with shape 3, up to a constant: its mean and its variance are 3."""
    return jnp.where(x > 0, 2 * jnp.log(jnp.maximum(x, 1e-30)) - x, -jnp.inf)


@pcbatch.batch
def sample(key, x, draws, width=2.0):
    """The means of the draws and of their squared distances from 3."""
    mean = spread = 0.0
    for _ in range(draws):
        key, height, place, inside = jax.random.split(key, 4)
        level = log_gamma_density(x) + jnp.log(jax.random.uniform(height))
        left = x - width * jax.random.uniform(place)
        right = left + width
        while log_gamma_density(left) > level:
            left -= width
        while log_gamma_density(right) > level:
            right += width
        while True:
            inside, now = jax.random.split(inside)
            new = left + (right - left) * jax.random.uniform(now)
            if log_gamma_density(new) >= level:
                break
            if new < x:
                left = new
            else:
                right = new
        x = new
        mean += x / draws
        spread += (x - 3) ** 2 / draws
    return mean, spread


def main(lanes: int = 100, draws: int = 500) -> None:
    """Compare moments with the known ones, within five standard errors that the spread of the chains tells."""
    keys = jax.random.split(jax.random.key(0), lanes)
    found = sample.with_options(in_axes=(0, None, None))(keys, 3.0, draws)
    for values in found:
        error = np.std(values, ddof=1) / np.sqrt(lanes)
        np.testing.assert_allclose(np.mean(values), 3, atol=5 * float(error))
    print(f"slice_sampling: {lanes} chains of {draws} draws, mean and variance as those of the gamma distribution")


if __name__ == "__main__":
    main()
