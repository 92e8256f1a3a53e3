"""The programs that devices run for a machine of all lanes, and the arrays of it between two of them.

The arrays have the devices in front where there are several.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.execute import narrowing
from pcbatch.runtime.execute.call_values import gathered, placed
from pcbatch.runtime.execute.program_cache import device_program
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.machine import State
from pcbatch.runtime.vm.raw_result import KEEPING, RawResult, debug_checks
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


class BatchBuffers(NamedTuple):
    """The arrays of a machine of all lanes. What lanes share is not donated."""

    carry: Values
    trips: jax.Array
    shared: Values


class BatchProgress(NamedTuple):
    """The status of a machine of all lanes after a program, on each device: int32[] each.

    Attributes:
        live: lanes that run.
        full: lanes that have no room for a call.
        trips: trips that the program has made.
    """

    live: jax.Array
    full: jax.Array
    trips: jax.Array


@device_program("spread", "depth", "keep", "traced", donate=(1,))
def run_whole(
    executable: PcExecutable,
    args: Mapping[str, Any] | ShardedArguments,
    away: Mapping[str, Any] | None = None,
    go: Any = None,
    *,
    spread: LaneSharding,
    depth: int,
    keep: bool,
    traced: bool = False,
    masked: bool = True,
) -> tuple[RawResult, State | None]:
    """Start a machine of all lanes and run it.

    Args:
        executable: the program.
        args: the arguments, or those of them that are not donated.
        away: the donated ones.
        go: bool[], whether to make any trip at all; None: yes.
        spread: which lanes are on which device.
        depth: the depth of stacks.
        keep: whether to return the state too, so that the run can be continued.
        traced: whether this is part of a program whose XLA options the user chooses.
        masked: whether values of lanes that failed are written over, as `ResultReader.masked` does.

    Returns:
        The raw result of each device, and the state, or None.
    """
    arguments = (
        args if isinstance(args, ShardedArguments) else executable.arguments.sharded({**args, **(away or {})}, spread)
    )
    machine = executable.traced_machine if traced else executable.machine

    def body(mapped: ShardedArguments, control: tuple[Any, Any]) -> tuple[RawResult, State | None]:
        common, go = control
        state = machine.start({**mapped.mapped, **common}, spread.each, depth, mapped.end, mapped.names)
        widths = executable.narrower(spread.each)
        ends = not keep and go is None and not widths
        state = machine.to_the_end(state) if ends else narrowing.advance(machine, state, widths, go)
        return executable.results.of_state(state, depth, masked), state if keep else None

    return spread.run(body, arguments.without_common(), (arguments.common, go))  # type: ignore[no-any-return]


@device_program("spread", "depth")
def run_again(
    executable: PcExecutable, state: State, go: Any, *, spread: LaneSharding, depth: int
) -> tuple[RawResult, State]:
    """Give a machine of all lanes stacks of this depth, and run it on."""

    def body(state: State, go: Any) -> tuple[RawResult, State]:
        machine = executable.machine
        state = narrowing.advance(machine, machine.grow(state, depth), executable.narrower(spread.each), go)
        return executable.results.of_state(state, depth), state

    return spread.run(body, state, go)  # type: ignore[no-any-return]


# Monitored runs


@device_program("spread", "depth")
def begin_batch(executable: PcExecutable, given: ShardedArguments, *, spread: LaneSharding, depth: int) -> BatchBuffers:
    """Make a machine of all lanes, before its first trip."""

    def body(given: ShardedArguments, common: Any) -> BatchBuffers:
        args = executable.arguments.natural({**given.mapped, **common})
        state = executable.machine.start(args, spread.each, depth, given.end, given.names)
        return BatchBuffers(jax.tree.map(jnp.copy, state.carry), state.trips, state.shared)

    begun: BatchBuffers = spread.run(body, given.without_common(), given.common)
    return begun


@device_program("spread", donate=(0,))
def run_trips(
    executable: PcExecutable, bare: tuple[Values, jax.Array], shared: Values, most: jax.Array, *, spread: LaneSharding
) -> tuple[tuple[Values, jax.Array], BatchProgress]:
    """Run a machine of all lanes for at most `most` trips. `bare`: the first two of `BatchBuffers`."""

    machine = executable.machine

    def body(
        given: tuple[Values, jax.Array, Values], most: jax.Array
    ) -> tuple[tuple[Values, jax.Array], BatchProgress]:
        carry, trips, shared = given
        state = machine.advance(State(carry, shared, trips), most)
        pc = state.carry["pc"].astype(jnp.int32)
        full = pc // (machine.layout.exit + 1) == int(Status.STACK_FULL)
        live = jnp.sum(pc < machine.layout.exit, dtype=jnp.int32)
        return (state.carry, state.trips), BatchProgress(live, jnp.sum(full, dtype=jnp.int32), state.trips - trips)

    ran: tuple[tuple[Values, jax.Array], BatchProgress] = spread.run(body, (*bare, shared), most)
    return ran


@device_program("spread", "depth")
def grow_batch(executable: PcExecutable, carry: Values, *, spread: LaneSharding, depth: int) -> Values:
    """Give a machine of all lanes deeper stacks."""

    def body(carry: Values, _: None) -> Values:
        return executable.machine.grow(State(carry, {}, jnp.zeros((), jnp.int32)), depth).carry

    grown: Values = spread.run(body, carry, None)
    return grown


@device_program("spread", "depth")
def read_batch(executable: PcExecutable, bare: BatchBuffers, *, spread: LaneSharding, depth: int) -> RawResult:
    """Read the raw result of a machine of all lanes, into buffers of its own."""

    def body(bare: BatchBuffers, _: None) -> RawResult:
        return own_buffers(executable.results.of_state(State(bare.carry, bare.shared, bare.trips), depth))

    out: RawResult = spread.run(body, bare, None)
    return out


def own_buffers(out: RawResult) -> RawResult:
    """A raw result that shares no buffer with the state. Values never do: they are selected from it."""
    own: RawResult = jax.tree.map(jnp.copy, replace(out, values=()))
    return replace(own, values=out.values)


# A call outside traces with a lane for each input: all lanes run at once, and stacks grow between programs.


def run_batch(executable: PcExecutable, args: Mapping[str, Any], sharding: LaneSharding) -> RawResult:
    """Run all lanes to their end, or until stacks may not grow any more."""
    lanes = sharding.each
    growth = executable.stacks.repeated_growth("run", sharding, lanes, 0)
    call = _donated(executable, args) if sharding.over is None else (placed(executable, args, sharding), {})
    # A program that was compiled for stacks that grew later is used again, but makes no trip (`go` is false) if it is
    # known that they will grow: running it to find that out would be in vain.
    go = np.bool_(not growth.known) if growth.grows else None
    start = executable.jitted(run_whole, lanes)
    out, state = start(*call, go, spread=sharding, depth=growth.depth, keep=growth.grows)
    while state is not None and (growth.repeat() or growth.grow_if_full(out.status)):
        go = np.bool_(not growth.known)
        out, state = executable.jitted(run_again, lanes)(state, go, spread=sharding, depth=growth.depth)
    growth.remember()
    return gathered(executable, out, sharding)


def _donated(executable: PcExecutable, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that a run must leave alone, and those whose buffers it may use."""
    # Where a NaN came from is looked for in a second run.
    away = frozenset() if debug_checks() or KEEPING.get() else executable.donated
    return {v: x for v, x in args.items() if v not in away}, {v: x for v, x in args.items() if v in away}
