"""The blocks that each lane runs on the samples, in order: the machine of lanes, looked at between trips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.learning.task_graph import TaskGraph, of_chains
from pcbatch.learning.task_trace import TooLong
from pcbatch.options import Dense
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.policies import Largest
from pcbatch.runtime.vm.status import Status, status_of

LOG = 1024  # trips between two looks
START_DEPTH, MOST_DEPTH = 64, 1 << 16


def trace(executable: PcExecutable, args: Mapping[str, Any], lanes: int, most: int) -> TaskGraph:
    """Return the graph of a run of all lanes.

    Raises:
        TooLong: They run more than `most` blocks, or need very deep stacks.
    """
    machine = _one_at_a_time(executable.machine)
    depth = executable.static_depth or START_DEPTH
    while True:
        chains, full = _run(machine, executable.arguments.natural(args), lanes, depth, most)
        if not full:
            return of_chains(tuple(block.label for block in machine.program.blocks), chains)
        if depth >= MOST_DEPTH or depth == executable.options.max_depth:
            raise TooLong
        depth = min(4 * depth, executable.options.max_depth or MOST_DEPTH)


def _one_at_a_time(machine: Machine) -> Machine:
    """The machine in which each trip runs one block once, for all that wait, and that prints nothing."""
    silent = tuple(replace(code, prints=()) for code in machine.layout.codes)
    modes = (Dense(),) * len(silent)
    layout = replace(machine.layout, codes=silent)
    return replace(machine, layout=layout, emitter=Guard(), schedule=Largest(), modes=lambda lanes: modes)


def _run(machine: Machine, args: Mapping[str, Any], lanes: int, depth: int, most: int) -> tuple[list[list[int]], bool]:
    """Return the blocks of each lane, and whether a lane had no room for a call."""
    state = jax.jit(lambda args: machine.start(args, lanes, depth))(args)
    advance = jax.jit(lambda state: _logged(machine, state))
    chains: list[list[int]] = [[] for _ in range(lanes)]
    total, more = 0, True
    while more:
        state, log, trips, live = advance(state)
        rows = np.asarray(log)[: int(trips)]
        for lane in range(lanes):
            ran = rows[:, lane]
            chains[lane] += ran[ran >= 0].tolist()
        total += int((rows >= 0).sum())
        if total > most:
            raise TooLong
        more = bool(live)
    status = status_of(state.carry["pc"].astype(jnp.int32), machine.layout.exit)
    return chains, bool(jnp.any(status == int(Status.STACK_FULL)))


def _logged(machine: Machine, state: State) -> tuple[State, jax.Array, jax.Array, jax.Array]:
    """Make trips, and note for each which block every lane has run, or -1."""
    blocks = machine.blocks(state)
    lanes = state.carry["pc"].shape[0]
    log = jnp.full((LOG, lanes), -1, jnp.int16)

    def going(c: tuple[Values, jax.Array, jax.Array]) -> jax.Array:
        return blocks.live(c[0]) & (c[2] < LOG)

    def trip(c: tuple[Values, jax.Array, jax.Array]) -> tuple[Values, jax.Array, jax.Array]:
        carry, log, k = c
        runs = jnp.argmax(blocks.waiting(carry)).astype(jnp.int32)
        pc = carry["pc"].astype(jnp.int32)
        log = log.at[k].set(jnp.where(pc == runs, runs, -1).astype(jnp.int16))
        return machine.trip(blocks, carry, state.trips + k), log, k + 1

    carry, log, trips = jax.lax.while_loop(going, trip, (state.carry, log, jnp.zeros((), jnp.int32)))
    after = State(carry, state.shared, state.trips + trips)
    return after, log, trips, blocks.live(carry)
