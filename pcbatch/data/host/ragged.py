"""Lists of all lanes, on the host: results that are lists, and arguments.

    Ragged([[1, 2], [3], []])      values i32[3, 2], lengths [2, 1, 0]

The elements of a list may be pytrees, whose leaves then have these axes each. Where they are lists themselves, `values`
is a `Ragged` with one more axis in front: values i32[lanes, longest, longest'], lengths [lanes, longest]. Inside `jit`
lists have the capacity of the program in place of the longest length; what lies behind a length is arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.host.host_forms import OfLanes, read, uncut
from pcbatch.data.host.texts import Texts, texts
from pcbatch.data.mappings.ordered_keys import plain, with_ordered_keys
from pcbatch.data.members import is_member
from pcbatch.data.optional import Optional
from pcbatch.data.pytree_node import pytree_node
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import clipped
from pcbatch.errors import UsageError


@pytree_node("values", "lengths", named=True)
class Ragged(OfLanes):
    """Lists of different lengths, one for each lane; a pytree of JAX.

    A result of a batched function that is a list comes as one, and `pcbatch.ragged` makes one of Python's lists, as an
    argument.

    Attributes:
        values: the elements, [lanes, longest, ...], or a pytree of such arrays; a `Ragged` for lists of lists. What
            stands behind the length of a list is arbitrary.
        lengths: int32[lanes], the length of each list; negative for a lane that has failed.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def below(n):
        ...     found = []
        ...     for k in range(n):
        ...         found.append(k * k)
        ...     return found
        >>> lists = below(jnp.array([3, 0, 1]))
        >>> lists
        Ragged([[0, 1, 4], [], [0]])
        >>> lists.lengths.tolist(), lists[0].tolist()
        ([3, 0, 1], [0, 1, 4])
    """

    __slots__ = ("_values", "lengths")
    __hash__ = None
    kind: ClassVar[type] = list

    def __init__(self, values: Any, lengths: Any) -> None:
        self._values, self.lengths = values, lengths

    @property
    def values(self) -> Any:
        """The elements, [lanes, longest, ...]."""
        self._values = read(self._values)
        return self._values

    def _of_lane(self, lane: int, length: int) -> Any:
        return jax.tree.map(lambda leaf: leaf[lane, :length], uncut(self._values))

    def tolist(self) -> list[Any]:
        """Return Python lists of Python numbers, one for each lane; None for a lane that has failed."""
        lengths = np.asarray(self.lengths)
        if lengths.ndim > 1:
            return [lists.tolist() for lists in self]
        if not lengths.shape[0]:
            return []
        columns = [_rows(column) for column in jax.tree.leaves(uncut(self._values), is_leaf=is_form)]
        tree = jax.tree.structure(uncut(self._values), is_leaf=is_form)
        rows = (_elements(tree, columns, lane, int(n)) if n >= 0 else None for lane, n in enumerate(lengths))
        return [None if row is None else self.kind(row) for row in rows]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return an array, where all lists have the same length."""
        return np.asarray(self._dense(), dtype)

    def __jax_array__(self) -> jax.Array:
        """Return an array, where all lists have the same length."""
        return jnp.asarray(self._dense())

    def _dense(self) -> Any:
        if isinstance(self.lengths, jax.core.Tracer):
            raise ValueError("the lengths of lists are not known inside `jit`: use `.values` and `.lengths`")
        lengths = np.asarray(self.lengths)
        different = sorted({int(n) for n in lengths.reshape(-1)})
        if len(different) > 1 or (different and different[0] < 0):
            shown = clipped(", ".join(map(str, different)), 60)
            raise ValueError(f"lists of lengths {shown} are no array: use `.values` and `.lengths`, or `.tolist()`")
        inner = self.values
        if isinstance(inner, Ragged):
            inner = jax.tree.map(lambda leaf: cut(leaf, lengths.ndim, different[0] if different else 0), inner)._dense()
        if not hasattr(inner, "shape"):
            raise ValueError("lists of tuples or other structures are no array: use `.values`")
        return cut(inner, lengths.ndim, different[0] if different else 0)


