"""Equality and order of lists of the lane and of their elements, as Python defines them for sequences."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, require
from pcbatch.data.columns import Unset, element_text, one_level, room
from pcbatch.data.container import Container
from pcbatch.data.elements import Rows, list_class, prepare, text_of
from pcbatch.data.joinable import Joinable
from pcbatch.data.members import MemberValue, of_member
from pcbatch.data.optional import Optional, is_none, narrowed, unwrapped
from pcbatch.data.own_order import compared, of_two_classes
from pcbatch.data.row_search import first_row
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.known_tuples import tuple_beside
from pcbatch.data.stored import Stored
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

Comparison = Callable[[Any, Any], Any]
NAN_ORDER = "a list with NaN among its keys has no order: what Python makes of it depends on the order before"
NAN_IDENTITY = "a NaN is compared with a NaN in a list or tuple, where Python asks whether both are one object"


def ask_identity(a: Any, b: Any, valid: Any) -> None:
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


def ask_about_lists(a: Any, b: Any) -> None:
    """Ask for the identity of what stands at the same index of two lists that are compared."""
    if not isinstance(b, Rows | list | tuple) or (lists := _both_lists(a, b)) is None:
        return
    a, b = lists
    rooms = [room(one.columns, 0) for one in lists if not isinstance(one.columns, Unset)]
    sizes = [size for size in rooms if size is not None]
    if len(sizes) == 2:
        left, right = (jax.tree.map(lambda leaf: leaf[: min(sizes)], one.columns) for one in lists)
        ask_identity(left, right, (a.length == b.length) & (jnp.arange(min(sizes)) < a.length))


def equal(a: Any, b: Any) -> Any:
    """Return whether two elements, or two lists, are equal."""
    a, b = of_member(compared(a, "eq")), of_member(compared(b, "eq"))
    if isinstance(a, Optional) or isinstance(b, Optional):
        return _equal_optionals(a, b)
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


def _equal_optionals(a: Any, b: Any) -> Any:
    """Return whether two values that may be None are equal."""
    if a is None or b is None:
        return is_none(b if a is None else a)
    none_a, none_b = is_none(a), is_none(b)
    values = equal(narrowed(a), narrowed(b))
    return jnp.where(jnp.logical_or(none_a, none_b), jnp.logical_and(none_a, none_b), values)


def _equal_lists(a: Any, b: Any) -> Any:
    lists = _both_lists(a, b)
    if lists is None:
        return False
    a, b = lists
    same = a.length == b.length
    pairs = _pairs(a, b)
    if pairs is None:
        return same
    stop = jnp.where(same, a.length, 0)
    return jnp.logical_and(same, _first_difference(pairs, stop) == stop)


def _first_difference(pairs: Any, stop: Any) -> Any:
    """The first place at which two lists differ; `stop` if they are alike before it."""
    return first_row(lambda pair: not_(equal(*pair)), pairs, stop)


def _both_lists(a: Any, b: Any) -> tuple[Any, Any] | None:
    """The two values as lists of the lane; None if one of them is no list of the same kind."""
    a, b = (one.as_rows() if isinstance(one, Rows) else one for one in (a, b))
    kind = type(a) if isinstance(a, Rows) else type(b)
    values = [_beside(a, b), _beside(b, a)]
    return None if any(type(value) is not kind for value in values) else (values[0]._plain(), values[1]._plain())


def _beside(value: Any, other: Any) -> Any:
    """A list or tuple that is known while compiling as one of the lane, if it is compared with one of its kind."""
    if isinstance(value, str | bytes) and isinstance(other, Rows):
        return text_of(value)
    if type(value) is list and type(other) is list_class():
        return prepare(value)
    return tuple_beside(value, (), other)


def _pairs(a: Any, b: Any) -> Any:
    """The columns of the pairs of elements at the same index of two lists; None if one can have none."""
    if isinstance(a.columns, Unset) or isinstance(b.columns, Unset):
        return None
    sizes = [size for size in (room(a.columns, 0), room(b.columns, 0)) if size is not None]
    if not sizes or min(sizes) == 0:
        return None
    size = min(sizes)
    return tuple(jax.tree.map(lambda leaf: leaf[:size], one.columns) for one in (a, b))


def equal_to(values: Any, value: Any) -> Any:
    """Return which elements of a list equal a value, bool[capacity]."""
    if isinstance(values.columns, Unset) or room(values.columns, 0) is None:
        same = True if not isinstance(values.columns, Unset) and equal(values.columns, value) else False
        return jnp.full((values.capacity,), same)
    value = prepare(value)
    return jax.vmap(lambda element: jnp.asarray(equal(element, value), bool))(values.columns)


def first_equal(values: Any, value: Any, start: Any, stop: Any) -> Any:
    """Return the first place from `start` on, before `stop`, of an element that equals a value; `stop` if there is
    none."""
    if isinstance(values.columns, Unset) or room(values.columns, 0) is None:
        same = not isinstance(values.columns, Unset) and equal(values.columns, value)
        return where(same, jnp.minimum(start, stop), stop)
    value = prepare(value)
    return first_row(lambda element: equal(element, value), values.columns, stop, start)


def compare(op: Comparison, a: Any, b: Any) -> Any:
    """Return `op(a, b)` for two elements or lists; sequences are compared at the first elements that differ."""
    a, b = compared(a, op.__name__), compared(b, op.__name__)
    if isinstance(a, Rows) or isinstance(b, Rows):
        return _compare_lists(op, a, b)
    if isinstance(a, Optional) or isinstance(b, Optional):
        return compare(op, unwrapped(a), unwrapped(b))
    if _is_leaf(a) and _is_leaf(b):
        return scalar(a, b, op)
    if _is_leaf(a) or _is_leaf(b) or not _comparable(a, b) or not isinstance(a, tuple | list):
        return op(a, b)  # raises Python's own error
    if of_two_classes(a, b):
        raise TypeError(f"'<' not supported between instances of '{type_name(a)}' and '{type_name(b)}'")
    result: Any = op(len(a), len(b))
    for x, y in reversed(list(zip(a, b, strict=False))):
        result = where(equal(x, y), result, compare(op, x, y))
    return result


def _compare_lists(op: Comparison, a: Any, b: Any) -> Any:
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


def _is_leaf(value: Any) -> bool:
    return one_level(value)[1] is None


def _comparable(a: Any, b: Any) -> bool:
    """Whether two nodes are of one type, which compares as Python's own types do; raises Refusal for other types."""
    for value in (a, b):
        method: Any = getattr(type(value), "__eq__")  # noqa: B009 - which function it is
        if not any(method is getattr(kind, "__eq__") for kind in (tuple, list, dict)):  # noqa: B009
            title = f"objects of the class {type_name(value)} are compared by a method, or by their identity"
            raise Refusal("PCB304", title, helps=("compare fields of theirs",))
    return isinstance(a, tuple) and isinstance(b, tuple) or type(a) is type(b)


