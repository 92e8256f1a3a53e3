"""Records made in lanes: objects of a few classes of the program lie in lists of the lane, its *heap*.

    xs = Node(i, xs)        # a row (i, xs) of the list of `Node`; the value is a reference to it

The heap is one list for each class, whose elements are the fields. Rows are only added. A primitive that makes or
reads such records has the heap as a last operand, and the heap after it as a last result. Objects are stored where
they leave a primitive; inside one they are what Python makes of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, reduce
from types import FunctionType, MethodType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.containers.aliasing import MOST, captured_values, parts_of
from pcbatch.containers.columns import Unset
from pcbatch.containers.container import Container
from pcbatch.containers.lane_list import LaneList
from pcbatch.errors import Refusal
from pcbatch.origins import number
from pcbatch.records.reference import MADE_TABLE, Ref, RefType
from pcbatch.records.schema import field_names, is_record

HEAP = "__made__"
"""The variable that holds the heap, in every function that makes or reads records made in lanes."""

FIELD_HELP = "keep numbers, and records or None, in the fields of records that are made in a lane"
EXISTING_HELP = "make the record in the batched function, once for each lane, and pass it on"


@dataclass(frozen=True, slots=True)
class MadeClass:
    """A class whose objects are records made in lanes, with the names of its fields."""

    cls: type
    fields: tuple[str, ...]


@dataclass(frozen=True)
class MadeSchema:
    """The classes of the records that lanes make: row `r` of class `c` has the number `r * len(classes) + c`."""

    classes: tuple[MadeClass, ...]

    def place(self, cls: int, name: str) -> tuple[int, int] | None:
        """Return the number of a class, and that of a field of it; None if the class lacks the field."""
        fields = self.classes[cls].fields
        return (cls, fields.index(name)) if name in fields else None

    def read(self, place: tuple[int, int], id_: Any) -> Any:
        """Return the field of a record at a place in its class."""
        cls, field = place
        rows = _heap_in_use().lists[cls]
        value = rows.element(jnp.maximum(id_, 0) // len(self.classes))
        return value[field]

    def is_in(self, id_: Any, classes: Iterable[int]) -> Any:
        """Return whether a record, or None, is of one of some classes: bool[]."""
        tag = id_ % len(self.classes)
        return number((id_ >= 0) & reduce(jnp.logical_or, [tag == c for c in classes]))

    def number_of(self, cls: type) -> int | None:
        """Return the number of a class; None if it is none of these."""
        return next((k for k, one in enumerate(self.classes) if one.cls is cls), None)


NOTHING = MadeSchema(())


class NeedsHeap(BaseException):  # not an error of the program, and no `except Exception` may take it for one
    """A primitive makes a record, and is traced without the heap."""


class WantsRecords(Refusal):
    """A record holds an object of a further class; `classes` are to become classes of records made in lanes."""

    def __init__(self, classes: frozenset[MadeClass]) -> None:
        super().__init__("PCB320", "an object in a record of the lane", helps=(FIELD_HELP,))
        self.classes = classes


@dataclass(slots=True)
class _Heap:
    lists: list[Any] | None  # None: the primitive is traced without a heap
    made: dict[int, tuple[Any, Ref]]  # by identity: the objects that have been stored, which are kept alive


_schema: ContextVar[MadeSchema] = ContextVar("pcbatch_made", default=NOTHING)
_heap: ContextVar[_Heap | None] = ContextVar("pcbatch_heap", default=None)


def made_schema() -> MadeSchema:
    """Return the classes of records made in lanes of the program being compiled."""
    return _schema.get()


@contextlib.contextmanager
def using_made(classes: Iterable[MadeClass]) -> Iterator[None]:
    """Let objects of these classes be records of the lane within the context."""
    ordered = sorted(classes, key=lambda one: (one.cls.__module__, one.cls.__qualname__, id(one.cls)))
    token = _schema.set(MadeSchema(tuple(ordered)))
    try:
        yield
    finally:
        _schema.reset(token)


def _heap_in_use() -> Any:
    heap = _heap.get()
    if heap is None or heap.lists is None:
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


def classes_in(value: Any) -> frozenset[MadeClass]:
    """Return the classes of the objects of the user's in a value that may be records made in lanes."""
    found: set[MadeClass] = set()

    def look(part: Any) -> bool:
        if not isinstance(part, Container | type | Ref) and is_user_record(type(part)):
            found.add(MadeClass(type(part), field_names(type(part), part)))
        return False

    jax.tree.leaves(value, is_leaf=look)
    return frozenset(found)


