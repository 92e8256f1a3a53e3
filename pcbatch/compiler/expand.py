"""Decides, from the errors of type inference, which comprehensions and consumers of iterables become loops, and of
which classes objects become records made in lanes."""

from __future__ import annotations

from dataclasses import replace

import jax

from pcbatch.containers.lane_iterator import Asked, Consumed
from pcbatch.errors import CompileError, NeedsUnrolling, Refusal, StoresWhenRead
from pcbatch.frontend.source.along import Decisions
from pcbatch.frontend.source.streams import CONSUMERS, LAZY
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.lowering.diagnose.check_ownership import Aliased
from pcbatch.lowering.diagnose.primitive_errors import NOT_CONSTANT, NOT_CONSTANT_TEXTS
from pcbatch.lowering.diagnose.traceback_spans import below, user_frames
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.trace_errors import ChangedArgument

CODES = frozenset({"PCB304", "PCB305", "PCB306", "PCB308", "PCB314", "PCB315"})
"""Codes of refusals of what one primitive cannot do for all elements, and a loop may do for each."""
SIGNS = (" for ", *(f"{name}(" for name in (*CONSUMERS, *LAZY)))
"""Texts of which an expression has one if it may become a loop."""


class Expand(Exception):
    """Ends a compilation that has to start again, with further decisions."""

    def __init__(self, decisions: Decisions) -> None:
        super().__init__()
        self.decisions = decisions


class Copy(Exception):
    """Ends a compilation of a program that changes packed objects: each lane is to get a copy of some tables.

    Attributes:
        tables: their numbers.
        error: to be raised where that cannot be.
    """

    def __init__(self, tables: frozenset[int], error: CompileError) -> None:
        super().__init__()
        self.tables, self.error = tables, error


def look(program: CfgProgram, inferred: Inferred, decisions: Decisions) -> None:
    """Raise Expand if errors of inference stand where a comprehension, or a consumer of an iterable, may become a
    loop."""
    places, taken, asked, stored = set(), set(), set(), set()
    for key, error in inferred.errors.items():
        op = program.function(key[0]).block(key[1]).ops[key[2]]
        if not isinstance(op, Prim) or op.loc is None:
            continue
        frame, helpers = below(user_frames(error), op.loc)
        here = op.loc if frame is None or not frame.exact else frame.loc
        if isinstance(error, ChangedArgument | StoresWhenRead):
            stored.add(op.loc)
        elif isinstance(error, Consumed):
            taken.add(op.loc)
        elif isinstance(error, Asked) or (helpers and helpers[0].name in ("__iter__", "__next__")):
            asked |= {op.loc, here}
        if _concerns_traces(error) and not isinstance(error, Asked | Consumed) and _may_loop(op):
            places.add(here)
    found = {"expanded": places, "taken": taken, "asked": asked, "stored": stored}
    if any(not new <= getattr(decisions, name) for name, new in found.items()):
        raise Expand(replace(decisions, **{name: getattr(decisions, name) | new for name, new in found.items()}))


def look_at_records(inferred: Inferred, decisions: Decisions, error: CompileError | None = None) -> None:
    """Raise Expand if inference has found classes of objects that have to be records made in lanes; Copy, in place of
    the error, if it has found packed objects that are changed."""
    if inferred.copied:
        if error is not None:
            raise Copy(frozenset(inferred.copied), error)
        return
    if not inferred.wanted <= decisions.made:
        raise Expand(replace(decisions, made=decisions.made | inferred.wanted))


def linking(error: Aliased, decisions: Decisions) -> Decisions:
    """Return the decisions after changes that another name would show: the names may be kept equal."""
    return replace(decisions, linked=decisions.linked | error.linked, in_place=decisions.in_place | error.in_place)


def _may_loop(op: Prim) -> bool:
    return any(op.expr.says(sign) for sign in SIGNS)


def _concerns_traces(error: Exception) -> bool:
    """Whether a primitive failed because it is traced once, for values that are not known while compiling."""
    match error:
        case NeedsUnrolling() | jax.errors.TracerBoolConversionError():
            return True
        case Refusal():
            return error.code in CODES
    return isinstance(error, NOT_CONSTANT) or any(text in str(error) for text in NOT_CONSTANT_TEXTS)
