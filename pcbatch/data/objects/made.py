"""Records made in lanes: objects of a few classes of the program lie in lists of the lane, its *heap*.

    xs = Node(i, xs)        # a row (i, xs) of the list of `Node`; the value is a reference to it

The heap is one list for each class, whose elements are the fields. A primitive that makes, reads or changes such
records has the heap as a last operand, and the heap after it as a last result. An object is stored as soon as it is
made, or else where it leaves a primitive. An assignment to a field stores into its column, so every reference sees it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.contexts import setting
from pcbatch.data.aliasing import one_of
from pcbatch.data.columns import Unset
from pcbatch.data.container import Container, lane_value
from pcbatch.data.members import MemberValue, of_member
from pcbatch.data.objects.function_values import FunctionValue
from pcbatch.data.objects.made_classes import MadeClass, class_of, classes_in, declares_fields, is_user_record
from pcbatch.data.objects.made_fields import HeapChanges, HeapUse, put_field
from pcbatch.data.objects.packed import packed_in
from pcbatch.data.objects.ref_type import MADE_TABLE, RefType
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.schema import field_names
from pcbatch.data.objects.tables import WantsCopies
from pcbatch.data.objects.tuples.atoms import as_record, may_mix, mixed_fields
from pcbatch.data.optional import Optional
from pcbatch.data.origins import number
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import Stored, is_stored
from pcbatch.data.texts.text import Text
from pcbatch.data.values import Value
from pcbatch.decisions import Decisions
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

HEAP = "__made__"
"""The variable that holds the heap, in every function that makes or reads records made in lanes."""

FIELD_HELP = "keep numbers, arrays, records or None, and lists of these, in the fields of records made in lanes"
FIELD_HELP += "; in place of a text its number in a table, `NAMES.index(name)`"
DRAFT_HELP = (
    "make it where the object is there already, in a method that is called then, or keep the name of the method"
)
EXISTING_HELP = "make the record in the batched function, once for each lane, and pass it on"

NUMBERS = bool | int | float | complex | jax.Array | np.ndarray | np.generic


@dataclass(frozen=True)
class MadeSchema:
    """The classes of the records that lanes make: row `r` of class `c` has the number `r * len(classes) + c`."""

    classes: tuple[MadeClass, ...]

    def place(self, cls: int, name: str) -> tuple[int, int] | None:
        """Return the number of a class, and that of a field of it; None if the class lacks the field."""
        fields = self.classes[cls].fields
        return (cls, fields.index(name)) if name in fields else None

    def row(self, id_: Value) -> Value:
        """Return the row of a record."""
        return id_ if len(self.classes) == 1 else id_ // len(self.classes)

    def read(self, place: tuple[int, int], id_: Value) -> Value:
        """Return the field of a record at a place in its class."""
        cls, field = place
        heap = _heap_in_use()
        value = heap.lists[cls].element(self.row(jnp.maximum(id_, 0)))[field]
        heap.changes.read(place, value)
        return jax.tree.map(_read, value, is_leaf=is_stored)

    def note(self, places: list[tuple[int, int]], value: Value) -> None:
        """Note that a value is that of one of the fields at some places, as classes differ."""
        for place in places:
            _heap_in_use().changes.read(place, value)

    def write(self, place: tuple[int, int], id_: Value, value: Value, back: bool = False) -> None:
        """Store a value in the field of a record, if the record is of the class of this place; `back`: it has been
        read from there."""
        (cls, field), heap = place, _heap_in_use()
        rows, made = heap.lists[cls], self.classes[cls]
        name = f"{made.cls.__name__}.{made.fields[field]}"
        value = _field(as_record(value) if made.fields[field] in made.mixed else value, name)
        if isinstance(rows._columns, Unset):
            return  # nothing was made: no lane gets here
        here = id_ % len(self.classes) == cls if len(self.classes) > 1 else True
        row = jnp.where((id_ >= 0) & here, self.row(jnp.maximum(id_, 0)), rows.capacity)
        if back:
            heap.changes.back(place)
        else:
            heap.changes.stored(place, value)
        try:
            put_field(rows, row, field, value)
        except Refusal as unlike:
            if may_mix(rows._columns[field], value):
                raise WantsRecords(frozenset({made.mixing(made.fields[field])})) from None
            raise _unlike_fields(name, unlike, value) from unlike

    def changing(self, places: list[tuple[int, int]], levels: Iterable[bool]) -> AbstractContextManager[None]:
        """Note what changes in fields at some places meanwhile: the objects there, `True`, or those inside, `False`."""
        changes: HeapChanges = _heap_in_use().changes
        return changes.changing(places, tuple(levels))

    def changed(self, place: tuple[int, int]) -> None:
        """Note that the object in a field at a place has changed, and those inside it."""
        _heap_in_use().changes.back(place)

    def is_in(self, id_: Value, classes: Iterable[int]) -> Value:
        """Return whether a record, or None, is of one of some classes: bool[]."""
        if len(self.classes) == 1:
            return number(id_ >= 0)
        tag = id_ % len(self.classes)
        return number((id_ >= 0) & reduce(jnp.logical_or, [tag == c for c in classes]))

    def number_of(self, cls: type) -> int | None:
        """Return the number of a class; None if it is none of these."""
        return next((k for k, one in enumerate(self.classes) if one.cls is cls), None)


def _read(part: Value) -> Value:
    """A part of a field that is read: of a text, which nothing changes, a copy."""
    return part.copy() if isinstance(part, Text) else part


class CopiedSchema(MadeSchema):
    """The classes of packed objects that a call copies for each lane; a class may be there once for each table."""


NOTHING = MadeSchema(())


class NeedsHeap(BaseException):  # not an error of the program, and no `except Exception` may take it for one
    """A primitive makes a record, and is traced without the heap."""


class WantsRecords(Refusal):
    """A record holds an object of a further class: these are to become classes of records made in lanes."""

    def __init__(self, classes: frozenset[MadeClass]) -> None:
        wants = Decisions(made=classes)
        super().__init__("PCB320", "an object in a record of the lane", helps=(FIELD_HELP,), wants=wants)


@dataclass(slots=True)
class _Heap:
    lists: list[Value] | None  # None: the primitive is traced without a heap
    made: dict[int, tuple[Any, Ref]]  # by identity: the objects that have been stored, which are kept alive
    changes: HeapChanges = field(default_factory=HeapChanges)
    later: list[tuple[Ref, tuple[int, int], Value]] = field(default_factory=list)  # fields on cycles


_schema: ContextVar[MadeSchema] = ContextVar("pcbatch_made", default=NOTHING)
_heap: ContextVar[_Heap | None] = ContextVar("pcbatch_heap", default=None)


def made_schema() -> MadeSchema:
    """Return the classes of records made in lanes of the program being compiled."""
    return _schema.get()


def using_made(classes: Iterable[MadeClass]) -> AbstractContextManager[None]:
    """Let objects of these classes be records of the lane within the context."""
    fields: dict[type, dict[str, None]] = {}  # of a class, as several objects of it have shown them
    mixed: dict[type, frozenset[str]] = {}
    for one in classes:
        fields.setdefault(one.cls, {}).update(dict.fromkeys(one.fields))
        mixed[one.cls] = mixed.get(one.cls, frozenset()) | one.mixed
    merged = [
        MadeClass(cls, tuple(names if declares_fields(cls) else sorted(names)), mixed[cls])
        for cls, names in fields.items()
    ]
    ordered = sorted(merged, key=lambda one: (one.cls.__module__, one.cls.__qualname__, id(one.cls)))
    return setting(_schema, MadeSchema(tuple(ordered)))


def heap_lists() -> Value:
    """Return the lists of the heap, which may be changed, while a primitive is traced with it."""
    return _heap_in_use().lists


def _heap_in_use() -> Value:
    heap = _heap.get()
    if heap is not None and heap.lists is None:
        raise NeedsHeap
    if heap is None:
        title = "a record that is made in a lane is read where the compiler does not see it"
        raise Refusal("PCB320", title, helps=("read its fields in the batched function itself",))
    return heap


@lru_cache(maxsize=4096)
def mentions_made(tree: Any) -> bool:
    """Return whether a structure has a reference to a record made in a lane."""
    node = tree.node_data()
    if node is not None and node[0] is Ref and node[1].table == MADE_TABLE:
        return True
    return any(mentions_made(child) for child in tree.children())


def without_heap(fn: Callable[..., Value], results: int) -> Callable[..., Value]:
    """Return a function that raises NeedsHeap if a result of it holds an object to be stored."""

    def run(*args: Value) -> Value:
        with setting(_heap, _Heap(None, {})):
            out = fn(*args)
            return _of_results(_results(out, results), results)

    return run


def with_heap(
    fn: Callable[..., Value], results: int, kept: list[dict[int, Any]], uses: list[HeapUse] | None = None
) -> Callable[..., Value]:
    """Return a function that takes the heap as a last argument, and gives it back as a last result.

    The objects that it has stored are added to `kept`, and what it does to lists and arrays in fields to `uses`.
    """

    def run(*args: Value) -> Value:
        *rest, lists = args
        heap = _Heap([one.copy() for one in lists], {})
        with setting(_heap, heap):
            out = fn(*rest)
            values = _results(out, results)
        kept.append(heap.made)
        if uses is not None:
            uses.append(heap.changes.use(values, rest))
        return (*values, tuple(heap.lists or ()))

    return run


def _results(out: Value, results: int) -> tuple[Value, ...]:
    values = (out,) if results == 1 else tuple(out)
    memo: dict[int, tuple[Any, Any]] = {}
    return tuple(_stored(value, memo) for value in values)


def _of_results(values: tuple[Value, ...], results: int) -> Value:
    return values[0] if results == 1 else values


def _stored(value: Value, memo: dict[int, tuple[Any, Any]]) -> Value:
    """A value with references in place of objects that are records; the value itself if it holds none."""
    if value is None or isinstance(value, Container | Ref | type | str | bytes | NUMBERS):
        return value
    if id(value) in memo:
        return memo[id(value)][1]
    if made_schema().number_of(type(value)) is not None:
        new: Value = _record(value)
    else:
        new = _rebuilt(value, memo)
    memo[id(value)] = value, new
    return new


def _rebuilt(value: Value, memo: dict[int, tuple[Any, Any]]) -> Value:
    if type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        parts = [_stored(part, memo) for part in value]
        same = all(a is b for a, b in zip(parts, value, strict=True))
        return value if same else getattr(value, "_make", type(value))(parts)
    if type(value) is dict:
        items = {key: _stored(part, memo) for key, part in value.items()}
        return value if all(items[key] is value[key] for key in value) else items
    if is_user_record(type(value)):
        inside = {name: getattr(value, name) for name in field_names(type(value), value) if hasattr(value, name)}
        new = {name: _stored(part, memo) for name, part in inside.items()}
        if any(new[name] is not inside[name] for name in new):
            value = copy.copy(value)
            for name, part in new.items():
                object.__setattr__(value, name, part)
    return value


def _record(value: Value) -> Ref:
    """Store an object, after those that it holds, and return a reference to it."""
    heap, schema = _heap.get(), made_schema()
    cls = schema.number_of(type(value))
    assert cls is not None
    names = schema.classes[cls].fields
    if isinstance(value, FunctionValue) and not names:
        return Ref(jnp.int32(cls), RefType(MADE_TABLE, schema, (cls,), False))
    if heap is None or heap.lists is None:
        raise NeedsHeap
    if id(value) in heap.made:
        found = heap.made[id(value)][1]
        if found is None:
            title = f"a {type(value).__name__} that is made in a lane holds itself in a list"
            raise Refusal("PCB320", title, helps=("make it first, and put it into the list then",))
        return found
    if not set(field_names(type(value), value)) <= set(names):
        raise WantsRecords(frozenset({class_of(value)}))
    if set(field_names(type(value), value)) != set(names) or not all(hasattr(value, name) for name in names):
        title = f"objects of {type(value).__name__} have different attributes"
        raise Refusal("PCB320", title, helps=("give all attributes a value in `__init__`",))
    if any(name not in names for name in getattr(value, "__dict__", ())):
        title = f"an object of {type(value).__name__} has attributes that are no fields of its class"
        raise Refusal("PCB320", title, helps=("declare them as fields of the dataclass",))
    heap.made[id(value)] = value, None  # type: ignore[assignment]
    # A field that leads back to an object that is being stored gets its value when that has a row.
    given = [getattr(value, name) for name in names]
    later = [(k, part) for k, part in enumerate(given) if _is_pending(part)]
    waiting = {k for k, _ in later}
    mixed = schema.classes[cls].mixed
    fields = tuple(
        None if k in waiting else _field(as_record(part) if name in mixed else part, f"{type(value).__name__}.{name}")
        for k, (name, part) in enumerate(zip(names, given, strict=True))
    )
    for k, part in enumerate(fields):
        heap.changes.stored((cls, k), part)
    rows = heap.lists[cls]
    row = rows.length
    try:
        rows.append_record(fields or (jnp.int8(0),), type(value).__qualname__)
    except Refusal as unlike:
        if more := mixed_fields(names, rows.columns, fields):
            raise WantsRecords(frozenset({MadeClass(type(value), names, more)})) from None
        raise _unlike_fields(f"the fields of {type(value).__name__}", unlike, fields) from unlike
    ref = Ref(row * len(schema.classes) + cls, RefType(MADE_TABLE, schema, (cls,), False))
    heap.made[id(value)] = value, ref
    heap.later += [(ref, (cls, k), part) for k, part in later]
    for one in [one for one in heap.later if not _is_pending(one[2])]:
        heap.later.remove(one)
        schema.write(one[1], one[0].pcbatch_id, one[2])
    return ref


def _is_pending(value: Value) -> bool:
    """Whether an object is being stored, and has no row yet."""
    heap = _heap.get()
    found = None if heap is None else heap.made.get(id(value))
    return found is not None and found[0] is value and found[1] is None


def is_recording() -> bool:
    """Return whether objects that are made here can be stored, as a primitive is traced."""
    return _heap.get() is not None


def recorded(value: Value) -> Value:
    """Return an object that has just been made, or a reference to it if its class has records made in lanes."""
    if made_schema().number_of(type(value)) is None or _heap.get() is None:
        return value
    return _record(value)


def _unlike_fields(name: str, error: Refusal, value: Value) -> Refusal:
    if tables := packed_in(getattr(error, "values", value)):
        return WantsCopies(f"{name} leads to packed objects and to others", tables)
    if classes := classes_in(getattr(error, "values", value)) - set(made_schema().classes):
        return WantsRecords(classes)
    return Refusal(
        "PCB320", f"{name} hold values of different kinds in different records", str(error), helps=(FIELD_HELP,)
    )


def _field(value: Value, name: str) -> Value:
    """A field as it is stored: records in it are references."""
    value = of_member(value)
    if value is None or isinstance(value, Ref | MemberValue | Stored | NUMBERS):
        return value
    if made_schema().number_of(type(value)) is not None:
        return _record(value)
    if isinstance(value, str):
        return lane_value(value)
    if isinstance(value, set | frozenset) or type(value) is dict:
        made = value if isinstance(value, set | frozenset) else {key: _field(part, name) for key, part in value.items()}
        return one_of(lane_value(made), [value])
    if type(value) in (list, tuple):
        parts = [_field(part, name) for part in value]
        same = all(a is b for a, b in zip(parts, value, strict=True))
        return value if same else one_of(type(value)(parts), [value])
    if isinstance(value, tuple) and hasattr(value, "_fields") and not is_user_record(type(value)):
        return type(value)._make(_field(part, name) for part in value)  # type: ignore[attr-defined]
    if not isinstance(value, Container) and is_user_record(type(value)):
        raise WantsRecords(frozenset({class_of(value)}))
    if isinstance(value, Optional):
        return Optional(_field(value.value, name), value.present)
    if hasattr(type(value), "pcbatch_class") or hasattr(value, "pcbatch_class"):
        title = "a part of an object leads back to it while its `__init__` runs, as a method of it does"
        raise Refusal("PCB320", title, helps=(DRAFT_HELP,))
    title = f"`{name}` of a record that is made in a lane cannot be a {type_name(value)}"
    raise Refusal("PCB320", title, helps=(FIELD_HELP,))


def empty_heap(classes: int) -> tuple[Value, ...]:
    """Return the heap before anything is made."""
    return tuple(LaneList.tree_unflatten((), (Unset(), jnp.int32(0))) for _ in range(classes))
