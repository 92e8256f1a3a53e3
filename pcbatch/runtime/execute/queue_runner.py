"""`map` outside traces: one program if all goes well, or several, with decisions on the host between them.

A queue runs until its inputs are used up; where few lanes live and no input is left, they go on in a narrower machine.
All that is one program (`run_to_the_end`): starting another costs as much as dozens of trips. Where a lane has no room
for a call, that program stops, stacks grow, and the rest is done step by step; so is everything in a monitored run
(`watch`), and where inputs come in chunks (`chunk_runner`): lanes that still run then take their work along into the
next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pcbatch.runtime.execute.host_loop import FOREVER, HostLoop, ProgramRun, RunCounts
from pcbatch.runtime.execute.program_cache import DeviceProgram
from pcbatch.runtime.execute.queue_programs import (
    QueueBuffers,
    QueueResult,
    QueueStatus,
    begin,
    grow_queue,
    narrow_queue,
    read_queue,
    run_queue,
    run_to_the_end,
)
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.execute.stack_depths import StackGrowth
from pcbatch.runtime.execute.state_arrays import total_of
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments, to_host
from pcbatch.runtime.vm.raw_result import RawResult

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable

NARROWER = (2, 4)  # a machine that no input is left for narrows by these factors, each a machine to compile
NARROWEST = 16  # lanes: below, a trip costs its overhead whatever the width


@dataclass
class QueueRunner:
    """One `map`: a queue of inputs, run by one program after the other.

    Attributes:
        executable: the program.
        sharding: which inputs are on which device.
        lanes: lanes of the machine on each device, before it narrows.
        watch: the host's part, if the run is monitored.
        growth: the depth of the stacks.
        counts: how far the run is.
        total: inputs of the whole run; None: unknown.
        finished: inputs of earlier chunks, which have results.
        snapshot: makes of the buffers what `watch` may save.
    """

    executable: PcExecutable
    sharding: LaneSharding
    lanes: int
    watch: HostLoop | None = None
    growth: StackGrowth = field(init=False)
    counts: RunCounts = field(init=False)
    total: int | None = field(init=False)
    finished: int = field(init=False, default=0)
    snapshot: Callable[[QueueBuffers], Any] = field(init=False, default=lambda buffers: buffers)

    def __post_init__(self) -> None:
        # Where stacks have grown in a run like this one they grow again: the programs for that are there.
        self.growth = self.executable.stacks.repeated_growth("map", self.sharding, self.lanes, self.sharding.each)
        self.total = self.sharding.inputs
        self.counts = RunCounts(self.total)
        if self.watch is not None:
            self.watch.pace = self.executable.pace(self.lanes, "stream")

    @property
    def depth(self) -> int:
        """The depth that stacks have now."""
        return self.growth.depth

    @property
    def stopped(self) -> bool:
        """Whether the monitored run has stopped before its end."""
        return self.watch is not None and self.watch.stopped

    def run(self, arguments: ShardedArguments) -> RawResult:
        """Run every input, in device memory, to its end."""
        if not (self.growth.grows and self.executable.prints):
            return self._at_once(arguments)
        # The one program would print again what lanes have printed before the stage that is repeated.
        return self._rest(self.begin(arguments, self.sharding.each))

    def _at_once(self, arguments: ShardedArguments) -> RawResult:
        widths, grows = tuple(_widths(self.lanes, self.executable)), self.growth.grows
        sizes: dict[str, Any] = {"lanes": self.lanes, "slots": self.sharding.each, "depth": self.depth}
        result: QueueResult = self.call(run_to_the_end, arguments, **sizes, widths=widths, grows=grows)
        if result.buffers is None or not any(full := [bool(np.any(to_host(f))) for f in result.full]):
            return self.executable.gathered(result.outcome, self.sharding)
        q = result.buffers.queue
        # Machines behind the first full one have not run, but they have narrowed: back to before that.
        state, item = [*result.narrowed, (q.state, q.item)][full.index(True)]
        return self._rest(self._grown(result.buffers._replace(queue=replace(q, state=state, item=item))))

    def _rest(self, buffers: QueueBuffers) -> RawResult:
        buffers = self.to_the_end(buffers)
        self.growth.remember()
        outcome = self.call(read_queue, buffers.queue, buffers.shared, depth=self.depth)
        return self.executable.gathered(outcome, self.sharding)

    # Programs

    def call(self, program: DeviceProgram, *args: Any, **static: Any) -> Any:
        """Run a program on every device."""
        return self.executable.jitted(program, self.lanes)(*args, spread=self.sharding, **static)

    def brief(self, program: DeviceProgram, *args: Any, **static: Any) -> Any:
        """Run a program that does little once it is compiled. Its time is not that of a monitored run."""
        with self.untimed():
            return self.call(program, *args, **static)

    def untimed(self) -> AbstractContextManager[None]:
        """Leave what is done inside out of the time that a monitored run may take."""
        return nullcontext() if self.watch is None else self.watch.untimed()

    def _budgeted(self, q: Queue) -> AbstractContextManager[ProgramRun]:
        """One run of the program for a queue of this size."""
        if self.watch is None:
            return nullcontext(ProgramRun(FOREVER))
        return self.watch.program((q.item.shape, q.slots, self.depth, self.growth.grows, self.sharding))

    def begin(self, arguments: ShardedArguments, slots: int) -> QueueBuffers:
        """Make the queue, before its first refill."""
        return QueueBuffers(*self.brief(begin, arguments, lanes=self.lanes, slots=slots, depth=self.depth))

    # Steps

    def to_the_end(self, buffers: QueueBuffers) -> QueueBuffers:
        """Run until every input of this queue has its results, in ever narrower machines; or until it is stopped."""
        for width, narrower in _widths(self.lanes, self.executable):
            q = buffers.queue
            if width > q.item.shape[-1]:
                continue  # it is narrower already
            if width < q.item.shape[-1]:
                state, item = self.brief(narrow_queue, q.state, q.item, width=width, slots=q.slots)
                buffers = buffers._replace(queue=replace(q, state=state, item=item))
            buffers = self._until_narrow(buffers, narrower)
            if self.stopped:
                break
        return buffers

    def _until_narrow(self, buffers: QueueBuffers, narrower: int) -> QueueBuffers:
        """Run until no input is left and at most `narrower` lanes live, or until it is stopped."""
        if self.watch is None and not self.growth.grows and narrower == 0:
            return self._run(buffers)[0]  # one program ends it: the caller need not wait
        while True:
            buffers, status, full = self.step(buffers, narrower)
            few = not np.any(to_host(status.left)) and bool(np.all(to_host(status.live) <= narrower))
            if self.stopped or (few and not full):
                return buffers

    def until_taken(self, buffers: QueueBuffers, meanwhile: Callable[[], None]) -> tuple[QueueBuffers, QueueStatus]:
        """Run until no input of this chunk is left, and more are to come; or until it is stopped.

        `meanwhile` is called while the first program runs.
        """
        buffers, status, full = self.step(buffers, more=True, meanwhile=meanwhile)
        while not self.stopped and (full or np.any(to_host(status.left))):
            buffers, status, full = self.step(buffers, more=True)
        return buffers, status

    def step(
        self,
        buffers: QueueBuffers,
        narrower: int = 0,
        more: bool = False,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> tuple[QueueBuffers, QueueStatus, bool]:
        """Run one program, let stacks grow if a lane waits for that, report and save.

        Returns:
            The buffers, how the queue stood, and whether a lane waited for deeper stacks.
        """
        with self._budgeted(buffers.queue) as run:
            buffers, status = self._run(buffers, narrower, run.budget, more)
            meanwhile()
            full = self.growth.grows and bool(np.any(to_host(status.full)))
            run.made = int(np.max(to_host(status.trips)))
        self.counts = replace(
            self.counts.after(total_of(status.trips), total_of(status.live), int(np.size(status.item))),
            total=self.total,
            finished=self.finished + total_of(status.done),
            waiting=total_of(status.left),
        )
        if full:
            buffers = self._grown(buffers)
        if self.watch is not None:
            self.watch.between(self.counts, partial(self.snapshot, buffers))
        return buffers, status, full

    def _run(
        self, buffers: QueueBuffers, narrower: int = 0, trips: int = FOREVER, more: bool = False
    ) -> tuple[QueueBuffers, QueueStatus]:
        control = np.int32(narrower), np.int32(trips), np.bool_(more)
        q, status = self.call(run_queue, *buffers, *control, grows=self.growth.grows)
        return buffers._replace(queue=q), status

    def _grown(self, buffers: QueueBuffers) -> QueueBuffers:
        """The queue with deeper stacks; or, if they may not get deeper, no longer waiting for that."""
        q = buffers.queue
        if not self.growth.grow(int(q.item.shape[-1])):
            return buffers
        return buffers._replace(queue=replace(q, state=self.brief(grow_queue, q.state, depth=self.depth)))


def _widths(lanes: int, executable: PcExecutable) -> Iterator[tuple[int, int]]:
    """Widths of the machine, and how few live lanes make the next one worth it."""
    widths = [lanes]
    for factor in NARROWER:
        if widths[-1] >= factor * NARROWEST and executable.narrows:
            widths.append(widths[-1] // factor)
    yield from zip(widths, [*widths[1:], 0], strict=True)
