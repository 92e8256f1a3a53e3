"""Lanes that failed, as an error that says which, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.call.describe_lane import describe_lane
from pcbatch.compiler.growth import lacking
from pcbatch.compiler.program import Program
from pcbatch.data.capacity import LARGEST, NO_ROOM, Room, rounded
from pcbatch.data.functions.links import GIVEN_ONCE, ONE_PART
from pcbatch.data.mappings.entries import TOO_LARGE
from pcbatch.data.sequences.list_reductions import SET_ORDER
from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.errors import BatchRuntimeError
from pcbatch.ir import message as messages
from pcbatch.ir.ops import ASSERTION, LIMIT, Fail
from pcbatch.lowering.diagnose.primitive_errors import REST
from pcbatch.options import Options
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.sharding.lane_sharding import to_host
from pcbatch.runtime.vm.raw_result import RawResult, replaying
from pcbatch.runtime.vm.status import Site, Status
from pcbatch.transforms.failure_callback import Notice, failure_mode, notify_if

SHOWN = 5  # lanes listed in a message
SHOWN_LOCATIONS = 3  # spans where lanes of one kind stopped
WIDER = 'for numbers of 64 bits, `jax.config.update("jax_enable_x64", True)` before the first array'
LIMIT_HELPS = {
    "`**`": REST,
    SET_ORDER: "give equal keys an order: `key=lambda x: (f(x), x)` in place of `key=f`",
    ONE_PART: GIVEN_ONCE,
}

Locate = Callable[[int], Site]  # from a lane to the block where it stopped


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run in which lanes failed, with everything that messages show of it."""

    name: str
    raw: RawResult
    options: Options
    call: Arguments
    locate: Locate
    growth_notes: tuple[str, ...] = ()  # why stacks could not grow, if it was for memory
    room: Room = NO_ROOM  # of containers
    room_notes: tuple[str, ...] = ()  # why it could not be larger, if it was for memory
    traced: bool = False  # whether JAX has traced the run

    def lanes(self, kind: Status) -> list[int]:
        """The numbers of the lanes that ended with this status."""
        return [int(lane) for lane in np.flatnonzero(np.asarray(self.raw.status) == int(kind))]

    def counted(self, lanes: Sequence[int]) -> str:
        """A count of lanes for a title, such as `2 of 512 lanes`."""
        total = len(np.asarray(self.raw.status))
        return f"{len(lanes)} of {total} {'lane' if total == 1 else 'lanes'}"

    def notes(self, lanes: Sequence[int]) -> tuple[str, ...]:
        """Notes on the first of these lanes, with their inputs and depths, and on the trips of the machine."""
        shown = ", ".join(self.lane(lane) for lane in lanes[:SHOWN])
        more = f" and {len(lanes) - SHOWN} more" if len(lanes) > SHOWN else ""
        first = f"first lanes: {shown}{more}"
        # A program that the user has jitted does not return trips, and lane after lane there are none.
        if self.raw.trips is None or self.options.plan.emitter == "scalar":
            return (first,)
        trips = int(self.raw.trips)
        return (first, f"the machine made {trips} trip{'' if trips == 1 else 's'}")

    def lane(self, lane: int) -> str:
        """The number of a lane, its inputs and its depth."""
        depths = self.raw.depths
        deep = "" if depths is None else f", {int(depths[lane])} calls deep"
        return describe_lane(lane, self.call, deep)

    def spans(self, lanes: Sequence[int], label: str) -> tuple[Label | None, tuple[Label, ...]]:
        """The span where the first of these lanes stopped, with this label, and those of others."""
        locations: dict[Loc, int] = {}
        for lane in lanes:
            loc = self.locate(lane).loc
            if loc is not None:
                locations.setdefault(loc, lane)
        if not locations:
            return None, ()
        first, *others = locations
        secondary = tuple(Label(loc, f"lane {locations[loc]} stopped here") for loc in others[: SHOWN_LOCATIONS - 1])
        return Label(first, label), secondary


