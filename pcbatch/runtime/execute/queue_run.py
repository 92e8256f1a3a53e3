"""A queue of inputs that fewer lanes take: as one program if all goes well, or as several with the host between them.

A queue runs until its inputs are used up; where few lanes live and no input is left, they go on in a narrower machine.
All that is one program (`run_to_the_end`): starting another costs as much as dozens of trips. Where a lane has no room
for a call, that program stops, stacks grow, and the rest is a `QueueRun`, which goes on step by step; so is everything
in a monitored run, and where inputs come in chunks (`chunk_runner`): lanes that still run then take their work along
into the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import jax
import numpy as np
from jax.sharding import Mesh

from pcbatch.runtime.execute.call_values import gathered, placed
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.execute.queue_programs import (
    QueueBuffers,
    QueueResult,
    begin,
    grow_queue,
    narrow_queue,
    read_queue,
    run_queue,
    run_to_the_end,
)
from pcbatch.runtime.execute.run_state import BatchRun, Running, RunState, counted, in_order
from pcbatch.runtime.execute.state_arrays import total_of
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments, to_host
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable

NARROWER = (2, 4)  # a machine that no input is left for narrows by these factors, each a machine to compile
NARROWEST = 16  # lanes: below, a trip costs its overhead whatever the width


@dataclass(frozen=True, slots=True)
class QueueRun(RunState):
    """Fewer lanes than inputs. `state`: `QueueBuffers`; `sharding`: of the inputs of one chunk.

    Attributes:
        width: lanes of the machine on each device, which has narrowed if they are fewer than `lanes`.
        first: inputs of earlier chunks, some of which lanes may still run.
        size: inputs of this chunk.
    """

    width: int
    first: int
    size: int

    @staticmethod
    def before(
        executable: PcExecutable, sharding: LaneSharding, lanes: int, given: ShardedArguments, carried: int = 0
    ) -> QueueRun:
        """Return a run before its first trip, with so many slots on each device for inputs of earlier chunks."""
        # Where stacks have grown in a run like this one they grow again: the programs for that are there.
        growth = executable.stacks.repeated_growth("map", sharding, lanes, sharding.each)
        sizes = {"lanes": lanes, "slots": sharding.each + carried, "depth": growth.depth}
        state = QueueBuffers(*executable.jitted(begin, lanes)(given, spread=sharding, **sizes))
        counts, inputs = RunCounts(sharding.inputs, waiting=sharding.inputs), sharding.inputs
        return QueueRun(executable, sharding, lanes, growth.depth, growth.grows, counts, state, lanes, 0, inputs)

    def described(self, args: Any) -> Self:
        self.executable.memory.check(self.sharding, self.lanes, self.depth, self.sharding.each)
        return self.typed(self._sharded(args))

    def typed(self, given: ShardedArguments, carried: int = 0) -> Self:
        """Return this run with the types of its arrays; for the arguments see `before`."""
        sizes = {"lanes": self.width, "slots": self.sharding.each + carried, "depth": self.depth}
        make = partial(begin, self.executable, spread=self.sharding, **sizes)
        return replace(self, state=QueueBuffers(*jax.eval_shape(make, given)))

    @property
    def ended(self) -> bool:
        return self.counts.finished == self.first + self.size

    def moved(self, watch: HostLoop, more: bool = False, meanwhile: Callable[[], None] = lambda: None) -> Self:
        """Run one program, and what follows it on the host.

        Args:
            watch: the host's part.
            more: whether inputs are to come: the program then ends as soon as none is left.
            meanwhile: is called while the program runs.
        """
        watch.pace = self.executable.pace(self.lanes, "stream")
        (q, shared, stored), narrower = self.state, 0 if more else self._narrower()
        program = self.executable.jitted(run_queue, self.lanes)
        with watch.program((q.item.shape, q.slots, self.depth, self.grows, self.sharding)) as run:
            control = np.int32(narrower), np.int32(run.budget), np.bool_(more)
            q, seen = program(q, shared, stored, *control, spread=self.sharding, grows=self.grows)
            meanwhile()
            full = self.grows and bool(np.any(to_host(seen.full)))
            run.made = int(np.max(to_host(seen.trips)))
        counts = self.counts.after(
            total_of(seen.trips),
            total_of(seen.live),
            int(np.size(seen.item)),
            finished=self.first + total_of(seen.done),
            waiting=total_of(seen.left),
        )
        later = replace(self, state=QueueBuffers(q, shared, stored), counts=counts)
        few = narrower > 0 and not counts.waiting and bool(np.all(to_host(seen.live) <= narrower))
        with watch.untimed():
            if full:
                return later.grown()
            return later._narrowed(narrower) if few and not later.ended else later

    def _narrower(self) -> int:
        """Return the width of the next machine, worth it once no more lanes than that live; 0: there is none."""
        return next((width for width in _widths(self.executable, self.lanes) if width < self.width), 0)

    def grown(self) -> Self:
        """Return the run with deeper stacks; or, if they may not get deeper, no longer waiting for that."""
        if (deeper := self._deeper("map", self.width)) is None:
            return replace(self, grows=False)
        q = self.state.queue
        state = self.executable.jitted(grow_queue, self.lanes)(q.state, spread=self.sharding, depth=deeper)
        return replace(self, state=self.state._replace(queue=replace(q, state=state)), depth=deeper)

    def _narrowed(self, width: int) -> Self:
        q, narrow = self.state.queue, self.executable.jitted(narrow_queue, self.lanes)
        state, item = narrow(q.state, q.item, spread=self.sharding, width=width, slots=q.slots)
        return replace(self, state=self.state._replace(queue=replace(q, state=state, item=item)), width=width)

    def read(self) -> RawResult:
        """Read the raw result so far, with the trips that devices have counted."""
        read = self.executable.jitted(read_queue, self.lanes)
        return gathered(self.executable, read(self.state, spread=self.sharding, depth=self.depth), self.sharding)

    def outcome(self) -> RawResult:
        out = counted(self, self.read())
        if self.ended:
            return out
        layout = self.executable.machine.layout  # what has no results has left no program counter either
        pc = np.where(np.asarray(out.status) == int(Status.RUNNING), layout.index[layout.program.entry], out.pc)
        pcs, inputs = self.running()
        pc[inputs] = pcs
        return replace(out, pc=pc)

    def running(self) -> Running:
        q = self.state.queue
        pc, item = (np.asarray(x).reshape(self.sharding.devices, -1) for x in (q.state.carry["pc"], q.item))
        live = (pc < self._exit()) & (item < q.slots)
        return in_order(pc[live], self._numbers(item)[live])


def begin_lanes(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, lanes: int | None, mesh: Mesh | None
) -> RunState:
    """Return a run by lanes before its first trip; for the arguments see `run_kinds.begin`."""
    sharding = LaneSharding(mesh, inputs)
    width = executable.queue_width(lanes or executable.width(sharding.each), sharding)
    kind = BatchRun if lanes is None and width == sharding.each else QueueRun
    return kind.before(executable, sharding, width, placed(executable, args, sharding))


def run_queue_through(
    executable: PcExecutable, args: Mapping[str, Any], sharding: LaneSharding, lanes: int
) -> RawResult:
    """Run every input, in device memory, to its end, through so many lanes on each device. Outside traces."""
    executable.stacks.initial(sharding, lanes, sharding.each)
    growth = executable.stacks.repeated_growth("map", sharding, lanes, sharding.each)
    given = placed(executable, args, sharding)
    if growth.grows and executable.prints:
        # The one program would print again what lanes have printed before the stage that is repeated.
        return QueueRun.before(executable, sharding, lanes, given).advanced(HostLoop(monitored=False)).read()
    sizes = {"lanes": lanes, "slots": sharding.each, "depth": growth.depth, "widths": _widths(executable, lanes)}
    program = executable.jitted(run_to_the_end, lanes)
    result: QueueResult = program(given, spread=sharding, grows=growth.grows, **sizes)
    if result.buffers is None or not any(full := [bool(np.any(to_host(f))) for f in result.full]):
        return gathered(executable, result.outcome, sharding)
    q = result.buffers.queue
    # Machines behind the first full one have not run, but they have narrowed: back to before that.
    state, item = [*result.narrowed, (q.state, q.item)][full.index(True)]
    buffers = result.buffers._replace(queue=replace(q, state=state, item=item))
    inputs, width = sharding.inputs, int(item.shape[-1])
    rest = QueueRun(executable, sharding, lanes, growth.depth, True, RunCounts(inputs), buffers, width, 0, inputs)
    return rest.grown().advanced(HostLoop(monitored=False)).read()


def _widths(executable: PcExecutable, lanes: int) -> tuple[int, ...]:
    """The widths of the machine of a queue, each that of few enough live lanes to narrow to."""
    widths = [lanes]
    for factor in NARROWER:
        if widths[-1] >= factor * NARROWEST and executable.narrows:
            widths.append(widths[-1] // factor)
    return tuple(widths)
