"""Delayed acceptance (Christen, Fox, 2005): a cheap density refuses most proposals before the dear one is asked."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

TERMS = jnp.linspace(-1, 1, 2000)  # the dear density is a mean over all of these


def cheap(x):
    """A Gaussian that is wider than the right one, and a little beside it."""
    return -0.5 * ((x - 0.1) / 1.2) ** 2


def dear(x):
    """The standard normal distribution, computed in many terms."""
    return -0.5 * jnp.mean((x + TERMS) ** 2)


@pcbatch.batch
def sample(key, x, draws, size=2.4):
    """The means of the draws and of their squares, and how often the dear density was asked."""
    low, high = cheap(x), dear(x)
    mean = square = 0.0
    asked = 0
    for _ in range(draws):
        key, step, first, second = jax.random.split(key, 4)
        new = x + size * jax.random.normal(step)
        new_low = cheap(new)
        if jnp.log(jax.random.uniform(first)) < new_low - low:
            new_high = dear(new)
            asked += 1
            if jnp.log(jax.random.uniform(second)) < new_high - high - (new_low - low):
                x, low, high = new, new_low, new_high
        mean += x / draws
        square += x**2 / draws
    return mean, square, asked


def main(lanes: int = 100, draws: int = 1000) -> None:
    """Compare moments with the known ones, within five standard errors that the spread of the chains tells."""
    keys = jax.random.split(jax.random.key(0), lanes)
    means, squares, asked = sample.with_options(in_axes=(0, None, None))(keys, 0.0, draws)
    for values, known in ((means, 0), (squares, 1)):
        error = np.std(values, ddof=1) / np.sqrt(lanes)
        np.testing.assert_allclose(np.mean(values), known, atol=5 * float(error))
    share = np.mean(asked) / draws
    print(
        f"delayed_acceptance: {lanes} chains, mean and variance right, the dear density asked for {share:.0%} of draws"
    )


if __name__ == "__main__":
    main()
