"""One trip: which blocks run, with how many records, and how wide.

Cheap blocks run in the order of the program, those after a `sync` first, because they give frames back. Expensive
blocks wait until no cheap one can run, so that their records gather: those at which tasks only end run until their list
is empty, the others once. Blocks of a later phase (`task_plan.py`) run when all earlier ones have run dry. A block
is emitted at several widths, of which the narrowest runs that holds all its records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.runtime.learned.policy import Learned
from pcbatch.runtime.tasks import lists, pool, steps
from pcbatch.runtime.tasks.pool import guarded, written
from pcbatch.runtime.tasks.reading import TaskMachine
from pcbatch.runtime.tasks.task_plan import FRAME, ROOT, SERIAL, ListBlock, TaskPlan
from pcbatch.runtime.tasks.visit import FAILED, VISITS, visit
from pcbatch.runtime.vm.block_body import Values

# Examples of which a task has failed: their records are dropped, and their frames are given back.
#
# So a sibling that never ends, or starts others for ever, ends soon after the failure and keeps no other example
# waiting. Visits know nothing of it: from time to time, between two trips, lists are gone through if some example has
# failed since the last time. Programs that cannot fail have none of this.

DROPPED = "dropped"  # key in the loop, int32[]: failed examples whose records have been dropped
NEXT = "dropped:next"  # key in the loop, int32[]: the trip before which no more are dropped, if there is other work
EVERY = 16  # trips between two times, besides a quarter of those that were made


def started() -> Values:
    """Return what is carried through the loop of trips, besides the state."""
    return {DROPPED: jnp.zeros((), I32), NEXT: jnp.zeros((), I32)}


def after_trip(machine: TaskMachine, s: Values, before: jax.Array, trips: jax.Array, frees: bool) -> Values:
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


def _without_failed(machine: TaskMachine, s: Values, frees: bool) -> Values:
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


def _roots(block: ListBlock, s: Values) -> jax.Array:
    """int32[length of the list]: the example of each record."""
    held = s[lists.column(block.label, ROOT if ROOT in block.columns else FRAME)]
    roots: jax.Array = held if ROOT in block.columns else s[pool.ROOT].at[held].get(mode="clip")
    return roots


def _give_back(machine: TaskMachine, s: Values) -> None:
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


I32 = jnp.int32
PARTS, LEAST_CHEAP = 4, 64
MOST_LARGE = 64  # records of the widest visits of blocks of which each record is much work
WIDE, NARROWER = 512, 8  # from that width on a cheap block is emitted at such a part of it, too
MOST, LEAST = 256, 8  # records of the widest and the narrowest visits that expensive blocks are emitted for
SWEEPS = 1024  # visits after which a trip goes on, though cheap blocks still can run


@dataclass(frozen=True, slots=True)
class Trips:
    """The trips of a machine: `run` makes them until no record is left, or until no block has room to run.

    Attributes:
        machine: the machine.
        stop: tells of a state, bool[], whether the run is to end before that; it may be asked within a trip.
        frees: whether frames of failed examples are given back.
    """

    machine: TaskMachine
    stop: Callable[[Values], jax.Array] | None = None
    frees: bool = True

    def run(self, state: Values, budget: jax.Array | None = None) -> tuple[Values, jax.Array]:
        """Return the state after all trips, or at most `budget` of them (int32[]), and their number, int32[]."""
        fails = self.machine.plan.fails

        def going(c: tuple[Values, jax.Array, jax.Array]) -> jax.Array:
            s, before, trips = c
            go: jax.Array = (self.waiting(s, self._of_trips) > 0) & (s[VISITS] != before)
            return go if budget is None else go & (trips < budget)

        def trip(c: tuple[Values, jax.Array, jax.Array]) -> tuple[Values, jax.Array, jax.Array]:
            s, _, trips = c
            after = self._limited(self.trip(s))
            if fails:
                after = after_trip(self.machine, after, s[VISITS], trips, self.frees)
            return after, s[VISITS], trips + 1

        for block in self.first:
            state = self._drain(state, [block], patience=None)  # they form no loop
        start = ({**state, **(started() if fails else {})}, state[VISITS] - 1, jnp.zeros((), I32))
        s, _, trips = lax.while_loop(going, trip, start)
        s = {key: s[key] for key in state}
        for block in self.last:
            s = self._drain(s, [block], patience=None)
        return self._limited(s), trips

    def _limited(self, s: Values) -> Values:
        """The state in which examples that have made too many steps have failed."""
        most = self.machine.plan.max_steps
        if most is None:
            return s
        counted, failed = steps.limited(s[steps.STEPS], s[FAILED], most)
        return {**s, steps.STEPS: counted, FAILED: failed}

    @property
    def first(self) -> tuple[ListBlock, ...]:
        """The blocks that run before all trips; none that takes frames, where a pool has not one for each example."""
        first, roomy = self.machine.plan.first, self._a_frame_each
        return first if roomy else tuple(takewhile(lambda block: not block.takes, first))

    @property
    def last(self) -> tuple[ListBlock, ...]:
        """The blocks that run after all trips, until when they hold frames."""
        return self.machine.plan.last if self._a_frame_each else ()

    @property
    def _a_frame_each(self) -> bool:
        """Whether each example can hold a frame, and the pool has enough for all else."""
        sizes = self.machine.sizes
        return sizes.frames > sizes.lanes + sizes.reserve

    @property
    def _of_trips(self) -> list[ListBlock]:
        """The blocks for which trips are made."""
        return [block for block in self.machine.plan.blocks if block not in self.last]

    def waiting(self, s: Values, blocks: Sequence[ListBlock] | None = None) -> jax.Array:
        """Return the number of records on the lists of blocks (None: of all), int32[]."""
        chosen = self.machine.plan.blocks if blocks is None else blocks
        return sum((s[lists.count(block.label)] for block in chosen), jnp.zeros((), I32))

    def trip(self, s: Values) -> Values:
        """Return the state after one trip: the blocks of the first phase, and those of others while nothing else can.

        A phase begins where no block before it has room to run, be it that frames are missing, which it gives back.
        """
        phase_of = self.machine.plan.phases
        blocks = [block for block in self._of_trips if block not in self.first]
        for phase in sorted({phase_of[block.label] for block in blocks}):
            earlier = [block for block in blocks if phase_of[block.label] < phase]
            go = ~self._can_run(s, earlier) if earlier else None
            s = self._phase(s, [block for block in blocks if phase_of[block.label] == phase], go)
        return s

    def _phase(self, s: Values, blocks: Sequence[ListBlock], go: jax.Array | None) -> Values:
        """Run the blocks of one phase if `go` (None: in any case)."""
        cheap = [block for block in blocks if not block.expensive]
        cheap = [b for b in cheap if b.block.joins] + [b for b in cheap if not b.block.joins]
        expensive = [block for block in blocks if block.expensive]
        if not expensive and go is None:
            return self._sweep(s, cheap)
        s = self._drain(s, cheap, go)
        for block in sorted(expensive, key=lambda block: not block.finishes_only):
            s = self._drain(s, [block], go) if block.finishes_only else self._ladder(s, block, go)
        return s

    def _can_run(self, s: Values, blocks: Sequence[ListBlock]) -> jax.Array:
        """Whether one of these blocks has a record that may run, bool[]."""
        can = jnp.zeros((), bool)
        for block in blocks:
            can = can | (self.available(s, block) > 0)
        return can

    def _sweep(self, s: Values, blocks: Sequence[ListBlock]) -> Values:
        for block in blocks:
            s = self._ladder(s, block)
        return s

    def _drain(
        self, s: Values, blocks: Sequence[ListBlock], go: jax.Array | None = None, patience: int | None = SWEEPS
    ) -> Values:
        """Sweep, if `go`, until none of these blocks can run, for so many visits at most."""
        if not blocks:
            return s
        begun = s[VISITS]

        def some(s: Values) -> jax.Array:
            can = self._can_run(s, blocks)
            return can if patience is None else can & (s[VISITS] - begun < patience)

        if len(blocks) == 1 and len(self.widths(blocks[0])) == 1:
            return self._ladder(s, blocks[0], go, again=some)
        starts = some(s) if go is None else some(s) & go
        return guarded(starts, lambda s: self._sweep(s, blocks), s, some)

    def _ladder(
        self,
        s: Values,
        block: ListBlock,
        go: jax.Array | None = None,
        again: Callable[[Values], jax.Array] | None = None,
    ) -> Values:
        """Visit a block, if `go`, at the narrowest width that holds the records that may run, or at the widest."""
        widths = self.widths(block)
        keys = written(lambda s: visit(self.machine, block, s, jnp.zeros((), I32), widths[-1]), s)
        for width, less in zip(widths, (*widths[1:], 0), strict=True):
            n = self.available(s, block)
            fits = n > less if width == widths[0] else (n > less) & (n <= width)
            fits = fits if go is None else fits & go

            def body(s: Values, width: int = width) -> Values:
                return visit(self.machine, block, s, jnp.minimum(self.available(s, block), width), width)

            s = guarded(fits, body, s, again, keys)
        return s

    def widths(self, block: ListBlock) -> tuple[int, ...]:
        """Return the widths at which a block is emitted, from wide to narrow."""
        width, plan = self.machine.sizes.width, self.machine.plan
        if block.expensive and block.large:
            return _halves(min(width, MOST_LARGE), PARTS, 1)
        if block in self.first or block in self.last:  # all examples have come when it runs
            most = min(width, MOST) if block.expensive else width
            return (min(most, max(LEAST, 1 << (self.machine.sizes.lanes - 1).bit_length())),)
        if block.expensive and block.finishes_only:  # only the last of several visits in a row is narrow
            return _halves(min(width, MOST), PARTS, LEAST)
        if block.expensive:
            return _halves(min(width, MOST), 2, LEAST)
        if any(other.expensive for other in plan.blocks):  # these wait for what cheap visits send them
            return _halves(width, PARTS, LEAST_CHEAP)
        return (width, width // NARROWER) if width >= WIDE else (width,)

    # What may run

    def available(self, s: Values, block: ListBlock) -> jax.Array:
        """Return how many records of a block may run now, int32[]."""
        machine = self.machine
        n: jax.Array = s[lists.count(block.label)]
        if self.stop is not None:
            n = jnp.where(self.stop(s), 0, n)
        for label, gain in machine.sizes.limited(machine.plan, block).items():
            capacity = machine.sizes.capacity(machine.plan, machine.plan.block(label))
            n = jnp.minimum(n, (capacity - s[lists.count(label)]) // gain)
        if not block.takes:
            return n
        free = s[pool.FREE_COUNT]
        roomy = free > machine.sizes.reserve
        one = jnp.where(self._alone(s, block), jnp.minimum(free, 1), 0)
        return jnp.minimum(n, jnp.where(roomy, free - machine.sizes.reserve, one))

    def _alone(self, s: Values, block: ListBlock) -> jax.Array:
        """Whether nothing can run but blocks that take frames, and of those this one has the youngest record.

        What goes on one by one, the youngest record first, is what a sequential evaluation does: it needs no more
        frames than that.
        """
        plan = self.machine.plan
        alone = self.waiting(s, [other for other in self._of_trips if not other.takes]) == 0
        mine = _top(s, block)
        for other in plan.blocks:
            if not other.takes or other is block or (other in plan.first and block not in plan.first):
                continue
            if block in plan.first:
                alone = alone & (
                    (s[lists.count(other.label)] == 0) | (other in plan.first and other.number > block.number)
                )
            else:
                theirs = _top(s, other)
                alone = alone & (mine > theirs if other.number < block.number else mine >= theirs)
        return alone


def _halves(width: int, part: int, least: int) -> tuple[int, ...]:
    """Return a width and parts of it, down to the least."""
    found = [width]
    while found[-1] > least:
        found.append(max(least, found[-1] // part))
    return tuple(found)


def _top(s: Values, block: ListBlock) -> jax.Array:
    """Return the number of the visit that pushed the newest record of a list, or -1, int32[]."""
    n = s[lists.count(block.label)]
    if SERIAL not in block.columns:
        return jnp.zeros((), I32)
    newest = lax.dynamic_index_in_dim(s[lists.column(block.label, SERIAL)], jnp.maximum(n - 1, 0), keepdims=False)
    return jnp.where(n > 0, newest, -1)


# Trips of a learned schedule: each is one visit, of the block that a table has for what can run.


def chosen_among(plan: TaskPlan) -> list[ListBlock]:
    """Return the blocks that a schedule chooses among; the others run before and after all trips."""
    return [block for block in plan.blocks if block not in plan.first and block not in plan.last]


@dataclass(frozen=True, slots=True)
class PolicyTrips(Trips):
    """The trips of a machine with a learned schedule."""

    policy: Learned | None = None

    def trip(self, s: Values) -> Values:
        """Return the state after one trip; a trip in which nothing has room to run changes nothing."""
        blocks = chosen_among(self.machine.plan)
        if self.policy is None or tuple(block.label for block in blocks) != self.policy.labels:
            return Trips.trip(self, s)
        waiting = jnp.stack([self.available(s, block) for block in blocks])
        chosen = self.policy.chosen(waiting)
        for k, block in enumerate(blocks):
            n = jnp.where(chosen == k, waiting[k], 0)
            s = self._once(s, block, n)
        return s

    def _once(self, s: Values, block: ListBlock, n: jax.Array) -> Values:
        """Visit a block at the narrowest width that holds n records, or at the widest."""
        widths = self.widths(block)
        keys = written(lambda s: visit(self.machine, block, s, jnp.zeros((), I32), widths[-1]), s)
        for width, less in zip(widths, (*widths[1:], 0), strict=True):
            fits = n > less if width == widths[0] else (n > less) & (n <= width)

            def body(s: Values, width: int = width) -> Values:
                return visit(self.machine, block, s, jnp.minimum(n, width), width)

            s = guarded(fits, body, s, None, keys)
        return s
