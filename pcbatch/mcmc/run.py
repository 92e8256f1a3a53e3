"""The stages of a run: compiling, warm-up, draws."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from pcbatch.mcmc.adaptation import Tick, Warm, warm_up
from pcbatch.mcmc.hamiltonian import Sample
from pcbatch.mcmc.machine import Chains, Machine
from pcbatch.mcmc.saved import Progress, RunFile
from pcbatch.mcmc.step_size import fixed

FIRST_STEP = 1.0  # where the search for a step size begins, unless it is given
REPORTS = 20  # with `progress`, so often at least while draws are made


class Run:
    """One run of chains, kept in a file if there is one."""

    def __init__(self, machine: Machine, file: RunFile, tick: Tick) -> None:
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
