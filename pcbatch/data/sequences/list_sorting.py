"""The sorted order of the elements of a list, and its greatest and least one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial, reduce

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.by_width import by_width
from pcbatch.data.checks import PrimitiveCheck, collecting, limit, record, require
from pcbatch.data.columns import one_level, room, row, with_row
from pcbatch.data.container import class_for
from pcbatch.data.elements import prepare
from pcbatch.data.joinable import Joinable
from pcbatch.data.optional import Optional
from pcbatch.data.own_order import compared, has_order, refuse_own_order
from pcbatch.data.rows import Rows, element_at
from pcbatch.data.sequences.indices import where
from pcbatch.data.sequences.list_order import NAN_ORDER, NO_ORDER, compare, lacks_order, may_lack_order, scalar
from pcbatch.data.sequences.merge_sort import comparable, is_less, merge_order, merged_places
from pcbatch.data.stored import inner_parts
from pcbatch.data.values import Flag, Index, Value
from pcbatch.diagnostics.lane_words import type_name

SETS = "sorted() comes to two sets, which are in an order only where one holds the other"


def sorted_order(values: Value, key: Callable[[Value], Value] | None, reverse: Flag) -> Value:
    """Return the places of a list's elements in sorted order, int32[capacity]; those behind the end stay last."""
    places = jnp.arange(values.capacity, dtype=np.int32)
    if room(values.columns, 0) is None:
        return places
    _refuse_own_order(values, key)
    keys = _keys(values, key)
    if not any(isinstance(leaf, Rows) for leaf in inner_parts(keys)):
        _refuse_nan(_key_leaves(keys), places < values.length)
    return _order(keys, values.length, reverse)


def _order(keys: Value, n: Index, reverse: Flag) -> Value:
    """The places of the keys of `n` elements in sorted order."""
    places = jnp.arange(room(keys, 0) or 0, dtype=np.int32)
    inside = places < n
    backwards = jnp.where(inside, n - 1 - places, places)
    first = where(reverse if not isinstance(reverse, int) else bool(reverse), backwards, places)
    if reverse is not False:
        keys = jax.tree.map(lambda leaf: leaf[first], keys)
    by_ranks = any(isinstance(leaf, Rows) for leaf in inner_parts(keys))
    order = _order_by_comparing(keys, n) if by_ranks else _order_by_keys(_key_leaves(keys), n)
    if not by_ranks and _holds_sets(keys):
        tied = [leaf[order[:-1]] == leaf[order[1:]] for leaf in _key_leaves(keys)]
        limit(~jnp.any(reduce(jnp.logical_and, tied) & (places[1:] < n)), SETS)
    if may_lack_order(keys) and places.size > 1:  # neighbours have been compared, whatever the steps of the sort
        before, after = (jax.tree.map(lambda leaf, at=at: leaf[at], keys) for at in (order[:-1], order[1:]))
        lacking = jax.vmap(lambda x, y: jnp.asarray(lacks_order(x, y), bool))(before, after)
        require(~jnp.any(lacking & (places[1:] < n)), "TypeError", NO_ORDER)
    if reverse is False:
        return order
    return first[order][first]


def extreme_place(values: Value, key: Callable[[Value], Value] | None, largest: bool) -> Value:
    """Return the place of the first greatest or least element of a list that has one, int32[]."""
    _refuse_own_order(values, key)
    keys = _keys(values, key)
    by_ranks, asks = any(isinstance(leaf, Rows) for leaf in inner_parts(keys)), may_lack_order(keys)
    if not by_ranks:
        _refuse_nan(_key_leaves(keys), jnp.arange(values.capacity, dtype=np.int32) < values.length)

    def best(keys: Value, n: Index, stop: Index) -> Value:
        """Compare as Python does, from left to right: to compare each with each takes the square of the room."""

        def step(place: Index, c: Value) -> Value:
            new, old = (jax.tree.map(lambda leaf, at=at: leaf[at], keys) for at in (place, c[0]))
            better = compare(operator.lt, old, new) if largest else compare(operator.lt, new, old)
            lacking = (c[1] | ((place < n) & lacks_order(old, new)),) if asks else ()
            return jnp.where((place < n) & better, place, c[0]), *lacking

        start = (jnp.int32(0), *[jnp.bool_(False)] * asks)
        return jax.lax.fori_loop(np.int32(1), jnp.asarray(stop, np.int32), step, start)

    def together(keys: Value, n: Index) -> Value:
        return best(keys, n, values.capacity) if by_ranks or asks else (_order(keys, n, largest)[0],)

    found = by_width(together, lambda keys, n: best(keys, n, n))(keys, values.length)
    if asks:
        require(~found[1], "TypeError", NO_ORDER)
    return found[0]


def _keys(values: Value, key: Callable[[Value], Value] | None) -> Value:
    """The columns of what is compared of the elements of a list."""
    if key is not None or has_order(element_at(values, 0), "lt", True):
        key = partial(_fields, key)
    keys = values.columns if key is None else mapped(key, values)
    if keys is None:
        raise TypeError("'<' not supported between instances of 'NoneType' and 'NoneType'")
    return keys


