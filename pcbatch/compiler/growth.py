"""Runs whose containers grow: a run in which a lane had no room is repeated by a program with a larger capacity.

Only outside of traces. Each room is a program to compile, so it grows by much at a time, and later runs of the same
signature begin with what this one has needed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import jax
import numpy as np

from pcbatch.compiler.program import Program
from pcbatch.data.capacity import LARGEST, NO_ROOM, START_CAPACITY, Room, next_rooms, rounded
from pcbatch.data.checks import room_of
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import TooLargeError
from pcbatch.ir import message as messages
from pcbatch.ir.ops import Fail
from pcbatch.options import Options
from pcbatch.runtime.sharding.lane_sharding import to_host
from pcbatch.runtime.vm import prints
from pcbatch.runtime.vm.raw_result import RawResult, no_donation
from pcbatch.runtime.vm.status import Status

Run = Callable[[Program], RawResult]


def run_growing(program: Program, run: Run) -> tuple[Program, RawResult]:
    """Run a program, and again with larger capacities while lanes are full and may have more room.

    Args:
        program: the program with the room that the first run has.
        run: runs a program to its end; called once for each room. Arguments are not donated, and what a lane has
            printed is not printed again.

    Returns:
        The program of the last run, and what that left.
    """
    if not program.may_be_full:
        return program, run(program)
    with no_donation(), prints.once() if program.prints else nullcontext(prints.Journal()) as journal:

        def run_once(program: Program) -> RawResult:
            journal.next_run()
            return run(program)

        program, raw = _first(program, run_once)
        while full := lanes_full(program, raw):
            larger = _repeated(program, full, run_once)
            if isinstance(larger, Diagnostic):
                return replace(program, room_notes=(larger.title, *larger.notes)), raw
            if larger is None:
                return program, raw
            program, raw = larger
        if not isinstance(raw.status, jax.core.Tracer):
            program.recompile.remember(program.room)
        return program, raw


def _first(program: Program, run: Run) -> tuple[Program, RawResult]:
    try:
        return program, run(program)
    except TooLargeError:
        # What runs of fewer lanes have needed may be too much for more of them.
        start = min(START_CAPACITY, limit_of(program.options))
        if max(program.room.sizes) <= start:
            raise
        program = program.recompile.with_room(program.room.within(start))
        return program, run(program)


def _repeated(program: Program, needed: Room, run: Run) -> tuple[Program, RawResult] | Diagnostic | None:
    """Run with the next room that memory allows; else return why there is none, None for no reason but a limit."""
    refused: Diagnostic | None = None
    for room in rooms_after(program, needed):
        larger = program.recompile.with_room(room)
        try:
            return larger, run(larger)
        except TooLargeError as error:
            refused = error.diagnostics[0]
    return refused


def limit_of(options: Options) -> int:
    """Return the largest capacity that containers may get."""
    return LARGEST if options.max_length is None else rounded(options.max_length)


def rooms_after(program: Program, needed: Room) -> tuple[Room, ...]:
    """Return the rooms that may follow that of a program, in which lanes needed so much."""
    return next_rooms(program.room, needed, limit_of(program.options), _has_nested(program))


def _has_nested(program: Program) -> bool:
    """Return whether a variable of a program has room for as many elements in each of as many."""
    types = (var.type for var in program.stages.opt.vars.values())
    room = max(program.room.elements, START_CAPACITY)
    return any(type_ is not None and type_.shape.count(room) > 1 for type_ in types)


def may_grow(program: Program) -> bool:
    """Return whether containers of a program may get more room, as far as options tell."""
    return program.may_be_full and min(filter(None, program.room.sizes)) < limit_of(program.options)


def lanes_full(program: Program, raw: RawResult) -> Room:
    """Return the room that lanes of a whole run have lacked; none if no lane was full."""
    if isinstance(raw.status, jax.core.Tracer):
        return NO_ROOM
    status = np.asarray(to_host(raw.status))
    full = status == int(Status.LIST_FULL)
    if not full.any() or (status == int(Status.RUNNING)).any():  # what was stopped is not begun again
        return NO_ROOM
    raw = raw.unpacked()
    pc, most = np.asarray(to_host(raw.pc)), NO_ROOM
    for place in np.unique(pc[full]):
        fail = program.executable.where(int(place), None).fail
        shown = () if fail is None else messages.variables(fail.message)
        sizes = (np.asarray(to_host(raw.shown[name]))[full & (pc == place)] for name in shown)
        most = most.joined(lacking(fail, max((int(np.max(size)) for size in sizes), default=1)))
    return most


def lacking(fail: Fail | None, size: int) -> Room:
    """Return the room of so much of what a failure lacks; of elements where that is not known."""
    return room_of(None, size) if fail is None else room_of(fail.name, size, messages.constant(fail.message))