def raise_failures(name: str, program: Program, raw: RawResult, call: Arguments) -> None:
    """Raise BatchRuntimeError if a lane failed, unless this is being traced; all kinds of failure in one error."""
    if isinstance(raw.status, jax.core.Tracer) or not np.count_nonzero(to_host(raw.status)):
        return
    raw = jax.tree.map(to_host, raw.unpacked())
    call = replace(call, arrays={name: tuple(map(_to_host, leaves)) for name, leaves in call.arrays.items()})
    pc, back = np.asarray(raw.pc), None if raw.back is None else np.asarray(raw.back)

    def locate(lane: int) -> Site:
        return program.executable.where(int(pc[lane]), None if back is None else int(back[lane]))

    executable = program.executable if isinstance(program.executable, PcExecutable) else None
    notes = () if executable is None or replaying() else executable.stacks.notes(raw.depth)
    room = program.room, program.room_notes
    diagnostics = failure_diagnostics(FailedRun(name, raw, program.options, call, locate, notes, *room))
    if diagnostics:
        raise BatchRuntimeError(diagnostics)


def lane_errors(name: str, program: Program, raw: RawResult, call: Arguments) -> dict[int, BatchRuntimeError]:
    """Return the errors of the lanes that failed, by lane, each as if the lane had run alone."""
    raw = jax.tree.map(to_host, raw.unpacked())
    return {int(k): _lane_error(name, program, raw, call, int(k)) for k in np.flatnonzero(raw.status)}


def _lane_error(name: str, program: Program, raw: RawResult, call: Arguments, lane: int) -> BatchRuntimeError:
    rows = slice(lane, lane + 1)
    try:
        raise_failures(name, program, raw.of_lanes(lambda x: x[rows]), call.part(rows))
    except BatchRuntimeError as error:
        return error
    raise AssertionError(f"lane {lane} has not failed")


def failure_diagnostics(report: FailedRun) -> list[Diagnostic]:
    """Return one diagnostic for every kind of failure."""
    kinds = {Status.STACK_FULL: _stack_full, Status.STEP_LIMIT: _step_limit, Status.RUNNING: _running}
    by_status = [describe(report, lanes) for kind, describe in kinds.items() if (lanes := report.lanes(kind))]
    return [*by_status, *_full(report, report.lanes(Status.LIST_FULL)), *_failures(report)]


def _to_host(leaf: Any) -> Any:
    """Copy an argument to the host, unless its buffer was donated."""
    donated = isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.is_deleted()
    return leaf if donated else to_host(leaf)


def _stack_full(report: FailedRun, lanes: Sequence[int]) -> Diagnostic:
    depth = report.raw.depth
    primary, secondary = report.spans(lanes, f"nested call number {depth + 1} was made here")
    held = report.locate(lanes[0]).held
    notes = report.notes(lanes) + ((f"on the stack: {held}",) if held else ())
    title = f"{report.counted(lanes)} ran out of stack (depth {depth})"
    way_out = f"or call `{report.name}.run(...)` for a per-lane status"
    if report.growth_notes:
        notes = (notes[0].replace("first lanes", "deepest lanes"), *report.growth_notes, *notes[1:])
        title = f"{report.counted(lanes)} ran out of memory for their stacks (depth {depth})"
        help = "check that the recursion ends for these inputs; then give stacks more with `max_memory=`"
        fewer = len(np.asarray(report.raw.status)) // 2
        help += f", run fewer lanes at a time, `{report.name}.map(..., lanes={fewer})`" if fewer else ""
        help += f", {way_out}"
    elif report.options.max_depth is None:  # stacks grew as far as they may
        help = (
            f"check that the recursion ends for these inputs; then give it room with `max_depth={2 * depth}`, {way_out}"
        )
    else:
        help = f"raise it with `max_depth={2 * depth}`, {way_out}"
    return Diagnostic("PCB901", title, primary, secondary, notes, (help,))


def _full(report: FailedRun, lanes: Sequence[int]) -> Iterator[Diagnostic]:
    """The diagnostics of lanes of which something was full, one for each part of the room."""
    rooms = {lane: report.room.needing(lacking(report.locate(lane).fail, 1)) for lane in lanes}
    for k, (most, words) in enumerate(zip(report.room.sizes, report.room.words, strict=True)):
        if some := [lane for lane in lanes if rooms[lane].sizes[k]]:
            yield _container_full(report, some, most, words)


