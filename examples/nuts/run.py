"""Runs of `pcbatch.mcmc` on the targets: with adaptation, with a fixed step size, and the batched chain by itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from examples.nuts.targets import Target
from pcbatch import mcmc
from pcbatch.mcmc.machine import ChainMachine, Chains
from pcbatch.mcmc.settings import Settings
from pcbatch.mcmc.start import target_of
from pcbatch.mcmc.step_size import fixed


@dataclass(frozen=True)
class Run:
    """Draws of a target and the cost of drawing them."""

    target: Target
    posterior: mcmc.Posterior
    dropped: int = 0  # first draws that are not looked at: they only tell what draws cost

    @property
    def q(self) -> np.ndarray:
        """Positions, [chains, draws, size]."""
        positions: np.ndarray = self.posterior.draws[:, self.dropped :]
        return positions

    @property
    def gradients(self) -> np.ndarray:
        """Gradients that each chain used."""
        used: np.ndarray = self.posterior.statistics.leapfrogs.sum(axis=1)
        return used

    @property
    def batches(self) -> int:
        """Batched gradients; of several devices, which share the chains, their mean."""
        return self.posterior.gradients_computed // self.posterior.settings.chains

    @property
    def step_size(self) -> float:
        """The step size, of the chain in the middle if they differ."""
        return float(np.median(self.posterior.step_size))


def sample(
    target: Target,
    *,
    chains: int = 32,
    draws: int = 500,
    warmup: int = 300,
    adapt: bool = True,
    devices: int = 1,
    seed: int = 0,
    progress: bool = False,
    **options: Any,
) -> Run:
    """Draw from a target.

    Args:
        target: the distribution; its chains start where it says.
        chains, draws, warmup: their numbers.
        adapt: or all draws have the step size `step_size` and a unit mass matrix; the first `warmup` are dropped.
        devices: that the chains are split over.
        seed: of the starts and of the chains.
        progress: show a bar.
        options: others of `pcbatch.mcmc.sample`.
    """
    dropped = 0 if adapt else warmup
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mcmc.SamplingWarning)  # the report has them
        posterior = mcmc.sample(
            target.logp,
            start(target, chains, seed),
            draws=draws + dropped,
            warmup=warmup - dropped,
            devices=None if devices == 1 else devices,
            seed=seed,
            progress=progress,
            stats=True,
            **options,
        )
    return Run(target, posterior, dropped)


def start(target: Target, chains: int, seed: int = 0) -> np.ndarray:
    """First positions, in the precision that JAX has."""
    return np.asarray(target.start(seed, chains), jnp.result_type(float))


def fixed_chain(
    target: Target, q: np.ndarray, step: float, draws: int, max_tree_depth: int = 10
) -> tuple[Any, tuple[Any, ...]]:
    """The batched chain of the sampler, and arguments of it: positions `q`, one step size, the unit mass matrix."""
    options = Settings(len(q), draws, 0, 0.8, max_tree_depth, "diag", "pooled", seed=0, step_size=step)
    machine = ChainMachine(target_of(target.logp, q, None, None, ()), options, ())
    chains = Chains(machine.begin(q), fixed(np.full(len(q), step, q.dtype)), 0)
    return machine.chain, machine.arguments(chains, machine.unit_mass(), draws, max_tree_depth)
