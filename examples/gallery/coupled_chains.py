"""Unbiased estimates by coupled chains (Jacob, O'Leary, Atchade, 2020): two Metropolis chains run until they meet."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

SIZE, START = 2.0, -8.0  # of the steps that are proposed; where chains start, far from where they should be
KNOWN = np.array([5 / 3, 22 / 3])  # the mean and the mean square of the distribution below


def log_density(x):
    """Gaussians of variance 1 around -1 and 3, one part and two parts."""
    return jnp.logaddexp(-0.5 * (x + 1) ** 2, jnp.log(2.0) - 0.5 * (x - 3) ** 2)


def log_proposal(new, old):
    """The density of a proposal, up to a constant."""
    return -0.5 * ((new - old) / SIZE) ** 2


def propose(key, x, y):
    """A proposal for each of two chains, and the same for both as often as that can be: a maximal coupling."""
    key, step, height = jax.random.split(key, 3)
    new_x = x + SIZE * jax.random.normal(step)
    if jnp.log(jax.random.uniform(height)) + log_proposal(new_x, x) < log_proposal(new_x, y):
        return new_x, new_x
    while True:
        key, step, height = jax.random.split(key, 3)
        new_y = y + SIZE * jax.random.normal(step)
        if jnp.log(jax.random.uniform(height)) + log_proposal(new_y, y) >= log_proposal(new_y, x):
            return new_x, new_y


def accept(key, new, old):
    """The next draw of a chain."""
    return jnp.where(jnp.log(jax.random.uniform(key)) < log_density(new) - log_density(old), new, old)


@pcbatch.batch
def estimate(key, first, last):
    """The mean of `x` and `x**2` over some draws, the same without bias, and the time at which the chains met."""
    key, start, step, now = jax.random.split(key, 4)
    x, y = START + jax.random.normal(start, 2)
    x = accept(now, x + SIZE * jax.random.normal(step), x)
    share = 1 / (last - first + 1)
    mean = correction = jnp.zeros(2)
    time = met = 1
    while time <= last or x != y:  # x has made `time` steps, y one less
        if first <= time <= last:
            mean += share * jnp.array([x, x**2])
        if x != y:
            correction += jnp.clip(share * (time - first), 0, 1) * jnp.array([x - y, x**2 - y**2])
            met = time + 1
        key, now, level = jax.random.split(key, 3)
        new_x, new_y = propose(now, x, y)
        x, y = accept(level, new_x, x), accept(level, new_y, y)
        time += 1
    return mean, mean + correction, met


def main(lanes: int = 400, first: int = 10, last: int = 40) -> None:
    """Compare means with the known ones, within five standard errors that the spread of the estimates tells."""
    keys = jax.random.split(jax.random.key(0), lanes)
    means, estimates, met = estimate.with_options(in_axes=(0, None, None))(keys, first, last)
    error = np.std(estimates, axis=0, ddof=1) / np.sqrt(lanes)
    np.testing.assert_array_less(np.abs(np.mean(estimates, axis=0) - KNOWN), 5 * error)
    bias = np.mean(means, axis=0)[0] - KNOWN[0]
    print(
        f"coupled_chains: {lanes} pairs met after {met.min()} to {met.max()} steps, estimates without bias"
        f" (of the means without correction: {bias:.1f})"
    )


if __name__ == "__main__":
    main()
