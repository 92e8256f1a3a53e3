"""A monitored run by tasks: the machine of lists makes some trips, the host looks; then lanes run what is left.

Many examples run in chunks, as in a plain call. The examples that tasks have not finished, because one of them has
failed or found no room, are run by lanes when all chunks have ended, by a run of their own that is part of this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.execute import task_places, task_programs
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.execute.queue_run import begin_lanes
from pcbatch.runtime.execute.run_state import Running, RunState
from pcbatch.runtime.execute.state_arrays import part, placed, trips_array
from pcbatch.runtime.execute.task_places import Waiting
from pcbatch.runtime.execute.task_programs import ExampleRange, TaskBuffers, TaskProgress
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.tasks import TaskExecutable, state
from pcbatch.runtime.tasks.fallback import counted, merged_by_number
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.vm.machine import final
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


@dataclass(frozen=True, slots=True)
class TaskRun(RunState):
    """A run by tasks. `state`: `TaskBuffers`; `lanes`: the examples of a chunk.

    Attributes:
        sizes: of the machine of lists.
        by_tasks: the counts of what tasks have done.
        first: the number of the first example of the chunk; that of all examples when tasks are through.
        begun: whether the chunk has begun.
        done: examples that have results, of chunks that have ended.
        again: the run of the rest by lanes, whose arrays are part of `state`.
    """

    sizes: Sizes
    by_tasks: RunCounts
    first: int = 0
    begun: bool = False
    done: int = 0
    again: RunState | None = None

    @staticmethod
    def before(executable: PcExecutable, args: Mapping[str, Any], inputs: int, chunk: int) -> TaskRun:
        """Return a run before its first trip.

        Args:
            executable: the program.
            args: the arguments of the call, by parameter of the program for lanes.
            inputs: the number of examples.
            chunk: the most that run at once.
        """
        assert executable.tasks is not None
        lanes = min(inputs, chunk)
        counts = RunCounts(inputs, waiting=inputs)
        buffers = task_programs.empty_buffers(executable, task_programs.stored_args(executable, args), inputs)
        sizes = executable.tasks.begins_with(lanes)
        return TaskRun(executable, LaneSharding(None, inputs), lanes, 0, True, counts, buffers, sizes, counts)

    def described(self, args: Any) -> Self:
        def begin(args: Any) -> TaskBuffers:
            stored = task_programs.stored_args(self.executable, args)
            return task_programs.empty_buffers(self.executable, stored, self.sharding.inputs)

        state = jax.eval_shape(begin, args)
        if self.begun:
            state = state._replace(machine=task_programs.described_machine(self.executable, self.sizes))
        if self.again is not None:
            rows = np.zeros(self.again.sharding.inputs, np.int32)
            given = jax.eval_shape(partial(_natural_rows, self.executable), state.args, rows)
            state = state._replace(lanes=self.again.described(given).state)
        return replace(self, state=state)

    @property
    def tasks(self) -> TaskExecutable:
        """The executable of the program of tasks that this run is of."""
        assert self.executable.tasks is not None
        return self.executable.tasks

    @property
    def by_lanes(self) -> RunState | None:
        """The run of the rest by lanes, with its arrays; None as long as tasks run."""
        return None if self.again is None else replace(self.again, state=self.state.lanes)

    @property
    def through(self) -> bool:
        """Whether no example is left to tasks."""
        return self.first >= self.sharding.inputs

    @property
    def chunk(self) -> ExampleRange:
        """The examples that the machine runs."""
        return ExampleRange(np.int32(self.first), np.int32(min(self.lanes, self.sharding.inputs - self.first)))

    def moved(self, watch: HostLoop) -> Self:
        return self._with_lanes(watch) if self.through else self._with_tasks(watch)

    def remember(self) -> None:
        if self.again is not None:
            self.again.remember()

    # Tasks

    def _with_tasks(self, watch: HostLoop) -> Self:
        """The run after one program of tasks, and what follows on the host."""
        watch.pace = self.executable.pace(self.lanes, "tasks")
        buffers: TaskBuffers = self.state
        machine = buffers.machine if self.begun else self._empty()
        program = self.executable.jitted(task_programs.run_tasks, self.sizes.width)
        with watch.program(("tasks", self.sizes, self.sharding.inputs)) as run:
            s, seen = program(
                machine, buffers.args, self.chunk, np.bool_(not self.begun), np.int32(run.budget), now=self.sizes
            )
            seen = jax.device_get(seen)
            run.made = int(seen.trips)
        later = replace(self, state=buffers._replace(machine=s), begun=True)._counted(seen)
        if seen.left and not seen.stuck:
            return later
        with watch.untimed():
            return later._larger(bool(seen.no_frames)) if seen.left else later._ended()

    def _empty(self) -> Any:
        plan = self.tasks.plan(self.lanes == 1)
        return state.on_device(plan, self.sizes, self.tasks.options.stats)

    def _counted(self, seen: TaskProgress) -> Self:
        size, open_ = int(self.chunk.size), int(np.sum(seen.open))
        behind = self.sharding.inputs - self.first - size
        counts = self.by_tasks.after(
            int(seen.trips), open_, self.lanes, finished=self.done + size - open_, waiting=behind
        )
        return replace(self, counts=counts, by_tasks=counts)

    def _larger(self, no_frames: bool) -> Self:
        """The run with more room; or, if there may be none, without what is left of its chunk."""
        larger = self.sizes.larger(pool_is_empty=no_frames)
        if not self.tasks.may_have(larger, self.lanes):
            return self._ended()
        grow = self.executable.jitted(task_programs.grow_tasks, self.sizes.width)
        machine = grow(self.state.machine, old=self.sizes, new=larger)
        return replace(self, state=self.state._replace(machine=machine), sizes=larger)

    def _ended(self) -> Self:
        """The run after its chunk; what the machine has not finished is left to lanes."""
        self.tasks.remember(self.sizes)
        values, todo, counts = self._kept()
        first = self.first + int(self.chunk.size)
        live = self.sharding.inputs - self.by_tasks.finished if first >= self.sharding.inputs else 0
        standing = replace(self.by_tasks, live=live)
        buffers = self.state._replace(machine={}, values=values, todo=todo, counts=counts)
        done = standing.finished
        return replace(self, state=buffers, first=first, begun=False, done=done, counts=standing, by_tasks=standing)

    def _kept(self) -> tuple[Any, Any, Any]:
        keep = self.executable.jitted(task_programs.keep_chunk, self.sizes.width)
        kept: tuple[Any, Any, Any] = keep(self.state._replace(lanes=()), self.chunk, now=self.sizes)
        return kept

    # Lanes

    def _with_lanes(self, watch: HostLoop) -> Self:
        """The run after one program of lanes for the rest."""
        if (by_lanes := self.by_lanes) is None:
            with watch.untimed():
                by_lanes = self._begin_lanes()
        return self._joined(by_lanes.moved(watch))

    def _begin_lanes(self) -> RunState:
        rows = np.flatnonzero(np.asarray(self.state.todo)).astype(np.int32)
        args = _natural_rows(self.executable, self.state.args, rows)
        return begin_lanes(self.executable, args, len(rows), None, None)

    def _joined(self, by_lanes: RunState) -> Self:
        buffers = self.state._replace(lanes=by_lanes.state)
        return replace(self, again=replace(by_lanes, state=()), state=buffers, counts=self._together(by_lanes.counts))

    def _together(self, lanes: RunCounts) -> RunCounts:
        tasks = self.by_tasks
        sums = {name: getattr(tasks, name) + getattr(lanes, name) for name in ("trips", "busy", "offered")}
        return replace(lanes, total=self.sharding.inputs, finished=self.done + lanes.finished, **sums)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> Self:
        run = replace(self, state=placed(self.state, arrays, None))
        if self.again is None:
            return run
        by_lanes = run.by_lanes
        assert by_lanes is not None
        return run._joined(by_lanes.restored(part("lanes", arrays)))  # stacks may have more room now

    # What there is to see

    def outcome(self) -> RawResult:
        values, todo = self.state.values, np.asarray(self.state.todo)
        counts = self.state.counts
        if self.begun:
            values, todo, counts = self._kept()
        inputs, exit_ = self.sharding.inputs, self._exit()
        begun = np.arange(inputs) < self.first + (int(self.chunk.size) if self.begun else 0)
        open_ = np.asarray(todo) | ~begun
        status = jnp.asarray(np.where(open_, int(Status.RUNNING), 0).astype(np.int32))
        types = task_programs.result_types(self.executable)
        finals = tuple(final(x, type_, status) for x, type_ in zip(values, types, strict=True))
        pc = np.where(open_, self._pcs(), exit_).astype(np.int32)
        trips = trips_array(self.counts.trips)
        out = RawResult(finals, status, trips, counts, pc, None, None, {}, 0)
        by_lanes = self.by_lanes
        if by_lanes is None:
            return replace(out, counts=counted(counts, (), exit_))
        whole = merged_by_number(out, by_lanes.outcome(), np.flatnonzero(todo), inputs, exit_)
        return replace(whole, trips=trips)  # with those of lanes

    def waiting(self) -> tuple[Waiting, ...]:
        """Read which records wait, of which examples."""
        if not self.begun:
            return ()
        plan, examples = self.tasks.plan(self.lanes == 1), self.first
        found = task_places.waiting(plan, self.sizes, self.state.machine)
        return tuple(replace(one, examples=one.examples + examples) for one in found)

    def _pcs(self) -> np.ndarray:
        """int[inputs]: the program counters, in the program for lanes, of examples that tasks run."""
        layout = self.executable.machine.layout
        entry = layout.index[layout.program.entry]
        return task_places.pcs(layout.program, self.waiting(), entry, self.sharding.inputs)

    def running(self) -> Running:
        by_lanes = self.by_lanes
        if by_lanes is None:
            return Running(np.zeros(0, np.int64), np.zeros(0, np.int64))
        found = by_lanes.running()
        return Running(found.pc, np.flatnonzero(np.asarray(self.state.todo))[found.inputs])


def _natural_rows(executable: PcExecutable, args: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """The arguments of some examples, as a call gives them."""
    taken = {v: jnp.take(x, rows, axis=0) if task_programs.is_mapped(executable, v, x) else x for v, x in args.items()}
    return executable.arguments.natural(taken)
