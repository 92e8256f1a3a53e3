"""The functions of `heapq` and `bisect` on lists of the lane, step for step as Python has them.

An element moves along a path in the heap. Lanes together make as many steps as the greatest heap has levels, and one
that is done earlier stores out of range; a lane alone goes on until its element has arrived.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Sequence
from functools import partial, reduce

import jax
import jax.extend.source_info_util
import jax.numpy as jnp

from pcbatch.data.by_width import by_width
from pcbatch.data.catalogue import FUNCTIONS, stands_for
from pcbatch.data.checks import collecting, only_where, require
from pcbatch.data.columns import row, with_row
from pcbatch.data.elements import or_else
from pcbatch.data.functions.operators import lt
from pcbatch.data.mappings.keys import is_of_lane
from pcbatch.data.optional import Optional
from pcbatch.data.own_order import comparing_elements
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.list_order import NO_ORDER, may_lack_order
from pcbatch.data.values import Columns, Flag, Index, Value

jax.extend.source_info_util.register_exclusion(__file__)


def call(part: Value, name: str, args: Sequence[Value], options: dict[str, Value]) -> tuple[Value, Value]:
    """Call a function, such as `heapq.heappush`, on a list; return the list after it, and the result."""
    plain, of_lane = FUNCTIONS[name]
    if isinstance(part, list) and not is_of_lane([part, args]):
        return part, plain(part, *args, **options)
    heap = part if isinstance(part, LaneList) else LaneList.from_list(part)
    result = comparing_elements(lambda: of_lane(heap, *args, **options), lambda: args[0] if args else heap.element(0))
    return heap, result


@stands_for(heapq.heappush)
def _push(heap: Value, item: Value) -> None:
    heap.append(item)
    _down(heap, 0, heap.length - 1, item)


@stands_for(heapq.heappop, removes=True)
def _pop(heap: Value) -> Value:
    n = heap.length
    require(n > 0, "IndexError", "index out of range")
    last = heap._taken(jnp.maximum(n - 1, 0))
    first = heap._taken(0)
    heap.length = jnp.maximum(n - 1, 0)
    _up(heap, 0, last)
    return first


@stands_for(heapq.heapreplace)
def _replace(heap: Value, item: Value) -> Value:
    require(heap.length > 0, "IndexError", "index out of range")
    first = heap._taken(0)
    _up(heap, 0, item)
    return first


@stands_for(heapq.heappushpop)
def _push_pop(heap: Value, item: Value) -> Value:
    first = heap._taken(0)
    smaller = jnp.logical_and(heap.length > 0, _less(first, item, heap.length > 0))
    _up(heap, 0, item, smaller)
    return or_else(smaller, first, item)


@stands_for(heapq.heapify)
def _heapify(heap: Value) -> None:
    half, asks = heap.capacity // 2, may_lack_order(heap.columns)
    if not half:
        return

    def together(columns: Columns, n: Index) -> Value:
        def step(k: Index, c: Value) -> Value:
            one, at = heap.with_data(c[0], n, heap.origins), half - 1 - k
            with collecting() as made:
                _up_in_steps(one, one._taken(at), at, at < n // 2)
            return one.columns, *(reduce(jnp.logical_or, [check.failed for check in made], old) for old in c[1:])

        return jax.lax.fori_loop(0, half, step, (columns, *[jnp.bool_(False)] * asks))

    def alone(columns: Columns, n: Index) -> Value:
        def step(k: Index, columns: Columns) -> Value:
            one, at = heap.with_data(columns, n, heap.origins), n // 2 - 1 - k
            return _up_alone(one, row(columns, at), at)

        return (jax.lax.fori_loop(0, n // 2, step, columns),)

    heap.columns, *failed = by_width(together, together if asks else alone)(heap.columns, heap.length)
    for one in failed:
        require(~one, "TypeError", NO_ORDER)


def _down(heap: Value, start: Index, at: Index, item: Value) -> None:
    """Move an element from a place towards the root, up to place `start`, past those that are greater."""
    _sift(heap, item, _down_in_steps, _down_alone, start, at)


def _up(heap: Value, at: Index, item: Value, active: Flag = True) -> None:
    """Put an element in the place of another one: smaller children move up to a leaf, and it moves down from there."""
    _sift(heap, item, _up_in_steps, _up_alone, at, active)


def _sift(heap: Value, item: Value, together: Callable[..., None], alone: Callable[..., Value], *places: Index) -> None:
    """Let an element find its place by one of two functions.

    Args:
        heap: the heap.
        item: the element.
        together: moves it in a heap, in steps.
        alone: returns the columns of a heap after it is moved.
        places: further arguments of both.
    """
    item = heap._fit(item)
    alike = str(jax.tree.structure(item)) == str(jax.tree.structure(heap.columns))
    if heap.node is not heap or not heap.capacity or not alike:
        together(heap, item, *places)
        return
    item = jax.tree.map(lambda new, leaf: jnp.asarray(new, leaf.dtype), item, heap.columns)

    def in_steps(columns: Columns, n: Index, item: Value, *places: Index) -> Value:
        one = heap.with_data(columns, n, heap.origins)
        together(one, item, *places)
        return one.columns

    def by_itself(columns: Columns, n: Index, item: Value, *places: Index) -> Value:
        return alone(heap.with_data(columns, n, heap.origins), item, *places)

    heap.columns = by_width(in_steps, by_itself)(heap.columns, heap.length, item, *places)


def _down_in_steps(heap: Value, item: Value, start: Index, at: Index, active: Flag = True) -> None:
    moving = jnp.asarray(active)
    for _ in range(heap.capacity.bit_length()):
        parent = jnp.maximum(at - 1, 0) // 2
        above = heap._taken(parent)
        moving = jnp.logical_and(moving, at > start)
        moving = jnp.logical_and(moving, _less(item, above, moving))
        _store(heap, at, above, moving)
        at = jnp.where(moving, parent, at)
    _store(heap, at, item, active)


def _up_in_steps(heap: Value, item: Value, at: Index, active: Flag = True) -> None:
    n, start = heap.length, at
    moving = jnp.logical_and(active, at < n)
    for _ in range(heap.capacity.bit_length()):
        child, right = 2 * at + 1, 2 * at + 2
        moving = jnp.logical_and(moving, child < n)
        a = heap._taken(jnp.minimum(child, heap.capacity - 1))
        b = heap._taken(jnp.minimum(right, heap.capacity - 1))
        two = jnp.logical_and(moving, right < n)
        child = jnp.where(jnp.logical_and(right < n, jnp.logical_not(_less(a, b, two))), right, child)
        _store(heap, at, heap._taken(jnp.minimum(child, heap.capacity - 1)), moving)
        at = jnp.where(moving, child, at)
    _down_in_steps(heap, item, start, at, jnp.logical_and(active, start < n))


# For a lane alone each step stores before it reads what the next one moves: so XLA works on one array in place.


def _down_alone(heap: Value, item: Value, start: Index, at: Index) -> Value:
    def above(columns: Columns, at: Index) -> tuple[Value, Value, Value]:
        one = heap.with_data(columns, heap.length, heap.origins)
        parent = jnp.maximum(at - 1, 0) // 2
        return at, row(columns, parent), (at > start) & lt(item, one._taken(parent))

    def step(c: tuple[Value, tuple[Value, Value, Value]]) -> tuple[Value, tuple[Value, Value, Value]]:
        columns, (at, element, _) = c
        columns = with_row(columns, at, element)
        return columns, above(columns, (at - 1) // 2)

    at = jnp.asarray(at, jnp.int32)
    columns, (at, _, _) = jax.lax.while_loop(lambda c: c[1][2], step, (heap.columns, above(heap.columns, at)))
    return with_row(columns, at, item)


def _up_alone(heap: Value, item: Value, at: Index, active: Flag = True) -> Value:
    n, last = heap.length, heap.capacity - 1

    def below(columns: Columns, at: Index) -> tuple[Value, Value, Value]:
        one = heap.with_data(columns, n, heap.origins)
        child, right = 2 * at + 1, 2 * at + 2
        smaller = lt(one._taken(jnp.minimum(child, last)), one._taken(jnp.minimum(right, last)))
        child = jnp.where((right < n) & jnp.logical_not(smaller), right, child)
        return at, child, row(columns, jnp.minimum(child, last))

    def step(c: tuple[Value, tuple[Value, Value, Value]]) -> tuple[Value, tuple[Value, Value, Value]]:
        columns, (at, child, element) = c
        columns = with_row(columns, at, element)
        return columns, below(columns, child)

    start = jnp.asarray(at, jnp.int32)
    old = row(heap.columns, start)
    first = below(heap.columns, start)
    columns, (at, _, _) = jax.lax.while_loop(lambda c: active & (c[1][1] < n), step, (heap.columns, first))
    item = item if active is True else jax.tree.map(lambda new, old: jnp.where(active, new, old), item, old)
    return _down_alone(heap.with_data(columns, n, heap.origins), item, start, at)


def _less(a: Value, b: Value, where: Flag) -> Value:
    """Return `a < b`, which the lane asks where a condition holds."""
    with only_where(lambda: where):
        return lt(a, b)


def _store(heap: Value, at: Index, item: Value, where: Flag) -> None:
    heap._set(jnp.where(where, at, heap.capacity), item)


def _place(
    values: Value, wanted: Value, lo: Index, hi: Index, key: Callable[[Value], Value] | None, after: bool
) -> Value:
    """Return where Python's bisection ends: after the elements that equal `wanted`, or before them."""
    require(lo >= 0, "ValueError", "lo must be non-negative")
    low, high = jnp.asarray(lo), jnp.asarray(values.length if hi is None else hi)
    for _ in range(values.capacity.bit_length() + 1):
        middle = (low + high) // 2
        element = values._taken(jnp.clip(middle, 0, max(values.capacity - 1, 0)))
        element = element if key is None else key(element)
        searching = low < high
        less = _less(*((wanted, element) if after else (element, wanted)), searching)
        left = less if after else jnp.logical_not(less)
        require(jnp.logical_not(searching & (middle >= values.length)), "IndexError", "list index out of range")
        high = jnp.where(jnp.logical_and(searching, left), middle, high)
        low = jnp.where(jnp.logical_and(searching, jnp.logical_not(left)), middle + 1, low)
    return low


def _insort(
    after: bool,
    values: Value,
    item: Value,
    lo: Index = 0,
    hi: Index = None,
    *,
    key: Callable[[Value], Value] | None = None,
) -> None:
    item = values._fit(item)
    values.insert(_place(values, item if key is None else key(item), lo, hi, key, after), item)


stands_for(bisect.insort_right)(partial(_insort, True))
stands_for(bisect.insort_left)(partial(_insort, False))


def _search(plain: Callable[..., Value], after: bool) -> Callable[..., Value]:
    def search(
        values: Value, x: Value, lo: Index = 0, hi: Index = None, *, key: Callable[[Value], Value] | None = None
    ) -> Value:
        if not isinstance(values, list | LaneList) or isinstance(hi, Optional):
            return plain(values, x, lo, hi, key=key)
        if isinstance(values, list) and not values:
            return lo
        values = values if isinstance(values, LaneList) else LaneList.from_list(values)
        return _place(values, x, lo, hi, key, after)

    return search


SEARCHES: dict[str, Callable[..., Value]] = {
    "bisect_right": _search(bisect.bisect_right, True),
    "bisect_left": _search(bisect.bisect_left, False),
}
