"""Sequential Monte Carlo with adaptive temperatures (Del Moral, Doucet, Jasra, 2012): each run finds its own ladder."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

PRIOR, NOISE = 3.0, 0.3  # standard deviations of what is looked for and of what is seen of it


def log_likelihood(x, seen):
    """The density of what is seen."""
    return jnp.sum(-0.5 * ((x - seen) / NOISE) ** 2 - jnp.log(NOISE * jnp.sqrt(2 * jnp.pi)), -1)


def effective_size(log_weights):
    """How many particles of equal weights would do as well."""
    weights = jax.nn.softmax(log_weights)
    return 1 / jnp.sum(weights**2)


def resample(key, particles, log_weights):
    """As many particles, each about as often as its weight says (systematic resampling)."""
    count = len(particles)
    places = (jnp.arange(count) + jax.random.uniform(key)) / count
    ends = jnp.cumsum(jax.nn.softmax(log_weights))
    return particles[jnp.minimum(jnp.searchsorted(ends, places), count - 1)]


@pcbatch.batch(static_argnames="count")
def sample(key, seen, count):
    """The mean of the posterior, the logarithm of the evidence, and how many temperatures that took."""
    key, now = jax.random.split(key)
    particles = PRIOR * jax.random.normal(now, (count, len(seen)))
    temperature = evidence = 0.0
    rungs = 0
    while temperature < 1:
        heights = log_likelihood(particles, seen)
        step = 1 - temperature
        if effective_size(step * heights) < 0.5 * count:  # the step at which half of the particles count
            low, high = 0.0, step
            while high - low > 1e-3 * high:
                step = (low + high) / 2
                if effective_size(step * heights) < 0.5 * count:
                    high = step
                else:
                    low = step
        evidence += jax.nn.logsumexp(step * heights) - jnp.log(count)
        temperature = temperature + step
        key, now = jax.random.split(key)
        particles = resample(now, particles, step * heights)
        size, moves = jnp.std(particles, 0), 0.0
        while moves < 3:  # Metropolis steps, until particles have moved three times on average
            key, walk, levels = jax.random.split(key, 3)
            new = particles + size * jax.random.normal(walk, particles.shape)
            gain = temperature * (log_likelihood(new, seen) - log_likelihood(particles, seen))
            gain += 0.5 * jnp.sum(particles**2 - new**2, -1) / PRIOR**2
            moved = jnp.log(jax.random.uniform(levels, (count,))) < gain
            particles = jnp.where(moved[:, None], new, particles)
            moves += jnp.mean(moved)
        rungs += 1
    return jnp.mean(particles, 0), evidence, rungs


def main(lanes: int = 100, count: int = 100) -> None:
    """Compare means and evidences with the known ones, within five standard errors that the spread of runs tells."""
    keys = jax.random.split(jax.random.key(0), lanes)
    seen = np.random.default_rng(0).normal(0, PRIOR, (lanes, 2)).astype(np.float32)
    means, evidences, rungs = sample.with_options(in_axes=(0, 0, None))(keys, seen, count)
    variance = PRIOR**2 + NOISE**2
    evidence = np.sum(-0.5 * seen**2 / variance - 0.5 * np.log(2 * np.pi * variance), -1)
    errors = np.column_stack([means - seen * PRIOR**2 / variance, np.exp(evidences - evidence) - 1])
    limits = 5 * np.std(errors, axis=0, ddof=1) / np.sqrt(lanes)
    np.testing.assert_array_less(np.abs(np.mean(errors, axis=0)), limits)
    print(f"tempered_smc: {lanes} runs with {rungs.min()} to {rungs.max()} temperatures, means and evidences right")


if __name__ == "__main__":
    main()
