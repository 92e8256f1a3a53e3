"""The programs that devices run for a queue of inputs, and what they return.

Queues have the devices in front where there are several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from pcbatch.runtime.execute import refill as queue
from pcbatch.runtime.execute.batch_programs import own_buffers
from pcbatch.runtime.execute.program_cache import device_program
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.raw_result import RawResult

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable
    from pcbatch.runtime.vm.machine import State


@partial(
    jax.tree_util.register_dataclass, data_fields=["full", "left", "live", "done", "item", "trips"], meta_fields=[]
)
@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The status of a queue after a program, on each device.

    Attributes:
        full: bool[], whether a lane waits for room.
        left: int32[], inputs that no lane has taken.
        live: int32[], lanes that run.
        done: int32[], inputs that have results, less those that lanes have brought from earlier chunks.
        item: int32[lanes], the slot of the input that each lane runs.
        trips: int32[], trips that the program has made.
    """

    full: jax.Array
    left: jax.Array
    live: jax.Array
    done: jax.Array
    item: jax.Array
    trips: jax.Array


class QueueBuffers(NamedTuple):
    """The arrays of a queue between two programs. Those of `queue` are donated to each program; what lanes share and
    the stored inputs stay, so the state in `queue` holds no `shared`."""

    queue: Queue
    shared: Values
    stored: Values


class QueueResult(NamedTuple):
    """The raw result of the one program, and, where stacks may grow, what continues it from where a lane had no room.

    Attributes:
        outcome: the raw result.
        narrowed: the state and the items before each narrowing; without `shared`.
        buffers: the queue at the end.
        full: bool[] for each width of the machine, whether it ended for want of room there.
    """

    outcome: RawResult
    narrowed: tuple[tuple[State, jax.Array], ...] = ()
    buffers: QueueBuffers | None = None
    full: tuple[jax.Array, ...] = ()


@device_program("spread", "lanes", "slots", "depth")
def begin(
    executable: PcExecutable, given: ShardedArguments, *, spread: LaneSharding, lanes: int, slots: int, depth: int
) -> tuple[Queue, Values, Values]:
    """Make a queue before its first refill; the parts of `QueueBuffers`."""

    def body(given: ShardedArguments, common: Any) -> tuple[Queue, Values, Values]:
        q, stored = started(executable, given, common, spread, lanes, slots, depth)
        return _without_shared(q), q.state.shared, stored

    begun: tuple[Queue, Values, Values] = spread.run(body, given.without_common(), given.common)
    return begun


@device_program("spread", "lanes", "slots", "depth", "widths", "grows")
def run_to_the_end(
    executable: PcExecutable,
    given: ShardedArguments,
    *,
    spread: LaneSharding,
    lanes: int,
    slots: int,
    depth: int,
    widths: tuple[int, ...],
    grows: bool,
) -> QueueResult:
    """Run a queue to its end, in ever narrower machines. Nothing runs any more once a lane has no room."""
    machine = executable.machine

    def body(given: ShardedArguments, common: Any) -> QueueResult:
        q, stored = started(executable, given, common, spread, lanes, slots, depth)
        shared = q.state.shared
        narrowed: list[tuple[State, jax.Array]] = []
        full: list[jax.Array] = []
        halted = jnp.zeros((), bool)
        for width, narrower in zip(widths, (*widths[1:], 0), strict=True):
            if width < q.lanes:
                narrowed.append((_without_shared(q).state, q.item))
                state, item = queue.narrow(machine, q.state, q.item, width, slots)
                q = replace(q, state=state, item=item)
            q = queue.run(machine, q, stored, narrower, grows, halted=halted)
            full.append(jnp.any(queue.is_full(q, machine.blocks(q.state))) & ~halted)
            halted |= full[-1]
        outcome = executable.results.of_queue(q, depth)
        if not grows:
            return QueueResult(outcome)
        return QueueResult(outcome, tuple(narrowed), QueueBuffers(_without_shared(q), shared, stored), tuple(full))

    result: QueueResult = spread.run(body, given.without_common(), given.common)
    return result


def started(
    executable: PcExecutable,
    given: ShardedArguments,
    common: Any,
    spread: LaneSharding,
    lanes: int,
    slots: int,
    depth: int,
) -> tuple[Queue, Values]:
    """Return a queue before its first refill, and what lanes begin with, by state key."""
    shared, stored = load(executable, given, common, spread)
    return queue.start(executable.machine, shared, lanes, slots, depth, given.end), stored


def load(executable: PcExecutable, given: ShardedArguments, common: Any, spread: LaneSharding) -> tuple[Values, Values]:
    """Return what lanes share, and what they begin with, by state key."""
    shared, stored = executable.machine.stored(executable.arguments.natural({**given.mapped, **common}), spread.each)
    return shared, queue.numbered(executable.machine, stored, given.names)


