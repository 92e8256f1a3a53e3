"""`map` outside traces: one program if all goes well, or several, with decisions on the host between them.

A queue runs until its inputs are used up; where few lanes live and no input is left, they go on in a narrower machine.
All that is one program (`_whole`): starting another costs as much as dozens of trips. Where a lane has no room for a
call, that program stops, stacks grow, and the rest is done step by step; so is everything where somebody looks after
the run (`watch`), and where inputs come in chunks (`chunks`): lanes that still run then take their work along into the
next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.execute import refill as queue
from pcbatch.runtime.execute.host_loop import FOREVER, HostLoop, RunCounts
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.execute.state_arrays import total_of
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments, to_host
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.raw_result import RawResult

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable
    from pcbatch.runtime.vm.machine import State

NARROWER = (2, 4)  # a machine that no input is left for narrows by these factors, each a machine to compile
NARROWEST = 16  # lanes: below, a trip costs its overhead whatever the width


@partial(
    jax.tree_util.register_dataclass, data_fields=["full", "left", "live", "done", "item", "trips"], meta_fields=[]
)
@dataclass(frozen=True, slots=True)
class QueueStatus:
    """How a queue stands, on each device."""

    full: jax.Array  # does a lane wait for room?
    left: jax.Array  # inputs that no lane has taken
    live: jax.Array  # lanes that run
    done: jax.Array  # inputs that have results, less those that lanes have brought from earlier chunks
    item: jax.Array  # whose work each lane has
    trips: jax.Array  # that the run has made


class QueueBuffers(NamedTuple):
    """A queue whose state holds no `shared`: the queue's buffers are given away at each run, and these stay."""

    queue: Queue
    shared: Values
    stored: Values


class BeforeNarrowing(NamedTuple):
    """How a queue stood before it narrowed; no `shared` in its state."""

    state: State
    item: jax.Array


class QueueResult(NamedTuple):
    """What the one program gives: its outcome, and, where stacks may grow, what it takes to go on from where a lane had
    no room: how the queue stood at the end of each stage (`begun`: of the last), and whether it ended for that."""

    outcome: RawResult
    stages: tuple[BeforeNarrowing, ...] = ()
    begun: QueueBuffers | None = None
    full: tuple[jax.Array, ...] = ()


