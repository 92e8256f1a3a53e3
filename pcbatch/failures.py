"""Lanes that failed, as an error that says which, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pcbatch.arguments import Arguments
from pcbatch.diagnostics import Diagnostic, Label, Loc
from pcbatch.errors import BatchRuntimeError
from pcbatch.lowering.abstract import leaf_names
from pcbatch.options import Options
from pcbatch.runtime.status import Status

SHOWN = 5  # lanes listed in a message

Locate = Callable[[int], tuple[Loc | None, str]]  # lane -> where it stopped, and what was on the stack


def raise_failures(name: str, status: Any, depth: int, options: Options, given: Arguments, locate: Locate) -> None:
    """Raise BatchRuntimeError if a lane failed; all kinds of failure in one error."""
    status = np.asarray(status)
    found = []
    for kind in (Status.STACK_FULL, Status.STEP_LIMIT):
        lanes = np.flatnonzero(status == int(kind))
        if lanes.size:
            found.append(_diagnostic(name, kind, lanes, len(status), depth, options, given, locate))
    if found:
        raise BatchRuntimeError(found)


def _diagnostic(
    name: str, kind: Status, lanes: Any, total: int, depth: int, options: Options, given: Arguments, locate: Locate
) -> Diagnostic:
    loc, held = locate(int(lanes[0]))
    note = "first lanes: " + ", ".join(describe_lane(int(lane), given) for lane in lanes[:SHOWN])
    plural = "lane" if total == 1 else "lanes"
    if kind is Status.STACK_FULL:
        title = f"{len(lanes)} of {total} {plural} ran out of stack (depth {depth})"
        label = f"nested call number {depth + 1} was made here"
        note += f"; on the stack: {held}" if held else ""
        helps = (f"raise it with `max_depth={2 * depth}`, or call `{name}.run(...)` for a per-lane status",)
        code = "PCB901"
    else:
        title = f"{len(lanes)} of {total} {plural} did not end within max_steps={options.max_steps} blocks"
        label = "the first of them stopped here"
        helps = (f"raise `max_steps`, or call `{name}.run(...)` for a per-lane status",)
        code = "PCB902"
    return Diagnostic(code, title, None if loc is None else Label(loc, label), notes=(note,), helps=helps)


def describe_lane(lane: int, given: Arguments) -> str:
    """The number of a lane, with its scalar inputs."""
    values = []
    for param, type_ in given.types.items():
        if param in given.shared:
            continue
        for leaf, array in zip(leaf_names(param, type_), given.arrays[param], strict=False):
            if getattr(array, "ndim", 2) == 1:
                values.append(f"{leaf}={np.asarray(array)[lane]}")
    return f"{lane} ({', '.join(values)})" if values else str(lane)
