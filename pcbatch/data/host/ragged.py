"""Lists, tuples, texts, bytes, dicts and sets of all lanes, on the host: results of a call, and arguments of one.

    [[1, 2], [3], []]     kind "list"     values i32[3, 2], lengths [2, 1, 0]
    ["ab", "", "c"]       kind "text"     values i32[3, 2], the codes of the characters; lengths [2, 0, 1]
    [{7: 0.5}, {}]        kind "dict"     values the hash tables of lanes; lengths [1, 0]

The elements of a list may be pytrees, whose leaves then have these axes each. Where they are lists themselves, `values`
is a `Ragged` with one more axis in front: values i32[lanes, longest, longest'], lengths [lanes, longest]. Where they
hold dicts, sets or deques, it is the container of the lanes. In `jit` the capacity is in place of the longest length.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.columns import one_level, room
from pcbatch.data.host.host_forms import is_concrete, replaced
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import LaneFrozenSet, LaneSet
from pcbatch.data.mappings.ordered_keys import keeping_order
from pcbatch.data.members import MemberValue
from pcbatch.data.optional import Optional
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_deque import LaneDeque
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.texts.lane_bytes import LaneByteArray, LaneBytes
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.diagnostics.short_repr import clipped

MOST = 2000  # characters of a `repr`
Kind = Literal["list", "tuple", "text", "bytes", "dict", "set", "frozenset"]
KINDS: dict[type, Kind] = {
    LaneList: "list",
    LaneTuple: "tuple",
    LaneText: "text",
    LaneBytes: "bytes",
    LaneByteArray: "bytes",
    LaneDict: "dict",
    LaneSet: "set",
    LaneFrozenSet: "frozenset",
}
TABLES = frozenset({"dict", "set", "frozenset"})
_MAKE: dict[Kind, Callable[[Any], Any]] = {  # of elements, of codes, or of entries
    "list": list,
    "tuple": tuple,
    "text": lambda codes: "".join(map(chr, codes)),
    "bytes": bytes,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
}


@pytree_node("values", "lengths", static="kind", named=True)
class Ragged:
    """Lists of different lengths, or texts, dicts and the like, one for each lane; a pytree of JAX.

    A result of a batched function that is one of these comes as a `Ragged`. `pcbatch.ragged` makes one of Python's
    lists or strings, as an argument.

    Attributes:
        values: the elements, [lanes, longest, ...], or a pytree of such arrays; a `Ragged` for lists of lists. What
            stands behind the length of a list is arbitrary. Of a text the codes of its characters, as by `ord`; of a
            dict or set a hash table, or None if nothing was ever stored. `codes` and `table` are the same.
        lengths: int32[lanes], the length of each list; negative for a lane that has failed.
        kind: "list", "tuple", "text", "bytes", "dict", "set" or "frozenset".

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def below(n):
        ...     found = []
        ...     for k in range(n):
        ...         found.append(k * k)
        ...     return found, str(n), {n: 0.5}
        >>> lists, texts, dicts = below(jnp.array([3, 0, 1]))
        >>> lists
        Ragged([[0, 1, 4], [], [0]])
        >>> lists.lengths.tolist(), lists[0].tolist()
        ([3, 0, 1], [0, 1, 4])
        >>> texts.kind, texts[0], dicts.tolist()
        ('text', '3', [{3: 0.5}, {0: 0.5}, {1: 0.5}])
    """

    __slots__ = ("_known_lengths", "_values", "kind", "lengths")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Any, lengths: Any, kind: Kind = "list") -> None:
        self._values, self.lengths, self.kind = values, lengths, kind
        self._known_lengths: np.ndarray | None = None

    @property
    def values(self) -> Any:
        """The elements, [lanes, longest, ...]."""
        if self._known_lengths is not None:
            with jax.ensure_compile_time_eval():  # a program that JAX traces may be the first one to read them
                self._values, self._known_lengths = _cut(self._values, self._known_lengths), None
        return self._values

    codes = table = values

    @property
    def holds_tables(self) -> bool:
        """Whether these are dicts or sets, or lists that hold dicts, sets or deques: no arrays of one shape."""
        return self.kind in TABLES or isinstance(self._values, Rows)

    def __len__(self) -> int:
        """Return the number of lanes."""
        return int(np.shape(self.lengths)[0])

    def __getitem__(self, lane: Any) -> Any:
        """Return the value of a lane, of numbers an array; a slice gives those of several lanes.

        Raises:
            IndexError: there is no such lane.
            ValueError: the lane has failed, and has no value.
        """
        if not isinstance(lane, slice) and not -len(self) <= lane < len(self):
            raise IndexError(f"there is no lane {lane} of {len(self)}")
        if isinstance(lane, slice) or np.ndim(self.lengths) > 1:
            return jax.tree.map(lambda leaf: leaf[lane], self)
        if (length := int(np.asarray(self.lengths)[lane])) < 0:
            raise ValueError(f"lane {lane} has failed, and has no {self.kind}")
        if self.kind == "text" or self.holds_tables:
            return jax.tree.map(lambda leaf: _on_host(leaf)[lane][None], self).tolist()[0]
        return jax.tree.map(lambda leaf: leaf[lane, :length], self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist()) if self.holds_tables else (self[lane] for lane in range(len(self)))

    def tolist(self) -> list[Any]:
        """Return the lists, texts or dicts of all lanes as Python's own; None for a lane that has failed."""
        lengths = np.asarray(self.lengths)
        if lengths.ndim > 1:
            return [self[k].tolist() for k in range(len(self))]
        content = jax.tree.map(_on_host, self._values)
        if isinstance(content, Rows):
            return python_values(content, len(lengths), arrays=True)
        return (_tables if self.kind in TABLES else _sequences)(content, lengths, self.kind)

    def __eq__(self, other: object) -> Any:
        other = other.tolist() if isinstance(other, Ragged) else other
        return self.tolist() == other if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        leaves = jax.tree.leaves(self)  # lengths of a gradient are of JAX's type without values, float0
        known = all(is_concrete(leaf) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind != "V") for leaf in leaves)
        if known and np.ndim(self.lengths):
            return f"Ragged({clipped(repr(self.tolist()), MOST)})"
        kind = "" if self.kind == "list" else f", kind={self.kind!r}"
        return f"Ragged(values={self.values!r}, lengths={self.lengths!r}{kind})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._dense(), dtype)

    def __jax_array__(self) -> jax.Array:
        if self.kind in {"text", *TABLES}:
            raise TypeError(f"no array of JAX holds a {self.kind} for each lane: use `.tolist()`")
        return jnp.asarray(self._dense())

    def _dense(self) -> Any:
        """Return an array, where all lists have the same length."""
        if isinstance(self.lengths, jax.core.Tracer):
            raise ValueError("the lengths of lists are not known inside `jit`: use `.values` and `.lengths`")
        if self.kind == "text" or self.holds_tables:
            return np.asarray(self.tolist())
        lengths = np.asarray(self.lengths)
        if len(different := sorted({*lengths.reshape(-1).tolist()}) or [0]) > 1 or different[0] < 0:
            shown = clipped(", ".join(map(str, different)), 60)
            raise ValueError(f"lists of lengths {shown} are no array: use `.values` and `.lengths`, or `.tolist()`")
        inner = jax.tree.map(lambda leaf: _first(leaf, lengths.ndim, different[0]), self.values)
        if isinstance(inner, Ragged):
            return inner._dense()
        if not hasattr(inner, "shape"):
            raise ValueError("lists of tuples or other structures are no array: use `.values`")
        return inner


