"""The value of `f.start(...)`: a run that can be looked at, advanced, saved to a file and continued."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.call.results import BlockStats, Result
from pcbatch.call.usage import usage
from pcbatch.compiler import growth
from pcbatch.compiler.block_infos import block_infos
from pcbatch.compiler.program import Program
from pcbatch.data.capacity import NO_ROOM, Room
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.diagnostics.tables import ranges, table
from pcbatch.errors import TooLargeError, UsageError
from pcbatch.runs import checkpoint_file, fingerprint
from pcbatch.runs.checkpoint_file import header
from pcbatch.runs.interrupts import Interrupted, interruptible
from pcbatch.runs.run_options import deadline, reporting, whole_number
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.execute.queue_run import QueueRun
from pcbatch.runtime.execute.run_kinds import begin, encoded
from pcbatch.runtime.execute.run_state import RunState
from pcbatch.runtime.execute.state_arrays import named
from pcbatch.runtime.execute.task_run import TaskRun
from pcbatch.runtime.sharding.lane_sharding import run_without_mesh
from pcbatch.runtime.vm.raw_result import RawResult, is_tracing


@dataclass(frozen=True, slots=True, repr=False)
class RunProgress:
    """The progress of a machine.

    Attributes:
        finished: inputs that have ended, failed ones too.
        total: all inputs.
        running: inputs that lanes run.
        waiting: inputs that have not been begun.
        trips: iterations of the machine, summed over devices.
        utilisation: the share of lanes that had work, as a mean over trips of what was seen between programs; None
            before the first.
        places: the blocks where lanes still run.
    """

    finished: int
    total: int
    running: int
    waiting: int
    trips: int
    utilisation: float | None
    places: Places

    def __repr__(self) -> str:
        share = "" if self.utilisation is None else f", {self.utilisation:.0%} of lanes at work"
        waiting = f", {self.waiting:,} not begun" if self.waiting else ""
        line = f"{self.finished:,} of {self.total:,} done{waiting}, {self.trips:,} trips{share}"
        where = "; ".join(f"{p.lanes:,} at {p.label} (lines {ranges(p.lines)})" for p in self.places[:3])
        more = f"; {len(self.places) - 3} more blocks" if len(self.places) > 3 else ""
        return f"{line}, running: {where}{more}" if where else line


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run:
    """A run between two trips, made by `f.start(...)`. It is a value: `advance` gives another one, and this one stays
    as it is.

    Example:
        >>> m = f.start(xs)
        >>> while not m.done:
        ...     m = m.advance(10_000)
        ...     print(m.progress())
        >>> result = m.result()  # doctest: +SKIP
    """

    _name: str
    _compiled: Program
    _given: Arguments
    _paused: RunState | None  # None: there are no lanes
    _digest: str | None

    @property
    def done(self) -> bool:
        """Whether every lane has ended, and none is to be run again with more room for its lists."""
        return self._paused is None or (self._paused.ended and not self._room_needed())

    @property
    def program(self) -> Program:
        """The program that runs, compiled."""
        return self._compiled

    @property
    def standing(self) -> RunCounts | None:
        """The counts of the run; None if there are no lanes."""
        return None if self._paused is None else self._paused.counts

    def advance(
        self, max_trips: int | None = None, *, timeout: float | None = None, progress: Any = None, donate: bool = False
    ) -> Run:
        """Continue the run, to its end or less far; stacks grow as they do in a call.

        Args:
            max_trips: of the machine (of each device's, if there are several). None: no limit.
            timeout: seconds after which it stops, between two programs of a fraction of a second. Compiling is not
                counted.
            progress: as in `f.run`.
            donate: give the memory of this machine to the new one: this one cannot be used any more.

        Returns:
            The machine after that.

        Raises:
            Interrupted: Ctrl-C was pressed; it holds the machine as it is then.
        """
        __tracebackhide__ = True
        trips, until = whole_number("max_trips", max_trips), deadline(timeout)
        with reporting(progress, "lanes") as report, interruptible() as interrupted:
            watch = HostLoop(trips, until, report, interrupted=interrupted)
            later = self.moved(watch, donate)
        if watch.why == "interrupted":
            raise Interrupted(later)
        return later

    def moved(self, watch: HostLoop, donate: bool = True) -> Run:
        """Return the machine after a monitored run. `donate`: its buffers become those of the new one.

        Where a lane has had no room in a list, another machine with more room begins from the start.
        """
        if is_tracing(()):
            raise traced("advance")
        machine = self if self._usable() is None else self._moved(watch, donate)
        while not watch.stopped and (roomier := machine.with_room(watch)) is not None:
            machine = roomier._moved(watch, True)
        return machine

    def _moved(self, watch: HostLoop, donate: bool) -> Run:
        state, save = self._usable(), watch.save
        assert state is not None
        if state.ended:
            return self
        if save is not None:
            watch.save = lambda snapshot: save(lambda: replace(self, _paused=snapshot()))
        with self._compiled.mapping_errors(self._given), _unchecked(), run_without_mesh():
            with watch.untimed():
                own = state if donate else state.copied()
            later = own.advanced(watch)
        watch.save = save
        self._compiled.flush()
        return replace(self, _paused=later)

    def with_room(self, watch: HostLoop | None = None) -> Run | None:
        """Return a machine of the same call with more room for lists, before its first trip; None if no lane needs it,
        or if it may not have it."""
        needed = self._room_needed()
        for room in growth.rooms_after(self._compiled, needed) if needed else ():
            larger = self._compiled.recompile.with_room(room)
            try:
                with nullcontext() if watch is None else watch.untimed():
                    return self.begun(larger)
            except TooLargeError:
                continue
        return None

    def begun(self, compiled: Program) -> Run:
        """Return a machine for the same call, run by another program, before its first trip."""
        old, given = self._paused, self._given
        assert old is not None
        asked = old.lanes if isinstance(old, QueueRun) else None
        with compiled.mapping_errors(given), _unchecked(), run_without_mesh():
            executable = compiled.with_pc("advance")
            state = begin(executable, compiled.args(given), given.lanes, asked, old.sharding.mesh)
        return replace(self, _compiled=compiled, _paused=state)

    def _room_needed(self) -> Room:
        """The room that lanes have needed, if they may have more; none where it was enough."""
        if self._paused is None or not growth.may_grow(self._compiled) or self._arguments_gone:
            return NO_ROOM
        return growth.lanes_full(self._compiled, self.outcome())

    def result(self) -> Result:
        """Return the result, as `f.run(...)` does; `Status.RUNNING`, and no value, in lanes that have not ended."""
        return self._compiled.result(self.outcome(), self._given.lanes, self._given)

    def outcome(self) -> RawResult:
        """Read the leaves of the result, and the statuses of lanes."""
        state = self._usable()
        if is_tracing(()):
            raise traced("result")
        if state is None:
            return self._compiled.empty()
        with _unchecked(), run_without_mesh():
            return state.outcome()

    def progress(self) -> RunProgress:
        """Return how far the run is."""
        state = self._usable()
        if state is None:
            return RunProgress(0, 0, 0, 0, 0, None, Places())
        counts, inputs = state.counts, state.sharding.inputs
        share = counts.busy / counts.offered if counts.offered else None
        running = inputs - counts.finished - counts.waiting
        return RunProgress(counts.finished, inputs, running, counts.waiting, counts.trips, share, self.where())

    def where(self) -> Places:
        """Return the blocks where lanes still run, with their lines, how many lanes wait for each, and one of them.

        Of a run whose calls run side by side, the blocks of tasks, and how many of these wait for each.
        """
        state = self._usable()
        if state is None or state.ended:
            return Places()
        return places_of(self._compiled, state)

    def save(self, path: Any) -> None:
        """Write a checkpoint, all or nothing; `f.load(path)` reads it, in another process too.

        Args:
            path: the file, in a folder that exists.

        Raises:
            StateError: it cannot be written there.
        """
        __tracebackhide__ = True
        self.write(checkpoint_file.checked_path(path))

    def write(self, path: Any, keep: Callable[..., None] = checkpoint_file.write) -> None:
        """Write a checkpoint to a path that was checked, by the function `keep`."""
        state, known = self._usable(), self.recognisable()
        about = {
            **header(self._compiled, "run"),
            "function": self._name,
            "types": fingerprint.types_of(self._given),
            "shared": sorted(self._given.shared),
            "mapped": {name: list(leaves) for name, leaves in self._given.mapped.items()},
            "inputs": self._given.lanes,
            "devices": 1 if state is None else state.sharding.devices,
            "arguments": known._digest,
            "run": encoded(state),
            **({"tasks": fingerprint.of_tasks(self._compiled)} if isinstance(state, TaskRun) else {}),
        }
        keep(path, about, {} if state is None else named(state.state))

    def recognisable(self) -> Run:
        """Return the machine with a digest of the arguments that it was started with, if they are still there: a call
        with the same ones may continue its checkpoint."""
        known = self._digest or self._arguments_gone
        return self if known else replace(self, _digest=fingerprint.of_arguments(self._given))

    @property
    def _arguments_gone(self) -> bool:
        """Whether the arguments are not there: a loaded machine has their types only, and a call may use them up."""
        leaves = [x for leaves in self._given.arrays.values() for x in leaves]
        return any(isinstance(x, jax.ShapeDtypeStruct) or getattr(x, "is_deleted", bool)() for x in leaves)

    def _given_away(self) -> bool:
        return self._paused is not None and any(x.is_deleted() for x in jax.tree.leaves(self._paused.state))

    def _usable(self) -> RunState | None:
        if self._given_away():
            title = "this machine has given its memory to the one that `advance(..., donate=True)` made of it"
            raise usage("PCB440", title, help="go on with that one, or leave `donate` out")
        return self._paused

    def __repr__(self) -> str:
        how = "its memory was given to a later machine" if self._given_away() else self.progress()
        return f"<pcbatch.Run {self._name}: {how}>"

    def __copy__(self) -> Run:
        return self

    def __deepcopy__(self, memo: Any) -> Run:
        return self

    def __reduce__(self) -> Any:
        title = "a machine is not pickled: it holds a compiled program"
        raise usage("PCB440", title, help="write it with `m.save(path)`, and read it with `f.load(path)`")


def traced(what: str) -> UsageError:
    """The error about a monitored run inside a trace, where there is no host between the trips of a program."""
    title = f"`{what}` is asked for inside a program that JAX traces"
    note = "the host looks after such a run, between the programs that the devices run"
    help = "call it outside of `jax.jit`, `jax.vmap`, `jax.grad` and other transformations; inside, `max_steps` ends "
    help += "lanes that go on for too long"
    return usage("PCB441", title, note, help=help)


def checkpointing(path: Any) -> Callable[[Any], None]:
    """Return the function that a monitored run calls to save its machine."""

    def keep(snapshot: Callable[[], Run]) -> None:
        snapshot().write(path, checkpoint_file.write_if_possible)

    return keep


@contextmanager
def _unchecked() -> Iterator[None]:
    """Keep JAX from looking for NaN in registers: they hold values of inactive lanes too."""
    with jax.debug_nans(False), jax.debug_infs(False):
        yield


@dataclass(frozen=True, slots=True)
class Place:
    """A block where lanes still run.

    Attributes:
        label: the label of the block.
        function: the function that it comes from.
        file: the name of the file, without folders.
        lines: the lines of the file.
        lanes: the number of lanes that wait for it, or of tasks, where calls run side by side.
        sample: the number of the input that one of them runs.
    """

    label: str
    function: str
    file: str
    lines: tuple[int, ...]
    lanes: int
    sample: int


class Places(tuple[Place, ...]):
    """The blocks where lanes still run, those with most lanes first; printed as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "no lane runs"
        rows = [(p.label, p.function, f"{p.file}:{ranges(p.lines)}", str(p.lanes), str(p.sample)) for p in self]
        return table(("block", "function", "lines", "lanes", "for example"), rows, ("lanes", "for example"))

    __repr__ = __str__


def places_of(compiled: Program, state: RunState) -> Places:
    """Return the blocks where lanes still run, or those for which records of tasks wait."""
    found = list(_of_lanes(compiled, state))
    if isinstance(state, TaskRun) and (waiting := state.waiting()):
        infos = block_infos(state.tasks.program)
        found += [_place(infos[w.number], w.loc, len(w.examples), int(w.examples[-1])) for w in waiting]
    return Places(sorted(found, key=lambda place: -place.lanes))


def _of_lanes(compiled: Program, state: RunState) -> Iterator[Place]:
    pc, inputs = state.running()
    for block, first, count in zip(*np.unique(pc, return_index=True, return_counts=True), strict=True):
        site = compiled.executable.where(int(block), None)
        yield _place(compiled.infos[block], site.loc, int(count), int(inputs[first]))


def _place(info: BlockStats, loc: Loc | None, lanes: int, sample: int) -> Place:
    lines = info.lines or (() if loc is None else (loc.line,))
    return Place(info.label, info.function, _file(loc), lines, lanes, sample)


def _file(loc: Loc | None) -> str:
    return "" if loc is None else loc.file.replace("\\", "/").rpartition("/")[2]