@pytree_node("values", "lengths", named=True)
class RaggedTuples(Ragged):
    """Tuples of different lengths, one for each lane: as `Ragged`, but `tolist()` gives tuples."""

    __slots__ = ()
    __hash__ = None
    name, kind = "tuple", tuple


@pytree_node("values", "lengths", named=True)
class RaggedBytes(Ragged):
    """Bytes, one for each lane: as `Ragged`, with numbers from 0 to 255, but `tolist()` gives `bytes`."""

    __slots__ = ()
    __hash__ = None
    name, kind = "bytes", bytes


ALIKE = "the elements of lists must be alike"
IN_ORDER = "dicts in lists must have their keys in one order"
SORTED = "sort the keys: `{key: d[key] for key in sorted(d)}` for each dict `d`"
NUMBERS = "give a list of numbers for each lane, `pcbatch.ragged([[1, 2], [3], []])`"
MIXED = (
    "make each element a tuple with a place for each kind, of which a number says which one counts: "
    '`[(0, 5, ""), (1, 0, "ab")]` for `[5, "ab"]`',
    "of lists in lists to any depth, make pairs of depth and number: `[(0, 1), (1, 2), (2, 3)]` for `[1, [2, [3]]]`",
)


def ragged(lists: Sequence[Any], dtype: Any = None) -> Any:
    """Make an argument of lists of different lengths, one for each lane, in which a batched function has its own.

    Calls with lists of other lengths use the same program, as long as the longest has as many elements, rounded up to
    a power of two.

    Args:
        lists: a list, or an array, for each lane. Their elements are numbers, texts, arrays of one shape, lists, or
            tuples and other pytrees of these, all alike. Or a string, or `bytes`, for each lane.
        dtype: of the numbers. None: as `jnp.array` chooses it. `str` for strings, where there may be none.

    Returns:
        A `Ragged`, with arrays of NumPy.

    Raises:
        UsageError: elements that are not alike, or numbers that JAX's default integer does not hold.

    Example:
        >>> import pcbatch
        >>> @pcbatch.batch
        ... def total(xs):
        ...     result = 0
        ...     for x in xs:
        ...         result += x
        ...     return result
        >>> total(pcbatch.ragged([[1, 2], [3], []])).tolist()
        [3, 3, 0]
    """
    try:
        if dtype is str or (len(lists) and all(isinstance(row, str) for row in lists)):
            return texts(lists)
        if len(lists) and all(isinstance(row, bytes) for row in lists):
            made = _ragged([list(row) for row in lists], int)
            return RaggedBytes(made.values, made.lengths)
        return _ragged([_items(row, lane) for lane, row in enumerate(lists)], dtype)
    except (TypeError, ValueError, OverflowError) as error:
        helps = MIXED if ALIKE in str(error) else (SORTED if IN_ORDER in str(error) else NUMBERS,)
        raise UsageError(Diagnostic("PCB405", str(error), helps=helps)) from None


def _items(row: Any, lane: int) -> list[Any]:
    if isinstance(row, list | tuple):
        return list(row)
    if isinstance(row, Ragged):
        return row.tolist()
    if isinstance(row, np.ndarray | jax.Array) and row.ndim:
        return list(np.asarray(row))
    raise ValueError(f"`ragged` takes a list for each lane, and has a {type(row).__name__} for lane {lane}")


def _ragged(rows: list[list[Any]], dtype: Any) -> Ragged:
    lengths = np.array([len(row) for row in rows], np.int32)
    places = np.arange(int(lengths.max(initial=0))) < lengths[:, None]
    elements = [element for row in rows for element in row]
    if not elements:
        return Ragged(np.zeros(places.shape, jax.dtypes.canonicalize_dtype(dtype or float)), lengths)
    if not jax.tree_util.all_leaves(elements[:1], is_leaf=_is_list):
        elements = list(map(with_ordered_keys, elements))
    flat = [jax.tree.flatten(element, is_leaf=_is_list) for element in elements]
    tree: Any = flat[0][1]
    other = next((element for element, (_, t) in zip(elements, flat, strict=True) if t != tree), None)
    if other is not None:
        shown = f"not {clipped(repr(elements[0]), 40)} and {clipped(repr(other), 40)}"
        trees: list[Any] = [jax.tree.structure(plain(element)) for element in (other, elements[0])]
        raise ValueError(f"{IN_ORDER if trees[0] == trees[1] else ALIKE}, {shown}")
    columns = [_column([leaves[k] for leaves, _ in flat], dtype) for k in range(tree.num_leaves)]

    def placed(column: np.ndarray) -> np.ndarray:
        out = np.zeros((*places.shape, *column.shape[1:]), column.dtype)
        out[places] = column  # row by row
        return out

    return Ragged(jax.tree.map(placed, jax.tree.unflatten(tree, columns)), lengths)


