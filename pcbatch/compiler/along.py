"""Decides, from the errors of type inference, which functions without a decorator have to be compiled along.

An error such as "the truth of this value is asked for" that comes from inside a helper of the user's own code is cured
by compiling the helper along (see `frontend.source.along`); an error of a helper that is compiled along already may be
cured by giving each call a copy of it, with types of its own.
"""

from __future__ import annotations

import jax

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.errors import NeedsUnrolling, Refusal, UsageError
from pcbatch.frontend.source.along import Along, is_kept, is_users
from pcbatch.ir.callgraph import calls, recursive
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.lowering.diagnose.primitive_errors import NOT_CONSTANT, NOT_CONSTANT_TEXTS
from pcbatch.lowering.diagnose.traceback_spans import Frame, called, user_frames
from pcbatch.lowering.typing.infer import Inferred

CODES = frozenset({"PCB304", "PCB305", "PCB306"})
"""Codes of refusals that concern only code that is traced: as a function of the program it may do the same."""


class Again(Exception):
    """Ends a compilation that has to start again, with more functions compiled along."""


def look(program: CfgProgram, inferred: Inferred, along: Along) -> None:
    """Raise Again if errors of inference ask for functions to be compiled along, or to be copied into their callers."""
    for key, error in inferred.errors.items():
        op = program.function(key[0]).block(key[1]).ops[key[2]]
        if isinstance(op, Prim) and op.loc is not None and (why := _why(error)):
            chain = called(user_frames(error), op.loc)
            for frame in _callable(chain):
                along.want(frame.code, op.loc, f"{why} ({_line(chain[-1].loc)})")
            for code in () if chain else getattr(error, "called", ()):  # found when all calls had returned
                along.want(code, op.loc, why)
    if along.wanted:
        raise Again
    _copy(program, inferred, along)


def _why(error: Exception) -> str:
    """What a helper does that only compiled code can do, in words; empty if compiling it would not help."""
    match error:
        case NeedsUnrolling():
            return ""
        case jax.errors.TracerBoolConversionError():
            return "it branches on a value of the lane"
        case RecursionError():
            return "it calls itself"
        case Refusal() if error.code in CODES:
            return str(error)
        case UsageError() if any(diagnostic.code == "PCB412" for diagnostic in error.diagnostics):
            return "it calls a batched function"
    if isinstance(error, NOT_CONSTANT) or any(text in str(error) for text in NOT_CONSTANT_TEXTS):
        return "it needs the number of a value of the lane"
    return ""


def _line(loc: Loc) -> str:
    return f"line {loc.line}"


def _callable(chain: list[Frame]) -> list[Frame]:
    """The functions of the user at the start of a chain of calls, up to the first that is never compiled."""
    found: list[Frame] = []
    for frame in chain:
        if not is_users(frame.code) or is_kept(frame.code):
            break
        if not frame.name.startswith("<") or frame.name == "<lambda>":  # a comprehension has a frame, too
            found.append(frame)
    return found


def _copy(program: CfgProgram, inferred: Inferred, along: Along) -> None:
    """Raise Again if a function that is compiled along fails, or has other types in another call: then each call gets
    a copy of it, as a primitive is traced for each."""
    failed = {key[0] for key in inferred.errors} | {function for function, _ in inferred.conflicts}
    loops = recursive(program)
    called = [name for names in calls(program).values() for name in names]
    again = False
    for function in program.functions:
        if function.name in failed and function.name in called and function.name not in loops:
            again |= along.copy_calls(function.name)
    if again:
        raise Again