def _without_shared(q: Queue) -> Queue:
    return replace(q, state=replace(q.state, shared={}))


def with_shared(q: Queue, shared: Values) -> Queue:
    """A queue whose state holds what lanes share."""
    return replace(q, state=replace(q.state, shared=shared))


@device_program("spread", "grows", donate=(0,))
def run_queue(
    executable: PcExecutable,
    q: Queue,
    shared: Values,
    stored: Values,
    narrower: jax.Array,
    most: jax.Array,
    more: jax.Array,
    *,
    spread: LaneSharding,
    grows: bool,
) -> tuple[Queue, QueueStatus]:
    """Run a queue for at most `most` trips; see `refill.run`."""
    machine = executable.machine

    def body(given: tuple[Queue, Values, Values], control: tuple[jax.Array, ...]) -> tuple[Queue, QueueStatus]:
        q, shared, stored = given
        narrower, most, more = control
        first = q.state.trips
        q = queue.run(machine, with_shared(q, shared), stored, narrower, grows, most, more)
        blocks = machine.blocks(q.state)
        live = jnp.sum(q.state.carry["pc"] < len(blocks), dtype=jnp.int32)
        held = jnp.sum(q.item < q.slots, dtype=jnp.int32)
        full = jnp.any(queue.is_full(q, blocks))
        return _without_shared(q), QueueStatus(
            full, q.end - q.following, live, q.following - held, q.item, q.state.trips - first
        )

    ran: tuple[Queue, QueueStatus] = spread.run(body, (q, shared, stored), (narrower, most, more))
    return ran


@device_program("depth", "grows", donate=(0,))
def serve_queue(
    executable: PcExecutable,
    q: Queue,
    shared: Values,
    given: ShardedArguments,
    left: jax.Array,
    most: jax.Array,
    patience: jax.Array,
    *,
    depth: int,
    grows: bool,
) -> tuple[Queue, RawResult, jax.Array]:
    """Run a queue whose inputs come one by one, on one device; see `refill.serve`.

    Args:
        executable: the program.
        q: the queue, with two slots for each lane.
        shared: what lanes share.
        given: inputs, as many as lanes, of which the first `end` are real; no more than there are idle lanes.
        left, most, patience: as for `refill.serve`.
        depth: of the stacks.
        grows: whether stacks may grow.

    Returns:
        The queue; the results by slot; and bool[], whether a lane waits for room.
    """
    machine, lanes = executable.machine, LaneSharding(None, q.lanes)
    _, stored = load(executable, given, given.common, lanes)
    q = queue.reopen(with_shared(q, shared), given.end)
    q = queue.serve(machine, q, stored, left, most, patience, grows)
    out = own_buffers(executable.results.of_queue(q, depth))
    return _without_shared(q), out, jnp.any(queue.is_full(q, machine.blocks(q.state)))


@device_program("width")
def resize_queue(executable: PcExecutable, q: Queue, left: jax.Array, *, width: int) -> Queue:
    """Move the live lanes of a queue, less some that are left, to a machine of another width; see `refill.resized`."""
    return queue.resized(executable.machine, queue.without(executable.machine, q, left), width)


@device_program("depth")
def read_lanes(executable: PcExecutable, q: Queue, shared: Values, *, depth: int) -> RawResult:
    """Read the lanes of a queue as they are, by lane, into buffers of their own."""
    return own_buffers(executable.results.of_state(with_shared(q, shared).state, depth))


@device_program("spread", "depth")
def grow_queue(executable: PcExecutable, state: State, *, spread: LaneSharding, depth: int) -> State:
    """Give the machine of a queue deeper stacks."""
    grown: State = spread.run(lambda state, _: executable.machine.grow(state, depth), state, None)
    return grown


@device_program("spread", "width", "slots")
def narrow_queue(
    executable: PcExecutable, state: State, item: jax.Array, *, spread: LaneSharding, width: int, slots: int
) -> tuple[State, jax.Array]:
    """Move the live lanes of a queue to a machine of fewer lanes; see `refill.narrow`."""

    def body(given: tuple[State, jax.Array], _: None) -> tuple[State, jax.Array]:
        return queue.narrow(executable.machine, *given, width, slots)

    narrowed: tuple[State, jax.Array] = spread.run(body, (state, item), None)
    return narrowed


@device_program("spread", "depth")
def read_queue(executable: PcExecutable, begun: QueueBuffers, *, spread: LaneSharding, depth: int) -> RawResult:
    """Read the raw result of a queue, by slot, into buffers of its own."""

    def body(begun: QueueBuffers, _: None) -> RawResult:
        return own_buffers(executable.results.of_queue(with_shared(begun.queue, begun.shared), depth))

    out: RawResult = spread.run(body, begun, None)
    return out
