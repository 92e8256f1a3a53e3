"""Lanes that failed, as an error that says which, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pcbatch.arguments import Arguments
from pcbatch.diagnostics import Diagnostic, Label, Loc
from pcbatch.errors import BatchRuntimeError
from pcbatch.ir import message as messages
from pcbatch.ir.ops import ASSERTION, Fail
from pcbatch.lowering.abstract import leaf_names
from pcbatch.options import Options
from pcbatch.runtime.pc import Outcome
from pcbatch.runtime.status import Site, Status

SHOWN = 5  # lanes listed in a message

Locate = Callable[[int], Site]  # lane -> where it stopped


def raise_failures(name: str, outcome: Outcome, options: Options, given: Arguments, locate: Locate) -> None:
    """Raise BatchRuntimeError if a lane failed; all kinds of failure in one error."""
    status = np.asarray(outcome.status)
    found = []
    for kind in (Status.STACK_FULL, Status.STEP_LIMIT):
        lanes = np.flatnonzero(status == int(kind))
        if lanes.size:
            found.append(_limit(name, kind, lanes, len(status), outcome.depth, options, given, locate))
    found += _failures(name, outcome, given, locate)
    if found:
        raise BatchRuntimeError(found)


def _limit(
    name: str, kind: Status, lanes: Any, total: int, depth: int, options: Options, given: Arguments, locate: Locate
) -> Diagnostic:
    site = locate(int(lanes[0]))
    note = "first lanes: " + ", ".join(_lane(int(lane), given) for lane in lanes[:SHOWN])
    if kind is Status.STACK_FULL:
        title = f"{_count(lanes, total)} ran out of stack (depth {depth})"
        label = f"nested call number {depth + 1} was made here"
        note += f"; on the stack: {site.held}" if site.held else ""
        helps = (f"raise it with `max_depth={2 * depth}`, or call `{name}.run(...)` for a per-lane status",)
        code = "PCB901"
    else:
        title = f"{_count(lanes, total)} did not end within max_steps={options.max_steps} blocks"
        label = "the first of them stopped here"
        helps = (f"raise `max_steps`, or call `{name}.run(...)` for a per-lane status",)
        code = "PCB902"
    return Diagnostic(code, title, None if site.loc is None else Label(site.loc, label), notes=(note,), helps=helps)


def _failures(name: str, outcome: Outcome, given: Arguments, locate: Locate) -> Iterator[Diagnostic]:
    """One finding for every `assert` and `raise` that lanes reached, in the order of the source."""
    status = np.asarray(outcome.status)
    failed = np.flatnonzero((status == int(Status.ASSERTION)) | (status == int(Status.ERROR)))
    places: dict[tuple[Loc | None, Fail], list[int]] = {}
    for lane in failed.tolist():
        fail = locate(lane).fail
        assert fail is not None, lane
        places.setdefault((fail.loc, fail), []).append(lane)
    ordered = sorted(places.items(), key=lambda item: (item[0][0] is not None, item[0][0] or item[1][0]))
    for (_, fail), lanes in ordered:
        yield _failure(name, fail, lanes, len(status), outcome.shown, given)


def _failure(
    name: str, fail: Fail, lanes: Sequence[int], total: int, shown: Mapping[str, Any], given: Arguments
) -> Diagnostic:
    count = _count(lanes, total)
    if fail.kind == ASSERTION and fail.name == "AssertionError":
        code, title, label = "PCB903", f"{count} failed an assertion", "false in these lanes"
    else:
        code, title, label = "PCB904", f"{count} raised `{fail.name}`", ""
    if fail.message and not messages.variables(fail.message):
        title += f": {messages.text(fail.message, {})}"
    lines = [_lane(lane, given) + _message(fail, shown, lane) for lane in lanes[:SHOWN]]
    note = "\n".join(["first lanes:", *(f"  {line}" for line in lines)])
    if not messages.variables(fail.message):
        note = "first lanes: " + ", ".join(lines)
    helps = (f"call `{name}.run(...)` for a per-lane status",)
    return Diagnostic(code, title, None if fail.loc is None else Label(fail.loc, label), notes=(note,), helps=helps)


def _message(fail: Fail, shown: Mapping[str, Any], lane: int) -> str:
    """What the lane has to say, when that differs between lanes."""
    names = messages.variables(fail.message)
    if not names:
        return ""
    return ": " + messages.text(fail.message, {v: np.asarray(shown[v])[lane] for v in names})


def _count(lanes: Sequence[int], total: int) -> str:
    return f"{len(lanes)} of {total} {'lane' if total == 1 else 'lanes'}"


def _lane(lane: int, given: Arguments) -> str:
    values = []
    for param, type_ in given.types.items():
        if param in given.shared:
            continue
        for leaf, array in zip(leaf_names(param, type_), given.arrays[param], strict=False):
            if getattr(array, "ndim", 2) == 1:
                values.append(f"{leaf}={np.asarray(array)[lane]}")
    return f"{lane} ({', '.join(values)})" if values else str(lane)
