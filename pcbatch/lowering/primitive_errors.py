"""What a primitive raised while it was traced for one lane, as a diagnostic at the smallest span that failed."""

from __future__ import annotations

import builtins
import linecache
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from pcbatch.diagnostics import Diagnostic, Label, undefined_help
from pcbatch.errors import NeedsUnrolling, PcbatchError, Refusal
from pcbatch.ir.ops import Prim
from pcbatch.lowering.abstract import Abstract
from pcbatch.lowering.frames import spans, user_frames
from pcbatch.lowering.split_ranges import original_name

NOT_CONSTANT = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
NOT_CONSTANT_TEXTS = ("Shapes must be 1D sequences", "Slice entries must be static", "slice indices must have static")
DECORATE = "decorate the helper that branches with `@pcbatch.inline`, or use `jnp.where` / `jax.lax.cond` in it"
CHOOSE = "write `jnp.maximum`, `jnp.minimum` or `jnp.where` for `max`, `min`, or an `if` inside a comprehension"
SHAPE = "make it a constant: pass it as one of `static_argnames`, or use the largest size and a mask"
ARRAY = "use the function of `jnp` in place of that of NumPy or `math`, for example `jnp.sqrt(x)`"
INDEX = "make the table that is indexed a JAX array: `jnp.asarray(table)[i]`"
NUMBER = "keep the array: write `x.astype(int)` for `int(x)`, `x.astype(float)` for `float(x)`"
SLICE = "take a slice of constant size, `jax.lax.dynamic_slice_in_dim(x, start, size)`, or mask what is beyond it"
MASK = "keep the shape: `jnp.where(mask, x, 0)` in place of `x[mask]`"


@dataclass(frozen=True, slots=True)
class _Words:
    """A diagnostic without its spans."""

    code: str
    title: str
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    label: str = ""


def diagnose(op: Prim, types: Mapping[str, Abstract], error: Exception) -> Diagnostic:
    """Say what is wrong with a primitive. `types`: those of the variables it reads."""
    found = None if op.loc is None else spans(user_frames(error), op.loc)
    place, helpers = (op.loc, ()) if found is None else found
    words = _words(op, types, error, bool(helpers))
    primary = None if place is None else Label(place, words.label)
    return Diagnostic(words.code, words.title, primary, helpers, words.notes, words.helps)


def _unequal_loop(length: int) -> _Words:
    title = "a loop over a Python object needs a length that is the same for all lanes"
    note = f"it goes over {length} elements, one copy of its body for each"
    helps = ("make the elements an array: `jnp.array(xs)`", "or go over all of them, and leave the loop with `break`")
    return _Words("PCB315", title, (note,), helps)


def _words(op: Prim, types: Mapping[str, Abstract], error: Exception, below: bool) -> _Words:
    if isinstance(error, PcbatchError):
        found = error.diagnostics[0]
        return _Words(found.code, found.title, found.notes, found.helps)
    if isinstance(error, NeedsUnrolling):
        return _unequal_loop(error.length)
    if isinstance(error, Refusal):
        return _Words(error.code, str(error), error.notes, error.helps)
    if (
        isinstance(error, NameError)
        and error.name is not None
        and not below
        and not isinstance(error, UnboundLocalError)
    ):
        title = f"the name `{error.name}` is not defined"
        return _Words("PCB202", title, helps=(undefined_help(error.name, _names(op)),))
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return _branching(error, below)
    if isinstance(error, NOT_CONSTANT) or any(text in str(error) for text in NOT_CONSTANT_TEXTS):
        title = "a value that differs between lanes is used where JAX needs a constant"
        return _Words("PCB306", title, (_first_line(error),), (_constant_help(error),))
    notes = (f"{type(error).__name__}: {error}".strip().removesuffix(":"), *_types_note(op, types))
    name = getattr(op.expr.fn, "__name__", "")
    call = f"`{name}.plain(...)`" if name.isidentifier() else "the plain function"
    return _Words("PCB303", "this fails for one lane", notes, (f"{call} with one example shows the whole traceback",))


def _types_note(op: Prim, types: Mapping[str, Abstract]) -> tuple[str, ...]:
    """The types of the variables that stand in the source; temporaries do not."""
    loc = op.loc
    lines = [] if loc is None else [linecache.getline(loc.file, k) for k in range(loc.line, loc.end_line + 1)]
    written = set(re.findall(r"\w+", "".join(lines)))
    shown = {original_name(v): t for v, t in types.items() if original_name(v) in written}
    return (f"for one lane, {', '.join(f'`{v}` is {t}' for v, t in shown.items())}",) if shown else ()


def _branching(error: Exception, below: bool) -> _Words:
    note = _first_line(error)
    if below:
        why = "which way it goes depends on the lane, and JAX traces a helper once for all lanes"
        return _Words("PCB305", "a helper needs control flow of its own for each lane", (note, why), (DECORATE,))
    return _Words(
        "PCB305", "a value of one lane decides here, where Python decides once for all lanes", (note,), (CHOOSE,)
    )


def _names(op: Prim) -> frozenset[str]:
    namespace: Any = getattr(op.expr.fn, "__globals__", {})
    return frozenset((*op.expr.ins, *namespace, *dir(builtins)))


def _constant_help(error: Exception) -> str:
    text = str(error)
    match error:
        case jax.errors.NonConcreteBooleanIndexError():
            return MASK
        case jax.errors.TracerArrayConversionError():
            return f"{ARRAY}; {INDEX}"
        case jax.errors.TracerIntegerConversionError():
            return INDEX
        case _ if "Slice entries" in text or "slice indices" in text:
            return SLICE
        case _ if "the `float` function" in text or "the `int` function" in text:
            return f"{NUMBER}; {ARRAY}"
        case _:
            return SHAPE


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"