def is_user_record(cls: type) -> bool:
    """Return whether objects of a class may be records made in lanes."""
    return cls.__module__.partition(".")[0] != "pcbatch" and is_record(cls)


def without_heap(fn: Callable[..., Any], results: int) -> Callable[..., Any]:
    """Return a function that raises NeedsHeap if a result of it holds an object to be stored."""

    def run(*args: Any) -> Any:
        with _using(_Heap(None, {})):
            out = fn(*args)
            return _of_results(_results(out, results), results)

    return run


def with_heap(fn: Callable[..., Any], results: int, kept: list[dict[int, Any]]) -> Callable[..., Any]:
    """Return a function that takes the heap as a last argument, and gives it back as a last result.

    The objects that it has stored are added to `kept`.
    """

    def run(*args: Any) -> Any:
        *rest, lists = args
        heap = _Heap([one.copy() for one in lists], {})
        with _using(heap):
            out = fn(*rest)
            values = _results(out, results)
        kept.append(heap.made)
        return (*values, tuple(heap.lists or ()))

    return run


def _results(out: Any, results: int) -> tuple[Any, ...]:
    values = (out,) if results == 1 else tuple(out)
    memo: dict[int, tuple[Any, Any]] = {}
    return tuple(_stored(value, memo) for value in values)


def _of_results(values: tuple[Any, ...], results: int) -> Any:
    return values[0] if results == 1 else values


@contextlib.contextmanager
def _using(heap: _Heap) -> Iterator[None]:
    token = _heap.set(heap)
    try:
        yield
    finally:
        _heap.reset(token)


def _stored(value: Any, memo: dict[int, tuple[Any, Any]]) -> Any:
    """A value with references in place of objects that are records; the value itself if it holds none."""
    if value is None or isinstance(value, Container | Ref | jax.Array | np.ndarray | np.generic | type):
        return value
    if isinstance(value, bool | int | float | complex | str | bytes):
        return value
    if id(value) in memo:
        return memo[id(value)][1]
    if made_schema().number_of(type(value)) is not None:
        new: Any = _record(value)
    else:
        new = _rebuilt(value, memo)
    memo[id(value)] = value, new
    return new


def _rebuilt(value: Any, memo: dict[int, tuple[Any, Any]]) -> Any:
    if type(value) in (list, tuple):
        parts: list[Any] = [_stored(part, memo) for part in value]
        if all(a is b for a, b in zip(parts, value, strict=True)):
            return value
        return parts if type(value) is list else tuple(parts)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [_stored(part, memo) for part in value]
        same = all(a is b for a, b in zip(parts, value, strict=True))
        return value if same else type(value)._make(parts)  # type: ignore[attr-defined]
    if type(value) is dict:
        items = {key: _stored(part, memo) for key, part in value.items()}
        return value if all(items[key] is value[key] for key in value) else items
    if is_user_record(type(value)):
        inside = [getattr(value, name, None) for name in field_names(type(value), value)]
        if any(_stored(part, memo) is not part for part in inside):  # its class has to be one of them
            raise WantsRecords(frozenset({MadeClass(type(value), field_names(type(value), value))}))
    return value