def _column(parts: list[Any], dtype: Any) -> Any:
    """Return one part of all elements, along the first axis."""
    if any(map(_is_list, parts)):
        if not all(map(_is_list, parts)):
            raise ValueError(f"{ALIKE}, not lists and numbers")
        return _ragged(parts, dtype)
    if all(isinstance(part, str) for part in parts):
        return Texts.of(parts)
    if any(isinstance(part, str) for part in parts):
        raise ValueError(f"{ALIKE}, not texts and {type(next(x for x in parts if not isinstance(x, str))).__name__}")
    shapes = {np.shape(part) for part in parts}
    if len(shapes) > 1:
        raise ValueError(f"arrays in lists must have one shape, not {' and '.join(map(str, sorted(shapes)))}")
    column = np.array([np.asarray(part) for part in parts] if shapes != {()} else parts)
    if column.dtype.kind not in "biufc" and not jnp.issubdtype(column.dtype, np.number):
        raise ValueError(f"lists hold numbers and arrays, not a {type(parts[0]).__name__}")
    wanted = np.dtype(jax.dtypes.canonicalize_dtype(column.dtype if dtype is None else dtype))
    if wanted.kind in "iu" and column.dtype.kind in "iu" and column.size:
        limits, extremes = np.iinfo(wanted), (int(column.min()), int(column.max()))
        if not limits.min <= extremes[0] <= extremes[1] <= limits.max:
            raise OverflowError(
                f"the numbers {extremes[0]} to {extremes[1]} do not fit {wanted}, JAX's default integer"
            )
    return column.astype(wanted)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def is_form(value: object) -> bool:
    """Whether a value is a `Ragged` or a `Texts`: lists or texts of several lanes."""
    return isinstance(value, Ragged | Texts)


def _rows(column: Any) -> Any:
    """Return a function from a lane to the elements of one column, as far as there are any."""
    if isinstance(column, Ragged | Texts):
        return lambda lane, n: jax.tree.map(lambda leaf: np.asarray(leaf)[lane, :n], column).tolist()
    on_host = column if is_key(column) else np.asarray(column)
    if is_key(column):
        return lambda lane, n: list(on_host[lane, :n])
    return lambda lane, n: on_host[lane, :n].tolist()


def is_key(column: Any) -> bool:
    """Whether a leaf is an array of typed PRNG keys."""
    return isinstance(column, jax.Array) and jnp.issubdtype(column.dtype, jax.dtypes.prng_key)


def _elements(tree: Any, columns: list[Callable[[int, int], list[Any]]], lane: int, length: int) -> list[Any]:
    parts = [column(lane, length) for column in columns]
    elements = [jax.tree.unflatten(tree, [part[k] for part in parts]) for k in range(length)]
    return [plain(jax.tree.map(_or_none, element, is_leaf=_is_leaf)) for element in elements]


def _or_none(part: Any) -> Any:
    if is_member(part):
        return part.tolist()
    if not isinstance(part, Optional):
        return part
    return jax.tree.map(_or_none, part.value, is_leaf=_is_leaf) if part.present else None


def _is_leaf(value: object) -> bool:
    return isinstance(value, Optional | list) or is_member(value)  # a list is one that is finished


def cut(leaf: Any, axis: int, size: int) -> Any:
    """Return the first `size` elements of an array along an axis."""
    return leaf[(slice(None),) * axis + (slice(size),)]