def _refuse_own_order(values: Value, key: Callable[[Value], Value] | None) -> None:
    first = element_at(values, 0)
    with collecting():  # there may be no first element
        keyed = first if key is None else key(first)
    refuse_own_order(keyed)


def _fields(key: Callable[[Value], Value] | None, element: Value) -> Value:
    """A key of a sort with tuples of fields in place of the objects that `dataclass` compares by them."""
    return compared(element if key is None else key(element), "lt", True)


def _refuse_nan(leaves: list[Value], inside: Flag) -> None:
    """Let the lane stop where a key that is compared is a NaN; refuses keys of which none has an order."""
    if not leaves:
        raise TypeError("'<' not supported between instances of 'dict' and 'dict'")
    for leaf in leaves:
        if leaf.ndim != 1:
            scalar(leaf[0], leaf[0], operator.lt)
        if jnp.issubdtype(leaf.dtype, np.inexact):
            missing = jnp.logical_and(inside, jnp.isnan(leaf))
            limit(jnp.logical_not(jnp.any(missing)), NAN_ORDER)


def _order_by_keys(leaves: list[Value], n: Index) -> Value:
    def together(leaves: list[Value], n: Index) -> Value:
        places = jnp.arange(leaves[0].shape[0], dtype=np.int32)
        operands = (places >= n, *leaves, places)
        return jax.lax.sort(operands, num_keys=1 + len(leaves), is_stable=True)[-1]

    def alone(leaves: list[Value], n: Index) -> Value:
        return merge_order(list(map(comparable, leaves)), is_less, n)

    return by_width(together, alone)(leaves, n)


def _key_leaves(keys: Value) -> list[Value]:
    """The columns of keys in the order in which Python compares them, as far as there are no sets among them."""
    if isinstance(keys, Optional):
        values = _key_leaves(keys.value)
        return [keys.present, *(jnp.where(keys.present, leaf, 0) if leaf.ndim == 1 else leaf for leaf in values)]
    children, tree = one_level(keys)
    if tree is None or keys is None or isinstance(keys, Joinable):
        return jax.tree.leaves(keys)
    if not isinstance(keys, tuple | list):
        if may_lack_order(keys) or _holds_sets(keys):
            return []
        raise TypeError(f"'<' not supported between instances of '{type_name(keys)}' and '{type_name(keys)}'")
    behind = next((k for k, child in enumerate(children) if _holds_sets(child)), len(children))
    return [leaf for child in children[: behind + 1] for leaf in _key_leaves(child)]


def _holds_sets(keys: Value) -> bool:
    return any(isinstance(part, class_for(set)) for part in inner_parts(keys))


def _order_by_comparing(keys: Value, n: Index) -> Value:
    """The order of keys with lists in them: lanes together compare each with each, a lane alone merges."""

    def less(x: Value, y: Value) -> Value:
        return jnp.asarray(compare(operator.lt, x, y), bool)

    def together(keys: Value, n: Index) -> Value:
        places = jnp.arange(room(keys, 0) or 0, dtype=np.int32)
        inside = places < n
        below: Value = jax.vmap(lambda y: jax.vmap(lambda x: less(x, y))(keys))(keys)  # [k, j]: j is less than k
        above = below.T
        before = below | (~above & (places[None, :] < places[:, None]))
        before = jnp.where(inside[:, None], before & inside[None, :], places[None, :] < places[:, None])
        ranks = jnp.sum(before, axis=1)
        return jnp.zeros_like(places).at[ranks].set(places)

    def alone(keys: Value, n: Index) -> Value:
        return merged_places(lambda x, y: less(row(keys, x), row(keys, y)), room(keys, 0) or 0, n)

    return by_width(together, alone)(keys, jnp.asarray(n, np.int32))


def mapped(fn: Callable[[Value], Value], values: Value) -> Value:
    """Return the columns of the results of a function of one element; places behind the end hold anything."""
    found: list[PrimitiveCheck] = []

    def run(place: Index) -> Value:
        with collecting() as checks:
            result = jax.tree.map(jnp.asarray, prepare(fn(element_at(values, place))))
        found[:] = checks
        shown = [[part for part in check.message if not isinstance(part, str)] for check in checks]
        return result, [check.failed for check in checks], shown

    places = jnp.arange(values.capacity, dtype=np.int32)

    def alone(n: Index) -> Value:
        types = jax.eval_shape(run, jnp.int32(0))
        empty = jax.tree.map(lambda x: jnp.zeros((values.capacity, *x.shape), x.dtype), types)
        return jax.lax.fori_loop(0, n, lambda k, out: with_row(out, k, run(k)), empty)

    has_keys = any(jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in jax.tree.leaves(values.columns))
    form = None if has_keys or not values.capacity else alone
    result, failed, shown = by_width(lambda n: jax.vmap(run)(places), form)(values.length)
    for check, failing, told in zip(list(found), failed, shown, strict=True):
        failing = jnp.logical_and(failing, places < values.length)
        first = jnp.argmax(failing)
        scalars = iter(part[first] for part in told)
        message = [part if isinstance(part, str) else next(scalars) for part in check.message]
        record(jnp.logical_not(jnp.any(failing)), check.exception, message)
    return result
