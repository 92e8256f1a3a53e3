"""A run that records its tape, as an operation of JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, singledispatch
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.diagnostics.diagnostic import Diagnostic, Label
from pcbatch.errors import UsageError
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.analysis.block_frequency import cycles
from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.runtime.costs import xla_options
from pcbatch.runtime.costs.plan_modes import WIDEST
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.scalar import ScalarMachine, worth
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks, replaying, unsought
from pcbatch.transforms.failure_callback import Notice
from pcbatch.transforms.primitive.derived import one_by_one
from pcbatch.transforms.primitive.operation import Axis, BatchedOperation, Operation, fold_lanes, jitted, unfolded_outs
from pcbatch.transforms.tape.lane_undoing import RerunTape
from pcbatch.transforms.tape.recorder import RecordingContext, recording_layout, round_up
from pcbatch.transforms.tape.tape_plan import HEAD, STATUS, Tape
from pcbatch.transforms.tasks.task_tape import ROOTS, TODO, TaskTape

if TYPE_CHECKING:
    from pcbatch.transforms.run import Run

# Parts of a tape whose shapes alone tell something: under a trace a number would not be known.
ROOM = "tape:room"  # bool[depth]: the nested calls that frames had room for
ELEMENTS = "tape:elements"  # bool[elements]: the elements of `vmap`s that were recorded together
PER_LANE = (HEAD, STATUS, TODO, ROOTS)  # parts that have a value for each lane
FULL = "tape:full"  # bool[]: whether there were more records than room
FIRST_VISITS = 16  # records of a block for each lane that a tape which can grow has room for at first
TRACED_VISITS = 256  # records of a block for each lane, on average, where the tape cannot grow
TRACED_BYTES = 2**27  # of such a tape


@dataclass(frozen=True)
class Room:
    """The room of a tape: rows of each block's buffers, and nested calls. The rows are for this many elements of
    `vmap`s that are recorded together."""

    rows: tuple[int, ...]
    depth: int
    elements: int = 1

    def of(self, elements: int) -> Room:
        """The room for another number of elements; not less, because one may have the records of all."""
        if elements == self.elements:
            return self
        times = jax.core.max_dim(1, elements // self.elements)  # numbers of elements may be left open
        return Room(tuple(n * times for n in self.rows), self.depth, elements)


class RunOperation(Operation):
    """The base of operations that are made of a `Run`."""

    run: Run
    name: str
    differentiates = False

    def __repr__(self) -> str:
        return f"{self.name}[lanes={self.run.lanes}]"

    @property
    def executable(self) -> PcExecutable:
        """The executable of the run."""
        return self.run.program.executable

    @property
    def steps(self) -> StackProgram:
        return self.executable.program


class TapingRun(RunOperation):
    """The base of runs that record. Results: the leaves of the raw result, then the parts of the tape (see `keys`)."""

    tape: Tape | TaskTape

    @property
    def keys(self) -> tuple[str, ...]:
        """The state keys of the parts of the tape, in order."""
        raise NotImplementedError

    def tapes(self, run: Run) -> bool:
        """Whether a run of more lanes has a tape of this plan: that of another program has another one."""
        return run.program == self.run.program

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        run = self.run.folded(size, axes)
        if not self.tapes(run):
            return one_by_one(self, size, axes)
        per_lane = [*self.run.per_lane(), *(key in PER_LANE for key in self.keys)]

        def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
            return unfolded_outs(outs, per_lane, size)

        return BatchedOperation(
            replace(self, run=run),  # type: ignore[type-var]  # all that record are dataclasses
            lambda k, x, axis: self.run.folded_operand(run, size, k, x, axis),
            results,
            results,  # nothing asks for floats alone: the tangents of a run with a tape are those of the run
        )

    def split(self, outs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Split the results into the leaves of the raw result and the tape by key."""
        keys = self.keys
        count = len(outs) - len(keys)
        return list(outs[:count]), dict(zip(keys, outs[count:], strict=True))


