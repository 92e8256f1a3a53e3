"""Equality and order of lists of the lane and of their elements, as Python defines them for sequences."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, require
from pcbatch.data.columns import Unset, one_level, room
from pcbatch.data.elements import beside, prepare
from pcbatch.data.joinable import Joinable
from pcbatch.data.members import MemberValue, of_member
from pcbatch.data.optional import Optional, is_none, narrowed
from pcbatch.data.own_order import compared, of_two_classes
from pcbatch.data.row_search import any_row, fail_in, first_row, of_rows
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.indices import where
from pcbatch.data.stored import Stored, by_identity
from pcbatch.data.values import Flag, Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

Comparison = Callable[[Value, Value], Value]
NO_ORDER = "an order asks for None, or for objects of a class without an order"
NAN_ORDER = "a list with NaN among its keys has no order: what Python makes of it depends on the order before"
NAN_IDENTITY = "a NaN is compared with a NaN in a list or tuple, where Python asks whether both are one object"


def ask_identity(a: Value, b: Value, valid: Flag) -> None:
    """Let the lane stop where elements of two sequences are both NaN, where Python asks whether they are one object.

    Args:
        a: the columns of a list of the lane, or a value that has their structure.
        b: likewise the other one.
        valid: which rows are compared, bool[capacity].
    """
    left, right = jax.tree.leaves(a), jax.tree.leaves(b)
    if len(left) != len(right):
        return
    for x, y in zip(left, right, strict=True):
        if x is not y and all(jnp.issubdtype(jnp.result_type(one), np.inexact) for one in (x, y)):
            both = jnp.isnan(x) & jnp.isnan(y)
            if jnp.ndim(both) < 2:
                limit(~jnp.any(both & valid), NAN_IDENTITY)


def ask_about_lists(a: Value, b: Value) -> None:
    """Ask for the identity of what stands at the same index of two lists that are compared."""
    if not isinstance(b, Rows | list | tuple) or (lists := _both_lists(a, b)) is None:
        return
    a, b = lists
    if (pairs := _pairs(a, b)) is not None:
        places = jnp.arange(room(pairs, 0), dtype=np.int32)
        ask_identity(pairs[0], pairs[1], (a.length == b.length) & (places < a.length))


def equal(a: Value, b: Value) -> Value:
    """Return whether two elements, or two lists, are equal."""
    a, b = of_member(compared(a, "eq")), of_member(compared(b, "eq"))
    if isinstance(a, Optional) or isinstance(b, Optional):
        return _equal_optionals(a, b)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Joinable) and one.equals_plain(other):
            return one == other
    if isinstance(a, Rows) or isinstance(b, Rows):
        return _equal_lists(a, b)
    if any(isinstance(one, Stored | Joinable | MemberValue) for one in (a, b)):
        return a == b
    if a is None or b is None:
        return _equal_optionals(a, b)
    if _is_leaf(a) and _is_leaf(b):
        return scalar(a, b, operator.eq)
    if _is_leaf(a) or _is_leaf(b) or not _comparable(a, b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and not of_two_classes(a, b) and _all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and _all(equal(a[key], b[key]) for key in a)
    (left, a_tree), (right, b_tree) = one_level(a), one_level(b)
    return a_tree == b_tree and _all(equal(x, y) for x, y in zip(left, right, strict=True))


def _equal_optionals(a: Value, b: Value) -> Value:
    """Return whether two values that may be None are equal."""
    if a is None or b is None:
        return is_none(b if a is None else a)
    none_a, none_b = is_none(a), is_none(b)
    values = equal(narrowed(a), narrowed(b))
    return jnp.where(jnp.logical_or(none_a, none_b), jnp.logical_and(none_a, none_b), values)


def _equal_lists(a: Value, b: Value) -> Value:
    lists = _both_lists(a, b)
    if lists is None:
        return False
    a, b = lists
    same = a.length == b.length
    pairs = _pairs(a, b)
    if pairs is None:
        return same
    stop = jnp.where(same, a.length, 0)
    return jnp.logical_and(same, jnp.logical_not(any_row(lambda pair: not_(equal(*pair)), pairs, stop)))


def _first_difference(pairs: Value, stop: Index) -> Value:
    """The first place at which two lists differ; `stop` if they are alike before it."""
    return first_row(lambda pair: not_(equal(*pair)), pairs, stop)


def _both_lists(a: Value, b: Value) -> tuple[Value, Value] | None:
    """The two values as lists of the lane; None if one of them is no list of the same kind."""
    a, b = (one.as_rows() if isinstance(one, Rows) else one for one in (a, b))
    kind = type(a) if isinstance(a, Rows) else type(b)
    values = [beside(a, (), b), beside(b, (), a)]
    return None if any(type(value) is not kind for value in values) else (values[0]._plain(), values[1]._plain())


def _pairs(a: Value, b: Value) -> Value:
    """The columns of the pairs of elements at the same index of two lists; None if one can have none."""
    if isinstance(a.columns, Unset) or isinstance(b.columns, Unset):
        return None
    sizes = [size for size in (room(a.columns, 0), room(b.columns, 0)) if size is not None]
    if not sizes or min(sizes) == 0:
        return None
    size = min(sizes)
    return tuple(jax.tree.map(lambda leaf: leaf[:size], one.columns) for one in (a, b))


def equal_to(values: Value, value: Value) -> Value:
    """Return which elements of a list equal a value, bool[capacity]."""
    if isinstance(values.columns, Unset) or room(values.columns, 0) is None:
        same = True if not isinstance(values.columns, Unset) and equal(values.columns, value) else False
        return jnp.full((values.capacity,), same)
    value = prepare(value)
    holding, failures = of_rows(lambda element: equal(element, value), values.columns)
    fail_in(failures, jnp.arange(holding.shape[0], dtype=np.int32) < values.length)
    return holding


def first_equal(values: Value, value: Value, start: Index, stop: Index) -> Value:
    """Return the first place from `start` on, before `stop`, of an element that equals a value; `stop` if there is
    none."""
    if isinstance(values.columns, Unset) or room(values.columns, 0) is None:
        same = not isinstance(values.columns, Unset) and equal(values.columns, value)
        return where(same, jnp.minimum(start, stop), stop)
    value = prepare(value)
    return first_row(lambda element: equal(element, value), values.columns, stop, start)


def may_lack_order(*values: Value) -> bool:
    """Return whether values are or hold None, records, or objects of classes that have no order."""

    return any(map(_lacks, jax.tree.leaves(values, is_leaf=_lacks)))


def _lacks(part: Value) -> bool:
    kind, plain = type(part), getattr(object, "__lt__")  # noqa: B009 - which function it is
    return isinstance(part, Joinable | dict) or getattr(kind, "__lt__") is plain  # noqa: B009


def require_order(a: Value, b: Value) -> None:
    """Let the lane raise a TypeError where `a < b` compares what has no order, None for one."""
    if may_lack_order(a, b):
        holds = not_(lacks_order(a, b))
        require(holds, "TypeError", NO_ORDER)


def tied(x: Value, y: Value) -> Value:
    """Return whether the order of two tuples hangs on what follows these parts of theirs; None if `==` tells."""
    return x.tied(y) if isinstance(x, Joinable) else None


def _tied(x: Value, y: Value) -> Value:
    found = tied(x, y)
    return equal(x, y) if found is None else found


def lacks_order(a: Value, b: Value) -> Flag:
    """Return whether `a < b` compares what has no order, before it is decided."""
    a, b = compared(a, "lt"), compared(b, "lt")
    if not may_lack_order(a, b):
        return False
    if a is None or b is None:
        return True
    if isinstance(a, Optional) or isinstance(b, Optional):
        return _any([is_none(a), is_none(b), lacks_order(narrowed(a), narrowed(b))])
    if isinstance(a, Rows) or isinstance(b, Rows):
        return _lists_lack_order(a, b)
    if isinstance(a, Joinable):
        return a.has_no_order(b)
    if not isinstance(a, tuple | list) or not isinstance(b, tuple | list) or of_two_classes(a, b):
        return _lacks(a)
    result: Value = False
    for x, y in reversed(list(zip(a, b, strict=False))):
        result = where(_tied(x, y), result, lacks_order(x, y))
    return result


def _lists_lack_order(a: Value, b: Value) -> Flag:
    if (lists := _both_lists(a, b)) is None or (pairs := _pairs(*lists)) is None:
        return False
    shorter = jnp.minimum(lists[0].length, lists[1].length)
    place = _first_difference(pairs, shorter)
    return _any([lacks_order(*jax.tree.map(lambda leaf: leaf.at[place].get(mode="clip"), pairs))], place < shorter)


def _any(flags: list[Value], where: Flag = True) -> Value:
    """Return whether one of some flags is set, where a condition holds."""
    result: Value = False
    for flag in flags:
        result = flag if result is False else result if flag is False else jnp.logical_or(result, flag)
    return result if where is True or result is False else jnp.logical_and(result, where)


def compare(op: Comparison, a: Value, b: Value) -> Value:
    """Return `op(a, b)` for two elements or lists; sequences are compared at the first elements that differ.

    Where that compares what has no order the result is anything: `require_order` makes the check.
    """
    a, b = compared(a, op.__name__), compared(b, op.__name__)
    if isinstance(a, Rows) or isinstance(b, Rows):
        return _compare_lists(op, a, b)
    if isinstance(a, Optional) or isinstance(b, Optional):
        there = [jnp.logical_not(is_none(one)) for one in (a, b)]  # None is put first, so that sorts see an order
        return jnp.where(there[0] & there[1], compare(op, narrowed(a), narrowed(b)), op(*there))
    if isinstance(a, Joinable) and isinstance(b, Joinable):
        return a.ordered(op, b)
    if lacks_order(a, b) is True:
        return False
    if _is_leaf(a) and _is_leaf(b):
        return scalar(a, b, op)
    if _is_leaf(a) or _is_leaf(b) or not _comparable(a, b) or not isinstance(a, tuple | list):
        return op(a, b)  # raises Python's own error
    if of_two_classes(a, b):
        raise TypeError(f"'<' not supported between instances of '{type_name(a)}' and '{type_name(b)}'")
    result: Value = op(len(a), len(b))
    for x, y in reversed(list(zip(a, b, strict=False))):
        result = where(_tied(x, y), result, compare(op, x, y))
    return result


def _compare_lists(op: Comparison, a: Value, b: Value) -> Value:
    lists = _both_lists(a, b)
    if lists is None:
        return NotImplemented
    a, b = lists
    by_length = op(a.length, b.length)
    pairs = _pairs(a, b)
    if pairs is None:
        return by_length
    shorter = jnp.minimum(a.length, b.length)
    place = _first_difference(pairs, shorter)
    by_element = compare(op, *jax.tree.map(lambda leaf: leaf.at[place].get(mode="clip"), pairs))
    return jnp.where(place < shorter, by_element, by_length)


def _is_leaf(value: Value) -> bool:
    return one_level(value)[1] is None


def _comparable(a: Value, b: Value) -> bool:
    """Whether two nodes are of one type, which compares as Python's own types do; raises Refusal for other types."""
    for value in (a, b):
        method: Any = getattr(type(value), "__eq__")  # noqa: B009 - which function it is
        if not any(method is getattr(kind, "__eq__") for kind in (tuple, list, dict)):  # noqa: B009
            title = f"objects of the class {type_name(value)} are compared by a method, or by their identity"
            objects = (a, b) if method is object.__eq__ else ()
            raise by_identity("PCB304", title, "compare fields of theirs", *objects)
    return isinstance(a, tuple) and isinstance(b, tuple) or type(a) is type(b)


def scalar(a: Value, b: Value, op: Comparison) -> Value:
    if getattr(a, "shape", ()) != () or getattr(b, "shape", ()) != ():
        title = "arrays in a list are neither equal nor in an order: the comparison has an answer for each element"
        raise Refusal("PCB308", title, helps=("compare with `jnp.array_equal`, or keep numbers and tuples of them",))
    return op(a, b)


def not_(value: Value) -> Value:
    """Return the negation of a comparison."""
    if value is NotImplemented:
        return value
    return not value if isinstance(value, bool) else jnp.logical_not(value)


def _all(values: Value) -> Value:
    result: Value = True
    for value in values:
        if result is True or value is False:
            result = value
        elif value is not True and result is not False:
            result = jnp.logical_and(result, value)
    return result