def _container_full(report: FailedRun, lanes: Sequence[int], most: int, words: tuple[str, str, str]) -> Diagnostic:
    what, parts, kinds = words
    needed = max(map(partial(_needed, report), lanes))
    primary, secondary = report.spans(lanes, "there is no room for one more here")
    notes = (*report.room_notes, *report.notes(lanes))
    title = f"{report.counted(lanes)} need {what} of more than {most:,} {parts}"
    ways_out = f"or call `{report.name}.run(...)` for a per-lane status"
    wider = f"`max_length={rounded(max(needed, 2 * most))}`"
    if report.room_notes:
        fewer = len(np.asarray(report.raw.status)) // 2
        help = "check that it does not grow for ever for these inputs; then give the machine more with `max_memory=`"
        help += f", run fewer lanes at a time, `{report.name}.map(..., lanes={fewer})`" if fewer else ""
    elif report.options.max_length is not None:
        title += f" (max_length={report.options.max_length})"
        help = f"raise it with {wider}, or leave it out"
    elif most >= LARGEST:
        help = "check that it does not grow for ever for these inputs; keep so many values in an array"
    else:
        where = "inside `jit`" if report.traced else "in a run that cannot be repeated"
        notes = (
            f"{where} {kinds} have room for {most:,} {parts} and do not grow, unless `max_length` says more",
            *notes,
        )
        help = f"give them room with {wider}"
    return Diagnostic("PCB906", title, primary, secondary, notes, (f"{help}, {ways_out}",))


def _needed(report: FailedRun, lane: int) -> int:
    """The number of elements that a lane had no room for."""
    fail = report.locate(lane).fail
    names = () if fail is None else messages.variables(fail.message)
    return max((int(np.asarray(report.raw.shown[name])[lane]) for name in names), default=1)


def _failures(report: FailedRun) -> Iterator[Diagnostic]:
    """One diagnostic for every `assert`, `raise` and limit of lanes that lanes reached, in the order of the source."""
    by_fail: dict[tuple[Loc | None, Fail], list[int]] = {}
    for lane in sorted(lane for kind in (Status.ASSERTION, Status.ERROR, Status.LIMIT) for lane in report.lanes(kind)):
        fail = report.locate(lane).fail
        assert fail is not None, lane
        by_fail.setdefault((fail.loc, fail), []).append(lane)
    ordered = sorted(by_fail.items(), key=lambda item: (item[0][0] is not None, item[0][0] or item[1][0]))
    for (_, fail), lanes in ordered:
        yield _failure(report, fail, lanes)


def _failure(report: FailedRun, fail: Fail, lanes: Sequence[int]) -> Diagnostic:
    count = report.counted(lanes)
    if fail.kind == ASSERTION and fail.name == "AssertionError":
        code, title, label = "PCB903", f"{count} failed an assertion", "false in these lanes"
    elif fail.kind == LIMIT:
        code, title, label = "PCB907", f"{count} cannot hold a value that Python has here", "computed here"
    else:
        code, title, label = "PCB904", f"{count} raised `{fail.name}`", ""
    notes = report.notes(lanes)
    if messages.variables(fail.message):
        messages_of_lanes = (f"{report.lane(lane)}: {_message(report, fail, lane)}" for lane in lanes[:SHOWN])
        notes = ("\n".join(["first lanes:", *(f"  {line}" for line in messages_of_lanes)]), *notes[1:])
    elif fail.message:
        title += f": {messages.text(fail.message, {})}"
    helps: tuple[str, ...] = (f"call `{report.name}.run(...)` for a per-lane status",)
    if fail.kind == LIMIT:
        helps = (*(help for part, help in LIMIT_HELPS.items() if part in title), *helps)
        if jnp.result_type(int) != np.int64 and any(words in title for words in (" fit ", TOO_LARGE)):
            helps = (WIDER, *helps)
    primary = None if fail.loc is None else Label(fail.loc, label)
    return Diagnostic(code, title, primary, notes=notes, helps=helps)


def _message(report: FailedRun, fail: Fail, lane: int) -> str:
    """The message of a lane, with its own values of the variables in it."""
    shown = report.raw.shown
    values = {v: np.asarray(jax.lax.stop_gradient(shown[v]))[lane] for v in messages.variables(fail.message)}
    return messages.text(fail.message, values)


def _step_limit(report: FailedRun, lanes: Sequence[int]) -> Diagnostic:
    primary, secondary = report.spans(lanes, f"lane {lanes[0]} stopped here")
    title = f"{report.counted(lanes)} did not end within max_steps={report.options.max_steps} blocks"
    help = f"raise `max_steps`, a number of blocks of each lane, or call `{report.name}.run(...)` for a per-lane status"
    return Diagnostic("PCB902", title, primary, secondary, report.notes(lanes), (help,))


