"""Warm-up: the step size by dual averaging in each chain, a diagonal mass matrix from all chains together.

The schedule is Stan's: an opening stretch in which only the step size adapts, windows of doubling length after each of
which the mass matrix is estimated anew, and a closing stretch for the step size. The draws run as batched calls; only
the estimate between two windows needs the chains to wait for each other. Pooling the chains there gives a good estimate
from short windows and makes the chains dependent during warm-up only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from examples.nuts.hamiltonian import LogpAndGrad, Point, Sample, draw_momentum, kinetic, leapfrog
from examples.nuts.sampler import Trace
from examples.nuts.stepsize import Stepper, adaptive, fixed, settled

OPENING, FIRST, CLOSING = 75, 25, 50  # draws, when there is time for them
MAX_TRIES = 40  # a factor of 2**40 either way: beyond it the target is at fault
SEARCH = 0x57E9  # folded into a chain's key to search for a step, so that its draws stay what they would be


class Chains(NamedTuple):
    """The state of all chains between two calls."""

    key: jax.Array
    sample: Sample
    stepper: Stepper


class Window(NamedTuple):
    """A stretch of warm-up, and whether the mass matrix is estimated from it."""

    draws: int
    estimates: bool


Advance = Callable[[Chains, jax.Array, int], tuple[Chains, Trace]]
FindStep = Callable[[jax.Array, Sample, jax.Array, jax.Array], jax.Array]


def windows(warmup: int) -> Iterator[Window]:
    """The stretches of a warm-up of `warmup` draws in all."""
    if warmup < FIRST:
        yield Window(warmup, False)  # too short to learn a mass matrix from
        return
    opening, closing = OPENING, CLOSING
    if warmup < OPENING + FIRST + CLOSING:
        opening, closing = int(0.15 * warmup), max(1, int(0.1 * warmup))
    left, size = warmup - opening - closing, FIRST
    yield Window(opening, False)
    while left > 0:
        if left < 3 * size:  # the next window would not have twice the length: take what is left
            size = left
        yield Window(size, True)
        left, size = left - size, 2 * size
    yield Window(closing, False)


def step_finder(logp_and_grad: LogpAndGrad) -> FindStep:
    """A step size of the right order of magnitude (Hoffman and Gelman 2014, algorithm 4), for each chain."""

    def accepted(sample: Sample, p: jax.Array, step: jax.Array, inv_mass: jax.Array) -> jax.Array:
        """Whether one leapfrog step of this size would be accepted with probability 1/2 or more."""
        point, logp = leapfrog(logp_and_grad, Point(sample.q, p, sample.grad), step, inv_mass)
        gain = logp - kinetic(point.p, inv_mass) - sample.logp + kinetic(p, inv_mass)
        return gain > jnp.log(0.5)  # false for NaN

    @pcbatch.batch(in_axes=(0, 0, 0, None))
    def find_step(key, sample, step, inv_mass):
        """Double or halve `step` until the answer to `accepted` changes."""
        p = draw_momentum(key, inv_mass)
        growing = accepted(sample, p, step, inv_mass)
        factor = jnp.where(growing, 2.0, 0.5)
        for _ in range(MAX_TRIES):
            step = step * factor
            if accepted(sample, p, step, inv_mass) != growing:
                break
        return step

    return find_step


def pooled_variance(q: np.ndarray) -> np.ndarray:
    """Variance of each coordinate over chains and draws, shrunk towards a small constant as Stan does."""
    count = q.shape[0] * q.shape[1]
    variance = q.reshape(count, -1).var(axis=0)
    return (count * variance + 5 * 1e-3) / (count + 5)


def warm_up(
    advance: Advance, find_step: FindStep, chains: Chains, inv_mass: jax.Array, warmup: int
) -> tuple[Chains, jax.Array]:
    """Run the warm-up; all chains leave it with the same fixed step size and mass matrix."""
    for window in windows(warmup):
        key = jax.vmap(lambda k: jax.random.fold_in(k, SEARCH))(chains.key)
        step = find_step(key, chains.sample, chains.stepper.step, inv_mass)
        chains, trace = advance(chains._replace(stepper=adaptive(step)), inv_mass, window.draws)
        if window.estimates:
            inv_mass = jnp.asarray(pooled_variance(np.asarray(trace.q)), inv_mass.dtype)
    step = jnp.median(settled(chains.stepper))  # a chain that is lost must not decide for the others
    return chains._replace(stepper=fixed(jnp.full_like(chains.stepper.step, step))), inv_mass
