"""Decides, from the errors of type inference, which functions without a decorator have to be compiled along.

An error such as "the truth of this value is asked for" that comes from inside a helper of the user's own code is cured
by compiling the helper along (see `frontend.source.along`); an error of a helper that is compiled along already may be
cured by giving each call a copy of it, with types of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import CodeType, FunctionType

import jax

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.diagnostics.lane_words import readable
from pcbatch.errors import CompileError, MustCompileAlong, NeedsUnrolling, Refusal, UsageError
from pcbatch.frontend.source.along import Along, callee_of, is_kept, is_users
from pcbatch.ir.callgraph import calls, recursive
from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.diagnose.primitive_errors import NOT_CONSTANT, NOT_CONSTANT_TEXTS
from pcbatch.lowering.diagnose.traceback_spans import Frame, called, user_frames
from pcbatch.lowering.typing.abstract_values import Leaf
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.trace_errors import ChangedArgument
from pcbatch.origins import KINDS

CODES = frozenset({"PCB304", "PCB305", "PCB306", "PCB320"})
"""Codes of refusals that concern only code that is traced: as a function of the program it may do the same."""

INLINED = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Names of code that is part of the expression in which it stands."""

IMMUTABLE = "JAX arrays are immutable"  # in the message of a TypeError of JAX


class Again(Exception):
    """Ends a compilation that has to start again, with more functions compiled along."""


def look(program: CfgProgram, inferred: Inferred, along: Along) -> None:
    """Raise Again if errors of inference ask for functions to be compiled along, or to be copied into their callers."""
    for key, error in inferred.errors.items():
        op = program.function(key[0]).block(key[1]).ops[key[2]]
        if isinstance(op, Prim) and op.loc is not None and (why := _why(error)):
            if isinstance(error, MustCompileAlong):
                for code in error.functions:
                    along.want(code, op.loc, why)
                continue
            chain = called(user_frames(error), op.loc)
            for frame in _callable(chain):
                along.want(frame.code, op.loc, f"{why} ({_line(chain[-1].loc)})")
            later = getattr(error, "called", ()) or (_helpers(op) if isinstance(error, ChangedArgument) else ())
            for code in () if chain else later:  # found when all calls had returned
                along.want(code, op.loc, why)
    if along.wanted:
        raise Again
    _copy(program, inferred, along)


def _why(error: Exception) -> str:
    """The reason why compiling a helper along helps, in words; empty if compiling it would not help."""
    match error:
        case NeedsUnrolling():
            return ""
        case jax.errors.TracerBoolConversionError():
            return "it branches on a value of the lane"
        case RecursionError():
            return "it calls itself"
        case TypeError() if IMMUTABLE in str(error):
            return "it changes an array in place"
        case ChangedArgument():
            return "it changes an argument in place"
        case Refusal() if error.code in CODES:
            return str(error)
        case UsageError() if any(diagnostic.code == "PCB412" for diagnostic in error.diagnostics):
            return "it calls a batched function"
    if isinstance(error, NOT_CONSTANT) or any(text in str(error) for text in NOT_CONSTANT_TEXTS):
        return "it needs the number of a value of the lane"
    if isinstance(error, TypeError | AttributeError) and readable(str(error)) != str(error):
        return "it gives a value of the lane to a function of Python's own"
    return ""


def _helpers(op: Prim) -> list[CodeType]:
    """The functions of the user that a primitive names, or that are defined around it and written out in it."""
    fn = op.expr.fn
    if not isinstance(fn, FunctionType):
        return []
    cells = [cell.cell_contents for cell in fn.__closure__ or ()]
    values = [*(fn.__globals__.get(name) for name in fn.__code__.co_names), *cells]
    functions = (callee_of(value)[0] for value in values if value is not None)
    codes = [function.__code__ for function in functions if function is not None]
    codes += [part for part in fn.__code__.co_consts if isinstance(part, CodeType) and part.co_name not in INLINED]
    return [code for code in codes if is_users(code)]


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
    failed |= {op.func for function, op in _calls(program) if not _has_types(program, inferred, function, op)}
    loops = recursive(program)
    called = [name for names in calls(program).values() for name in names]
    again = False
    for function in program.functions:
        if function.name in failed and function.name in called and function.name not in loops:
            again |= along.copy_calls(function.name)
    if again:
        raise Again


def _calls(program: CfgProgram) -> Iterator[tuple[str, Call]]:
    for function in program.functions:
        for block in function.blocks:
            yield from ((function.name, op) for op in block.ops if isinstance(op, Call))


def _has_types(program: CfgProgram, inferred: Inferred, function: str, call: Call) -> bool:
    """Whether the arguments of a call have the dtypes that the parameters have over all calls."""
    params = program.function(call.func).params
    for param, arg in zip(params, call.args, strict=True):
        given, joined = inferred.types.get((function, arg)), inferred.types.get((call.func, param))
        if given is None or joined is None or given.tree != joined.tree:
            continue
        if any(_kind(a) != _kind(b) for a, b in zip(given.leaves, joined.leaves, strict=True)):
            return False
    return True


def _kind(leaf: Leaf) -> object:
    """The dtype of a leaf as far as Python tells it apart: the type of a number that is known, or the dtype."""
    if isinstance(leaf, ArrayType):
        return leaf.dtype.rstrip("0123456789").removeprefix("u")
    return type(leaf.value).__name__ if type(leaf.value) in KINDS else None


def explained(error: CompileError, along: Along) -> CompileError:
    """Add to the diagnostics in functions that are compiled along why that is so."""
    return CompileError([_explained(diagnostic, along) for diagnostic in error.diagnostics])


def _explained(diagnostic: Diagnostic, along: Along) -> Diagnostic:
    loc = None if diagnostic.primary is None else diagnostic.primary.loc
    inside = [reason for reason in along.reasons.values() if loc is not None and reason.holds(loc)]
    if not inside:
        return diagnostic
    reason = max(inside, key=lambda each: each.lines[0])  # the innermost
    call = (
        () if reason.call is None else (Label(reason.call, f"`{reason.name}` is compiled along, as it is called here"),)
    )
    notes = (*diagnostic.notes, f"`{reason.name}` has no decorator, but {reason.why}")
    return replace(diagnostic, secondary=(*diagnostic.secondary, *call), notes=notes)
