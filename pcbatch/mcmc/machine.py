"""The batched chains of one target, compiled once: every window and every chunk of draws is a call of one program."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.api.batched import Batched
from pcbatch.call.array_leaves import as_jax
from pcbatch.call.devices import mesh_of
from pcbatch.lowering.analysis.lane_time import jaxpr_time
from pcbatch.mcmc.hamiltonian import Mass, Point, Sample, kinetic, leapfrog, momentum
from pcbatch.mcmc.mass_matrix import unit
from pcbatch.mcmc.nuts import GRADIENT, LEAF, NUMBERS, Trace, nuts
from pcbatch.mcmc.settings import Settings
from pcbatch.mcmc.step_size import Stepper
from pcbatch.mcmc.target import Target
from pcbatch.plan import Dense
from pcbatch.runtime.sharding.lane_sharding import LaneSharding

TRACE_BYTES = 32 << 20  # of the positions of one call
LEAST_ROWS, MOST_ROWS = 16, 256  # draws in one call, if there are so many
# Numbers in a vector of all chains up to which blocks compute all lanes: the code is smaller and compiles in half of
# the time, and beyond it that is not worth computing what chains do not wait for.
SMALL = 8192
# Nanoseconds of a log density and its gradient, from which on chains gather for them. Chains with cheaper ones may run
# one after the other, so nothing is said of their blocks.
CHEAP = 2000.0


class Chains(NamedTuple):
    """The state of all chains between two calls."""

    sample: Sample
    stepper: Stepper
    drawn: int  # draws so far, of the warm-up too


class Piece(NamedTuple):
    """The draws of one call of the compiled program."""

    q: np.ndarray  # [chains, draws, n]
    numbers: np.ndarray  # [chains, draws, NUMBERS]
    computed: int  # gradients, those for chains that wait for another one included; 0 if they are not counted


@dataclass(frozen=True)
class Programs:
    """Compiled functions of a target."""

    chain: Batched[..., Any]
    leap: Any  # one leapfrog step of all chains: what is gained, and where it leads


@functools.lru_cache(maxsize=32)
def programs(target: Target, deepest: int, per_chain: bool, small: bool, stats: bool) -> Programs:
    """The programs of a target, kept for later calls of `sample` with it."""
    mass_axis = 0 if per_chain else None
    sampler = nuts(target.logp_and_grad, deepest=deepest, mass_axis=mass_axis)

    def leap(sample: Sample, noise: jax.Array, step: jax.Array, mass: Mass, data: Any) -> Any:
        p = momentum(noise, mass)
        point = Point(jnp.concatenate([sample.rows, p[None]]))
        end, logp = leapfrog(target.logp_and_grad, point, step, mass, data)
        return Sample(end.rows[:2], logp), logp - kinetic(end.p, mass) - sample.logp + kinetic(p, mass)

    axes = (0, 0, 0, mass_axis, None)
    # A run that is cut into other calls must round as it did: chains are never moved to machines of other widths.
    plan = replace(sampler.chain.options.plan, narrow=False)
    plan = replace(plan, modes=Dense()) if small else plan
    return Programs(sampler.chain.with_options(stats=stats, plan=plan), jax.jit(jax.vmap(leap, in_axes=axes)))


def _cost(target: Target, data: tuple[Any, ...]) -> float:
    return jaxpr_time(jax.make_jaxpr(target.logp_and_grad)(np.zeros(target.size, target.dtype), *data).jaxpr)


class ChainMachine:
    """The chains of one run: calls of the compiled program, and the numbers that they are given."""

    def __init__(self, target: Target, settings: Settings, data: tuple[Any, ...]) -> None:
        self.target, self.settings, self.data = target, settings, as_jax(data)
        small = settings.chains * target.size <= SMALL and _cost(target, self.data) >= CHEAP
        self.programs = programs(target, settings.max_tree_depth, not settings.pooled, small, settings.stats)
        self.chain = self.programs.chain
        if settings.devices is not None:
            self.chain = self.chain.with_options(devices=settings.devices)
        self.together = LaneSharding(mesh_of(settings.devices), settings.chains).each  # chains of one device
        row = settings.chains * target.size * target.dtype.itemsize
        self.rows = min(MOST_ROWS, max(settings.draws, settings.warmup), max(LEAST_ROWS, TRACE_BYTES // row))
        self.keys = np.zeros((settings.chains, self.rows, 2), np.uint32)
        self.noise = np.zeros((settings.chains, self.rows, target.size), target.dtype)
        numbers = (settings.chains, self.rows, NUMBERS)
        self.trace = Trace(jnp.zeros(self.noise.shape, target.dtype), jnp.zeros(numbers, target.dtype))

    def begin(self, q: np.ndarray) -> Sample:
        """The samples at positions `q` [chains, n]: a step of no length gives log densities and gradients."""
        chains = q.shape[0]
        zeros = np.zeros_like(q)
        zero = np.zeros(chains, q.dtype)
        still = Sample(jnp.asarray(np.stack([q, zeros], axis=1)), jnp.asarray(zero))
        first: Sample = self.programs.leap(still, zeros, zero, self.unit_mass(), self.data)[0]
        return first

    def unit_mass(self) -> Mass:
        """The identity, in the form of the mass matrices of the run."""
        s = self.settings
        return unit(self.target.size, s.dense, self.target.dtype, None if s.pooled else s.chains)

    def compile(self, chains: Chains) -> tuple[Chains, Piece]:
        """Compile the program by a call of no draws; the piece is empty."""
        return self.advance(chains, self.unit_mass(), 0, 0)

    def gains(self, sample: Sample, step: np.ndarray, mass: Mass, noise: np.ndarray) -> np.ndarray:
        """Energy lost in one leapfrog step of each chain, [chains]; -inf where it is not a number."""
        gain = np.asarray(self.programs.leap(sample, noise, step, mass, self.data)[1])
        return np.where(np.isnan(gain), -np.inf, gain)

    def arguments(self, chains: Chains, mass: Mass, draws: int, depth: int) -> tuple[Any, ...]:
        """The arguments of `chain` for `draws` more draws of every chain, at most `rows`."""
        for row in range(draws):
            self._fill(row, chains.drawn + row)
        state = *as_jax((chains.sample, chains.stepper, mass, self.keys, self.noise)), self.trace
        return *state, jnp.int32(draws), jnp.int32(depth), self.data  # a call of arrays of JAX takes the host less time

    def advance(self, chains: Chains, mass: Mass, draws: int, depth: int) -> tuple[Chains, Piece]:
        """`draws` more draws of every chain, at most `rows`."""
        result = self.chain.run(*self.arguments(chains, mass, draws, depth))
        status = np.asarray(result.status)
        if status.any():
            raise RuntimeError(f"chains {np.flatnonzero(status).tolist()} did not finish")  # nothing in them can fail
        sample, stepper, trace = result.value
        computed = LEAF * int(result.stats.visits(GRADIENT)) * self.together if self.settings.stats else 0
        q, numbers = (np.asarray(rows)[:, :draws].copy() for rows in trace)  # a slice by JAX takes the host longer
        piece = Piece(q, numbers, computed)
        return Chains(sample, stepper, chains.drawn + draws), piece

    def _fill(self, row: int, draw: int) -> None:
        """Make the key and the noise of a draw. They depend on the seed and the number of the draw alone, so that a run
        may be cut into calls anywhere."""
        rng = np.random.Generator(np.random.Philox(key=self.settings.seed, counter=[0, 0, 0, draw]))
        self.keys[:, row] = rng.integers(0, 1 << 32, (self.settings.chains, 2), np.uint32)
        self.noise[:, row] = rng.standard_normal((self.settings.chains, self.target.size), self.target.dtype)
