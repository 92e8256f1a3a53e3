"""The batched chains of one target, compiled once: every window and every chunk of draws is a call of one program."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.api.batched import Batched
from pcbatch.errors import BatchRuntimeError
from pcbatch.mcmc.hamiltonian import Mass, Point, Sample, kinetic, leapfrog, momentum
from pcbatch.mcmc.nuts import NUMBERS, Trace, nuts
from pcbatch.mcmc.settings import Settings
from pcbatch.mcmc.step_size import Stepper
from pcbatch.mcmc.target import Target

TRACE_BYTES = 64 << 20  # of the positions of one call
MOST_ROWS = 256  # draws in one call


class Chains(NamedTuple):
    """The state of all chains between two calls."""

    sample: Sample
    stepper: Stepper
    drawn: int  # draws so far, of the warm-up too


class Piece(NamedTuple):
    """What a call has drawn."""

    q: np.ndarray  # [chains, draws, n]
    numbers: np.ndarray  # [chains, draws, NUMBERS]


@dataclass(frozen=True)
class Programs:
    """Compiled functions of a target."""

    chain: Batched[..., Any]
    leap: Any  # one leapfrog step of all chains: what is gained, and where it leads
    noise: Any  # standard normal numbers and keys for the next draws


@functools.lru_cache(maxsize=32)
def programs(target: Target, deepest: int, per_chain: bool) -> Programs:
    """The programs of a target, kept for later calls of `sample` with it."""
    mass_axis = 0 if per_chain else None
    sampler = nuts(target.logp_and_grad, deepest=deepest, mass_axis=mass_axis)

    def leap(sample: Sample, noise: jax.Array, step: jax.Array, mass: Mass, data: Any) -> Any:
        p = momentum(noise, mass)
        point = Point(jnp.concatenate([sample.rows, p[None]]))
        end, logp = leapfrog(target.logp_and_grad, point, step, mass, data)
        return Sample(end.rows[:2], logp), logp - kinetic(end.p, mass) - sample.logp + kinetic(p, mass)

    axes = (0, 0, 0, mass_axis, None)
    return Programs(sampler.chain, jax.jit(jax.vmap(leap, in_axes=axes)), _noise)


@functools.partial(jax.jit, static_argnames=("rows", "size", "dtype"))
def _noise(keys: jax.Array, first: int, draws: int, rows: int, size: int, dtype: np.dtype) -> tuple[Any, Any]:
    """Keys [chains, rows, 2] and noise [chains, rows, size] of the draws from `first` on; rows after `draws` are zero.

    They depend on the chain's key and the number of the draw alone, so that a run may be cut into calls anywhere.
    """

    def row(t: jax.Array, out: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        both = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, first + t)))(keys)
        noise = jax.vmap(lambda key: jax.random.normal(key, (size,), dtype))(both[:, 0])
        return out[0].at[:, t].set(jax.random.key_data(both[:, 1])), out[1].at[:, t].set(noise)

    chains = keys.shape[0]
    empty = jnp.zeros((chains, rows, 2), jnp.uint32), jnp.zeros((chains, rows, size), dtype)
    return jax.lax.fori_loop(0, draws, row, empty)


class Machine:
    """The chains of one run: calls of the compiled program, and the numbers that they are given."""

    def __init__(self, target: Target, settings: Settings, data: tuple[Any, ...]) -> None:
        self.target, self.settings, self.data = target, settings, data
        self.programs = programs(target, settings.max_tree_depth, not settings.pooled)
        self.chain = self.programs.chain
        if settings.devices is not None:
            self.chain = self.chain.with_options(devices=settings.devices)
        row = settings.chains * target.size * target.dtype.itemsize
        self.rows = max(16, min(MOST_ROWS, max(settings.draws, settings.warmup), TRACE_BYTES // row))
        self.keys = jax.vmap(lambda c: jax.random.fold_in(jax.random.key(settings.seed, impl="threefry2x32"), c))(
            jnp.arange(settings.chains)
        )
        self.calls = 0

    def begin(self, q: np.ndarray) -> Sample:
        """The samples at positions `q` [chains, n]: a step of no length gives log densities and gradients."""
        chains = q.shape[0]
        zeros = np.zeros_like(q)
        zero = np.zeros(chains, q.dtype)
        still = Sample(np.stack([q, zeros], axis=1), zero)
        return self.programs.leap(still, zeros, zero, self.unit_mass(), self.data)[0]

    def unit_mass(self) -> Mass:
        """The identity, in the form of the mass matrices of the run."""
        from pcbatch.mcmc.mass_matrix import unit

        s = self.settings
        return unit(self.target.size, s.dense, self.target.dtype, None if s.pooled else s.chains)

    def gains(self, sample: Sample, step: np.ndarray, mass: Mass, noise: np.ndarray) -> np.ndarray:
        """Energy lost in one leapfrog step of each chain, [chains]; -inf where it is not a number."""
        gain = np.asarray(self.programs.leap(sample, noise, step, mass, self.data)[1])
        return np.where(np.isnan(gain), -np.inf, gain)

    def advance(self, chains: Chains, mass: Mass, draws: int, depth: int) -> tuple[Chains, Piece]:
        """`draws` more draws of every chain, at most `rows`."""
        s, size, dtype = self.settings, self.target.size, self.target.dtype
        keys, noise = self.programs.noise(self.keys, chains.drawn, draws, self.rows, size, dtype)
        trace = Trace(
            jnp.zeros((s.chains, self.rows, size), dtype), jnp.zeros((s.chains, self.rows, NUMBERS), dtype)
        )
        result = self.chain.run(
            chains.sample, chains.stepper, mass, keys, noise, trace, np.int32(draws), np.int32(depth), self.data
        )
        status = np.asarray(result.status)
        if status.any():
            raise BatchRuntimeError(f"chains {np.flatnonzero(status).tolist()} did not finish")
        sample, stepper, trace = result.value
        self.calls += 1
        piece = Piece(np.asarray(trace.q[:, :draws]), np.asarray(trace.numbers[:, :draws]))
        return Chains(sample, stepper, chains.drawn + draws), piece
