"""A run by tasks that records its tape, as an operation of JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.lowering.typing.jax_types import is_symbolic, storage_type, zeros
from pcbatch.runtime.execute.traced_run import merged_by_mask, run_in_lanes
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.tasks import TaskExecutable, state
from pcbatch.runtime.tasks.executable import CHUNK
from pcbatch.runtime.tasks.fallback import completed
from pcbatch.runtime.tasks.growing import Outcome
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks
from pcbatch.transforms.recorded_run import TRACED_VISITS, TapingRun, recorder_of
from pcbatch.transforms.tape.recorder import round_up
from pcbatch.transforms.tasks.recorder import SERIAL_OF, TapeRoom, TaskRecorder, traced_room
from pcbatch.transforms.tasks.task_tape import FRAMES, FULL, JOINS, TODO, VISITS, TaskTape, plan_task_tape, tapeable

if TYPE_CHECKING:
    from pcbatch.transforms.run import Run

FIRST_ROWS = 32  # rows of a block for each example that a tape which can grow has room for at first
LEAST_ROWS = 1024
TRACED_BYTES = 2**23  # of a tape that cannot grow, unless there are no more rows for each example than `USUAL_ROWS`
USUAL_ROWS = 48


def by_tasks(run: Run) -> bool:
    """Whether the gradient of a run is that of a run by tasks."""
    executable = run.program.executable
    tasks = executable.tasks
    options = executable.options
    if tasks is None or options.plan.fork != "always" or options.checkpoints is not None or debug_checks():
        return False
    if run.through is not None or run.ends or run.spread or is_symbolic(run.lanes) or not 0 < run.lanes <= CHUNK:
        return False
    return tasks.takes(run.lanes) and tapeable(tasks.plan(single=False))


def task_tape_of(run: Run, moved: Sequence[bool]) -> TaskTape:
    """Return the plan of the tape for gradients by the arguments that are moved."""
    executable = run.program.executable
    assert executable.tasks is not None
    names = {v for v, is_moved in zip(run.names, moved, strict=False) if is_moved}
    named = executable.named(executable.tasks)
    return _plan(executable.tasks, frozenset(v for v, name in named.items() if name in names))


@lru_cache(maxsize=256)
def _plan(tasks: TaskExecutable, moved: frozenset[str]) -> TaskTape:
    return plan_task_tape(tasks.plan(single=False), moved)


@dataclass(frozen=True, repr=False)
class TaskRecordedRun(TapingRun):
    """A run by tasks that records."""

    run: Run
    tape: TaskTape
    name: str = "taped run by tasks"

    @property
    def tasks(self) -> TaskExecutable:
        """The executable of the program of tasks that is recorded."""
        assert self.executable.tasks is not None
        return self.executable.tasks

    @property
    def keys(self) -> tuple[str, ...]:
        return self.tape.keys

    @property
    def trusts(self) -> bool:
        """Whether no example needs the gradient of lanes inside a trace: none fails but where lanes would fail as well.

        The tape is as long as the user has said. Tasks that go on one by one need a frame for each nested call, and
        stacks of lanes have room for no more of those inside a trace than there are frames.
        """
        tasks, executable = self.tasks, self.executable
        if executable.options.max_tape is None or tasks.plan(single=False).fails:
            return False
        return tasks.chosen(self.run.lanes, traced=True).frames >= executable.stacks.traced()

    def task_arguments(self, *args: Any) -> dict[str, Any]:
        """The operands by parameter of the program of tasks."""
        given = self.run.arguments(*args)
        natural = self.executable.arguments.natural({**given.mapped, **given.common})
        return {v: natural[name] for v, name in self.executable.named(self.tasks).items()}

    def lower(self, *args: Any) -> Sequence[Any]:
        """The run inside a trace: examples that tasks have not finished are run by lanes."""
        lanes, tasks, executable = self.run.lanes, self.tasks, self.executable
        now = tasks.chosen(lanes, traced=True)
        recorder = TaskRecorder(self.tape, traced_room(self.tape, lanes, self._visits(lanes)), lanes, now.width)
        s = _empty(recorder, now) | recorder.empty()
        done, s, flags = tasks.run_recorded(now, s, self.task_arguments(*args), recorder, isolate=True)
        todo = flags[1:]
        parts = recorder.parts(s, todo)
        given = self.run.arguments(*args)
        natural = executable.arguments.natural({**given.mapped, **given.common})
        again = run_in_lanes(executable, natural, lanes, given.names, todo)
        raw = merged_by_mask(done, again, todo, again.counts)
        return [*jax.tree.leaves(raw), *(parts[key] for key in self.keys)]

    def _visits(self, lanes: int) -> int:
        """Rows of each block for each example, where the tape cannot grow."""
        visits = self.executable.options.max_tape or TRACED_VISITS
        if self.trusts:
            return visits
        size = max(1, sum(block.bytes() for block in self.tape.blocks))
        # Lanes have the gradient where that is too little; to fill a larger one takes longer than to undo it.
        return min(visits, max(USUAL_ROWS, TRACED_BYTES // (lanes * size)))

    def recorded(self, *args: Any) -> tuple[RawResult, dict[str, Any]]:
        """Run outside traces; return the results and the parts of the tape, which has grown as needed."""
        return recording(self.tasks, self.tape).run(self.task_arguments(*args), self.run.lanes)

    def impl(self, *args: Any) -> Sequence[Any]:
        raw, parts = self.recorded(*args)
        executable, given = self.executable, self.run.arguments(*args)
        todo = np.asarray(parts[TODO])
        whole = completed(
            Outcome(raw, todo),
            executable.arguments.natural({**given.mapped, **given.common}),
            frozenset(given.mapped),
            executable.run_lanes,
            executable.machine.layout.exit,
        )
        return [*self._leaves(whole), *(parts[key] for key in self.keys)]

    def _leaves(self, raw: RawResult) -> list[Any]:
        """The leaves of a raw result in the structure of one inside a trace."""
        lanes = self.run.lanes
        like = jax.tree.unflatten(self.run.structure(), [0] * self.run.structure().num_leaves)
        none = None if like.depths is None else jnp.zeros(lanes, jnp.int32)
        shown = {v: raw.shown[v] if v in raw.shown else self._nothing(v) for v in like.shown}
        depths = none if raw.depths is None or none is None else raw.depths
        back = none if raw.back is None or none is None else raw.back
        whole = replace(raw, depths=depths, back=back, shown=shown, depth=like.depth, line=())
        return [jnp.asarray(x) for x in jax.tree.leaves(whole)]

    def _nothing(self, name: str) -> Any:
        """Nothing that a message could show."""
        type_ = self.executable.program.vars[name].type
        assert type_ is not None
        return zeros(storage_type(type_), (self.run.lanes,))

    def tapes(self, run: Run) -> bool:
        return run.program == self.run.program and by_tasks(run)


@recorder_of.register(TaskTape)
def _recorder_of_tasks(tape: TaskTape, run: Run) -> TaskRecordedRun:
    return TaskRecordedRun(run, tape)


def _empty(recorder: TaskRecorder, now: Sizes) -> Values:
    serials = jnp.arange(now.lanes + now.frames, dtype=jnp.int32)
    return state.empty(recorder.plan, now, False) | {SERIAL_OF: serials}


@lru_cache(maxsize=256)
def recording(tasks: TaskExecutable, tape: TaskTape) -> Recording:
    """Return the runs that record a tape."""
    return Recording(tasks, tape)


@dataclass(eq=False)
class Recording:
    """Runs outside traces that record a tape, each with as much room as is needed, found by trying."""

    tasks: TaskExecutable
    tape: TaskTape
    _sizes: dict[int, Sizes] = field(default_factory=dict)  # by number of examples
    _rooms: dict[int, TapeRoom] = field(default_factory=dict)
    _jitted: dict[Any, Any] = field(default_factory=dict)
    _kept: dict[Sizes, Values] = field(default_factory=dict)

    def run(self, args: Mapping[str, Any], lanes: int) -> tuple[RawResult, dict[str, Any]]:
        """Return the results and the parts of the tape."""
        now = self._sizes.get(lanes) or self.tasks.chosen(lanes)
        room = self._rooms.get(lanes) or self._first(lanes)
        while True:
            s = self._kept.pop(now, None)
            if s is None:
                s = self._jit("empty", now, None)()
            raw, s, stuck, parts = self._jit("run", now, room)(s, args)
            if bool(stuck):
                larger = self.tasks.larger(now, s)
                if larger is None:
                    break
                now = larger
                continue
            self._kept[now] = s
            if not bool(parts[FULL]):
                break
            room = self._larger(room, parts, lanes)
        self._sizes[lanes], self._rooms[lanes] = now, room
        return raw, parts

    def _first(self, lanes: int) -> TapeRoom:
        rows = max(LEAST_ROWS, FIRST_ROWS * lanes)
        return TapeRoom((rows,) * len(self.tape.blocks), rows, 2 * LEAST_ROWS)

    def _larger(self, room: TapeRoom, parts: Mapping[str, Any], lanes: int) -> TapeRoom:
        counts = [int(parts[block.count]) for block in self.tape.blocks]
        joins = max(int(parts[JOINS]), int(parts[FRAMES]) - lanes)
        rows = tuple(max(old, round_up(n)) for n, old in zip(counts, room.rows, strict=True))
        visits = max(room.visits, round_up(int(parts[VISITS])))
        return TapeRoom(rows, max(room.joins, round_up(joins)), visits)

    def _jit(self, what: str, now: Sizes, room: TapeRoom | None) -> Any:
        key = (what, lowering_platform(), now, room)
        if key not in self._jitted:
            options = self.tasks.xla_options(now)
            if room is None:
                recorder = TaskRecorder(self.tape, self._first(now.lanes), now.lanes, now.width)
                self._jitted.setdefault(key, jax.jit(partial(_empty, recorder, now), compiler_options=options))
            else:
                function = partial(self._run, now, room)
                self._jitted.setdefault(key, jax.jit(function, donate_argnums=(0,), compiler_options=options))
        return self._jitted[key]

    def _run(self, now: Sizes, room: TapeRoom, s: Values, args: Mapping[str, Any]) -> Any:
        recorder = TaskRecorder(self.tape, room, now.lanes, now.width)
        taped = recorder.empty()
        raw, after, flags = self.tasks.run_recorded(now, s | taped, args, recorder)
        return raw, {key: after[key] for key in s}, flags[0], recorder.parts(after, flags[1:])
