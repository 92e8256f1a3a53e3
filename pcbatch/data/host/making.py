"""Arguments made of Python's lists and strings, with arrays of NumPy: `pcbatch.ragged`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.host.ragged import Kind, Ragged
from pcbatch.data.mappings.ordered_keys import plain, with_ordered_keys
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import clipped
from pcbatch.errors import UsageError

ALIKE = "the elements of lists must be alike"
IN_ORDER = "dicts in lists must have their keys in one order"
SORTED = "sort the keys: `{key: d[key] for key in sorted(d)}` for each dict `d`"
NUMBERS = "give a list of numbers for each lane, `pcbatch.ragged([[1, 2], [3], []])`"
MIXED = (
    "make each element a tuple with a place for each kind, of which a number says which one counts: "
    '`[(0, 5, ""), (1, 0, "ab")]` for `[5, "ab"]`',
    "of lists in lists to any depth, make pairs of depth and number: `[(0, 1), (1, 2), (2, 3)]` for `[1, [2, [3]]]`",
)


def ragged(lists: Sequence[Any], dtype: Any = None) -> Ragged:
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
            numbers = np.frombuffer(b"".join(lists), np.uint8).astype(jax.dtypes.canonicalize_dtype(int))
            return _in_rows(numbers, lists, "bytes")
        return _ragged([_items(row, lane) for lane, row in enumerate(lists)], dtype)
    except (TypeError, ValueError, OverflowError) as error:
        helps = MIXED if ALIKE in str(error) else (SORTED if IN_ORDER in str(error) else NUMBERS,)
        raise UsageError(Diagnostic("PCB405", str(error), helps=helps)) from None


def texts(strings: Sequence[str]) -> Ragged:
    """Make an argument of strings, one for each lane.

    Example:
        >>> import pcbatch
        >>> @pcbatch.batch
        ... def is_palindrome(s):
        ...     return s == s[::-1]
        >>> is_palindrome(pcbatch.ragged(["level", "lever"])).tolist()
        [True, False]
    """
    strings = list(strings)
    if (other := next((one for one in strings if not isinstance(one, str)), "")) != "":
        title = f"`ragged` with `dtype=str` takes a string for each lane, not a {type(other).__name__}"
        help = 'for lists of strings write `pcbatch.ragged([["ab", "c"], ["d"]])`'
        raise UsageError(Diagnostic("PCB405", title, helps=(help,)))
    return _in_rows(np.array([*map(ord, "".join(strings))], np.int32), strings, "text")


def _in_rows(elements: Any, rows: Sequence[Any], kind: Kind = "list") -> Ragged:
    """Return the columns of the elements of all rows, which come one after the other there, as these rows."""
    lengths = np.array([len(row) for row in rows], np.int32)
    places = np.arange(int(lengths.max(initial=0))) < lengths[:, None]

    def placed(column: np.ndarray) -> np.ndarray:
        out = np.zeros((*places.shape, *column.shape[1:]), column.dtype)
        out[places] = column
        return out

    return Ragged(jax.tree.map(placed, elements), lengths, kind)


def _items(row: Any, lane: int) -> list[Any]:
    if isinstance(row, list | tuple):
        return list(row)
    if isinstance(row, Ragged):
        return row.tolist()
    if isinstance(row, np.ndarray | jax.Array) and row.ndim:
        return list(np.asarray(row))
    raise ValueError(f"`ragged` takes a list for each lane, and has a {type(row).__name__} for lane {lane}")


def _ragged(rows: list[list[Any]], dtype: Any) -> Ragged:
    elements = [element for row in rows for element in row]
    if not elements:
        return _in_rows(np.zeros(0, jax.dtypes.canonicalize_dtype(dtype or float)), rows)
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
    return _in_rows(jax.tree.unflatten(tree, columns), rows)


def _column(parts: list[Any], dtype: Any) -> Any:
    """Return one part of all elements, along the first axis."""
    if any(map(_is_list, parts)):
        if not all(map(_is_list, parts)):
            raise ValueError(f"{ALIKE}, not lists and numbers")
        return _ragged(parts, dtype)
    if all(isinstance(part, str) for part in parts):
        return texts(parts)
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
        limits, least, most = np.iinfo(wanted), int(column.min()), int(column.max())
        if not limits.min <= least <= most <= limits.max:
            raise OverflowError(f"the numbers {least} to {most} do not fit {wanted}, JAX's default integer")
    return column.astype(wanted)


def _is_list(value: object) -> bool:
    return isinstance(value, list)
