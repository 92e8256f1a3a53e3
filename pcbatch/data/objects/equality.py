"""The equality of records by their fields, as deep as these lead to others.

Python calls `__eq__` again for what fields lead to; a lane keeps a stack of the pairs that it has not compared yet.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from pcbatch.data.capacity import capacity
from pcbatch.data.checks import collecting, limit, only_where, require_room
from pcbatch.data.columns import room
from pcbatch.data.joinable import Joinable
from pcbatch.data.object_parts import is_generated
from pcbatch.data.objects.attributes import attribute
from pcbatch.data.objects.ref_type import RefType, class_at, is_in, refused, same
from pcbatch.data.objects.tuples.classes import may_equal_others
from pcbatch.data.optional import Optional
from pcbatch.data.origins import number
from pcbatch.data.own_order import names_compared
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.list_order import NAN_IDENTITY, ask_about_lists, ask_identity, equal
from pcbatch.data.stored import Stored
from pcbatch.data.values import Flag, Value
from pcbatch.errors import Refusal

if TYPE_CHECKING:
    from pcbatch.data.objects.reference import Ref

HELP = "write `a is b`, or compare fields: `a.word == b.word`"


@dataclass(frozen=True, slots=True)
class _Pair:
    """Records that are to be compared, or rows of them, and where they are."""

    one: Ref
    other: Ref
    where: Flag


def written(cls: type) -> FunctionType | None:
    """Return the `__eq__` of a class that is code of the user's; None for all others."""
    method: Any = getattr(cls, "__eq__")  # noqa: B009 - which function it is
    return method if isinstance(method, FunctionType) and not is_generated(method.__code__) else None


def without_written(ref: Ref) -> Ref:
    """Return a reference as it is where its class has no such `__eq__`."""
    type_ = ref.pcbatch_type
    return ref.typed(replace(type_, classes=tuple(c for c in type_.classes if written(class_at(type_, c)) is None)))


def refuse_written(types: tuple[type, ...]) -> None:
    """Refuse classes that say by code of the user's what equals their objects: it may be compiled along."""
    if found := [method for cls in types if (method := written(cls)) is not None]:
        codes = [method.__code__ for method in found]
        title = f"`{found[0].__qualname__}` says what equals a record"
        raise Refusal("PCB320", title, helps=(HELP,), functions=codes)


def equal_records(a: Ref, b: Ref) -> Value:
    """Return whether two records are equal, or both None."""
    types = (*a.pcbatch_type.types, *b.pcbatch_type.types)
    refuse_written(types)
    if a.pcbatch_type.covering(b.pcbatch_type) is None or all(_fields(cls) is None for cls in types):
        return same(a, b, "==")
    size = capacity()

    def step(c: tuple[Value, ...]) -> tuple[Value, ...]:
        left, right, depths, n, holds, needed, unsure = c
        n = n - 1
        one, other = (ref.typed(_any_of(a.pcbatch_type)).at(ids[n]) for ref, ids in ((a, left), (b, right)))
        itself = one.pcbatch_id == other.pcbatch_id  # which Python asks first
        with collecting() as made:
            alike, pairs = _compared(one, other, (*a.pcbatch_type.classes, *b.pcbatch_type.classes))
        for check in made:
            unsure |= check.failed & ~itself
        depth = depths[n] + 1
        for pair in pairs:
            where = jnp.atleast_1d(pair.where & ~itself)
            places = jnp.where(where, n + jnp.cumsum(where, dtype=jnp.int32) - 1, size)
            new = (pair.one.pcbatch_id, pair.other.pcbatch_id, jnp.broadcast_to(depth, where.shape))
            left, right, depths = (
                old.at[places].set(jnp.atleast_1d(ids), mode="drop")
                for old, ids in zip((left, right, depths), new, strict=True)
            )
            n = n + jnp.sum(where, dtype=jnp.int32)
        return left, right, depths, n, holds & (itself | alike), jnp.maximum(needed, n), unsure

    def goes_on(c: tuple[Value, ...]) -> Value:
        _, _, depths, n, holds, needed, unsure = c
        return (n > 0) & holds & ~unsure & (needed <= size) & (depths[jnp.maximum(n - 1, 0)] < sys.getrecursionlimit())

    stacks = [jnp.zeros(size, jnp.int32).at[0].set(first) for first in (a.pcbatch_id, b.pcbatch_id, 0)]
    begun = (*stacks, jnp.int32(1), jnp.bool_(True), jnp.int32(1), jnp.bool_(False))
    _, _, _, n, holds, needed, unsure = jax.lax.while_loop(goes_on, step, begun)
    limit(~unsure, NAN_IDENTITY)
    require_room(needed, size)
    limit(~holds | (n == 0) | (needed > size) | unsure, "`==` of records goes deeper than a recursion of Python's may")
    return number(holds)