# Python's own values.


def reader_of_lists(lists: Ragged) -> Callable[[int], Any]:
    """Return what reads the list, text or dict of a lane, as Python's own; a list of numbers or arrays is an array."""
    on_host = Ragged(jax.tree.map(_on_host, lists._values), np.asarray(lists.lengths), lists.kind)  # and nothing is cut
    if lists.kind in {"list", "tuple"} and isinstance(on_host.values, np.ndarray):
        return on_host.__getitem__
    return lambda lane: jax.tree.map(lambda leaf: leaf[lane][None], on_host).tolist()[0]


def element_of(columns: Any, place: tuple[Any, ...]) -> Any:
    """Return the element at a place of columns, which are on the host, as a value of Python."""
    return python_values(keeping_order(lambda leaf: leaf[place][None], columns), 1, arrays=True)[0]


def python_values(columns: Any, count: int, arrays: bool) -> list[Any]:
    """Return the elements of columns as values of Python; those that are arrays stay `arrays`, or become lists."""
    match columns:
        case np.ndarray() if columns.ndim == 1 or not arrays:  # the most frequent, so the first
            return columns.tolist()  # type: ignore[no-any-return]
        case Entries():
            lengths = columns.none if columns.table is None else columns.table.count
            return _tables(columns.table, lengths, KINDS[type(columns)])
        case LaneDeque():
            return [_ring(columns, k, *map(int, state[:2])) for k, state in enumerate(columns.state)]
        case Rows():
            return _sequences(columns.columns, columns.length, KINDS.get(type(columns), "list"), arrays)
        case Optional():  # what is absent is arbitrary, so only the others are read
            there = np.flatnonzero(columns.present)
            found = iter(python_values(_at(columns.value, there), len(there), arrays))
            return [next(found) if present else None for present in columns.present.tolist()]
        case Ragged() | MemberValue():
            return columns.tolist()
        case np.ndarray() | jax.Array():
            return list(columns)
    of_dict = isinstance(columns, dict)  # JAX would sort its keys
    children, tree = (columns.values(), None) if of_dict else one_level(columns)
    parts = [python_values(child, count, arrays) for child in children]
    rows = zip(*parts, strict=True) if parts else [()] * count
    return [dict(zip(columns, row, strict=True)) if of_dict else jax.tree.unflatten(tree, row) for row in rows]


