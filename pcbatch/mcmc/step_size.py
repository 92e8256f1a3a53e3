"""Step size of one chain: fixed, or adapted by dual averaging (Hoffman and Gelman 2014, section 3.2).

The functions work on scalars inside of a chain, and on arrays of any shape outside.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

SHRINKAGE, DELAY, DECAY = 0.05, 10.0, 0.75  # gamma, t0 and kappa of the paper


class Stepper(NamedTuple):
    """The step size in use and the averages that steer it: numbers in one array, which a chain replaces at once."""

    numbers: jax.Array  # [..., 7]

    @property
    def step(self) -> jax.Array:
        """The step size in use."""
        return self.numbers[..., 0]


def _pack(
    step: jax.Array,
    log_average: jax.Array,  # slowly varying average of log(step): what to keep in the end
    error: jax.Array,  # average of target minus acceptance
    tuned: jax.Array,  # how often the step has been adjusted
    anchor: jax.Array,  # log of the step that the search is pulled towards
    target: jax.Array,  # mean acceptance probability that is aimed at
    adapting: jax.Array,  # 1, or 0 if the step stays as it is
) -> Stepper:
    return Stepper(jnp.stack([step, log_average, error, tuned, anchor, target, adapting], axis=-1))


def fixed(step: jax.Array) -> Stepper:
    """A step size that stays as it is."""
    zero = jnp.zeros_like(step)
    return _pack(step, jnp.log(step), zero, zero, zero, zero, zero)


def adaptive(step: jax.Array, target: float) -> Stepper:
    """A step size that starts at `step`; larger ones are tried first, because they are cheaper to try."""
    zero = jnp.zeros_like(step)
    return _pack(step, jnp.log(step), zero, zero, jnp.log(10 * step), zero + target, zero + 1)


def adjust(stepper: Stepper, accept: jax.Array) -> Stepper:
    """The step size after a draw whose mean acceptance probability was `accept`."""
    _, log_average, error, tuned, anchor, target, adapting = jnp.moveaxis(stepper.numbers, -1, 0)
    tuned = tuned + 1
    weight = 1 / (tuned + DELAY)
    error = (1 - weight) * error + weight * (target - accept)
    log_step = anchor - jnp.sqrt(tuned) / SHRINKAGE * error
    decay = tuned**-DECAY
    log_average = decay * log_step + (1 - decay) * log_average
    moved = _pack(jnp.exp(log_step), log_average, error, tuned, anchor, target, adapting)
    return Stepper(jnp.where((adapting > 0)[..., None], moved.numbers, stepper.numbers))


def settled(stepper: Stepper) -> jax.Array:
    """The averaged step size: what to sample with after adaptation."""
    return jnp.exp(stepper.numbers[..., 1])
