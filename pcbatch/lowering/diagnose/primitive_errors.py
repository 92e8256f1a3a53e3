"""Errors of a primitive, raised while it was traced for one lane, as diagnostics at the smallest span that failed."""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc, undefined_help
from pcbatch.diagnostics.lane_words import readable
from pcbatch.diagnostics.short_repr import clipped
from pcbatch.errors import KeyRefusal, PcbatchError, Refusal, class_name
from pcbatch.ir.names import LAMBDA
from pcbatch.ir.ops import Prim
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name
from pcbatch.lowering.diagnose import decorator_hints, lacking
from pcbatch.lowering.diagnose.fix_its import constant_helps, expression, needs_branches, refusal_helps
from pcbatch.lowering.diagnose.key_spans import key_span
from pcbatch.lowering.diagnose.traceback_spans import TracebackFrame, below, in_library, spans, user_frames
from pcbatch.lowering.typing.abstract_values import Abstract

NOT_CONSTANT = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
NOT_CONSTANT_TEXTS = (
    "Shapes must be 1D sequences",
    "Slice entries must be static",
    "slice indices must have static",
    "expected a sequence of integers or a single integer, got 'JitTracer",
    "unhashable type: 'DynamicJaxprTracer'",
    "for *: 'list' and 'DynamicJaxprTracer'",
    "define __trunc__ method",
)
LONGEST = 2000  # characters of what JAX or Python say
TOO_LARGE = re.compile(r"Python int (-?\d+) too large|with value (-?\d+)")
WIDER_HELP = "turn 64-bit types on: `jax.config.update('jax_enable_x64', True)`"
REST = "where the rest of a power counts: `pow(base, exponent, modulus)` in place of `pow(base, exponent) % modulus`"
OF_ELEMENTS = "take it of an element; of packed objects that all lanes share (None in `in_axes`) pass one, `packed[0]`"
FLOAT_HELP = "write it as a float, if it need not be exact"
HASH = "unhashable type"
KEYS_HELP = (
    "decorate the function that makes the dict or the set with `@pcbatch.inline`; call a method by its class then, "
    "`Table.keys_of(table)` in place of `table.keys_of()`"
)
RANK_HELP = (
    "compute what `__lt__` compares where the object is made, at the end of `__init__`: `self.rank = self.priority()`, "
    "and compare that, `return self.rank < other.rank`; decorate what `__init__` calls with `@pcbatch.inline`"
)
NONE = "'NoneType' object"
LACKING = "this works in Python, and not with values of a lane"
CHOOSE = "write it out as statements, a loop with an `if` in it, or choose with `jnp.where(condition, a, b)`"


def is_not_constant(error: Exception) -> bool:
    """Return whether a primitive failed because it asks for the number of a value of the lane."""
    return isinstance(error, NOT_CONSTANT) or any(text in str(error) for text in NOT_CONSTANT_TEXTS)


@dataclass(frozen=True, slots=True)
class _Where:
    """The span in the primitive that failed, and the frames of the helpers below it, outermost first."""

    place: Loc | None
    chain: Sequence[TracebackFrame]
    own: TracebackFrame | None  # of the primitive itself

    @property
    def innermost(self) -> Loc | None:
        return self.chain[-1].loc if self.chain else self.place

    @property
    def called(self) -> tuple[Loc | None, Mapping[str, Any]]:
        """The innermost span of the user's own code, which may call a library, and the names there."""
        frames = list(itertools.takewhile(lambda frame: not in_library(frame), self.chain))
        if frames:
            return frames[-1].loc, frames[-1].names
        return self.place, {} if self.own is None else self.own.names

    @property
    def names(self) -> Mapping[str, Any]:
        frame = self.chain[-1] if self.chain else self.own
        return {} if frame is None else frame.names


def diagnose(op: Prim, types: Mapping[str, Abstract], error: Exception, entry: str) -> Diagnostic:
    """Return the diagnostic for an error that a primitive raised; `types` has those of the variables it reads, `entry`
    is the name of the function that a batch runs, of which there is a plain one."""
    frames = user_frames(error)
    narrower = None if op.loc is None else spans(frames, op.loc)
    place, helpers = (op.loc, ()) if narrower is None else narrower
    own, chain = below(frames, op.loc) if op.loc is not None else (None, [])
    found = _without_spans(op, types, error, _Where(place, chain, own), entry)
    if isinstance(error, KeyRefusal):
        place, helpers = _at_key(place, helpers)
    primary = None if place is None else Label(place, "")
    notes = tuple(map(readable, found.notes))
    return replace(found, title=readable(found.title), primary=primary, secondary=helpers, notes=notes)


def _at_key(place: Loc | None, helpers: tuple[Label, ...]) -> tuple[Loc | None, tuple[Label, ...]]:
    """Return the spans of a refused key with the innermost one, which is that of the look-up, narrowed to the key."""
    if helpers:
        return place, (*helpers[:-1], replace(helpers[-1], loc=key_span(helpers[-1].loc)))
    return None if place is None else key_span(place), ()


