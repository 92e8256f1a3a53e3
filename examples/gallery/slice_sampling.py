"""Slice sampling with stepping out (Neal, 2003): three loops in a loop, each as long as the draw needs it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch


def log_gamma_density(x):
    """The gamma distribution with shape 3, up to a constant: its mean and its variance are 3."""
    return jnp.where(x > 0, 2 * jnp.log(jnp.maximum(x, 1e-30)) - x, -jnp.inf)


@pcbatch.batch(static_argnames="log_density")
def sample(log_density, key, x, draws, width):
    """The last draw, and the means of all and of their squares."""
    mean = square = 0.0
    for _ in range(draws):
        key, height, place, inside = jax.random.split(key, 4)
        level = log_density(x) + jnp.log(jax.random.uniform(height))
        left = x - width * jax.random.uniform(place)
        right = left + width
        while log_density(left) > level:
            left -= width
        while log_density(right) > level:
            right += width
        while True:
            inside, now = jax.random.split(inside)
            new = left + (right - left) * jax.random.uniform(now)
            if log_density(new) >= level:
                break
            if new < x:
                left = new
            else:
                right = new
        x = new
        mean += x / draws
        square += x**2 / draws
    return x, mean, square


def main(lanes: int = 100, draws: int = 500) -> None:
    """Compare moments with the known ones, within five standard errors that the spread of the chains tells."""
    keys = jax.random.split(jax.random.key(0), lanes)
    chains = sample.with_options(in_axes=(None, 0, None, None, None))
    _, means, squares = chains(log_gamma_density, keys, 3.0, draws, 2.0)
    for values, known in ((means, 3), (squares, 12)):
        error = np.std(values, ddof=1) / np.sqrt(lanes)
        np.testing.assert_allclose(np.mean(values), known, atol=5 * float(error))
    print(f"slice_sampling: {lanes} chains of {draws} draws, mean and variance as those of the gamma distribution")


if __name__ == "__main__":
    main()