def _record(value: Any) -> Ref:
    """Store an object, after those that it holds, and return a reference to it."""
    heap = _heap.get()
    if heap is None or heap.lists is None:
        raise NeedsHeap
    if id(value) in heap.made:
        found = heap.made[id(value)][1]
        if found is None:
            title = f"a {type(value).__name__} that is made in a lane holds itself"
            raise Refusal("PCB320", title, helps=("records made in lanes have no cycles",))
        return found
    schema = made_schema()
    cls = schema.number_of(type(value))
    assert cls is not None
    names = schema.classes[cls].fields
    if field_names(type(value), value) != names:
        title = f"objects of {type(value).__name__} have different attributes"
        raise Refusal("PCB320", title, helps=("give all attributes a value in `__init__`",))
    if any(name not in names for name in getattr(value, "__dict__", ())):
        title = f"an object of {type(value).__name__} has attributes that are no fields of its class"
        raise Refusal("PCB320", title, helps=("declare them as fields of the dataclass",))
    heap.made[id(value)] = value, None  # type: ignore[assignment]
    fields = tuple(_field(getattr(value, name), f"{type(value).__name__}.{name}") for name in names)
    rows = heap.lists[cls]
    row = rows.length
    try:
        rows.append(fields or (jnp.int8(0),))
    except Refusal as unlike:
        title = f"the fields of {type(value).__name__} hold values of different kinds in different records"
        raise Refusal("PCB320", title, str(unlike), helps=(FIELD_HELP,)) from None
    ref = Ref(row * len(schema.classes) + cls, RefType(MADE_TABLE, schema, (cls,), False))
    heap.made[id(value)] = value, ref
    return ref


def _field(value: Any, name: str) -> Any:
    """A field as it is stored: nothing in it can be changed in place."""
    if value is None or isinstance(value, Ref | bool | int | float | complex):
        return value
    if made_schema().number_of(type(value)) is not None:
        return _record(value)
    if isinstance(value, jax.Array | np.generic) and jnp.shape(value) == ():
        return value
    if type(value) is tuple:
        return tuple(_field(part, name) for part in value)
    if not isinstance(value, Container) and is_user_record(type(value)):
        raise WantsRecords(frozenset({MadeClass(type(value), field_names(type(value), value))}))
    from pcbatch.containers.optional import Optional

    if isinstance(value, Optional):
        return Optional(_field(value.value, name), value.present)
    kind = "an array" if isinstance(value, jax.Array | np.ndarray) else f"a {_name(value)}"
    title = f"`{name}` of a record that is made in a lane cannot be {kind}"
    raise Refusal("PCB320", title, helps=(FIELD_HELP,))


def _name(value: Any) -> str:
    return getattr(value, "python_name", type(value).__name__.removeprefix("Lane").lower())


def captured_record(fn: Any, is_own: Callable[[Any], bool]) -> Any:
    """Return an object that a function finds in its globals and cells, or a function of the user's that it names, and
    whose class has records made in lanes; None if there is none."""
    classes = {one.cls for one in made_schema().classes}
    seen: set[int] = set()
    stack: list[Any] = [fn]
    while stack:
        value = stack.pop()
        if id(value) in seen or len(seen) > MOST:
            continue
        seen.add(id(value))
        if type(value) in classes:
            return value
        match value:
            case FunctionType():
                stack += captured_values(value) if value is fn or is_own(value.__code__) else ()
            case MethodType():
                stack += (value.__self__, value.__func__)
            case _ if not isinstance(value, type | ModuleType):
                parts = parts_of(value)
                stack += () if parts is None else parts[1]
    return None


def existed_before(kept: list[dict[int, Any]]) -> Any:
    """Return an object that several traces of a primitive have stored, which none of them has made; None for none."""
    first, *others = kept
    for other in others:
        for key in first.keys() & other.keys():
            return first[key][0]
    return None


def refuse_existing(value: Any) -> Refusal:
    """Return the error about an object that existed before the lane, where records of its class are made in lanes."""
    title = f"this {type(value).__name__} existed before the call, and others are made in the lane"
    return Refusal("PCB320", title, helps=(EXISTING_HELP,))


def empty_heap(classes: int) -> tuple[Any, ...]:
    """Return the heap before anything is made."""
    return tuple(LaneList.tree_unflatten((), (Unset(), jnp.int32(0))) for _ in range(classes))
