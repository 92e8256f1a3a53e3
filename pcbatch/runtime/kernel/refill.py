"""Lane refill inside the kernel: lanes that are done write their results and take the next inputs.

A tile takes as many inputs as it has free lanes by one atomic addition to the counter of all tiles, and hands them out
by a prefix sum. Which tile takes an input changes neither its result nor its status.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.kernel.kernel_plan import KernelPlan
from pcbatch.runtime.kernel.launch import called
from pcbatch.runtime.kernel.memory import SCALAR, Places, from_stored, to_stored
from pcbatch.runtime.kernel.rules.padding import any_
from pcbatch.runtime.kernel.tile import TRIPS, Tile
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import reg
from pcbatch.runtime.vm.status import Status, parked

ITEM, FOLLOWING = "item", "following"


@dataclass(frozen=True, slots=True)
class Inbox:
    """The inputs and the results of a queue, as a tile sees them.

    Attributes:
        tile: The lanes.
        slots: The number of slots for results.
        end: int32[]: the number of inputs.
        inputs: The parameters that inputs bring.
        keeps: The state keys of what is kept of a run that has ended.
        waits_for_room: Whether a lane without room for a call keeps its input.
    """

    tile: Tile
    slots: int
    end: jax.Array
    inputs: tuple[str, ...]
    keeps: tuple[str, ...]
    waits_for_room: bool

    def refilled(self, carry: Values) -> Values:
        """Return the state after a refill, if a lane has results that are not written."""
        free = self._free(carry)
        unwritten = free & (carry[ITEM] < self.slots)
        return lax.cond(any_(unwritten), self.refill, lambda c: c, carry)  # type: ignore[no-any-return]

    def refill(self, carry: Values) -> Values:
        """Write the results of lanes that are done, and give them the inputs that follow."""
        tile, memory, plan = self.tile, self.tile.memory, self.tile.plan
        memory.order.begin()
        free = self._free(carry)
        done = free & (carry[ITEM] < self.slots)
        for key in self.keeps:
            self._keep(key, carry, done)
        wanted = free.astype(jnp.int32)
        first = memory.taken(FOLLOWING, jnp.sum(wanted))
        new = first + jnp.cumsum(wanted) - 1
        takes = free & (new < self.end)
        nobody = self.slots + tile.ids
        fresh = dict(carry)
        fresh[ITEM] = jnp.where(takes, new, jnp.where(free, nobody, carry[ITEM]))
        for v in self.inputs:
            shape, dtype = plan.shape_and_dtype(v)
            stored = memory.load(f"input:{v}", Places(shape, math.prod(shape)), new, takes)
            tile.put(v, fresh, takes, from_stored(stored, dtype))
        entry = plan.layout.index[plan.layout.program.entry]
        fresh["pc"] = jnp.where(takes, entry, jnp.where(free, plan.layout.exit, carry["pc"]))
        for key in plan.counters:
            fresh[key] = jnp.where(takes, 0, carry[key])
        return fresh

    def _free(self, carry: Values) -> jax.Array:
        exit_ = self.tile.plan.layout.exit
        free: jax.Array = self.tile.there & (carry["pc"] >= exit_)
        if not self.waits_for_room:
            return free
        low = int(parked(0, exit_, Status.STACK_FULL))
        waits: jax.Array = (carry["pc"] >= low) & (carry["pc"] <= low + exit_)
        return free & ~waits

    def _keep(self, key: str, carry: Values, done: jax.Array) -> None:
        tile, memory, plan = self.tile, self.tile.memory, self.tile.plan
        if key == "back":
            memory.store("out:back", SCALAR, carry[ITEM], done, tile.address(carry, done))
        elif key in ("pc", "depth"):
            memory.store(f"out:{key}", SCALAR, carry[ITEM], done, carry[key])
        else:
            name = key.removeprefix(reg(""))
            shape, _ = plan.shape_and_dtype(name)
            value = to_stored(tile.value(name, carry, done))
            memory.store(f"out:{key}", Places(shape, math.prod(shape)), carry[ITEM], done, value)


def drained(
    plan: KernelPlan, q: Queue, inputs: Values, budget: jax.Array, going: jax.Array | bool, waits_for_room: bool
) -> Queue:
    """Run a queue until all inputs have their results, or for at most `budget` trips of each tile, int32[].

    Args:
        plan: The machine.
        q: The queue.
        inputs: By state key, what lanes begin with, [slots, ...] each.
        budget: The trips.
        going: bool[]: whether anything runs.
        waits_for_room: Whether a lane without room for a call waits for the host, and keeps its input.
    """
    names = tuple(key.removeprefix(reg("")) for key in inputs)
    reads: Values = {f"input:{v}": x for v, x in zip(names, inputs.values(), strict=True)}
    reads |= {"end": q.end, "budget": jnp.where(going, budget, 0)}
    out = {f"out:{key}": x for key, x in q.out.items()}

    def body(tile: Tile) -> Values:
        memory = tile.memory
        inbox = Inbox(tile, q.slots, memory.refs["end"][0], names, tuple(q.out), waits_for_room)
        budget = memory.refs["budget"][0]
        carry = tile.begin() | {ITEM: memory.load(ITEM, SCALAR, tile.ids, tile.there)}
        carry = lax.cond(budget > 0, inbox.refill, lambda c: c, carry)
        carry = tile.run(carry, budget, inbox.refilled)
        tile.end(carry)
        memory.store(ITEM, SCALAR, tile.ids, tile.there, carry[ITEM])
        return carry

    state = {**q.state.carry, **out, ITEM: q.item, FOLLOWING: q.following.reshape(1)}
    found = called(plan, body, q.state.shared, reads, state)
    return _read(q, found)


def _read(q: Queue, found: Mapping[str, Any]) -> Queue:
    trips = q.state.trips + jnp.max(found[TRIPS])
    state = replace(q.state, carry={key: found[key] for key in q.state.carry}, trips=trips)
    # Tiles have asked for more inputs than there were.
    following = jnp.minimum(found[FOLLOWING][0], q.end)
    return replace(q, state=state, item=found[ITEM], following=following, out={k: found[f"out:{k}"] for k in q.out})
