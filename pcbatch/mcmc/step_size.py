"""Step size of one chain: fixed, or adapted by dual averaging (Hoffman and Gelman 2014, section 3.2).

Step sizes are adjusted inside of a chain, by JAX; the host makes and reads those of all chains, by NumPy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

SHRINKAGE, DELAY, DECAY = 0.05, 10.0, 0.75  # gamma, t0 and kappa of the paper
LOG_AVERAGE = 1  # its place among the numbers


class Stepper(NamedTuple):
    """The step size in use and the averages that steer it: numbers in one array, which a chain replaces at once.

    They are the step size; the slowly varying average of its logarithm, which is what to keep in the end; the average
    of target minus acceptance; how often the step has been adjusted; the logarithm of the step that the search is
    pulled towards; the mean acceptance that is aimed at; and 1, or 0 if the step stays as it is.
    """

    numbers: Any  # [..., 7]

    @property
    def step(self) -> Any:
        """The step size that the next draw is made with."""
        return self.numbers[..., 0]


def fixed(step: np.ndarray) -> Stepper:
    """Step sizes [chains] that stay as they are."""
    zero = np.zeros_like(step)
    return Stepper(np.stack([step, np.log(step), zero, zero, zero, zero, zero], axis=-1))


def adaptive(step: np.ndarray, target: float) -> Stepper:
    """Step sizes [chains] that start at `step`; larger ones are tried first, because they are cheaper to try."""
    zero = np.zeros_like(step)
    return Stepper(
        np.stack([step, np.log(step), zero, zero, np.log(10 * step), zero + zero.dtype.type(target), zero + 1], axis=-1)
    )


def adjust(stepper: Stepper, accept: jax.Array) -> Stepper:
    """The step size of a chain after a draw whose mean acceptance probability was `accept`."""
    _, log_average, error, tuned, anchor, target, adapting = stepper.numbers
    tuned = tuned + 1
    weight = 1 / (tuned + DELAY)
    error = (1 - weight) * error + weight * (target - accept)
    log_step = anchor - jnp.sqrt(tuned) / SHRINKAGE * error
    decay = tuned**-DECAY
    log_average = decay * log_step + (1 - decay) * log_average
    moved = jnp.stack([jnp.exp(log_step), log_average, error, tuned, anchor, target, adapting])
    return Stepper(jnp.where(adapting > 0, moved, stepper.numbers))


def settled(stepper: Stepper) -> np.ndarray:
    """The averaged step sizes [chains]: what to sample with after adaptation."""
    steps: np.ndarray = np.exp(np.asarray(stepper.numbers)[..., LOG_AVERAGE])
    return steps