def _fields(cls: type) -> tuple[str, ...] | None:
    """The fields by which objects of a class are equal; None where that is their identity."""
    return tuple(cls._fields) if issubclass(cls, tuple) else names_compared(cls)  # type: ignore[attr-defined]


def _any_of(type_: RefType) -> RefType:
    """The type of a reference that may be to any record, or None."""
    return replace(type_, classes=tuple(range(len(type_.schema.classes))), optional=True)


def _compared(a: Ref, b: Ref, classes: tuple[int, ...]) -> tuple[Value, list[_Pair]]:
    """Return whether two records are of one class and equal but for what they lead to, and the pairs of that.

    Args:
        a: a reference to any record.
        b: another one.
        classes: those that the records may be of; what fields lead to is compared likewise.
    """
    type_ = a.pcbatch_type
    holds, pairs = jnp.bool_(False), list[_Pair]()
    todo, done = list(classes), list[int]()
    while todo:
        if (c := todo.pop(0)) in done:
            continue
        done.append(c)
        cls = class_at(type_, c)
        tuples = [one for one in done if issubclass(class_at(type_, one), tuple)]
        if written(cls) is not None or len(tuples) > 1 or may_equal_others(cls, [class_at(type_, c) for c in done]):
            raise refused(f"`==` of records comes to {cls.__name__}, whose equality is not that of its fields", HELP)
        if (names := _fields(cls)) is None:
            continue
        both = is_in(a, [c]) & is_in(b, [c])
        only = replace(type_, classes=(c,), optional=False)
        alike: Value = True
        with only_where(partial(jnp.asarray, both)):
            for name in names:
                same_part, more = _parts(attribute(a.typed(only), name), attribute(b.typed(only), name), both)
                alike = jnp.logical_and(alike, same_part)
                pairs += more
                todo += [k for pair in more for ref in (pair.one, pair.other) for k in ref.pcbatch_type.classes]
        holds |= both & alike
    return holds, pairs


def _parts(x: Value, y: Value, where: Flag) -> tuple[Value, list[_Pair]]:
    """Return whether two parts of one field are equal but for the records in them, and the pairs of these."""
    if _is_reference(x):
        return True, [_Pair(x, y, where)]
    if not _leads(x) and not _leads(y):
        ask_about_lists(x, y) if isinstance(x, Rows) else ask_identity(x, y, True)
        return equal(x, y), []
    if isinstance(x, Rows) and isinstance(y, Rows):
        return _rows(x, y, where)
    if type(x) is type(y) and isinstance(x, tuple) and len(x) == len(y):
        found = [_parts(one, other, where) for one, other in zip(x, y, strict=True)]
        alike: Value = True
        for same_part, _ in found:
            alike = jnp.logical_and(alike, same_part)
        return alike, [pair for _, more in found for pair in more]
    raise refused("`==` of records comes to a container of others that is no list or tuple", HELP)


def _rows(x: Value, y: Value, where: Flag) -> tuple[Value, list[_Pair]]:
    """Return whether two lists are equal but for the records in them, and the pairs of these."""
    x, y = x._plain(), y._plain()
    alike = jnp.asarray(x.length == y.length)
    size = min(room(x.columns, 0) or 0, room(y.columns, 0) or 0)
    inside = jnp.arange(size, dtype=jnp.int32) < x.length

    def is_whole(part: Value) -> bool:
        return isinstance(part, Joinable | Stored | Optional)

    pairs = []
    for one, other in zip(*(jax.tree.leaves(rows.columns, is_leaf=is_whole) for rows in (x, y)), strict=True):
        one, other = (jax.tree.map(lambda leaf: leaf[:size], part) for part in (one, other))
        if _is_reference(one):
            pairs.append(_Pair(one, other, where & alike & inside))
            continue
        if _leads(one):
            raise refused("`==` of records comes to lists of lists of records", HELP)
        ask_identity(one, other, alike & inside)
        same_part = jax.vmap(lambda a, b: jnp.asarray(equal(a, b), bool))(one, other)
        alike &= jnp.all(same_part | ~inside)
    return alike, pairs


def _is_reference(value: Value) -> bool:
    return isinstance(value, Joinable) and hasattr(value, "pcbatch_id")


def _leads(value: Value) -> bool:
    """Whether a value is or holds a reference to a record."""
    refs = jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, Joinable))
    return any(isinstance(part, Joinable) for part in refs)