@singledispatch
def recorder_of(tape: Any, run: Run) -> TapingRun:
    """The run that leaves what this plan of a tape plans; entered for each kind of plan."""
    raise NotImplementedError(tape)


class TapedOperation(RunOperation):
    """The base of operations on a run and its tape. Operands: the arguments of the run, the parts of its tape (if there
    is one), and others."""

    moved: tuple[bool, ...]
    tape: Any

    @property
    def recorder(self) -> TapingRun | None:
        """The run that has left the tape."""
        return None if self.tape is None else recorder_of(self.tape, self.run)

    @property
    def keys(self) -> tuple[str, ...]:
        """The state keys of the parts of the tape, in order."""
        recorder = self.recorder
        return () if recorder is None else recorder.keys

    @property
    def first(self) -> int:
        """The position of the first operand behind the tape."""
        return len(self.moved) + len(self.keys)

    def operands(self, args: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any], Sequence[Any]]:
        """Split the operands into the arguments of the run, the tape by state key, and the others."""
        count, keys = len(self.moved), self.keys
        end = count + len(keys)
        return args[:count], dict(zip(keys, args[count:end], strict=True)), args[end:]


@dataclass(frozen=True, repr=False)
class RecordedRun(TapingRun):
    """A run that records its tape."""

    run: Run
    tape: Tape
    room: Room | None = None  # None: it may grow
    silent: bool = False  # lanes print nothing, for they print in another run
    name: str = "taped run"

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.tape.keys(), STATUS, FULL, ELEMENTS, ROOM)

    def lower(self, *args: Any) -> Sequence[Any]:
        room = self.room or Room(traced_rows(self), self.executable.stacks.traced())
        rows, depth = room.rows, room.depth
        executable, lanes, sharded = self.executable, self.run.lanes, self.run.arguments(*args)
        machine = recording_machine(executable, self.tape, rows, self.silent)
        arguments = executable.arguments.natural({**sharded.mapped, **sharded.common})
        state: State = machine.advance(machine.start(arguments, lanes, depth, sharded.end, sharded.names))
        raw = executable.results.of_state(state, depth)
        parts = {**{key: state.carry[key] for key in self.tape.keys()}, STATUS: raw.status}
        over = [parts[b.count] > n - lanes for b, n in zip(self.tape.blocks, rows, strict=True)]
        parts[FULL] = jnp.any(jnp.array(over, bool))
        parts |= {ELEMENTS: jnp.zeros((self.run.elements,), bool), ROOM: jnp.zeros((depth,), bool)}
        return [*jax.tree.leaves(raw), *(parts[key] for key in self.keys)]

    def impl(self, *args: Any) -> Sequence[Any]:
        if replaying():  # JAX repeats what was inside `jit` to find a NaN: with the room that there was
            with unsought():
                outs = run_compiled(self, self.executable, self.run.lanes, *args)
            parts = self.split(outs)[1]
            if np.any(parts[STATUS]) or np.any(parts[FULL]):
                return outs  # lanes give NaN on purpose; the caller reports the failure
        if self.room is not None:
            return run_compiled(self, self.executable, self.run.lanes, *args)
        return run_growing_tape(self, *args)

    def recorded(self, *args: Any) -> tuple[RawResult, dict[str, Any]]:
        """Run outside traces; return the results and the parts of the tape, which has grown as needed."""
        leaves, parts = self.split(run_growing_tape(self, *args))
        return jax.tree.unflatten(self.run.structure(), leaves), parts

    def room_of(self, parts: Mapping[str, Any]) -> Room:
        """The room that the tape `parts` has."""
        rows = tuple(block.rows(parts) for block in self.tape.blocks)
        return Room(rows, int(parts[ROOM].shape[-1]), parts[ELEMENTS].shape[-1])

    def again(self, room: Room) -> RecordedRun:
        """The run with this room, in silence."""
        return replace(self, room=room.of(self.run.elements), silent=True)