def _at(columns: Any, place: Any) -> Any:
    return columns[place] if isinstance(columns, np.ndarray) else jax.tree.map(lambda leaf: leaf[place], columns)


def _sequences(columns: Any, lengths: np.ndarray, kind: Kind, arrays: bool = False) -> list[Any]:
    """Return the lists, tuples, texts or bytes of all lanes, or of all places of another list."""
    make = _MAKE[kind]
    return [
        None if n < 0 else make(python_values(_at(columns, (k, slice(n))), n, arrays))
        for k, n in enumerate(lengths.tolist())
    ]


def _ring(columns: LaneDeque, k: int, n: int, start: int) -> deque[Any]:
    places = (start + np.arange(n)) % (room(columns.columns, 1) or 1)
    return deque(python_values(_at(columns.columns, (k, places)), n, arrays=True))


def _tables(table: Any, lengths: np.ndarray, kind: Kind) -> list[Any]:
    """Return the dicts or sets of hash tables, in the order of insertion; None is a table without entries."""
    make = _MAKE[kind]
    return [None if n < 0 else make([] if table is None else _entries(table, k, kind)) for k, n in enumerate(lengths)]


def _entries(table: Any, k: int, kind: Kind) -> Any:
    buckets, columns = np.nonzero(table.stamps[k] >= 0)
    order = np.argsort(table.stamps[k][buckets, columns])
    keys, values = _at((table.keys, table.values), (k, buckets[order], columns[order]))
    found = python_values(keys, len(order), arrays=True)
    return found if kind != "dict" else zip(found, python_values(values, len(order), arrays=True), strict=True)


# Content with the capacity of the program, which is cut to the longest value when someone reads it.


def shortened(value: Any) -> Any:
    """Return a value with each `Ragged` in it to be cut to its longest one, where lengths are known."""

    def new(lists: Ragged) -> Ragged:
        if lists.holds_tables:
            return lists
        to_cut = Ragged(lists.values, lists.lengths, lists.kind)
        if isinstance(lists.lengths, np.ndarray) or is_concrete(lists.lengths):
            to_cut._known_lengths = np.asarray(lists.lengths)  # the result's may be donated before the content is read
        return to_cut

    return replaced(value, enters_lanes, new)


def _cut(whole: Any, lengths: np.ndarray) -> Any:
    """Return the content of lists or texts of these lengths, cut to the longest one."""
    axis = lengths.ndim
    longest = int(max(0, lengths.max(initial=0)))

    def cut_leaf(leaf: Any) -> Any:
        if not hasattr(leaf, "shape") or leaf.shape[axis] <= longest:
            return leaf
        if is_concrete(leaf) and not is_key(leaf):
            return jnp.asarray(_first(np.asarray(leaf), axis, longest))  # without a program for each length
        return _first(leaf, axis, longest)

    content = jax.tree.map(cut_leaf, whole)
    if isinstance(content, Ragged):  # lists behind the end of a list are none
        inner = np.where(np.arange(longest) < lengths[..., None], np.asarray(content.lengths), 0)
        known = isinstance(content.lengths, np.ndarray)
        content = Ragged(content.values, inner if known else jnp.asarray(inner), content.kind)
    return shortened(content)


def _first(leaf: Any, axis: int, size: int) -> Any:
    return leaf[(slice(None),) * axis + (slice(size),)]


def enters_lanes(value: object) -> bool:
    """Whether a value is a `Ragged`, which becomes a container of each lane in arguments."""
    return isinstance(value, Ragged)


def is_key(leaf: Any) -> bool:
    """Whether a leaf is an array of typed PRNG keys."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _on_host(leaf: Any) -> Any:
    return leaf if isinstance(leaf, np.ndarray) or is_key(leaf) else np.asarray(leaf)
