"""The builtins that make one value of a list: its sum, which is exact, its extremes, whether elements are true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import one_of
from pcbatch.data.by_width import by_width
from pcbatch.data.checks import limit, require, rules
from pcbatch.data.columns import Unset, iinfo, room, row
from pcbatch.data.elements import or_else
from pcbatch.data.mappings.ordered_keys import keeping_order
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin, note, number
from pcbatch.data.row_search import first_row
from pcbatch.data.rows import Rows, element_at
from pcbatch.data.sequences import list_order, list_sorting
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import parts
from pcbatch.data.values import Column, Flag, Index, Num, Value
from pcbatch.errors import Refusal, TruthOfArray


def exact_sum(name: str, numbers: Column, n: Index = None) -> Value:
    """Return the sum of the first `n` integers of an array, or of all; `name` is what the message calls the function.

    The upper and the lower halves of the numbers are added apart, where they have room, so that what the sum carries
    beyond the dtype is seen. That holds for fewer numbers than half a word counts.
    """
    dtype = np.dtype(numbers.dtype)
    bits = dtype.itemsize * 4
    if numbers.size >= 1 << (bits - 1):
        title = f"a checked sum of {dtype.name} takes fewer than {1 << (bits - 1)} numbers"
        raise Refusal("PCB306", title, helps=("add them in a loop, which checks each step",))

    def halves(x: Value) -> tuple[Value, Value, Value]:
        return x & ((1 << bits) - 1), x >> bits, x

    def together(numbers: Column, n: Index) -> Value:
        counted = numbers if n is None else jnp.where(jnp.arange(numbers.size, dtype=np.int32) < n, numbers, 0)
        return tuple(jnp.sum(x, dtype=dtype) for x in halves(counted))

    def alone(numbers: Column, n: Index) -> Value:
        def step(k: Index, sums: Value) -> Value:
            return tuple(total + x for total, x in zip(sums, halves(row(numbers, k)), strict=True))

        return jax.lax.fori_loop(0, n, step, (jnp.zeros((), dtype),) * 3)

    form = None if n is None or not numbers.size else alone
    lower, upper, result = by_width(together, form)(numbers, n)
    upper += lower >> bits
    info = iinfo(dtype)
    limit(
        (upper >= int(info.min) >> bits) & (upper <= int(info.max) >> bits),
        f"the result of {name} does not fit {dtype.name}",
    )
    return result


NOTHING: Any = object()
SET_ORDER = "elements of a set have equal keys, and their order is that of the set, which is not known"


UNROLLED = 64  # floats at most of which lanes together make a sum in the order of the list


def _float_sum(numbers: Column, n: Index, first: Num) -> Num:
    """Return a sum of floats that begins with `first`: one addition after the other, as in Python."""

    def together(numbers: Column, n: Index, first: Num) -> Num:
        if numbers.size > UNROLLED:
            return first + jnp.sum(jnp.where(jnp.arange(numbers.size, dtype=np.int32) < n, numbers, 0))
        for k, x in enumerate(numbers):
            first = jnp.where(k < n, first + x, first)
        return first

    def alone(numbers: Column, n: Index, first: Num) -> Num:
        return jax.lax.fori_loop(0, n, lambda k, sum: sum + row(numbers, k), first)

    result: Num = by_width(together, alone)(numbers, n, first)
    return result


def total(values: LaneList, start: Value, add: Callable[[Value, Value], Value]) -> Value:
    """Return the builtin `sum` of a list.

    Args:
        values: the list.
        start: what the sum begins with.
        add: the operator `+`.
    """
    columns = values.columns
    if room(columns, 0) in (None, 0):
        return start
    if not isinstance(columns, jax.Array):
        others = "values that may be None" if isinstance(columns, Optional) else "tuples"
        kind = "lists" if isinstance(columns, Rows) else others
        raise Refusal("PCB304", f"`sum` adds numbers, and the elements of this list are {kind}")
    started = False
    inside = values._valid().reshape(-1, *(1,) * (columns.ndim - 1))
    whole = columns.astype(np.int32) if columns.dtype == np.bool_ else columns
    if rules().overflow == "fail" and whole.ndim == 1 and jnp.issubdtype(whole.dtype, np.integer):
        result = exact_sum("sum", whole, values.length)
    elif rules().math_errors == "raise" and whole.ndim == 1 and jnp.issubdtype(whole.dtype, np.floating):
        known = type(start) in (int, float)
        first = jnp.asarray(start if known else 0.0, whole.dtype)
        result, started = _float_sum(whole, values.length, first), known
    else:
        result = jnp.sum(jnp.where(inside, whole, 0), axis=0, dtype=whole.dtype)
    if columns.weak_type or columns.dtype == np.bool_:
        result = _weak(result)
    noted = note(result, values.origins[0] if columns.dtype != np.bool_ else Origin.NUMBER)
    return noted if started else add(start, noted)


def _weak(value: Value) -> Value:
    """Return a number with the weak type of Python's numbers."""
    zero = 0.0 if jnp.issubdtype(value.dtype, np.floating) else 0j if jnp.iscomplexobj(value) else 0
    weak: Value = jnp.full((1,), zero)
    return weak.at[0].set(value)[0] if weak.dtype == value.dtype else value


