"""Arguments made of Python's lists, strings, dicts and sets, with arrays of NumPy: `pcbatch.ragged`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.host.host_forms import in_host_form
from pcbatch.data.host.host_tables import tables
from pcbatch.data.host.ragged import Kind, Ragged, enters_lanes, python_values
from pcbatch.data.host.ragged_forms import as_containers
from pcbatch.data.mappings.ordered_keys import OrderedKeys, plain, with_ordered_keys
from pcbatch.data.stored import is_table
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import clipped
from pcbatch.errors import UsageError

ALIKE = "the elements of lists must be alike"
IN_ORDER = "dicts in lists must have their keys in one order"
SORTED = "sort the keys: `{key: d[key] for key in sorted(d)}` for each dict `d`"
NUMBERS = "give a list of numbers for each lane, `pcbatch.ragged([[1, 2], [3], []])`"
OF_DICTS = (
    "let the keys be of one kind, and the values of another; where the keys are names of different things, give one "
    'dict with an argument for each: `{"name": pcbatch.ragged([d["name"] for d in ds]), "age": jnp.array([...])}`'
)
OF_COUNTERS = "give `dict(d)` for each `d`, and begin the function with `d = Counter(d)` or `d = defaultdict(list, d)`"
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
        lists: a list, or an array, for each lane. Their elements are numbers, texts, arrays of one shape, lists, dicts,
            sets, or tuples and other pytrees of these, all alike. Or a string, `bytes`, a dict or a set for each lane;
            a dict may have any keys, which are alike, and so are its values.
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
        if (kind := _kind_of_tables(lists)) is not None:
            return _tables(lists, kind, dtype)
        return _ragged([_items(row, lane) for lane, row in enumerate(lists)], dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(Diagnostic("PCB405", str(error), helps=_helps(str(error), lists))) from None


def _helps(title: str, rows: Any) -> tuple[str, ...]:
    """Return the helps for what `ragged` refuses."""
    if isinstance(rows, list | tuple) and rows and all(isinstance(row, dict) for row in rows):
        return (OF_DICTS if all(type(row) is dict for row in rows) else OF_COUNTERS,)
    return MIXED if "must be alike" in title else (SORTED if IN_ORDER in title else NUMBERS,)


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

    made = Ragged(jax.tree.map(placed, elements), lengths, kind)
    inside = jax.tree.leaves(elements, is_leaf=enters_lanes)
    if any(enters_lanes(part) and part.holds_tables for part in inside):
        made = in_host_form(as_containers(made))
    return made


def _items(row: Any, lane: int) -> list[Any]:
    if isinstance(row, list | tuple):
        return list(row)
    if isinstance(row, Ragged):
        return row.tolist()
    if isinstance(row, np.ndarray | jax.Array) and row.ndim:
        return list(np.asarray(row))
    what = f"a {type(row).__name__} for lane {lane}"
    raise ValueError(f"`ragged` takes a list for each lane, or a dict or set for each, and has {what}")


def _ragged(rows: list[list[Any]], dtype: Any) -> Ragged:
    elements = [element for row in rows for element in row]
    if not elements:
        return _in_rows(np.zeros(0, jax.dtypes.canonicalize_dtype(dtype or float)), rows)
    return _in_rows(_columns(elements, dtype), rows)


def _columns(elements: list[Any], dtype: Any) -> Any:
    """Return elements as columns; dicts of names, if their names are not the same everywhere, are dicts of lanes."""
    try:
        return _columns_of(elements, dtype, _is_container)
    except ValueError:
        with suppress(ValueError):
            return _columns_of(elements, dtype, _is_container_or_dict)
        raise


def _columns_of(elements: list[Any], dtype: Any, is_container: Callable[[object], bool]) -> Any:
    if not jax.tree_util.all_leaves(elements[:1], is_leaf=is_container):
        elements = list(map(with_ordered_keys, elements))
    flat = [jax.tree.flatten(element, is_leaf=is_container) for element in elements]
    tree: Any = flat[0][1]
    other = next((element for element, (_, t) in zip(elements, flat, strict=True) if t != tree), None)
    if other is not None:
        shown = f"not {clipped(repr(elements[0]), 40)} and {clipped(repr(other), 40)}"
        trees: list[Any] = [jax.tree.structure(plain(element)) for element in (other, elements[0])]
        raise ValueError(f"{IN_ORDER if trees[0] == trees[1] else ALIKE}, {shown}")
    columns = [_column([leaves[k] for leaves, _ in flat], dtype) for k in range(tree.num_leaves)]
    return jax.tree.unflatten(tree, columns)


def _column(parts: list[Any], dtype: Any) -> Any:
    """Return one part of all elements, along the first axis."""
    if any(map(_is_list, parts)):
        if not all(map(_is_list, parts)):
            raise ValueError(f"{ALIKE}, not lists and numbers")
        return _ragged(parts, dtype)
    if (kind := _kind_of_tables(parts)) is not None:
        return _tables(parts, kind, dtype)
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


def _kind_of_tables(rows: Sequence[Any]) -> Kind | None:
    """Return the kind of dicts or sets; None for others."""
    kinds: dict[type, Kind] = {dict: "dict", OrderedKeys: "dict", set: "set", frozenset: "frozenset"}
    found = {kinds.get(type(row)) for row in rows}
    return found.pop() if len(found) == 1 else None


def _tables(rows: Sequence[Any], kind: Kind, dtype: Any) -> Ragged:
    """Return dicts or sets of lanes."""
    lengths = np.array([len(row) for row in rows], np.int32)
    elements = [key for row in rows for key in row]
    if not elements:
        return Ragged(None, lengths, kind)
    keys = _named("keys of dicts and sets", lambda: _columns_of(elements, None, _is_container))
    values = None
    if kind == "dict":
        values = _named("values of dicts", lambda: _columns([v for row in rows for v in row.values()], dtype))
    leaves = jax.tree.leaves(keys, is_leaf=enters_lanes)
    if not leaves or any(enters_lanes(leaf) and leaf.kind != "text" for leaf in leaves):
        raise ValueError(f"keys are numbers, texts, or tuples of them, not {clipped(repr(elements[0]), 40)}")
    if any(leaf.dtype.kind in "fc" for leaf in leaves if not enters_lanes(leaf)):
        _check_different(keys, lengths)
    return tables(keys, values, lengths, kind)


def _named(what: str, columns: Callable[[], Any]) -> Any:
    """Return columns; the error about those that are unlike says what they are."""
    try:
        return columns()
    except ValueError as error:
        raise ValueError(str(error).replace(ALIKE, f"the {what} must be alike")) from None


def _check_different(keys: Any, lengths: np.ndarray) -> None:
    """Raise ValueError if keys of one dict or set are the same float of a lane, or NaN."""
    found = iter(python_values(keys, int(lengths.sum()), arrays=False))
    for lane, n in enumerate(lengths.tolist()):
        row = [next(found) for _ in range(n)]
        if len({*row}) < n or any(part != part for part in jax.tree.leaves(row)):
            raise ValueError(f"keys of lane {lane} are NaN, or one float in {jax.dtypes.canonicalize_dtype(float)}")


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_container(value: object) -> bool:
    return isinstance(value, list | set | frozenset) or is_table(value)


def _is_container_or_dict(value: object) -> bool:
    return _is_container(value) or type(value) in (dict, OrderedKeys)
