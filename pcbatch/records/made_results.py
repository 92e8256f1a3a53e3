"""Records made in lanes as results of a call, and such results as arguments of another call.

What a function returns that leads to records made in lanes comes with the heap of its lane. On the host it is a `Made`,
of which objects of Python are made again, with the sharing and the cycles that the lane's had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.containers.columns import Unset
from pcbatch.containers.container import Container
from pcbatch.containers.dict_forms import sequence_of
from pcbatch.containers.elements import Rows
from pcbatch.containers.entries import Entries
from pcbatch.containers.host_forms import register, replaced
from pcbatch.containers.lane_deque import LaneDeque
from pcbatch.containers.members import MemberValue
from pcbatch.containers.optional import Optional
from pcbatch.containers.pytree_node import pytree_node
from pcbatch.records.made import CopiedSchema, MadeSchema, heap_lists, made_schema, mentions_made
from pcbatch.records.packed import Packed
from pcbatch.records.reference import MADE_TABLE, Ref, RefType


@pytree_node("value", "rows", static="schema", named=True)
class Made:
    """Objects that lanes have made, one (or a list of them, or whatever the function returns) for each lane.

    A pytree of JAX. `made[lane]` gives the object of a lane, and `made.tolist()` those of all, as objects of the user's
    classes; objects that a lane shares, or that lead back to themselves, do so here. A `Made` may be an argument of
    another batched function.

    Attributes:
        value: the result, with references in place of objects: row numbers, -1 for None.
        rows: for each class a list of its objects, of which each lane has its own.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> from typing import Any, NamedTuple
        >>> class Cell(NamedTuple):
        ...     head: int
        ...     tail: Any
        >>> @pcbatch.batch
        ... def below(n):
        ...     cells = None
        ...     for k in range(n):
        ...         cells = Cell(k, cells)
        ...     return cells
        >>> below(jnp.array([2, 0])).tolist()
        [Cell(head=1, tail=Cell(head=0, tail=None)), None]
    """

    __slots__ = ("rows", "schema", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, rows: tuple[Any, ...], schema: MadeSchema) -> None:
        self.value, self.rows, self.schema = value, rows, schema

    def __len__(self) -> int:
        """Return the number of lanes."""
        return int(np.shape(jax.tree.leaves(self.rows[0].length)[0])[0])

    def __getitem__(self, lane: int) -> Any:
        """Return the object of one lane.

        Raises:
            IndexError: there is no such lane.
            ValueError: the lane has failed, and has no objects.
        """
        if not -len(self) <= lane < len(self):
            raise IndexError(f"there are {len(self)} lanes, and no lane {lane}")
        part = _mapped(lambda leaf: np.asarray(leaf)[lane], (self.value, self.rows))
        if any(rows.length < 0 for rows in part[1]):
            raise ValueError(f"lane {lane} has failed, and has no objects")
        return _Objects(self.schema, part[1]).of(part[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[lane] for lane in range(len(self)))

    def tolist(self) -> list[Any]:
        """Return the objects of all lanes."""
        value, rows = _mapped(np.asarray, (self.value, self.rows))
        host = Made(value, rows, self.schema)
        return [host[lane] for lane in range(len(self))]

    def columns(self, cls: type, field: str) -> Any:
        """Return a field of all objects of a class: an array [lanes, rows, ...], or a pytree of such.

        What stands behind the number of objects of a lane is arbitrary. References are `row * classes + class`.
        """
        number = self.schema.number_of(cls)
        place = None if number is None else self.schema.place(number, field)
        if place is None:
            raise KeyError(f"{cls.__name__}.{field}")
        column = self.rows[place[0]].columns
        return None if isinstance(column, Unset) else column[place[1]]

    def counts(self, cls: type) -> Any:
        """Return how many objects of a class each lane has made: int32[lanes], negative for a lane that has failed."""
        number = self.schema.number_of(cls)
        if number is None:
            raise KeyError(cls.__name__)
        return self.rows[number].length

    def __repr__(self) -> str:
        names = ", ".join(one.cls.__name__ for one in self.schema.classes)
        return f"Made({len(self)} lanes of {names})"


def _mapped(fn: Callable[[Any], Any], value: Any) -> Any:
    """Return a pytree with other leaves; its dicts keep the order of their keys, which JAX sorts."""
    return replaced(value, lambda part: isinstance(part, jax.Array | np.ndarray | np.generic), fn)


class _Objects:
    """Makes the objects of one lane; each row once."""

    def __init__(self, schema: MadeSchema, rows: Sequence[Any]) -> None:
        self.schema, self.rows = schema, rows
        self.known: dict[int, Any] = {}
        self.unfinished: list[tuple[Any, str, Any]] = []  # attributes that objects get when all are there

    def of(self, value: Any) -> Any:
        """Return a value of the lane with objects in place of references."""
        match value:
            case Ref() if value.pcbatch_type.table == MADE_TABLE:
                return self.object(int(value.pcbatch_id))
            case Ref():
                raise ValueError("this refers to packed objects, whose tables are not here")
            case Packed():
                return Packed(value.ids[None], value.columns, value.schema, value.roots).unpack()[0]
            case Optional():
                return self.of(value.value) if bool(value.present) else None
            case MemberValue():
                return list(value.members)[int(value.index)]
            case Rows():
                return sequence_of(value, self.elements(value))
            case Entries():
                return self.entries(value)
            case dict():
                return {key: self.of(part) for key, part in value.items()}
            case None | bool() | int() | float() | complex() | str():
                return value
            case np.ndarray() | np.generic() | jax.Array():
                array = np.asarray(value)
                return array.item() if array.ndim == 0 else array
        children, tree = jax.tree.flatten(value, is_leaf=lambda part: part is not value)
        return jax.tree.unflatten(tree, [self.of(child) for child in children])

    def elements(self, rows: Any) -> list[Any]:
        """Return the elements of a list of the lane."""
        if isinstance(rows, LaneDeque):
            rows = jax.tree.map(np.asarray, jax.tree.map(jnp.asarray, rows).straight())
        columns, length = rows.columns, int(rows.length)
        return [self.of(_mapped(itemgetter(k), columns)) for k in range(length)]

    def entries(self, value: Any) -> Any:
        """Return a dict or a set of the lane."""
        if hasattr(value, "items_list"):
            return dict(self.elements(jax.tree.map(np.asarray, value.items_list())))
        return set(self.elements(jax.tree.map(np.asarray, value.keys_list())))

    def object(self, number: int) -> Any:
        """Return the object with a number, with all that it leads to."""
        if number < 0:
            return None
        if number in self.known:
            return self.known[number]
        pending = [number]
        while pending:  # a chain of a thousand objects is no recursion of a thousand calls
            one = pending[-1]
            cls = self.schema.classes[one % len(self.schema.classes)]
            fields = self._fields(one)
            if issubclass(cls.cls, tuple) and (waiting := self._unknown(fields)):
                pending += waiting
                continue
            pending.pop()
            if one in self.known:
                continue
            if issubclass(cls.cls, tuple):  # its fields are there before it
                self.known[one] = cls.cls._make(self.of(part) for part in fields)  # type: ignore[attr-defined]
                continue
            made = self.known[one] = object.__new__(cls.cls)
            pending += self._unknown(fields)
            self.unfinished += [(made, name, part) for name, part in zip(cls.fields, fields, strict=True)]
        unfinished, self.unfinished = self.unfinished, []
        for made, name, part in unfinished:
            object.__setattr__(made, name, self.of(part))
        return self.known[number]

    def _fields(self, number: int) -> list[Any]:
        cls, row = number % len(self.schema.classes), number // len(self.schema.classes)
        columns = self.rows[cls].columns
        return [_mapped(lambda leaf: np.asarray(leaf)[row], column) for column in columns][
            : len(self.schema.classes[cls].fields)
        ]

    def _unknown(self, values: Sequence[Any]) -> list[int]:
        """The numbers of objects in values that have not been made yet."""
        found: list[int] = []
        for value in values:
            parts = jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, Ref | Rows | Entries))
            for part in parts:
                if isinstance(part, Ref) and part.pcbatch_type.table == MADE_TABLE:
                    found += [int(part.pcbatch_id)]
                elif isinstance(part, Entries) and part.table is not None:
                    live = np.asarray(part.table.stamps) >= 0
                    for leaf in jax.tree.leaves(part.table, is_leaf=lambda leaf: isinstance(leaf, Ref)):
                        if isinstance(leaf, Ref) and leaf.pcbatch_type.table == MADE_TABLE:
                            found += np.asarray(leaf.pcbatch_id)[live].ravel().tolist()
                elif isinstance(part, Rows):
                    places = list(_places(part))
                    rows = jax.tree.leaves(part.columns, is_leaf=lambda leaf: isinstance(leaf, Ref))
                    for leaf in rows:
                        if isinstance(leaf, Ref) and leaf.pcbatch_type.table == MADE_TABLE:
                            found += np.asarray(leaf.pcbatch_id)[places].ravel().tolist()
        return [one for one in found if one >= 0 and one not in self.known]


def _places(rows: Rows) -> Sequence[int]:
    """The places of the elements of a list of one lane, in order; a deque begins anywhere."""
    if not isinstance(rows, LaneDeque):
        return range(int(rows.length))
    return [(int(rows.start) + k) % rows.capacity for k in range(int(rows.length))]


@pytree_node("value", "rows", static="schema")
class WithHeap(Container):
    """A value of a lane with the heap that its references lead into: a result, or an argument that is a `Made`."""

    __slots__ = ("rows", "schema", "value")

    def __init__(self, value: Any, rows: tuple[Any, ...], schema: MadeSchema) -> None:
        self.value, self.rows, self.schema = value, rows, schema


def with_heap_in_result(value: Any) -> Any:
    """Return the result of a lane with the heap beside each part that leads into it."""
    if not mentions_made(jax.tree.structure(value)):
        return value
    if type(value) in (tuple, list):
        return type(value)(with_heap_in_result(part) for part in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(with_heap_in_result(part) for part in value)
    if type(value) is dict:
        return {key: with_heap_in_result(part) for key, part in value.items()}
    return WithHeap(value, tuple(one.copy() for one in heap_lists()), made_schema())


register(WithHeap, lambda value: Made(value.value, value.rows, value.schema))


def as_argument(value: Any) -> Any:
    """Return an argument with what enters a program in place of each `Made`."""
    if isinstance(value, jax.Array | np.ndarray):
        return value
    return replaced(value, lambda x: isinstance(x, Made), lambda made: WithHeap(made.value, made.rows, made.schema))


def absorbed(*values: Any) -> Any:
    """Return arguments of a lane with the records that come with them in the heap of the program."""
    parts = [part for part in jax.tree.leaves(values, is_leaf=_is_with_heap) if _is_with_heap(part)]
    moves = {part.schema: _absorbed(part) for part in parts if type(part.schema) is CopiedSchema and part.rows}

    def moved(part: WithHeap) -> Any:
        return (moves[part.schema] if part.schema in moves else _absorbed(part))(part.value)

    new = tuple(replaced(value, _is_with_heap, moved) for value in values)
    return new[0] if len(new) == 1 else new


def _is_with_heap(part: object) -> bool:
    return isinstance(part, WithHeap)


def _absorbed(part: WithHeap) -> Callable[[Any], Any]:
    """Append records to the heap; return what makes references into it of those of the part."""
    lists, schema = heap_lists(), made_schema()
    places = [schema.number_of(one.cls) for one in part.schema.classes]
    starts = []
    for k, place in enumerate(places):
        assert place is not None
        before = [part.rows[other].length for other in range(k) if places[other] == place]
        starts.append(sum(before, lists[place].length))

    def moved(ref: Any) -> Any:
        if not isinstance(ref, Ref) or ref.pcbatch_type.table != MADE_TABLE:
            return ref
        old, id_ = len(part.schema.classes), jnp.asarray(ref.pcbatch_id)
        cls, row = id_ % old, id_ // old
        at = row + jnp.asarray(starts)[cls]
        number = jnp.where(id_ < 0, -1, at * len(schema.classes) + jnp.asarray(places, np.int32)[cls])
        classes = tuple(sorted(place for c in ref.pcbatch_type.classes if (place := places[c]) is not None))
        return Ref(number.astype(np.int32), RefType(MADE_TABLE, schema, classes, ref.pcbatch_type.optional))

    def all_moved(tree: Any) -> Any:
        return replaced(tree, lambda x: isinstance(x, Ref), moved)

    for rows, place in zip(part.rows, places, strict=True):
        assert place is not None
        lists[place].extend(all_moved(rows))
    return all_moved