def truths(values: LaneList, by: bool) -> Value:
    """Return `any` (`by` is True) or `all` (False) of a list."""
    columns = values.columns
    if room(columns, 0) is None:
        some, known = values.length > 0, parts(columns) == [] and bool(columns)
        return not by if known is not by else some if by else list_order.not_(some)
    place = first_row(lambda element: _truth(element) == by, columns, values.length)
    return number(jnp.asarray((place < values.length) == by))


def _truth(element: Value) -> Value:
    if isinstance(element, Rows):
        return element.length > 0
    if isinstance(element, Optional):
        return element.present & _truth(element.value)
    if not isinstance(element, jax.Array):
        return jnp.asarray(bool(element))
    if element.shape != ():
        raise TruthOfArray(element.shape, help="reduce it with `jnp.all` or `jnp.any`")
    return element != 0


def extreme(
    values: LaneList,
    largest: bool,
    key: Callable[[Value], Value] | None,
    default: Value = NOTHING,
    any_order: bool = False,
) -> Value:
    """Return the first greatest or the first least element of a list; `any_order` is that of `ordered`."""
    if any_order:
        values = ordered(values, key, largest, True, 2)
    name = "max" if largest else "min"
    some = values.length > 0
    if default is NOTHING:
        require(some, "ValueError", f"{name}() {_empty_text()}")
    elif some is False or isinstance(values.columns, Unset):
        return default
    place = 0 if any_order or room(values.columns, 0) in (None, 0) else _place(values, largest, key)
    element = element_at(values, place)
    if default is NOTHING or some is True:
        return element
    if len({jax.tree.structure(element), jax.tree.structure(default)}) > 1:
        return or_else(some, element, default)
    return one_of(keeping_order(lambda x, y: jnp.where(some, x, y), element, default), [element, default])


def _empty_text() -> str:
    """The words of the running Python about the extremes of nothing."""
    try:
        max(())
    except ValueError as error:
        return str(error).removeprefix("max() ")
    raise AssertionError


def _place(values: LaneList, largest: bool, key: Callable[[Value], Value] | None) -> Value:
    keys = values.columns if key is None else list_sorting.mapped(key, values)
    if isinstance(keys, jax.Array) and keys.ndim == 1 and not jnp.issubdtype(keys.dtype, np.complexfloating):

        def alone(keys: Value, n: Index) -> Value:
            def step(k: Index, best: Value) -> Value:
                new = row(keys, k)
                better = new > best[1] if largest else new < best[1]
                return jnp.where(better, k, best[0]), jnp.where(better, new, best[1])

            return jax.lax.fori_loop(1, n, step, (jnp.int32(0), keys[0]))[0]

        return by_width(lambda keys, n: _place_of_number(keys, values._valid(), largest), alone)(keys, values.length)
    return list_sorting.extreme_place(values._plain(), key, largest)


def _place_of_number(keys: Value, inside: Flag, largest: bool) -> Value:
    """The place of the extreme by Python's rule, from left to right: a NaN is skipped unless it comes first."""
    find = jnp.argmax if largest else jnp.argmin
    if keys.dtype == np.bool_:
        keys = keys.astype(np.int32)
    if not jnp.issubdtype(keys.dtype, np.floating):
        limits = iinfo(keys.dtype)
        return find(jnp.where(inside, keys, limits.min if largest else limits.max))
    last = jnp.array(-jnp.inf if largest else jnp.inf, keys.dtype)
    counted = inside & ~jnp.isnan(keys)
    place = find(jnp.where(counted, keys, last))
    # Where no element is beyond the last one, the place found may be that of a NaN.
    place = jnp.where(counted[place], place, jnp.argmax(counted))
    return jnp.where(jnp.isnan(keys[0]), 0, place)


def ordered(
    values: LaneList, key: Callable[[Value], Value] | None, reverse: Flag, any_order: bool = False, first: Value = None
) -> LaneList:
    """Return the builtin `sorted` of a list.

    Args:
        values: the list.
        key: the function whose results are compared.
        reverse: whether the greatest element comes first.
        any_order: whether the list has the elements of a set in no order that Python would know; then a lane stops
            where equal keys would show the order.
        first: the number of elements whose place counts then; None for all.
    """
    new: LaneList = values.copy()
    new.sort(key=key, reverse=reverse)
    if any_order and key is not None and (room(new.columns, 0) or 0) > 1:
        keys = list_sorting.mapped(key, new)
        before, after = (
            jax.tree.map(lambda leaf, cut=cut: leaf[cut], keys) for cut in (slice(None, -1), slice(1, None))
        )
        same = jax.vmap(lambda x, y: jnp.asarray(list_order.equal(x, y), bool))(before, after)
        there = jnp.arange(1, new.capacity, dtype=np.int32) < new.length
        limit(jnp.logical_not(jnp.any((same & there)[: first and first - 1])), SET_ORDER)
    return new