@dataclass
class QueueRunner:
    """One `map`. `lanes` are those of one device. `snapshot` makes of a queue what `watch` may save."""

    executable: PcExecutable
    spread: LaneSharding
    lanes: int
    watch: HostLoop | None = None
    depth: int = field(init=False)
    grows: bool = field(init=False)
    standing: RunCounts = field(init=False)
    snapshot: Callable[[QueueBuffers], Any] = field(init=False, default=lambda begun: begun)

    def __post_init__(self) -> None:
        # Where stacks have grown in a run like this one they grow again: the programs for that are there.
        self.depth = self.executable.depths(
            ("map", self.spread, self.lanes), self.spread, self.lanes, self.spread.each
        )[0]
        self.grows = self.executable.grows
        self.standing = RunCounts(self.spread.inputs)
        if self.watch is not None:
            self.watch.pace = self.executable.pace(self.lanes, "stream")

    @property
    def stopped(self) -> bool:
        """Did somebody stop it?"""
        return self.watch is not None and self.watch.stopped

    def run(self, given: ShardedArguments) -> RawResult:
        """Every input, in device memory, to its end."""
        if not (self.grows and self.executable.prints):  # what is printed must be so once
            return self._at_once(given)
        return self._rest(self.begin(given, self.spread.each))

    def _at_once(self, given: ShardedArguments) -> RawResult:
        widths = tuple(_widths(self.lanes, self.executable))
        sizes: dict[str, Any] = {"lanes": self.lanes, "slots": self.spread.each, "depth": self.depth}
        left: QueueResult = self.call(_whole, given, **sizes, widths=widths, grows=self.grows)
        if left.begun is None or not any(full := [bool(np.any(to_host(f))) for f in left.full]):
            return self.executable.gathered(left.outcome, self.spread)
        q = left.begun.queue
        stage = [*left.stages, BeforeNarrowing(q.state, q.item)][full.index(True)]
        return self._rest(left.begun._replace(queue=self._grown(replace(q, **stage._asdict()))))

    def _rest(self, begun: QueueBuffers) -> RawResult:
        begun = self.to_the_end(begun, 0, self.spread.inputs)
        self.executable.remember(self.depth)
        left = self.call(_finish, begun.queue, begun.shared, depth=self.depth)
        return self.executable.gathered(left, self.spread)

    def call(self, function: Any, *args: Any, donate: tuple[int, ...] = (), **static: Any) -> Any:
        """A program, on every device."""
        return self.executable.jitted(function, self.lanes, donate)(*args, spread=self.spread, **static)

    def brief(self, function: Any, *args: Any, **how: Any) -> Any:
        """A program that does little once it is compiled: no part of the time that a run may take."""
        with self.untimed():
            return self.call(function, *args, **how)

    def untimed(self) -> AbstractContextManager[None]:
        """What is done in it takes nothing of the time that a run may take, if somebody watches it."""
        return nullcontext() if self.watch is None else self.watch.untimed()

    def _program(self, q: Queue) -> Hashable:
        return q.item.shape, q.slots, self.depth, self.grows, self.spread

    def begin(self, given: ShardedArguments, slots: int) -> QueueBuffers:
        """Before the first refill."""
        return QueueBuffers(*self.brief(begin, given, lanes=self.lanes, slots=slots, depth=self.depth))

    def to_the_end(self, begun: QueueBuffers, before: int, total: int | None) -> QueueBuffers:
        """Until every input of this queue has its results, in ever narrower machines; or until it is stopped."""
        for width, narrower in _widths(self.lanes, self.executable):
            q = begun.queue
            if width > q.item.shape[-1]:
                continue  # it is narrower already
            if width < q.item.shape[-1]:
                state, item = self.brief(_narrow, q.state, q.item, width=width, slots=q.slots)
                begun = begun._replace(queue=replace(q, state=state, item=item))
            begun, _ = self.turns(begun, narrower, before, total)
            if self.stopped:
                break
        return begun

    def turns(
        self,
        begun: QueueBuffers,
        narrower: int,
        before: int,
        total: int | None,
        more: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> tuple[QueueBuffers, QueueStatus]:
        """Until no input is left (and, unless there are `more` to come, few lanes live), or until it is stopped.
        `meanwhile` is called when the first run has been started."""
        watch = self.watch
        while True:
            limit = np.int32(FOREVER) if watch is None else watch.limit(self._program(begun.queue))
            q, pause = self.call(_run, *begun, np.int32(narrower), limit, np.bool_(more), grows=self.grows, donate=(0,))
            begun = begun._replace(queue=q)
            if meanwhile is not None:
                meanwhile()
                meanwhile = None
            if watch is None and not self.grows and narrower == 0 and not more:
                return begun, pause  # nothing to decide: the caller need not wait
            full = self.grows and bool(np.any(to_host(pause.full)))
            self.standing = self._after(pause, before, total)
            if full:
                begun = begun._replace(queue=self._grown(q))
            going = watch is None or watch.ran(
                int(np.max(to_host(pause.trips))), self.standing, partial(self.snapshot, begun)
            )
            if not going or (not full and _ended(pause, narrower, more)):
                return begun, pause

    def _after(self, pause: QueueStatus, before: int, total: int | None) -> RunCounts:
        return replace(
            self.standing.after(total_of(pause.trips), total_of(pause.live), int(np.size(pause.item))),
            total=total,
            finished=before + total_of(pause.done),
            waiting=total_of(pause.left),
        )

    def _grown(self, q: Queue) -> Queue:
        """With deeper stacks; or, if they may not get deeper, no longer waiting for that."""
        deeper = self.executable.next_depth(self.depth, self.spread, int(q.item.shape[-1]))
        if deeper is None:
            self.grows = False
            return q
        self.depth = deeper
        return replace(q, state=self.brief(_grow, q.state, depth=self.depth))


def _widths(lanes: int, executable: PcExecutable) -> Iterator[tuple[int, int]]:
    """Widths of the machine, and how few live lanes make the next one worth it."""
    widths = [lanes]
    for factor in NARROWER:
        if widths[-1] >= factor * NARROWEST and executable.costs.narrows:
            widths.append(widths[-1] // factor)
    yield from zip(widths, [*widths[1:], 0], strict=True)


def _ended(pause: QueueStatus, narrower: int, more: bool) -> bool:
    left, live = to_host(pause.left), to_host(pause.live)
    return bool(np.all(left == 0)) and (more or bool(np.all(live <= narrower)))


# The programs. Queues have the devices in front where there are several.


def begin(
    executable: PcExecutable, given: ShardedArguments, *, spread: LaneSharding, lanes: int, slots: int, depth: int
) -> tuple[Queue, Values, Values]:
    def body(given: ShardedArguments, common: Any) -> tuple[Queue, Values, Values]:
        q, stored = started(executable, given, common, spread, lanes, slots, depth)
        return _without_shared(q), q.state.shared, stored

    begun: tuple[Queue, Values, Values] = spread.run(body, given.without_common(), given.common)
    return begun


def _whole(
    executable: PcExecutable,
    given: ShardedArguments,
    *,
    spread: LaneSharding,
    lanes: int,
    slots: int,
    depth: int,
    widths: tuple[tuple[int, int], ...],
    grows: bool,
) -> QueueResult:
    machine = executable.machine

    def body(given: ShardedArguments, common: Any) -> QueueResult:
        q, stored = started(executable, given, common, spread, lanes, slots, depth)
        shared = q.state.shared
        stages: list[BeforeNarrowing] = []
        full: list[jax.Array] = []
        halted = jnp.zeros((), bool)
        for width, narrower in widths:
            if width < q.lanes:
                stages.append(BeforeNarrowing(_without_shared(q).state, q.item))
                state, item = queue.narrow(machine, q.state, q.item, width, slots)
                q = replace(q, state=state, item=item)
            q = queue.run(machine, q, stored, narrower, grows, halted=halted)
            full.append(jnp.any(queue.is_full(q, machine.blocks(q.state))) & ~halted)
            halted |= full[-1]
        outcome = executable.drained(q, depth)
        return (
            QueueResult(outcome, tuple(stages), QueueBuffers(_without_shared(q), shared, stored), tuple(full))
            if grows
            else QueueResult(outcome)
        )

    left: QueueResult = spread.run(body, given.without_common(), given.common)
    return left


def started(
    executable: PcExecutable,
    given: ShardedArguments,
    common: Any,
    spread: LaneSharding,
    lanes: int,
    slots: int,
    depth: int,
) -> tuple[Queue, Values]:
    """A queue before its first refill, and what lanes begin with, by state key."""
    shared, stored = load(executable, given, common, spread)
    return queue.start(executable.machine, shared, lanes, slots, depth, given.end), stored


def load(executable: PcExecutable, given: ShardedArguments, common: Any, spread: LaneSharding) -> tuple[Values, Values]:
    """What lanes share, and what they begin with, by state key."""
    shared, stored = executable.machine.stored(executable.natural({**given.mapped, **common}), spread.each)
    return shared, queue.numbered(executable.machine, stored, given.names)


def _without_shared(q: Queue) -> Queue:
    return replace(q, state=replace(q.state, shared={}))


def with_shared(q: Queue, shared: Values) -> Queue:
    """A queue whose state holds what lanes share."""
    return replace(q, state=replace(q.state, shared=shared))


def _run(
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


def _grow(executable: PcExecutable, state: State, *, spread: LaneSharding, depth: int) -> State:
    grown: State = spread.run(lambda state, _: executable.machine.grow(state, depth), state, None)
    return grown


def _narrow(
    executable: PcExecutable, state: State, item: jax.Array, *, spread: LaneSharding, width: int, slots: int
) -> tuple[State, jax.Array]:
    def body(given: tuple[State, jax.Array], _: None) -> tuple[State, jax.Array]:
        return queue.narrow(executable.machine, *given, width, slots)

    narrowed: tuple[State, jax.Array] = spread.run(body, (state, item), None)
    return narrowed


def _finish(executable: PcExecutable, q: Queue, shared: Values, *, spread: LaneSharding, depth: int) -> RawResult:
    def body(given: tuple[Queue, Values], _: None) -> RawResult:
        return executable.drained(with_shared(*given), depth)

    left: RawResult = spread.run(body, (q, shared), None)
    return left