def scalar(a: Any, b: Any, op: Comparison) -> Any:
    if getattr(a, "shape", ()) != () or getattr(b, "shape", ()) != ():
        title = "arrays in a list are neither equal nor in an order: the comparison has an answer for each element"
        raise Refusal("PCB308", title, helps=("compare with `jnp.array_equal`, or keep numbers and tuples of them",))
    return op(a, b)


def not_(value: Any) -> Any:
    """Return the negation of a comparison."""
    if value is NotImplemented:
        return value
    return not value if isinstance(value, bool) else jnp.logical_not(value)


def _all(values: Any) -> Any:
    result: Any = True
    for value in values:
        if result is True or value is False:
            result = value
        elif value is not True and result is not False:
            result = jnp.logical_and(result, value)
    return result


def where(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, bool | np.bool_):
        return a if condition else b
    return jnp.where(condition, a, b)


def _ordering(op: Comparison) -> Comparison:
    return lambda self, other: list_order.compare(op, self, other)


class LaneSequence(Rows):
    """A sequence of the lane that can be compared and unpacked."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    # For subclasses.

    def _plain(self) -> Any:
        """Return the sequence with its elements from place 0 on, and no view."""
        raise NotImplementedError

    def as_list(self) -> Any:
        """Return the elements as a list, no view and no tuple."""
        return self._plain()

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    def _valid(self) -> Any:
        """Return which places hold an element, bool[capacity]."""
        raise NotImplementedError

    # Comparisons.

    def _equal(self, value: Any) -> Any:
        """Return the mask of the elements that equal a value, bool[capacity]."""
        return jnp.logical_and(self._valid(), equal_to(self._compared_with(value), value))

    def _first(self, value: Any, start: Any, stop: Any) -> Any:
        """Return the place of the first element from `start` on, before `stop`, that equals a value; else `stop`."""
        return first_equal(self._compared_with(value), value, start, stop)

    def _compared_with(self, value: Any) -> Any:
        plain = self._plain()
        if not isinstance(value, Container) and not isinstance(plain.columns, Unset):
            ask_identity(plain.columns, value, plain._valid())
        return plain

    def __eq__(self, other: Any) -> Any:
        list_order.ask_about_lists(self, other)
        return list_order.equal(self, other)

    def __ne__(self, other: Any) -> Any:
        list_order.ask_about_lists(self, other)
        return list_order.not_(list_order.equal(self, other))

    __lt__, __le__ = _ordering(operator.lt), _ordering(operator.le)
    __gt__, __ge__ = _ordering(operator.gt), _ordering(operator.ge)

    # Unpacking.

    def unpacked(self, count: int) -> tuple[Any, ...]:
        """Return the elements of `a, b = xs`, as many as there are names."""
        n = self.length
        few = ("not enough values to unpack (expected ", str(count), ", got ", n, ")")
        require(n >= count, "ValueError", *few)
        require(n <= count, "ValueError", f"too many values to unpack (expected {count})")
        return tuple(self.element(k) for k in range(count))

    def unpacked_star(self, before: int, after: int) -> list[Any]:
        """Return the values of `a, *rest, z = xs`, with so many names before and after the star."""
        n = self.length
        few = ("not enough values to unpack (expected at least ", str(before + after), ", got ", n, ")")
        require(n >= before + after, "ValueError", *few)
        first = [self.element(k) for k in range(before)]
        last = [self.element(n - k) for k in range(after, 0, -1)]
        return [*first, self._plain()[before : n - after], *last]

    def __jax_array__(self) -> Any:
        """Return the elements as one array, where their number is known while compiling."""
        columns, n = self._plain().columns, self.length
        if isinstance(columns, jax.Array) and isinstance(n, int):
            return columns[:n]
        raise Refusal(
            "PCB306",
            "an array has a shape that is known while compiling, and the length of this list depends on the lane",
            helps=("keep the list, or make an array of the greatest length and store into it, `ys.at[k].set(x)`",),
        )

    def __repr__(self) -> str:
        kind = type_name(self)
        return f"empty {kind}" if isinstance(self._columns, Unset) else f"{kind} of {element_text(self._columns)}"
