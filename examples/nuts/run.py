"""Runs the batched chains: compiles them once, splits them over devices, counts gradients and seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from examples.nuts.adapt import Chains, step_finder, warm_up
from examples.nuts.hamiltonian import Sample
from examples.nuts.sampler import Trace, nuts
from examples.nuts.stepsize import fixed
from examples.nuts.targets import Target

GRADIENT = "visit("  # the source text of the primitive that evaluates the gradient
CHUNK = 250  # most draws in one batched call of an adaptive run: chains wait for each other after that many
FRAMES = 3  # calls on the stack beside those of build_tree: the chain, the transition, and one to spare


@dataclass(frozen=True)
class Settings:
    """What to run."""

    chains: int = 32
    draws: int = 500
    warmup: int = 300
    step_size: float | None = None
    adapt: bool = True
    max_tree_depth: int = 10
    devices: int = 1
    seed: int = 0
    chunk: int = CHUNK
    schedule: str = "auto"
    emitter: str = "auto"

    @property
    def rows(self) -> int:
        """Draws in one batched call. A run that adapts nothing is one call."""
        return min(max(self.draws, self.warmup), self.chunk) if self.adapt else self.warmup + self.draws


@dataclass
class Meter:
    """What the calls cost."""

    seconds: float = 0.0
    batches: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))  # batched gradients of each device


@dataclass(frozen=True)
class Run:
    """Draws after warm-up and the cost of drawing them. The arrays of the trace are [chains, draws, ...]."""

    settings: Settings
    target: Target
    trace: Trace
    step_size: float
    meter: Meter
    compile_seconds: float
    warmup_seconds: float

    @property
    def gradients(self) -> np.ndarray:
        """Gradients that each chain used."""
        return self.trace.leapfrogs.sum(axis=1)

    @property
    def utilisation(self) -> float:
        """Part of the gradients computed that a chain wanted."""
        lanes = self.settings.chains / self.settings.devices
        return float(self.gradients.sum() / (self.meter.batches.sum() * lanes))

    @property
    def gradients_per_second(self) -> float:
        """Gradients that a chain wanted, per second of drawing."""
        return float(self.gradients.sum() / self.meter.seconds)


class Machine:
    """The chain function, compiled for so many chains and rows on so many devices."""

    def __init__(self, target: Target, settings: Settings, chains: Chains, inv_mass: jax.Array) -> None:
        self.settings = settings
        chain = nuts(target.logp_and_grad, settings.max_tree_depth).chain.with_options(
            stats=True,
            max_depth=settings.max_tree_depth + FRAMES,
            schedule=settings.schedule,
            emitter=settings.emitter,
        )
        self.mesh = Mesh(np.array(jax.devices()[: settings.devices]), ("chains",))
        began = time.perf_counter()
        advance = jax.jit(self._sharded(_one_device(chain, settings.rows)))
        self._compiled = advance.lower(*self._place(chains, inv_mass, 0)).compile()
        self._call(chains, inv_mass, 0)  # allocates and starts threads: not part of any measurement
        self.compile_seconds = time.perf_counter() - began

    def _sharded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """One program for each device and no traffic between them: a device stops when its own chains are done."""
        if self.settings.devices == 1:
            return function
        split, shared = PartitionSpec("chains"), PartitionSpec()
        specs = (split, shared, shared)
        return jax.shard_map(function, mesh=self.mesh, in_specs=specs, out_specs=split, check_vma=False)

    def _place(self, chains: Chains, inv_mass: jax.Array, draws: int) -> tuple[Chains, jax.Array, jax.Array]:
        split, shared = NamedSharding(self.mesh, PartitionSpec("chains")), NamedSharding(self.mesh, PartitionSpec())
        return jax.device_put(chains, split), jax.device_put(inv_mass, shared), jax.device_put(np.int32(draws), shared)

    def _call(self, chains: Chains, inv_mass: jax.Array, draws: int) -> tuple[Chains, Trace, np.ndarray]:
        arguments = self._place(chains, inv_mass, draws)
        chains, trace, status, batches = jax.block_until_ready(self._compiled(*arguments))
        if np.any(np.asarray(status)):
            raise RuntimeError(f"chains {np.flatnonzero(np.asarray(status)).tolist()} did not finish")
        return chains, trace, np.asarray(batches)

    def advance(
        self, chains: Chains, inv_mass: jax.Array, draws: int, meter: Meter, tick: Callable[[int], Any]
    ) -> tuple[Chains, Trace]:
        """`draws` more draws of every chain, in as many calls as they need."""
        traces = []
        for first in range(0, draws, self.settings.rows):
            count = min(self.settings.rows, draws - first)
            began = time.perf_counter()
            chains, trace, batches = self._call(chains, inv_mass, count)
            meter.seconds += time.perf_counter() - began
            meter.batches = meter.batches + batches
            traces.append(jax.tree.map(lambda a, n=count: np.asarray(a)[:, :n], trace))
            tick(count)
        return chains, jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *traces)


def _one_device(chain: Any, rows: int) -> Callable[..., Any]:
    """The chains of one device: their state after the draws, the draws, their status, batched gradients."""

    def advance(chains: Chains, inv_mass: jax.Array, draws: jax.Array) -> tuple[Chains, Trace, jax.Array, jax.Array]:
        result = chain.run(*chains, inv_mass, empty_trace(chains.sample.q, rows), draws)
        *state, trace = result.value
        return Chains(*state), trace, result.status, jnp.atleast_1d(result.stats.visits(GRADIENT))

    return advance


def empty_trace(q: jax.Array, rows: int) -> Trace:
    """Room for so many draws of chains that stand at `q`."""
    shape = (q.shape[0], rows)
    return Trace(
        q=jnp.zeros((*shape, q.shape[1]), q.dtype),
        leapfrogs=jnp.zeros(shape, int),
        accept=jnp.zeros(shape, q.dtype),
        diverged=jnp.zeros(shape, bool),
    )


def start(target: Target, settings: Settings) -> Chains:
    """All chains at their first position, with a step size that does not adapt."""
    q = jnp.asarray(target.start(settings.seed, settings.chains), jnp.result_type(float))  # float64 if JAX has that
    sample = Sample(q, *jax.jit(jax.vmap(target.logp_and_grad))(q))
    step = 0.1 if settings.step_size is None else settings.step_size
    key = jax.random.split(jax.random.key(settings.seed), settings.chains)
    return Chains(key, sample, fixed(jnp.full(settings.chains, step, q.dtype)))


def sample(target: Target, settings: Settings, tick: Callable[[int], Any] = lambda n: None) -> Run:
    """Warm up and draw. `tick(n)` is called after every `n` draws."""
    chains = start(target, settings)
    inv_mass = jnp.ones(target.size, chains.sample.q.dtype)
    machine = Machine(target, settings, chains, inv_mass)
    warm, meter = Meter(), Meter()
    began = time.perf_counter()
    if settings.adapt and settings.warmup:
        find_step = step_finder(target.logp_and_grad)
        chains, inv_mass = warm_up(
            lambda c, m, n: machine.advance(c, m, n, warm, tick), find_step, chains, inv_mass, settings.warmup
        )
    warmup_seconds = time.perf_counter() - began
    draws = settings.draws if settings.adapt else settings.rows
    chains, trace = machine.advance(chains, inv_mass, draws, meter, tick)
    step = float(np.asarray(chains.stepper.step)[0])
    trace = trace._replace(q=trace.q[:, -settings.draws :])  # all rows of the others: they tell what the calls cost
    return Run(settings, target, trace, step, meter, machine.compile_seconds, warmup_seconds)