def _without_spans(op: Prim, types: Mapping[str, Abstract], error: Exception, where: _Where, entry: str) -> Diagnostic:
    if isinstance(error, PcbatchError):
        return error.diagnostics[0]
    if isinstance(error, Refusal):
        helps = refusal_helps(error, where.innermost)
        if not helps and error.code == "PCB306":
            helps = constant_helps(error, expression(where.innermost), where.names)
        return Diagnostic(error.code, str(error), notes=error.notes, helps=helps)
    if (
        isinstance(error, NameError)
        and error.name is not None
        and not where.chain
        and not isinstance(error, UnboundLocalError)
    ):
        title = f"the name `{error.name}` is not defined"
        return Diagnostic("PCB202", title, helps=(undefined_help(error.name, _names(op)),))
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return _branching(op, error, where)
    if is_not_constant(error):
        title = "a value that differs between lanes is used where a constant is needed"
        node, (called, visible) = expression(where.innermost), where.called
        helps = lacking.of_lists(expression(called), visible) or constant_helps(error, node, where.names)
        if where.chain and op.loc is not None and needs_branches(node, where.names):
            helps = (*decorator_hints.helps(op.expr.fn, op.loc, where.chain, expression(where.place))[:1], *helps)
        if where.chain and HASH in str(error):
            compared = any(frame.name == "__lt__" for frame in where.chain)
            helps = (RANK_HELP,) if compared else (KEYS_HELP,)
        return Diagnostic("PCB306", title, notes=(_first_line(error),), helps=helps)
    if isinstance(error, OverflowError) and (number := TOO_LARGE.search(str(error))) is not None:
        bits = 8 * jax.dtypes.canonicalize_dtype(int).itemsize
        title = f"the number {number[1] or number[2]} does not fit the integers of lanes, which have {bits} bits"
        wide = bits == 64 or abs(int(number[1] or number[2])) >= 2**63
        helps = (FLOAT_HELP, REST) if wide else (WIDER_HELP, FLOAT_HELP)
        return Diagnostic("PCB312", title, notes=_types_note(op, types), helps=helps)
    attribute = _attribute_helps(op, types, error, where)
    notes = (
        clipped(readable(f"{class_name(error)}: {error}"), LONGEST).strip().removesuffix(":"),
        *_types_note(op, types),
    )
    called, visible = where.called
    if helps := lacking.of_values(error, expression(called), visible):
        return Diagnostic("PCB303", LACKING, notes=notes, helps=attribute or helps)
    node = expression(where.innermost)
    if isinstance(error, AttributeError) and NONE in str(error) and isinstance(node, ast.Attribute):
        attribute = (
            f"say before it what happens there: `if {ast.unparse(node.value)} is None: raise AttributeError()`",
        )
    call = "the plain function" if entry == LAMBDA else f"`{entry}.plain(...)`"
    helps = attribute or (f"{call} with one example shows the whole traceback",)
    return Diagnostic("PCB303", "this fails for one lane", notes=notes, helps=helps)


def _attribute_helps(op: Prim, types: Mapping[str, Abstract], error: Exception, where: _Where) -> tuple[str, ...]:
    """The helps for an attribute of Python's numbers that a value of a lane does not have, such as `n.bit_length()`."""
    if isinstance(error, AttributeError) and "'list' object has no attribute" in str(error):
        return (OF_ELEMENTS,)
    if not isinstance(error, AttributeError) or not readable(str(error)).startswith("a value of the lane has no"):
        return ()
    general = ("a value of a lane is an array of JAX: use its methods, or functions of `jax.numpy`",)
    node = expression(where.innermost)
    if where.chain or not isinstance(node, ast.Attribute):
        return general
    value, called = node.value, f"{ast.unparse(node)}()"
    shown = f"jnp.abs({ast.unparse(value)})"
    name = value.id if isinstance(value, ast.Name) else ""
    known = next((t for v, t in types.items() if original_name(v) == name), None)
    dtype = re.fullmatch(r"~?[iu](\d+)\[[\d,]*\]", str(known))
    if dtype is None:
        return general
    match node.attr:  # of a number, Python counts the bits of its absolute value
        case "bit_length":
            return (f"write `({dtype[1]} - jax.lax.clz({shown}))` in place of `{called}`",)
        case "bit_count":
            return (f"write `jax.lax.population_count({shown})` in place of `{called}`",)
    return general


def _types_note(op: Prim, types: Mapping[str, Abstract]) -> tuple[str, ...]:
    """The types of the variables that stand in the source; temporaries do not."""
    loc = op.loc
    lines = [] if loc is None else [linecache.getline(loc.file, k) for k in range(loc.line, loc.end_line + 1)]
    written = set(re.findall(r"\w+", "".join(lines)))
    shown = {original_name(v): t for v, t in types.items() if original_name(v) in written}
    return (f"for one lane, {', '.join(f'`{v}` is {t}' for v, t in shown.items())}",) if shown else ()


def _branching(op: Prim, error: Exception, where: _Where) -> Diagnostic:
    note = _first_line(error)
    if where.chain and op.loc is not None:
        why = "which way it goes depends on the lane, and JAX traces a helper once for all lanes"
        helps = lacking.of_key(expression(op.loc)) or decorator_hints.helps(
            op.expr.fn, op.loc, where.chain, expression(where.place)
        )
        title = "a helper needs control flow of its own for each lane"
        return Diagnostic("PCB305", title, notes=(note, why), helps=helps)
    title = "a value of one lane decides here, where Python decides once for all lanes"
    return Diagnostic("PCB305", title, notes=(note,), helps=(CHOOSE,))


def _names(op: Prim) -> frozenset[str]:
    namespace: Any = getattr(op.expr.fn, "__globals__", {})
    return frozenset((*op.expr.ins, *namespace, *dir(builtins)))


def _first_line(error: Exception) -> str:
    return clipped(readable(f"{class_name(error)}: {str(error).splitlines()[0]}"), LONGEST)
