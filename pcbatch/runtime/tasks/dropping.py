"""Examples of which a task has failed: their records are dropped, and their frames are given back.

So a sibling that never ends, or starts others for ever, ends soon after the failure and keeps no other example waiting.
Visits know nothing of it: from time to time, between two trips, lists are gone through if some example has failed since
the last time. Programs that cannot fail have none of this.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pcbatch.runtime.tasks import lists, pool
from pcbatch.runtime.tasks.plan import FRAME, ROOT, BlockPlan
from pcbatch.runtime.tasks.pool import guarded
from pcbatch.runtime.tasks.reading import Machine
from pcbatch.runtime.tasks.visit import FAILED, VISITS
from pcbatch.runtime.vm.block_body import Values

I32 = jnp.int32
DROPPED = "dropped"  # key in the loop, int32[]: failed examples whose records have been dropped
NEXT = "dropped:next"  # key in the loop, int32[]: the trip before which no more are dropped, if there is other work
EVERY = 16  # trips between two times, besides a quarter of those that were made


def started() -> Values:
    """Return what is carried through the loop of trips, besides the state."""
    return {DROPPED: jnp.zeros((), I32), NEXT: jnp.zeros((), I32)}


def after_trip(machine: Machine, s: Values, before: jax.Array, trips: jax.Array, frees: bool) -> Values:
    """Return the state after a trip without the records of failed examples, if it is time for that.

    Args:
        machine: The machine.
        s: The state.
        before: int32[]: the number of visits before the trip.
        trips: int32[]: the number of trips before it.
        frees: Whether the frames of these examples are given back.
    """
    failed = jnp.sum(s[FAILED], dtype=I32)
    due = (failed > s[DROPPED]) & ((trips >= s[NEXT]) | (s[VISITS] == before))

    def drop(s: Values) -> Values:
        s = _without_failed(machine, s, frees)
        s[DROPPED], s[NEXT] = failed, trips + trips // 4 + EVERY
        s[VISITS] = s[VISITS] + 1  # the run goes on if there was nothing else to do
        return s

    return guarded(due, drop, s)


def _without_failed(machine: Machine, s: Values, frees: bool) -> Values:
    plan, s = machine.plan, dict(s)
    for block in plan.blocks:
        count = lists.count(block.label)
        if plan.single:
            s[count] = jnp.zeros((), I32)
            continue
        n, root = s[count], _roots(block, s)
        alive = (jnp.arange(root.shape[0], dtype=I32) < n) & ~s[FAILED].at[root].get(mode="clip")
        source, s[count] = lists.compacted(alive, n)
        for name in block.columns:
            key = lists.column(block.label, name)
            s[key] = s[key].at[source].get(mode="promise_in_bounds")
    if plan.framed and not plan.single and frees:
        _give_back(machine, s)
    return s


def _roots(block: BlockPlan, s: Values) -> jax.Array:
    """int32[length of the list]: the example of each record."""
    held = s[lists.column(block.label, ROOT if ROOT in block.columns else FRAME)]
    roots: jax.Array = held if ROOT in block.columns else s[pool.ROOT].at[held].get(mode="clip")
    return roots


def _give_back(machine: Machine, s: Values) -> None:
    """Give the frames of failed examples back, to which nothing leads any more."""
    lanes, frames = machine.sizes.lanes, machine.sizes.frames
    rows, free, count = lanes + frames, s[pool.FREE], s[pool.FREE_COUNT]
    is_free = jnp.arange(free.shape[0], dtype=I32) < count
    used = jnp.ones(rows, bool).at[jnp.where(is_free, free, rows)].set(False, mode="drop")
    dead = used & s[FAILED].at[s[pool.ROOT]].get(mode="clip") & (jnp.arange(rows, dtype=I32) >= lanes)
    found, n = lists.compacted(dead, jnp.full((), rows, I32))
    place = jnp.arange(rows, dtype=I32)
    s[pool.FREE] = free.at[jnp.where(place < n, count + place, free.shape[0])].set(found, mode="drop")
    s[pool.FREE_COUNT] = count + n
