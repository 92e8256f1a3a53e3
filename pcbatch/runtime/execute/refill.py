"""Lane refill: many inputs stream through a fixed number of lanes; a lane that is done takes the next input.

Two nested loops. The inner one makes trips until the idle lane-trips since the last refill (the *debt*) reach the
number of lanes; a refill then writes the results of the lanes that are done and gives them new inputs. A refill costs
about as much as a trip whatever it moves, and idle lanes cost nothing but time, so letting the debt grow to about one
trip of all lanes is near the best rule, whatever the lengths of the runs. The last refill finds no input and only
writes results, so trips and refills are each emitted once.

When no input is left and few lanes live, they can go on in a narrower machine (`narrow`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from pcbatch.runtime.execute.narrowing import taken
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks
from pcbatch.runtime.vm.lane_window import everyone, first_lanes
from pcbatch.runtime.vm.layout import DEBT, NAME, reg
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.status import Status, parked


@partial(jax.tree_util.register_dataclass, data_fields=["state", "item", "following", "end", "out"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class Queue:
    """A machine and its inputs.

    Attributes:
        state: the state of the machine.
        item: int32[lanes], the slot for the results of the input that each lane runs, or a number beyond all slots.
        following: int32[], the next input to take.
        end: int32[], the number of inputs.
        out: by state key, what the runs of inputs have left, [slots, ...].
    """

    state: State
    item: jax.Array
    following: jax.Array
    end: jax.Array
    out: Values

    @property
    def lanes(self) -> int:
        """The number of lanes of the machine."""
        return self.item.shape[-1]

    @property
    def slots(self) -> int:
        """The number of slots for results."""
        size: int = self.out["pc"].shape[-1]
        return size


@runtime_checkable
class DrainsQueues(Protocol):
    """A machine that refills lanes by itself. It ends when all inputs have results, and takes no part in narrowing."""

    def drained(self, q: Queue, inputs: Values, grows: bool, most: Any, halted: Any) -> Queue:
        """Return the queue at its end; for the arguments see `run`."""


def kept(machine: Machine) -> tuple[str, ...]:
    """The state keys that a run is read by: results, where it stopped, and what failures show."""
    layout = machine.layout
    names = [reg(v) for v in (*machine.program.results, *layout.shown) if v in layout.registers]
    return tuple(dict.fromkeys(["pc", *names, *(["depth"] if layout.frames is not None else [])]))


def start(machine: Machine, shared: Values, lanes: int, slots: int, depth: int, end: jax.Array | int) -> Queue:
    """Make a queue of idle lanes, before its first refill."""
    state = machine.idle(shared, lanes, depth)
    carry = state.carry
    rows = {key: machine.layout.rows(key, carry[key]) for key in kept(machine)}
    out = {key: jnp.zeros((slots, *x.shape[1:]), x.dtype) for key, x in rows.items()}
    if machine.layout.frames is not None:
        out["back"] = jnp.zeros((slots,), jnp.int32)
    nobody = slots + jnp.arange(lanes, dtype=jnp.int32)
    return Queue(state, nobody, jnp.zeros((), jnp.int32), jnp.asarray(end, jnp.int32), out)


def run(
    machine: Machine,
    queue: Queue,
    inputs: Values,
    narrower: jax.Array | int = 0,
    grows: bool = False,
    most: jax.Array | int | None = None,
    more: jax.Array | bool = False,
    halted: jax.Array | bool = False,
) -> Queue:
    """Run until every input has its results, or one of these conditions ends it before.

    Args:
        machine: the machine.
        queue: the queue.
        inputs: by state key, what lanes begin with, [slots, ...] each.
        narrower: when no input is left, the number of live lanes at which it ends.
        grows: whether it ends when a lane has no room for a call.
        most: the number of trips after which it ends; None: no limit.
        more: whether inputs are to come: it then ends as soon as no input is left.
        halted: whether it makes no trip at all.
    """
    if isinstance(machine, DrainsQueues):
        return machine.drained(queue, inputs, grows, most, halted)
    blocks = machine.blocks(queue.state)
    first = queue.state.trips  # they are counted from the beginning of the run

    def left(q: Queue) -> jax.Array | None:
        return None if most is None else most - (q.state.trips - first)

    def unfinished(q: Queue) -> jax.Array:
        rest = (blocks.count_live(q.state.carry) > narrower) | jnp.any(_unwritten(q, blocks, grows))
        going = (q.following < q.end) | (rest & jnp.logical_not(more))
        if grows:
            going &= ~jnp.any(is_full(q, blocks)) & jnp.logical_not(halted)
        trips = left(q)
        return going if trips is None else going & (trips > 0)

    def turn(q: Queue) -> Queue:
        q = replace(q, state=_trips(machine, q, narrower, left(q)))
        return refill(machine, blocks, q, inputs, grows)

    done: Queue = jax.lax.while_loop(unfinished, turn, queue)
    return done


def serve(
    machine: Machine, q: Queue, inputs: Values, left: jax.Array, most: jax.Array, patience: jax.Array, grows: bool
) -> Queue:
    """Give inputs to idle lanes, run, and write the results of lanes that are done; there are more lanes than inputs.

    Args:
        machine: a machine that waits for lanes.
        q: the queue, `reopen`ed.
        inputs: by state key, what lanes begin with, [inputs, ...] each.
        left: bool[lanes], the lanes whose inputs are not wanted any more.
        most: the number of trips after which it ends.
        patience: trips of lanes that have ended since, at which it ends: they could take other inputs.
        grows: whether a lane without room for a call waits for it.
    """
    blocks, q = machine.blocks(q.state), without(machine, q, left)
    q = refill(machine, blocks, q, inputs, grows)
    live = blocks.count_live(q.state.carry)
    q = replace(q, state=_trips(machine, q, 0, most, live, patience))
    return refill(machine, blocks, q, inputs, grows)


def without(machine: Machine, q: Queue, left: jax.Array) -> Queue:
    """Return the queue in which some lanes, bool[lanes], are idle: their inputs are not wanted any more."""
    pc = q.state.carry["pc"]
    pc = jnp.where(left, jnp.asarray(machine.layout.exit, pc.dtype), pc)
    item = jnp.where(left, q.slots + jnp.arange(q.lanes, dtype=jnp.int32), q.item)
    return replace(q, state=replace(q.state, carry={**q.state.carry, "pc": pc}), item=item)


def _unwritten(q: Queue, blocks: Blocks, grows: bool) -> jax.Array:
    """bool[lanes], the lanes that are done and whose results are not written. Between two programs there may be some:
    those that waited for deeper stacks and will not get them."""
    return _free(q, blocks, grows) & (q.item < q.slots)


def _free(q: Queue, blocks: Blocks, grows: bool) -> jax.Array:
    free: jax.Array = q.state.carry["pc"] >= len(blocks)
    return free & ~is_full(q, blocks) if grows else free


def is_full(q: Queue, blocks: Blocks) -> jax.Array:
    """bool[lanes], the lanes that wait for deeper stacks."""
    pc = q.state.carry["pc"]
    low = parked(0, len(blocks), Status.STACK_FULL)
    full: jax.Array = (pc >= low) & (pc <= low + len(blocks))
    return full


def _trips(
    machine: Machine,
    q: Queue,
    narrower: jax.Array | int,
    most: jax.Array | None = None,
    wanted: jax.Array | int | None = None,
    patience: jax.Array | int | None = None,
) -> State:
    """Make trips until too many lanes are idle, or `most` of them.

    Args:
        machine: the machine.
        q: the queue.
        narrower: when no input is left, the number of live lanes at which it ends.
        most: the number of trips.
        wanted: the lanes that could run; those of them that are idle count. None: all.
        patience: the trips of idle lanes at which it ends, while inputs are left; None: as many as there are lanes.
    """
    state, lanes = q.state, q.lanes
    if not machine.waits_for_lanes:
        return machine.advance(state, most)
    groups = machine.groups(state)
    blocks = machine.blocks(state, groups)
    first = state.trips
    more = q.following < q.end if patience is None else jnp.ones((), bool)
    wanted, patience = lanes if wanted is None else wanted, lanes if patience is None else patience

    def going(c: tuple[Values, jax.Array, jax.Array]) -> jax.Array:
        carry, alive, trips = c
        on = (alive > 0) & jnp.where(more, carry[DEBT] < patience, alive > narrower)
        return on if most is None else on & (trips - first < most)

    def trip(c: tuple[Values, jax.Array, jax.Array]) -> tuple[Values, jax.Array, jax.Array]:
        carry, _, trips = c
        carry = machine.trip(blocks, carry, trips)
        alive = blocks.count_live(carry)
        return {**carry, DEBT: carry[DEBT] + wanted - alive}, alive, trips + 1

    carry = {**machine.packed(state, groups), DEBT: jnp.zeros((), jnp.int32)}
    carry, _, trips = jax.lax.while_loop(going, trip, (carry, blocks.count_live(carry), state.trips))
    carry = machine.unpacked({k: v for k, v in carry.items() if k != DEBT}, groups)
    return replace(state, carry=carry, trips=trips)


def refill(machine: Machine, blocks: Blocks, q: Queue, inputs: Values, grows: bool) -> Queue:
    """Write the results of lanes that are done, and give them the inputs that follow."""
    layout, carry = machine.layout, q.state.carry
    free = _free(q, blocks, grows)
    beyond = q.slots + jnp.arange(q.lanes, dtype=jnp.int32)
    slot = jnp.where(free, q.item, beyond)
    left = {key: layout.rows(key, carry[key]) for key in q.out if key != "back"}
    if "back" in q.out:
        left["back"] = machine.back(carry)
    out = {key: q.out[key].at[slot].set(value, mode="drop", unique_indices=True) for key, value in left.items()}
    # The k-th free lane takes the k-th input that follows; beyond the end there is none.
    new = q.following + jnp.cumsum(free, dtype=jnp.int32) - 1
    takes = free & (new < q.end)
    begun = {key: x.at[new].get(mode="clip") for key, x in inputs.items()}
    begun["pc"] = jnp.full((q.lanes,), layout.index[machine.program.entry], carry["pc"].dtype)
    begun |= {key: jnp.zeros((q.lanes,), carry[key].dtype) for key in ("depth", "steps") if key in carry}
    window = everyone(takes)
    fresh = {key: window.write(carry[key], x, takes, key in layout.lanes_last) for key, x in begun.items()}
    return Queue(
        replace(q.state, carry={**carry, **fresh}),
        jnp.where(takes, new, jnp.where(free, beyond, q.item)),
        jnp.minimum(q.following + jnp.sum(free, dtype=jnp.int32), q.end),
        q.end,
        out,
    )


def numbered(machine: Machine, inputs: Values, names: jax.Array | None) -> Values:
    """Return stored parameters by state key, with the numbers of the inputs if lanes print them."""
    out = {reg(v): x for v, x in inputs.items()}
    return out if names is None or not machine.layout.prints else {**out, NAME: names}


def reopen(q: Queue, end: jax.Array | int) -> Queue:
    """Return the queue for the next chunk, of `end` inputs. The input that lane k still runs gets the slot
    `slots - lanes + k`, behind those of the chunk's inputs. Results in `out` must have been taken."""
    lane = jnp.arange(q.lanes, dtype=jnp.int32)
    item = jnp.where(q.item < q.slots, q.slots - q.lanes, q.slots) + lane
    return replace(q, item=item, following=jnp.zeros((), jnp.int32), end=jnp.asarray(end, jnp.int32))


def resized(machine: Machine, q: Queue, lanes: int) -> Queue:
    """Move the live lanes of a queue whose results have been taken, in their order, to a machine of another width."""
    slots, lane = 2 * lanes, jnp.arange(lanes, dtype=jnp.int32)
    state, item = narrow(machine, q.state, q.item, lanes, q.slots)
    out = {key: jnp.zeros((slots, *x.shape[1:]), x.dtype) for key, x in q.out.items()}
    item = jnp.where(item < q.slots, lane, slots + lane)
    return replace(q, state=state, item=item, out=out)


def narrow(machine: Machine, state: State, item: jax.Array, width: int, slots: int) -> tuple[State, jax.Array]:
    """Move the live lanes, at most `width`, to a machine of that many; all others must be done and written."""
    lanes = int(item.shape[0])
    index = first_lanes(state.carry["pc"] < machine.layout.exit, width)
    beyond = slots + jnp.arange(width, dtype=jnp.int32)
    item = jnp.where(index < lanes, item.at[index].get(mode="clip"), beyond)
    return replace(state, carry=taken(machine, state.carry, index)), item
