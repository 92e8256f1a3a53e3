"""Step size of one chain: fixed, or adapted by dual averaging (Hoffman and Gelman 2014, section 3.2).

The functions work on scalars inside of a chain, and on arrays of any shape outside.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

SHRINKAGE, DELAY, DECAY = 0.05, 10.0, 0.75  # gamma, t0 and kappa of the paper


class Stepper(NamedTuple):
    """The step size in use and the averages that steer it. All fields are scalars for one chain."""

    step: jax.Array
    log_average: jax.Array  # slowly varying average of log(step): what to keep in the end
    error: jax.Array  # average of target minus acceptance
    tuned: jax.Array  # how often the step has been adjusted
    anchor: jax.Array  # log of the step that the search is pulled towards
    target: jax.Array  # mean acceptance probability that is aimed at
    adapting: jax.Array


def fixed(step: jax.Array) -> Stepper:
    """A step size that stays as it is."""
    zero = jnp.zeros_like(step)
    return Stepper(step, jnp.log(step), zero, zero, zero, zero, jnp.zeros(jnp.shape(step), bool))


def adaptive(step: jax.Array, target: float) -> Stepper:
    """A step size that starts at `step`; larger ones are tried first, because they are cheaper to try."""
    return fixed(step)._replace(
        anchor=jnp.log(10 * step), target=jnp.full_like(step, target), adapting=jnp.ones(jnp.shape(step), bool)
    )


def adjust(stepper: Stepper, accept: jax.Array) -> Stepper:
    """The step size after a draw whose mean acceptance probability was `accept`."""
    tuned = stepper.tuned + 1
    weight = 1 / (tuned + DELAY)
    error = (1 - weight) * stepper.error + weight * (stepper.target - accept)
    log_step = stepper.anchor - jnp.sqrt(tuned) / SHRINKAGE * error
    decay = tuned**-DECAY
    log_average = decay * log_step + (1 - decay) * stepper.log_average
    moved = stepper._replace(step=jnp.exp(log_step), log_average=log_average, error=error, tuned=tuned)
    return jax.tree.map(lambda new, old: jnp.where(stepper.adapting, new, old), moved, stepper)


def settled(stepper: Stepper) -> jax.Array:
    """The averaged step size: what to sample with after adaptation."""
    return jnp.exp(stepper.log_average)
