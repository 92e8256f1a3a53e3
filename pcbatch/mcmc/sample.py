"""`pcbatch.mcmc.sample`: draws of a distribution by many chains, of which each is at its own place in the sampler."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.mcmc.adaptation import Tick, Warm, warm_up
from pcbatch.mcmc.advice import SamplingWarning, advice
from pcbatch.mcmc.hamiltonian import Sample
from pcbatch.mcmc.machine import ChainMachine, Chains
from pcbatch.mcmc.posterior import Posterior, Statistics
from pcbatch.mcmc.saved import Progress, RunFile, fingerprint
from pcbatch.mcmc.settings import Adaptation, Matrix, Settings, check
from pcbatch.mcmc.start import JITTER, each_chain, positions, target_of
from pcbatch.mcmc.step_size import fixed
from pcbatch.mcmc.target import parameters
from pcbatch.runs.checkpoint_file import checked_path
from pcbatch.runs.run_options import reporting
from pcbatch.runtime.execute.host_loop import RunCounts


def sample(
    logp: Callable[..., Any],
    start: Any,
    *,
    chains: int | None = None,
    draws: int = 1000,
    warmup: int = 500,
    target_accept: float = 0.8,
    max_tree_depth: int = 10,
    step_size: float | None = None,
    mass: Matrix = "diag",
    adapt: Adaptation = "pooled",
    devices: Any = None,
    seed: int = 0,
    jitter: float | None = None,
    progress: bool | Callable[[int, int | None], object] = False,
    stats: bool = False,
    save_to: str | os.PathLike[str] | None = None,
    every: float = 60.0,
    data: tuple[Any, ...] = (),
) -> Posterior:
    """Draw from a distribution by the No-U-Turn Sampler.

    Args:
        logp: log density up to a constant, `logp(parameters, *data)`, of the parameters of one chain, which gives a
            scalar. A function that JAX cannot trace, as it branches on its parameters, is compiled as by
            `pcbatch.batch`. Parameters range over all real numbers.
        start: a pytree of floats (float32 or float64) where chains start: of one chain, if `chains` is given,
            which is then jittered, or with a leading axis of chains in all leaves.
        chains: how many; left out if `start` has an axis of chains.
        draws: of each chain, after the warm-up.
        warmup: draws of each chain that adapt the sampler and are not kept: at least 20, or 0, which leaves the mass
            matrix the identity and the step size `step_size`.
        target_accept: mean acceptance probability that step sizes are adapted to; nearer to 1 they are smaller.
        max_tree_depth: most doublings of a trajectory.
        step_size: of a leapfrog step. The warm-up starts from it; with `warmup=0` all draws have it.
        mass: whether the mass matrix is diagonal or dense.
        adapt: "pooled", one step size and mass matrix for all chains, learned of all; "per-chain", each its own.
        devices: as in `pcbatch.batch`: a number, "all", devices of JAX.
        seed: of all random numbers; the same seed gives the same draws.
        jitter: a uniform number between -jitter and jitter is added to each coordinate of a start of one chain; 1.
        progress: True for a bar, or a function of the draws of a chain that are done and of all.
        stats: count the gradients that are computed, for `posterior.utilisation`; small programs are slower by it.
        save_to: a file in which the run is kept, and from which it goes on if the file is there: after the warm-up,
            and then every so many draws. A run that has ended goes on if `draws` is more, and gives what one longer
            run gives; if it is fewer, the first ones.
        every: seconds between two writes of that file.
        data: further arguments of `logp`, pytrees of arrays, which all chains share. Other data of the same shapes
            need no new compilation.

    Returns:
        A `Posterior`: draws as a pytree with leaves [chains, draws, ...], statistics of each draw, step sizes, mass
        matrix, warnings.

    Raises:
        UsageError: an argument is wrong (PCB460 to PCB463).
        StateError: `save_to` is a file of another run (PCB443).

    Warns:
        SamplingWarning: draws diverged, or the chains have not mixed.

    Example:
        >>> import jax.numpy as jnp, pcbatch.mcmc
        >>> posterior = pcbatch.mcmc.sample(
        ...     lambda p: -0.5 * (p["x"] ** 2 + jnp.sum(p["y"] ** 2)), {"x": 0.0, "y": jnp.zeros(2)},
        ...     chains=16, draws=200, warmup=200)
        >>> posterior.draws["y"].shape
        (16, 200, 2)
    """
    start = parameters(start)
    if chains is None and jitter is not None:
        raise usage("PCB463", "`jitter` is for a start of one chain", help="give `chains`, or leave `jitter` out")
    count = each_chain(start) if chains is None else chains
    settings = Settings(
        count, draws, warmup, float(target_accept), max_tree_depth, mass, adapt, seed, devices, step_size, stats
    )
    check(settings)
    data = jax.tree.map(jnp.asarray, _tuple(data))
    target = target_of(logp, start, chains, jitter, data)
    machine = ChainMachine(target, settings, data)
    of = {} if save_to is None else fingerprint(target, settings, (start, jitter), data)
    file = RunFile(None if save_to is None else checked_path(save_to), every, of)
    spread = JITTER if jitter is None else float(jitter)
    with _ticks(progress, warmup + draws) as tick:
        run = Run(machine, file, tick)
        state = run.resumed()
        if state is None:
            state = run.warm(lambda: positions(target, start, chains, spread, seed, machine.begin))
        state = run.draw(state, small=progress is not False)
    posterior = _posterior(machine, state, run.seconds)
    for text in posterior.warnings:
        warnings.warn(text, SamplingWarning, stacklevel=2)
    return posterior


def _posterior(machine: ChainMachine, state: Progress, seconds: dict[str, float]) -> Posterior:
    settings, target = machine.settings, machine.target
    q = np.concatenate([piece.q for piece in state.pieces], axis=1)[:, : settings.draws]  # a file may hold more
    numbers = np.concatenate([piece.numbers for piece in state.pieces], axis=1)[:, : settings.draws]
    statistics = Statistics.of(numbers)
    return Posterior(
        draws=target.unravel(q),
        statistics=statistics,
        warmup=Statistics.of(np.concatenate([piece.numbers for piece in state.warm.pieces], axis=1)),
        step_size=np.asarray(state.warm.chains.stepper.step),
        inverse_mass=np.asarray(state.warm.mass.inverse),
        settings=settings,
        warnings=tuple(advice(settings, statistics, q)),
        seconds=seconds,
        gradients_computed=sum(piece.computed for piece in state.pieces),
    )


@contextmanager
def _ticks(progress: Any, total: int) -> Iterator[Tick]:
    """Yield the function that is told how many further draws each chain has made."""
    done = 0
    with reporting(progress, "draws") as report:

        def tick(count: int) -> None:
            nonlocal done
            done += count
            if report is not None:
                report(RunCounts(total, done))

        yield tick


def _tuple(data: Any) -> tuple[Any, ...]:
    if not isinstance(data, tuple):
        title = f"`data` must be a tuple of the further arguments of the log density, not {short(data)}"
        raise usage("PCB463", title, help="write `data=(x, y)`, or `data=(x,)` for one argument")
    return data


FIRST_STEP = 1.0  # where the search for a step size begins, unless it is given
REPORTS = 20  # with `progress`, so often at least while draws are made


class Run:
    """One run of chains, kept in a file if there is one."""

    def __init__(self, machine: ChainMachine, file: RunFile, tick: Tick) -> None:
        self.machine, self.file, self.tick = machine, file, tick
        self.seconds = {"compile": 0.0, "warmup": 0.0, "draws": 0.0}

    def resumed(self) -> Progress | None:
        """The run that the file holds."""
        state = self.file.load()
        if state is not None:
            self.tick(state.warm.chains.drawn)
        return state

    def warm(self, first: Callable[[], Sample]) -> Progress:
        """Make the warm-up, if there is one, from the first positions."""
        settings = self.machine.settings
        step = np.full(settings.chains, settings.step_size or FIRST_STEP, self.machine.target.dtype)
        with self._timed("compile"):
            chains, nothing = self.machine.compile(Chains(first(), fixed(step), 0))
        with self._timed("warmup"):
            if settings.warmup:
                warm = warm_up(self.machine, chains, self.tick)
            else:
                warm = Warm(chains, self.machine.unit_mass(), (nothing,))
        state = Progress(warm, ())
        self.file.keep(state, force=True)
        return state

    def draw(self, state: Progress, *, small: bool) -> Progress:
        """Make the draws that are missing. `small` calls let progress be seen, and do not change draws."""
        machine, settings = self.machine, self.machine.settings
        most = max(1, min(machine.rows, settings.draws // REPORTS)) if small else machine.rows
        end = settings.warmup + settings.draws
        try:
            while (left := end - state.warm.chains.drawn) > 0:
                count = min(most, left)
                warm = state.warm
                with self._timed("draws"):
                    chains, piece = machine.advance(warm.chains, warm.mass, count, settings.max_tree_depth)
                state = Progress(replace(warm, chains=chains), (*state.pieces, piece))
                self.tick(count)
                self.file.keep(state)
        finally:
            self.file.keep(state, force=True)  # also when it is interrupted
        return state

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[stage] += time.perf_counter() - began
