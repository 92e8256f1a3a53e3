"""Makes decisions of the errors of type inference: what would cure them, so that compiling starts again.

A refusal says itself what would cure it. An error of JAX or Python is one that compiling a helper along cures (see
`frontend.source.helpers`), or a loop in place of a comprehension; only its class and its text tell which. An error of a
helper that is compiled along already may be cured by giving each call a copy of it, with types of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import CodeType, FunctionType

import jax

from pcbatch.compiler.tuple_trees import tuples_wanted
from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects.tuples.displays import displays
from pcbatch.data.origins import KINDS
from pcbatch.decisions import NONE, Cure, Decisions
from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.diagnostics.lane_words import readable
from pcbatch.errors import CompileError, OtherCount, Refusal, UsageError
from pcbatch.frontend.source.callable_objects import callee_of
from pcbatch.frontend.source.helpers import Helpers, is_kept
from pcbatch.frontend.source.tree import is_attempted
from pcbatch.ir.analysis.callgraph import calls, recursive
from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.message import variables
from pcbatch.ir.ops import Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.diagnose.check_types import messages_of
from pcbatch.lowering.diagnose.primitive_errors import is_not_constant
from pcbatch.lowering.diagnose.traceback_spans import TracebackFrame, below, called, user_frames
from pcbatch.lowering.typing.abstract_values import Leaf
from pcbatch.lowering.typing.format_messages import Show
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.trace_errors import ChangedArgument

INLINED = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Names of code that is part of the expression in which it stands."""

IMMUTABLE = "JAX arrays are immutable"  # in the message of a TypeError of JAX


def look(program: CfgProgram, inferred: Inferred, helpers: Helpers) -> None:
    """Raise Restart if inference has found what further decisions would cure; those of one kind at a time."""
    helpers.demand(records(inferred))
    helpers.demand(_places(program, inferred))
    helpers.demand(_functions(program, inferred, helpers))
    helpers.demand(_copies(program, inferred, helpers))
    helpers.demand(tuples_wanted(inferred, displays(), helpers.decisions))
    if not inferred.errors and not inferred.conflicts:
        helpers.demand(_texts(program, inferred, helpers))


def records(inferred: Inferred) -> Decisions:
    """The classes of objects that have to be records made in lanes; none where packed objects are to be copied."""
    return NONE if inferred.wants.tables else inferred.wants


def _failed(program: CfgProgram, inferred: Inferred) -> Iterator[tuple[Prim, Loc, Exception]]:
    """The primitives of the user's that have failed, where they stand, and the errors."""
    for (function, block, k), error in inferred.errors.items():
        op = program.function(function).block(block).ops[k]
        if isinstance(op, Prim) and op.loc is not None:
            yield op, op.loc, error


def _cures(error: Exception) -> tuple[Cure, str]:
    """The cures of the error of a primitive, and the reason for which compiling a helper along does, in words."""
    match error:
        case Refusal():
            return error.cures, error.why
        case jax.errors.TracerBoolConversionError():
            return Cure.ALONG | Cure.LOOP, "it branches on a value of the lane"
        case jax.errors.UnexpectedTracerError():
            return Cure.ALONG | Cure.LOOP, "it changes an object of the lane for each element"
        case RecursionError():
            return Cure.ALONG, "it calls itself"
        case TypeError() if IMMUTABLE in str(error):
            return Cure.ALONG, "it changes an array in place"
        case UsageError() if any(diagnostic.code == "PCB412" for diagnostic in error.diagnostics):
            return Cure.ALONG, "it calls a batched function"
    if is_not_constant(error):
        return Cure.ALONG | Cure.LOOP, "it needs the number of a value of the lane"
    if isinstance(error, TypeError | AttributeError) and readable(str(error)) != str(error):
        return Cure.ALONG, "it gives a value of the lane to a function of Python's own"
    return Cure.NONE, ""


def _places(program: CfgProgram, inferred: Inferred) -> Decisions:
    """The places where a comprehension, or a consumer of an iterable, may become a loop, or elements are taken in
    another way."""
    expanded, taken, asked, compared, stored = (set[Loc]() for _ in range(5))
    unpacked: set[tuple[Loc, int]] = set()
    for op, loc, error in _failed(program, inferred):
        cures, _ = _cures(error)
        frame, helpers = below(user_frames(error), loc)
        here = loc if frame is None or not frame.exact else frame.loc
        if isinstance(error, OtherCount):
            unpacked.add((loc, error.count))
        elif Cure.STORE in cures:
            stored.add(loc)
        elif Cure.ITERATOR in cures:
            taken.add(loc)
        elif Cure.COMPARE in cures:
            compared |= {loc, here}
        elif Cure.METHODS in cures or (helpers and helpers[0].name in ("__iter__", "__next__")):
            asked |= {loc, here}
        if Cure.LOOP in cures and op.expr.effects.streams:
            # That an argument has changed is found behind the whole expression: any of its streams may do it.
            expanded |= {here} if frame is not None else {here, *op.expr.effects.streams}
    return Decisions(
        expanded=frozenset(expanded),
        taken=frozenset(taken),
        asked=frozenset(asked),
        compared=frozenset(compared),
        stored=frozenset(stored),
        unpacked=frozenset(unpacked),
    )