def _running(report: FailedRun, lanes: Sequence[int]) -> Diagnostic:
    """The diagnostic of a run whose time is over; blocks where most lanes wait come first."""
    blocks: dict[str, list[int]] = {}
    for lane in lanes:
        blocks.setdefault(report.locate(lane).label, []).append(lane)
    ordered = sorted(blocks.items(), key=lambda item: -len(item[1]))
    first = ordered[0][1]
    some = f"lane {first[0]} waits here" if len(first) == 1 else f"{len(first)} lanes wait here, for example {first[0]}"
    primary, secondary = report.spans([waiting[0] for _, waiting in ordered], some)
    lines = [_at(report, label, waiting) for label, waiting in ordered[:SHOWN]]
    more = [f"  and {len(ordered) - SHOWN} more blocks"] if len(ordered) > SHOWN else []
    notes = ("\n".join(["where they are:", *lines, *more]), *report.notes(lanes)[1:])
    title = f"{report.counted(lanes)} had not ended when the time was over"
    help = f"check that these lanes end; then raise `timeout`, or call `{report.name}.run(..., timeout=...)` for a "
    help += f"per-lane status, or `{report.name}.start(...)` for a machine that can go on later"
    return Diagnostic("PCB905", title, primary, secondary, notes, (help,))


def _at(report: FailedRun, label: str, lanes: Sequence[int]) -> str:
    loc = report.locate(lanes[0]).loc
    line = "" if loc is None else f" (line {loc.line})"
    what = "1 lane" if len(lanes) == 1 else f"{len(lanes)} lanes"
    return f"  block {label}{line}: {what}, for example {report.lane(lanes[0])}"


NO_INPUTS = Arguments({}, frozenset(), {}, {}, 0)  # a traced program does not keep its inputs to show them


def report_when_run(program: Program, name: str, raw: RawResult) -> RawResult:
    """Make a traced call warn of lanes that fail, or raise, when it runs (`on_failure`); a call outside of traces is
    returned as it is."""
    if not isinstance(raw.status, jax.core.Tracer) or not raw.values or not _may_fail(program):
        return raw
    rest, tree = jax.tree.flatten((raw.pc, raw.depths, raw.back, raw.shown))
    if name not in program.notices:
        describe = partial(_diagnostics, name, program.options, program.executable.where, tree, raw.depth, program.room)
        program.notices.setdefault(name, Notice(describe))
    flags = (raw.status, *rest)
    values = notify_if(program.notices[name], failure_mode(program.options), flags, raw.values)
    return replace(raw, values=tuple(values))


def _may_fail(program: Program) -> bool:
    """Whether a lane of a traced run may end in another way than by returning."""
    options, executable = program.options, program.executable
    if options.max_steps is not None:
        return True
    if isinstance(executable, PcExecutable):
        deepest = executable.static_depth
        opens = executable.machine.layout.frames is not None  # calls in tail position are jumps
        too_deep = opens and (deepest is None or deepest > executable.stacks.traced())
    else:
        too_deep = options.max_depth is not None
    return too_deep or any(isinstance(end, Fail) for end in program.ends)


def _diagnostics(
    name: str,
    options: Options,
    where: Callable[[int, int | None], Site],
    tree: Any,
    depth: int,
    room: Room,
    status: Any,
    *rest: Any,
) -> Sequence[Diagnostic]:
    """One diagnostic for every kind of failure.

    `status` is int32[..., lanes], with an axis in front for each `vmap` around the call; `rest` are the other leaves of
    the raw result, of which `tree` is the structure.
    """
    pc, depths, back, shown = jax.tree.unflatten(tree, [_by_lane(x, status.ndim, status.shape) for x in rest])
    raw = RawResult((), status.reshape(-1), None, (), pc, depths, back, shown, depth)

    def locate(lane: int) -> Site:
        return where(int(pc[lane]), None if back is None else int(back[lane]))

    return failure_diagnostics(FailedRun(name, raw, options, NO_INPUTS, locate, room=room, traced=True))


def _by_lane(x: Any, ndim: int, front: tuple[int, ...]) -> Any:
    """Reshape [..., lanes, ...] to have all lanes in one axis; a value that elements share is repeated for each."""
    if x.shape[:ndim] != front:
        x = np.broadcast_to(x, (*front[: len(front) - 1], *x.shape))
    return x.reshape(-1, *x.shape[ndim:])
