"""Records made in lanes as results of a call, and such results as arguments of another call.

What a function returns that leads to records made in lanes comes with the heap of its lane. On the host it is a `Made`,
of which objects of Python are made again, with the sharing and the cycles that the lane's had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.columns import Unset
from pcbatch.data.container import Container
from pcbatch.data.host.host_forms import register, replaced
from pcbatch.data.host.ragged import element_of
from pcbatch.data.mappings.hash_table import HashTable
from pcbatch.data.objects.made import CopiedSchema, MadeSchema, heap_lists, made_schema, mentions_made
from pcbatch.data.objects.packed import Packed
from pcbatch.data.objects.ref_type import MADE_TABLE, RefType
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.unpack import Objects
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.values import Columns, Value
from pcbatch.errors import Refusal


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

    def __init__(self, value: Value, rows: tuple[Value, ...], schema: MadeSchema) -> None:
        self.value, self.rows, self.schema = value, rows, schema

    def __len__(self) -> int:
        """Return the number of lanes."""
        return int(np.shape(jax.tree.leaves(self.rows[0].length)[0])[0])

    def __getitem__(self, lane: int) -> Value:
        """Return the object of one lane.

        Raises:
            IndexError: there is no such lane.
            ValueError: the lane has failed, and has no objects.
        """
        if not -len(self) <= lane < len(self):
            raise IndexError(f"there are {len(self)} lanes, and no lane {lane}")
        return self._on_host()._of_lane(lane)

    def _on_host(self) -> Made:
        value, rows = _mapped(np.asarray, (self.value, self.rows))
        return Made(value, rows, self.schema)

    def _of_lane(self, lane: int) -> Value:
        if any(rows.length[lane] < 0 for rows in self.rows):
            raise ValueError(f"lane {lane} has failed, and has no objects")
        return _MadeObjects(self.schema, self.rows, lane).of(element_of(self.value, (lane,)))

    def __iter__(self) -> Iterator[Value]:
        return (self[lane] for lane in range(len(self)))

    def tolist(self) -> list[Value]:
        """Return the objects of all lanes."""
        host = self._on_host()
        return [host._of_lane(lane) for lane in range(len(self))]

    def columns(self, cls: type, field: str) -> Columns:
        """Return a field of all objects of a class: an array [lanes, rows, ...], or a pytree of such.

        What stands behind the number of objects of a lane is arbitrary. References are `row * classes + class`.
        """
        number = self.schema.number_of(cls)
        place = None if number is None else self.schema.place(number, field)
        if place is None:
            raise KeyError(f"{cls.__name__}.{field}")
        column = self.rows[place[0]].columns
        return None if isinstance(column, Unset) else column[place[1]]

    def counts(self, cls: type) -> Value:
        """Return how many objects of a class each lane has made: int32[lanes], negative for a lane that has failed."""
        number = self.schema.number_of(cls)
        if number is None:
            raise KeyError(cls.__name__)
        return self.rows[number].length

    def __repr__(self) -> str:
        names = ", ".join(one.cls.__name__ for one in self.schema.classes)
        return f"Made({len(self)} lanes of {names})"


def _mapped(fn: Callable[[Value], Value], value: Value) -> Value:
    """Return a pytree with other leaves; its dicts keep the order of their keys, which JAX sorts."""
    return replaced(value, lambda part: isinstance(part, jax.Array | np.ndarray | np.generic), fn)


class _MadeObjects(Objects):
    """The objects of one lane; `rows` are those of all lanes, in NumPy's arrays."""

    def __init__(self, schema: MadeSchema, rows: Sequence[Value], lane: int) -> None:
        super().__init__()
        self.schema, self.rows, self.lane = schema, rows, lane

    def number(self, value: Value) -> int | None:
        if not isinstance(value, Ref):
            return None
        if value.pcbatch_type.table != MADE_TABLE:
            raise ValueError("this refers to packed objects, whose tables are not here")
        return int(value.pcbatch_id)

    def row(self, number: int) -> tuple[type, Sequence[str], list[Value]]:
        row, cls = divmod(number, len(self.schema.classes))
        names = self.schema.classes[cls].fields
        columns = self.rows[cls].columns[: len(names)]
        return self.schema.classes[cls].cls, names, [element_of(column, (self.lane, row)) for column in columns]

    def _made(self, value: Value) -> Value:
        if isinstance(value, Packed):
            return Packed(np.asarray(value.ids)[None], value.columns, value.schema, value.roots).unpack()[0]
        return super()._made(value)