def _functions(program: CfgProgram, inferred: Inferred, helpers: Helpers) -> Decisions:
    """The functions that have to be compiled along."""
    for op, loc, error in _failed(program, inferred):
        cures, why = _cures(error)
        if Cure.ALONG not in cures:
            continue
        chain = [frame for frame in called(user_frames(error), loc) if not is_attempted(frame.code)]
        functions = error.functions if isinstance(error, Refusal) else ()
        if not functions and chain:
            why = f"{why} (line {chain[-1].loc.line})"
            functions = tuple(frame.code for frame in _callable(chain))
        elif not functions and isinstance(error, Refusal):  # found when all calls had returned
            functions = error.called or (_helpers(op) if isinstance(error, ChangedArgument) else ())
        for code in functions:
            helpers.want(code, loc, why)
    return helpers.wants


def _texts(program: CfgProgram, inferred: Inferred, helpers: Helpers) -> Decisions:
    """The methods that make the text of an object in a message, where it depends on values of the lane."""
    for function, message, loc in messages_of(program, inferred):
        types = [inferred.types.get((function, name)) for name in variables(message)]
        if None in types:
            continue
        try:
            Show(function, inferred.types)(message)
        except Refusal as refusal:
            for frame in user_frames(refusal):
                if frame.name in ("__str__", "__repr__"):
                    helpers.want(frame.code, loc, str(refusal))
    return helpers.wants


def _helpers(op: Prim) -> tuple[CodeType, ...]:
    """The functions of the user that a primitive names, or that are defined around it and written out in it."""
    fn = op.expr.fn
    if not isinstance(fn, FunctionType):
        return ()
    cells = [cell.cell_contents for cell in fn.__closure__ or ()]
    values = [*(fn.__globals__.get(name) for name in fn.__code__.co_names), *cells]
    functions = (callee_of(value)[0] for value in values if value is not None)
    codes = [function.__code__ for function in functions if function is not None]
    codes += [part for part in _inner(fn.__code__) if part.co_name not in INLINED]
    return tuple(code for code in codes if is_user_code(code))


def _inner(code: CodeType) -> Iterator[CodeType]:
    """The functions of the user in a primitive."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _inner(part) if is_attempted(part) else (part,)


def _callable(chain: list[TracebackFrame]) -> list[TracebackFrame]:
    """The functions of the user at the start of a chain of calls, up to the first that is never compiled."""
    found: list[TracebackFrame] = []
    for frame in chain:
        if not is_user_code(frame.code) or is_kept(frame.code):
            break
        if not frame.name.startswith("<") or frame.name == "<lambda>":  # a comprehension has a frame, too
            found.append(frame)
    return found


def _copies(program: CfgProgram, inferred: Inferred, helpers: Helpers) -> Decisions:
    """The functions compiled along that fail, or have other types in another call: each call is to get a copy of them,
    as a primitive is traced for each."""
    failed = {key[0] for key in inferred.errors} | {function for function, _ in inferred.conflicts}
    failed |= {op.func for function, op in _calls(program) if not _has_types(program, inferred, function, op)}
    called = {name for names in calls(program).values() for name in names}
    keys = {helpers.names.get(name) for name in (failed & called) - recursive(program)}
    return Decisions(copied=frozenset(key for key in keys if key is not None and key in helpers.decisions.helpers))


def _calls(program: CfgProgram) -> Iterator[tuple[str, Call]]:
    for function in program.functions:
        yield from ((function.name, op) for op in function.ops if isinstance(op, Call))


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


def with_cause(error: CompileError, later: CompileError | None) -> CompileError:
    """Add to a refusal of the program as it was written what refuses it where objects with several names are boxes."""
    known = {one.primary.loc for one in error.diagnostics if one.primary is not None}
    causes = [] if later is None else [one for one in later.diagnostics if one.primary is not None]
    if not causes or causes[0].primary is None or causes[0].primary.loc in known:
        return error
    cause, (first, *rest) = causes[0], error.diagnostics
    note = f"as one object with several names it is refused at {causes[0].primary.loc}: {cause.title}"
    helps = tuple(f"at line {causes[0].primary.loc.line}, {text}" for text in cause.helps if "__pcbatch__" not in text)
    return CompileError([replace(first, notes=(*first.notes, note), helps=(*helps, *first.helps)), *rest])


def explained(error: CompileError, helpers: Helpers) -> CompileError:
    """Add to the diagnostics in functions that are compiled along why that is so."""
    return CompileError([_explained(diagnostic, helpers) for diagnostic in error.diagnostics])


def _explained(diagnostic: Diagnostic, helpers: Helpers) -> Diagnostic:
    loc = None if diagnostic.primary is None else diagnostic.primary.loc
    inside = [reason for reason in helpers.decisions.helpers.values() if loc is not None and reason.holds(loc)]
    if not inside:
        return diagnostic
    reason = max(inside, key=lambda each: each.lines[0])  # the innermost
    call = (
        () if reason.call is None else (Label(reason.call, f"`{reason.name}` is compiled along, as it is called here"),)
    )
    notes = (*diagnostic.notes, f"`{reason.name}` has no decorator, but {reason.why}")
    return replace(diagnostic, secondary=(*diagnostic.secondary, *call), notes=notes)
