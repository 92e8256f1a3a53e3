"""Whether a program can run as tasks, by what it does; the first reason against it is told to users."""

from __future__ import annotations

from collections.abc import Iterator

from pcbatch.ir.analysis.callgraph import recursive
from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.ops import Check, Print

NO_CALLS, NOT_RECURSIVE = "no function is called that was not inlined", "no function calls itself"
NO_RECURSION = (NO_CALLS, NOT_RECURSIVE)


def reasons_against(program: CfgProgram) -> Iterator[str]:
    """Yield what keeps the calls of a program from running side by side, in a few words each."""
    if not any(isinstance(op, Call) for f in program.functions for op in f.ops):
        yield NO_CALLS
        return
    if not recursive(program):
        yield NOT_RECURSIVE
    for f in program.functions:
        for block in f.blocks:
            if any(isinstance(op, Print) for op in block.ops):
                yield f"`{f.name}` prints, and the order of lines is kept"
            if any(isinstance(op, Check) for op in block.ops):
                yield f"`{f.name}` has checks"


def why_not(program: CfgProgram) -> str | None:
    """The first reason against tasks; None if there is none."""
    return next(reasons_against(program), None)
