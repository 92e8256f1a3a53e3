"""Records that are tuples: their parts, and their equality with plain values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import jax.numpy as jnp

from pcbatch.data.checks import require
from pcbatch.data.objects.attributes import attribute
from pcbatch.data.objects.ref_type import is_in, refused, require_present
from pcbatch.data.objects.tuples.atoms import kind_of_part
from pcbatch.data.objects.tuples.classes import AtomValue, NeedsClasses, TupleValue, items_of
from pcbatch.data.origins import number
from pcbatch.data.sequences.list_order import equal
from pcbatch.data.values import Index, Value
from pcbatch.errors import Refusal

if TYPE_CHECKING:
    from pcbatch.data.objects.reference import Ref


def tuple_fields(ref: Ref, what: str) -> tuple[str, ...]:
    """Return the names of the elements of a tuple; refuses records of another class, or of several."""
    found = [items_of(cls) for cls in ref.pcbatch_type.types]
    if any(issubclass(cls, TupleValue) for cls in ref.pcbatch_type.types) and len(set(found)) > 1:
        raise NeedsClasses(what)
    if len(set(found)) != 1 or found[0] is None or (len(found) > 1 and not has_tuples(ref)):
        raise refused(f"{what} needs a named tuple, and this is {ref!r}", "read fields by their names: `x.left`")
    require_present(ref, "TypeError", "'NoneType' object is not a sequence")
    return found[0]


def has_tuples(ref: Ref) -> bool:
    """Return whether all that a reference may lead to are tuples of displays."""
    types = ref.pcbatch_type.types
    return bool(types) and all(issubclass(cls, TupleValue) for cls in types)


def part(ref: Ref, index: Index) -> Value:
    """Return the element of a tuple at an index."""
    if not has_tuples(ref) or not isinstance(index, int):
        return attribute(ref, tuple_fields(ref, "an index")[index])
    type_ = ref.pcbatch_type
    items = {c: items_of(cls) or () for c, cls in zip(type_.classes, type_.types, strict=True)}
    inside = tuple(c for c in items if -len(items[c]) <= index < len(items[c]))
    names = {items[c][index] for c in inside}
    if len(names) > 1:
        raise NeedsClasses(f"the element at {index}")
    require_present(ref, "TypeError", "'NoneType' object is not subscriptable")
    if not names:
        raise IndexError("tuple index out of range")
    if len(inside) < len(items):
        require(is_in(ref, inside), "IndexError", "tuple index out of range")
    try:
        return attribute(ref.typed(replace(type_, classes=inside, optional=False)), names.pop())
    except Refusal as differ:
        if len(inside) == 1:
            raise
        raise NeedsClasses(f"the element at {index}") from differ


def equal_plain(ref: Ref, other: Value) -> Value:
    """Return whether what a record stands for, a tuple, a text or a number, equals a value that is no record."""
    type_ = ref.pcbatch_type
    kind = kind_of_part(other)
    if jnp.shape(ref.pcbatch_id) != () or kind not in ("text", "number") or jnp.shape(other) != ():
        raise NeedsClasses("`==`")
    holds: Value = False
    for c, cls in zip(type_.classes, type_.types, strict=True):
        if issubclass(cls, AtomValue) and (cls.pcbatch_kind is str) is (kind == "text"):
            value = attribute(ref.typed(replace(type_, classes=(c,), optional=False)), "value")
            holds = jnp.logical_or(holds, is_in(ref, [c]) & equal(value, other))
    return number(jnp.asarray(holds)) if holds is not False else False


def are_atoms(ref: Ref) -> bool:
    """Return whether a record stands for a text or a number, and may be either."""
    types = ref.pcbatch_type.types
    return len(types) > 1 and all(issubclass(cls, AtomValue) for cls in types)


def unpacked_tuple(ref: Ref, count: int) -> list[Value]:
    """Return the elements of a tuple that is unpacked to `count` variables."""
    type_ = ref.pcbatch_type
    lengths = {c: len(items_of(cls) or ()) for c, cls in zip(type_.classes, type_.types, strict=True)}
    require_present(ref, "TypeError", "cannot unpack non-iterable NoneType object")
    fitting = tuple(c for c in lengths if lengths[c] == count)
    for other in sorted({*lengths.values()} - {count}):
        few = f"not enough values to unpack (expected {count}, got {other})"
        title = few if other < count else f"too many values to unpack (expected {count})"
        if not fitting:
            raise ValueError(title)
        absent = jnp.logical_not(is_in(ref, [c for c in lengths if lengths[c] == other]))
        require(absent, "ValueError", title)
    whole = ref.typed(replace(type_, classes=fitting, optional=False))
    return [part(whole, k) for k in range(count)]
