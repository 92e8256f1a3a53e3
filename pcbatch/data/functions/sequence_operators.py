"""Comparisons of tuples and lists that hold values of a lane, and methods of what is known while compiling.

Python compares sequences by the first elements that differ, and stops there. Values of a lane have no truth while
compiling, so all elements are compared, and the answers are put together.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, ValuesView
from types import BuiltinFunctionType
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import holds_same, one_of
from pcbatch.data.catalogue import facts
from pcbatch.data.checks import limit, require
from pcbatch.data.columns import Unset
from pcbatch.data.container import Container, in_order
from pcbatch.data.functions.lifted import lane_dict
from pcbatch.data.functions.mappings import from_keys, ordered_dict
from pcbatch.data.functions.sequence_builtins import tuple_
from pcbatch.data.functions.texts import formatting, is_shown_of_lane
from pcbatch.data.functions.truth import truth
from pcbatch.data.functions.users_code import iterated
from pcbatch.data.mappings.keys import is_of_lane
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import set_class
from pcbatch.data.mappings.ordered_keys import keeping_order
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Tracer, either, kind_of, note, number, of_lane
from pcbatch.data.own_order import ask_which, compared, of_two_classes, refuse_own_order
from pcbatch.data.rows import Rows
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts.byte_numbers import from_bytes
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Index, Value
from pcbatch.errors import OtherCount, Refusal

jax.extend.source_info_util.register_exclusion(__file__)

Compare = Callable[[Value, Value], Value]
ORDERS: dict[str, Compare] = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
NAN = "values with NaN among them have no order: what Python makes of them depends on the order before"


def are_sequences(a: Value, b: Value) -> bool:
    """Whether two values are tuples, or lists, of which one has a value of a lane in it."""
    alike = (isinstance(a, tuple) and isinstance(b, tuple)) or (isinstance(a, list) and isinstance(b, list))
    return alike and of_lane((a, b))


def are_dicts(a: Value, b: Value) -> bool:
    """Whether two values are dicts of known keys, of which one has a value of a lane in it."""
    return type(a) is dict and type(b) is dict and of_lane([*a.values(), *b.values()])


def compare(name: str, a: Value, b: Value) -> Value:
    """Return the comparison `name` of two tuples, lists or dicts."""
    if name == "eq":
        return number(equal(a, b))
    if name == "ne":
        same = equal(a, b)
        return number(jnp.logical_not(same)) if isinstance(same, jax.Array) else not same
    list_order.require_order(a, b)
    return number(_ordered(ORDERS[name], a, b))


def equal(a: Value, b: Value) -> Value:
    """Return whether two values, or two sequences or dicts of them, are equal."""
    a, b = compared(a, "eq"), compared(b, "eq")
    if are_dicts(a, b):
        if a.keys() != b.keys():
            return False
        a, b = [*a.values()], [b[key] for key in a]
    ask_which(a, b)
    if not are_sequences(a, b):
        return truth(list_order.equal(a, b) if isinstance(a, Optional) or isinstance(b, Optional) else a == b)
    if len(a) != len(b) or of_two_classes(a, b):
        return False
    result: Value = True
    for x, y in zip(a, b, strict=True):
        same = True if x is y else equal(x, y)
        if isinstance(x, Tracer) and isinstance(y, Tracer) and x.shape == y.shape == ():
            list_order.ask_identity(x, y, True)
        if not isinstance(same, jax.Array):
            if not same:
                return False
        else:
            result = jnp.logical_and(result, same)
    return result


def _ordered(op: Compare, a: Value, b: Value) -> Value:
    if not are_sequences(a, b):
        known = isinstance(a, Rows) or list_order.may_lack_order(a, b)
        return truth(list_order.compare(op, a, b) if known else op(a, b))
    if of_two_classes(a, b):
        raise TypeError(f"'<' not supported between instances of '{type(a).__name__}' and '{type(b).__name__}'")
    result: Value = op(len(a), len(b))
    for x, y in reversed(list(zip(a, b, strict=False))):
        same = equal(x, y) if (found := list_order.tied(x, y)) is None else found
        if isinstance(same, jax.Array):
            result = jnp.where(same, result, _ordered(op, x, y))
        elif not same:
            result = _ordered(op, x, y)
    return result


def count(values: Value, item: Value) -> Index:
    """The method `count` of a tuple or list."""
    found = [equal(value, item) for value in values]
    return number(sum(jnp.where(one, 1, 0) if isinstance(one, jax.Array) else int(one) for one in found))


def index(values: Value, item: Value, start: int = 0, stop: int | None = None) -> Index:
    """The method `index` of a tuple or list; the lane raises ValueError where no element is equal."""
    place: Index = -1
    for k in reversed(range(len(values))[start:stop]):
        same = equal(values[k], item)
        place = jnp.where(same, k, place) if isinstance(same, jax.Array) else (k if same else place)
    require(place >= 0, "ValueError", f"{type(values).__name__}.index(x): x not in {type(values).__name__}")
    return number(jnp.maximum(place, 0)) if isinstance(place, jax.Array) else place


def ordered(items: list[Value], keys: list[Value], reverse: bool) -> list[Value]:
    """Return items in the order of their keys, numbers of a lane or tuples and lists of them; stable."""
    for key in keys:
        refuse_own_order(key)
    structure: Any = jax.tree.structure(keys[0])
    if any(jax.tree.structure(key) != structure for key in keys) or not all(map(_is_plain, keys)):
        raise TypeError("`sorted` in a lane needs keys that are real numbers, or tuples of them, all of one structure")
    columns = [
        jnp.stack([jnp.asarray(part) for part in parts]) for parts in zip(*map(jax.tree.leaves, keys), strict=True)
    ]
    for column in columns:
        if column.ndim > 1:
            truth(column[0])  # raises what the comparison of two arrays raises
        if jnp.issubdtype(column.dtype, np.inexact):
            limit(jnp.logical_not(jnp.any(jnp.isnan(column))), NAN)
    places = jnp.arange(len(items))
    if reverse:  # equal items stay in their order
        columns, places = [column[::-1] for column in columns], places[::-1]
    found: Value = jax.lax.sort((*columns, places), num_keys=len(columns), is_stable=True)
    order = found[-1][::-1] if reverse else found[-1]
    group = object()
    return [one_of(_chosen(items, order[k]), items, group) for k in range(len(items))]


def _is_plain(key: Value) -> bool:
    """Whether a key is a number, or a tuple or list of keys, which Python compares by their elements."""
    if type(key) in (tuple, list) or hasattr(key, "pcbatch_class"):
        return all(map(_is_plain, key))
    return isinstance(key, jax.Array | np.ndarray | np.generic | int | float) and not jnp.iscomplexobj(key)


def _chosen(items: list[Value], place: Index) -> Value:
    def choose(*leaves: Value) -> Value:
        value = jnp.stack([jnp.asarray(leaf) for leaf in leaves])[place]
        for leaf in leaves:  # a value of two origins is of none
            note(value, either(leaves[0], leaf))
        return value

    return keeping_order(choose, *items)


OF_SEQUENCES = {"count": count, "index": index}  # those that compare elements


def method_of_known(fn: Any) -> Callable[..., Value] | None:
    """Return what stands in for a method of a text, a list, a tuple, a dict or a set; None for any other function."""
    owner: Any = getattr(fn, "__self__", None)
    name = getattr(fn, "__name__", "")
    if name == "from_bytes" and owner is int:
        return from_bytes
    if name == "fromkeys" and owner in (dict, OrderedDict):
        return from_keys if owner is dict else lambda *given: ordered_dict(from_keys(*given))
    if isinstance(fn, BuiltinFunctionType) and isinstance(owner, str):
        return text_method(owner, name)
    if isinstance(fn, BuiltinFunctionType) and isinstance(owner, tuple | list):
        compare = OF_SEQUENCES.get(name)
        if compare is None:
            return None
        return lambda item, *ends: compare(owner, item, *ends) if of_lane((owner, item)) else fn(item, *ends)
    kind = LaneDict if type(owner) is dict else set_class(owner) if type(owner) in (set, frozenset) else None
    if name.startswith("_") or not hasattr(kind, name) or facts(name).changes:
        return None

    def run(*args: Value, **options: Value) -> Value:
        if not any(isinstance(arg, Container) or is_of_lane(arg) for arg in args[:1]):
            return fn(*args, **options)
        made = lane_dict(owner) if kind is LaneDict else set_class(owner).from_items(owner)
        return getattr(holds_same(made, owner), name)(*args, **options)

    return run


def text_method(value: str, name: str) -> Callable[..., Value]:
    """Return the method `value.name` of a Python text, whose arguments may be texts of the lane."""
    if not isinstance(value, str):
        found: Callable[..., Value] = getattr(value, name)
        return found

    def run(*args: Value, **options: Value) -> Value:
        if name == "format" and any(map(is_shown_of_lane, (*args, *options.values()))):
            return formatting(value, args, options)
        if name == "join":  # all elements are taken before the first one is looked at
            args = tuple(list(arg) if isinstance(arg, Iterator | ValuesView) else arg for arg in args)
            args = tuple(in_order(arg) if isinstance(arg, LaneDict) else arg for arg in args)
        kinds = (LaneText, Tracer) if hasattr(LaneText, name) else LaneText
        of_lane = any(isinstance(leaf, kinds) for arg in args for leaf in _texts(arg))
        return getattr(LaneText.known(value) if of_lane else value, name)(*args, **options)

    return run


def _texts(value: Value) -> list[Value]:
    if isinstance(value, LaneList):
        return [value.columns]
    return jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, Rows))


def star_items(values: Value, count: int) -> Value:
    """Return what `*values` gives in a call that needs `count` more arguments, of a list of the lane just so many."""
    listed = in_order(values)
    if listed is None:
        return values
    message = f"the call needs {count} more arguments, and `*` gives "
    require(listed.length == count, "TypeError", message, listed.length)
    return tuple(listed.element(k) for k in range(count))


def star_item(values: Value, k: int, count: int) -> Value:
    """The element `k` of `*values` in a call that needs `count` more arguments."""
    items = tuple(star_items(values, count))
    if len(items) != count:
        raise TypeError(f"the call needs {count} more arguments, and `*` gives {len(items)}")
    return items[k]


def star_rest(values: Value) -> Value:
    """The tuple of the arguments that `*values` gives, of a list of the lane as many as it has elements."""
    return tuple_(iterated(values))


def star_several(values: Value, name: str) -> Value:
    """The arguments that `*values` gives to `max` or `min`, as a list: these take the elements of a single one."""
    listed, few = in_order(values), f"{name} expected at least 1 argument, got 0"
    if listed is None:
        items = list(values)
        if not items:
            raise TypeError(few)
        return items[0] if len(items) == 1 else items
    require(listed.length > 0, "TypeError", few)
    if isinstance(listed.columns, Unset):
        return listed
    columns = listed.columns
    kind = kind_of(columns.dtype) if isinstance(columns, jax.Array) and columns.ndim == 1 else None
    if kind is None:
        title = f"`{name}` of a single argument takes the parts of that"
        raise Refusal("PCB306", title, helps=(f"where that is not meant, pass the list itself: `{name}(xs)`",))
    require(listed.length > 1, "TypeError", f"'{kind.__name__}' object is not iterable")
    return listed


def star_count(values: Value, count: int) -> int:
    """The number of elements of `*values` in a call, which is built for `count` of them."""
    found = len(tuple(values))
    if found != count:
        raise OtherCount(found)
    return found