@pytree_node("value", "rows", static="schema")
class WithHeap(Container):
    """A value of a lane with the heap that its references lead into: a result, or an argument that is a `Made`."""

    __slots__ = ("rows", "schema", "value")

    def __init__(self, value: Value, rows: tuple[Value, ...], schema: MadeSchema) -> None:
        self.value, self.rows, self.schema = value, rows, schema


def with_heap_in_result(value: Value) -> Value:
    """Return the result of a lane with the heap beside each part that leads into it."""
    if not mentions_made(jax.tree.structure(value)):
        return value
    if type(value) in (tuple, list):
        return type(value)(with_heap_in_result(part) for part in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(with_heap_in_result(part) for part in value)
    if type(value) is dict:
        return {key: with_heap_in_result(part) for key, part in value.items()}
    lists = tuple(one.copy() for one in heap_lists())
    _refuse_record_keys((value, lists), "a result")
    return WithHeap(value, lists, made_schema())


def _refuse_record_keys(value: Value, what: str) -> None:
    """Refuse dicts and sets whose keys are records: on the host these have other numbers, or none."""
    tables = [part for part in jax.tree.leaves(value, is_leaf=_is_table) if _is_table(part)]
    for table in tables:
        _refuse_record_keys(table.values, what)
        if any(isinstance(part, Ref) for part in jax.tree.leaves(table.keys, is_leaf=lambda x: isinstance(x, Ref))):
            helps = ("give a list of pairs, `list(d.items())`, or a dict whose keys are fields of the objects",)
            raise Refusal("PCB320", f"{what} holds a dict or set whose keys are records of the lane", helps=helps)


def _is_table(part: object) -> bool:
    return isinstance(part, HashTable)


register(WithHeap, lambda value: Made(value.value, value.rows, value.schema))


def as_argument(value: Value) -> Value:
    """Return an argument with what enters a program in place of each `Made`."""
    if isinstance(value, jax.Array | np.ndarray):
        return value
    return replaced(value, lambda x: isinstance(x, Made), lambda made: WithHeap(made.value, made.rows, made.schema))


def absorbed(*values: Value) -> Value:
    """Return arguments of a lane with the records that come with them in the heap of the program."""
    parts = [part for part in jax.tree.leaves(values, is_leaf=_is_with_heap) if _is_with_heap(part)]
    moves = {part.schema: _absorbed(part) for part in parts if type(part.schema) is CopiedSchema and part.rows}

    def moved(part: WithHeap) -> Value:
        return (moves[part.schema] if part.schema in moves else _absorbed(part))(part.value)

    new = tuple(replaced(value, _is_with_heap, moved) for value in values)
    return new[0] if len(new) == 1 else new


def _is_with_heap(part: object) -> bool:
    return isinstance(part, WithHeap)


def _absorbed(part: WithHeap) -> Callable[[Value], Value]:
    """Append records to the heap; return what makes references into it of those of the part."""
    lists, schema = heap_lists(), made_schema()
    _refuse_record_keys((part.value, part.rows), "an argument")
    places = [schema.number_of(one.cls) for one in part.schema.classes]
    starts = []
    for k, place in enumerate(places):
        assert place is not None
        before = [part.rows[other].length for other in range(k) if places[other] == place]
        starts.append(sum(before, lists[place].length))

    def moved(ref: Value) -> Value:
        if not isinstance(ref, Ref) or ref.pcbatch_type.table != MADE_TABLE:
            return ref
        old, id_ = len(part.schema.classes), jnp.asarray(ref.pcbatch_id)
        cls, row = id_ % old, id_ // old
        at = row + jnp.asarray(starts)[cls]
        number = jnp.where(id_ < 0, -1, at * len(schema.classes) + jnp.asarray(places, np.int32)[cls])
        classes = tuple(sorted(place for c in ref.pcbatch_type.classes if (place := places[c]) is not None))
        return Ref(number.astype(np.int32), RefType(MADE_TABLE, schema, classes, ref.pcbatch_type.optional))

    def all_moved(tree: Any) -> Value:
        return replaced(tree, lambda x: isinstance(x, Ref), moved)

    for rows, place in zip(part.rows, places, strict=True):
        assert place is not None
        lists[place].extend(all_moved(rows))
    return all_moved