@dataclass(frozen=True, repr=False)
class RerunRun(TapingRun):
    """A run whose lanes are run again when they are undone."""

    run: Run
    tape: RerunTape
    native: bool = True  # XLA spreads no native function over devices
    name: str = "repeatable run"

    @property
    def keys(self) -> tuple[str, ...]:
        return (STATUS, ELEMENTS, ROOM)

    def lower(self, *args: Any) -> Sequence[Any]:
        # Not `Run.lower`: XLA may split a run by lanes, but not its backward run.
        run = self.run if self.native else replace(self.run, smooth=True)
        leaves = jax.tree.leaves(run.raw_result(*args))
        return self._with_parts(leaves, self.executable.stacks.traced())

    def impl(self, *args: Any) -> Sequence[Any]:
        leaves, stacks = self.run.impl(*args), self.executable.stacks
        return self._with_parts(leaves, max(stacks.needed, stacks.traced()))

    def over_devices(self) -> Operation:
        return replace(self, native=False)

    def _with_parts(self, leaves: Sequence[Any], depth: int) -> Sequence[Any]:
        raw = jax.tree.unflatten(self.run.structure(), leaves)
        return [*leaves, raw.status, jnp.zeros((self.run.elements,), bool), jnp.zeros((depth,), bool)]


@recorder_of.register(RerunTape)
def _recorder_of_reruns(tape: RerunTape, run: Run) -> RerunRun:
    return RerunRun(run, tape)


def by_reruns(run: Run) -> bool:
    """Whether the gradient of a run is that of lanes that are run again one after the other."""
    if run.through is not None or run.ends or debug_checks() or not undoes_natively(run):
        return False
    executable = run.program.executable
    asked = isinstance(executable.machine, ScalarMachine)
    if not asked and executable.forms is None:
        return False
    chosen = executable if asked else executable.one_by_one
    if not isinstance(chosen.machine, ScalarMachine) or chosen.machine.outside(run.lanes):
        return False
    has_loops = xla_options.has_loops(run.steps)
    return asked or worth.undoes_one_by_one(chosen.costs, str(chosen.schedule), run.lanes, has_loops)


def undoes_natively(run: Run) -> bool:
    """Whether lanes are run again one after the other where a backward run is lowered."""
    return lowering_platform() == "cpu" and not is_symbolic(run.lanes)


def recorded_together(run: Run, tape: RerunTape, args: Sequence[Any]) -> dict[str, Any]:
    """Return the parts of the tape of a run of lanes together, for platforms where no lane runs alone."""
    recorder = RecordedRun(run, Tape(tape.blocks, tape.shared), silent=True)
    room = Room(traced_rows(recorder), recorder.executable.stacks.traced())
    return recorder.split(recorder.again(room).lower(*args))[1]


def recording_machine(executable: PcExecutable, tape: Tape, rows: Sequence[int], silent: bool) -> Machine:
    """The machine that records a tape with buffers of `rows` rows."""
    smooth = executable.smooth
    codes = (executable.machine if executable.prints and not silent else smooth).layout.codes
    return replace(
        smooth,
        layout=recording_layout(replace(smooth.layout, codes=codes), tape, rows),
        emitter=Guard(),
        stage=RecordingContext,
    )


def traced_rows(recorded: RecordedRun) -> tuple[int, ...]:
    """Rows of each block's buffers where the tape cannot grow. A block on no cycle is visited once by a lane."""
    lanes, blocks = recorded.run.lanes, recorded.tape.blocks
    visits, around = recorded.executable.options.max_tape, cycles(recorded.executable.program)
    again = [around[block.source.label] > 0 for block in blocks]
    if visits is None:
        bytes_of_visit = max(1, sum(block.bytes() for block, often in zip(blocks, again, strict=True) if often))
        most_lanes = WIDEST if is_symbolic(lanes) else lanes
        visits = max(16, min(TRACED_VISITS, TRACED_BYTES // (most_lanes * bytes_of_visit)))
    return tuple(lanes * (visits + 1 if often else 2) for often in again)


def run_compiled(operation: Operation, executable: PcExecutable, lanes: int, *args: Any) -> list[Any]:
    """Compile and run an operation for concrete arrays, with XLA options chosen for `lanes` lanes."""
    # XLA gets a backward run wrong with the option for updates in place.
    options = xla_options.compiler_options(executable.programs.kernel, lanes, in_place=False)
    results: list[Any] = jitted(operation, None if options is None else tuple(options.items()))(*args)
    return results


def run_growing_tape(recorded: RecordedRun, *args: Any) -> list[Any]:
    """Run with a tape and stacks as large as needed, found by trying. Raises UsageError if `max_tape` is too small."""
    executable, lanes = recorded.executable, recorded.run.lanes
    limit, key = executable.options.max_tape, (recorded.tape.shared, lanes)
    if limit is not None:
        rows = traced_rows(recorded)
    else:
        rows = executable.tapes.get(key, ((FIRST_VISITS + 1) * lanes,) * len(recorded.tape.blocks))
    depth = executable.depth
    while True:
        # Trials are silent: lanes print once, in a last run with the right room.
        trial = replace(recorded, room=Room(rows, depth), silent=recorded.silent or executable.prints)
        outs = run_compiled(trial, executable, lanes, *args)
        parts = recorded.split(outs)[1]
        counts = [int(parts[block.count]) for block in recorded.tape.blocks]
        deeper = executable.deeper(parts[STATUS], depth, LaneSharding(None, lanes))
        full = bool(parts[FULL])
        if deeper is None and not full:
            executable.stacks.remember(depth)
            executable.tapes[key] = rows
            if trial.silent == recorded.silent:
                return outs
            return run_compiled(replace(trial, silent=False), executable, lanes, *args)
        if full and limit is not None:
            raise _too_short(recorded, counts)
        depth = deeper or depth
        if full:
            rows = tuple(max(old, round_up(n) + lanes) for n, old in zip(counts, rows, strict=True))


def _too_short(recorded: RecordedRun, counts: Sequence[int]) -> UsageError:
    lanes = recorded.run.lanes
    needed = -(-max(counts) // lanes)
    most = recorded.tape.blocks[counts.index(max(counts))].source
    limit = recorded.executable.options.max_tape
    title = f"the tape of a gradient is full: max_tape={limit} records for each lane on average"
    note = f"a block of `{most.function}` was visited {max(counts):,} times by {lanes} lanes"
    help = f"set `max_tape={needed}`, or leave it out: outside `jit` the tape grows as needed"
    return UsageError(Diagnostic("PCB423", title, notes=(note,), helps=(help,)))


@lru_cache(maxsize=256)
def tape_notice(executable: PcExecutable, tape: Tape | TaskTape) -> Notice:
    """The report of a tape that was full inside `jit`. Its flags: FULL, a value for each lane, counts of the blocks."""
    ops = [block.source.ops for block in tape.blocks]

    def findings(full: Any, each: Any, *counts: Any) -> list[Diagnostic]:
        # Elements of a `vmap` that were recorded one by one have counts of their own.
        lanes = each.size // max(1, counts[0].size)
        needed = -(-max(int(count.max()) for count in counts) // lanes)
        most = ops[max(range(len(counts)), key=lambda k: int(counts[k].max()))]
        location = next((loc for op in most if (loc := getattr(op, "loc", None)) is not None), None)
        title = f"the tape of a gradient inside `jit` is full: it needs {needed} records for each lane on average"
        note = 'values are right all the same; with `on_failure="warn"` the gradient of such a run is NaN'
        primary = None if location is None else Label(location, "a block that was visited most often begins here")
        help = f"set `max_tape={needed}`, as `f.tape(...)` says for other arguments; or use `checkpoints=`"
        return [Diagnostic("PCB423", title, primary, notes=(note,), helps=(help,))]

    return Notice(findings)


def folded_part(key: str, x: Any, axis: Axis, size: int) -> Any:
    """The part `key` of a tape, for a run of `size` times as many lanes that were recorded together: only parts with a
    value for each lane have the elements along an axis."""
    return fold_lanes(x, axis, size) if key in PER_LANE and axis is not None else x
