"""Displays, constructors and operators of dicts and sets, whose keys may be values of the lane.

A dict or set whose keys are all known while compiling stays Python's own. It becomes one of the lane where a key of the
lane is looked up or stored in it.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from contextlib import suppress

import jax
import jax.extend.source_info_util

from pcbatch.data.aliasing import holds_same
from pcbatch.data.checks import collecting
from pcbatch.data.container import Container
from pcbatch.data.functions.lifted import has_member, lifted, with_members
from pcbatch.data.functions.users_code import load_method, substitute
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.keys import is_of_lane
from pcbatch.data.mappings.lane_dict import COUNTER, ORDERED, LaneDict, missing_of
from pcbatch.data.mappings.lane_set import DictView, LaneFrozenSet, LaneSet, set_class
from pcbatch.data.mappings.stored_table import MIXED
from pcbatch.data.members import of_member
from pcbatch.data.object_parts import is_plain_object
from pcbatch.data.sequences.lane_list import LaneList, as_list
from pcbatch.data.stored import UnlikeError
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)


def order_key(key: Value) -> Value:
    """Return what stands in for a key function; `d.get` of a dict of the lane gives values, for None has no order."""
    owner = getattr(key, "__self__", None)
    if isinstance(owner, LaneDict) and key.__name__ == "get":
        return owner.ordered_value
    return None if key is None else substitute(key)


def from_keys(keys: Value, value: Value = None) -> Value:
    """The method `dict.fromkeys`."""
    if not _needs_lane(keys):
        return dict.fromkeys(keys, value)
    if isinstance(value, list | Container):
        title = "all values of `dict.fromkeys` are one object, and a change of one would be seen in all"
        raise Refusal("PCB304", title, helps=("write a comprehension, `{key: [] for key in keys}`",))
    listed = as_list(keys)
    new, values = LaneDict(), LaneList.filled(value, listed.length)
    new._store_list(listed, values)
    new.held = values.held
    return new


# Displays.


def set_display(*items: Value) -> Value:
    """The display of a set, `{a, b}`."""
    if any(map(is_of_lane, items)):
        return LaneSet.from_items(list(items))
    return set(items)


def dict_display(*parts: Value) -> Value:
    """The display `{k: v, **other}`: keys and values in turn; a key that is `Spread` comes before another dict."""
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    of_lane = any(
        isinstance(value, Entries | DictView) if key is Spread else is_of_lane(of_member(key)) for key, value in pairs
    )
    made: Value = LaneDict() if of_lane else {}
    for key, value in pairs:
        if key is Spread:
            made.update(value)
        else:
            made[key] = value
    return made


def of_objects(value: Value) -> Value:
    """Return a value with sets and dicts of the lane in place of Python's, in tuples and lists too, whose keys are
    objects of the user's."""
    if type(value) in (tuple, list):
        parts = list(map(of_objects, value))
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else type(value)(parts)
    if type(value) not in (set, frozenset, dict) or not any(map(_has_objects, value)):
        return value
    if type(value) is dict:
        return holds_same(LaneDict.known(value), value)
    made = set_class(value).from_items(list(value))
    made.history = MIXED  # the order in which they were added is not known
    return made


def _has_objects(key: Value) -> bool:
    return any(map(_has_objects, key)) if isinstance(key, tuple) else is_plain_object(key)


class Spread:
    """The key of a dict that is spread in a display."""


def added(items: Value, item: Value, sources: Callable[[], tuple[Value, ...]] | None = None) -> Value:
    """Return a set with one more element; its order is not known where one of the sources is a set of the lane, whose
    elements come in any order."""
    new = Entries.copy(items)
    new.add(item)
    if sources is not None:
        with collecting():  # only their classes are asked for
            if any(isinstance(source, LaneSet) for source in sources()):
                return of_any_order(new)
    return new


def with_item(items: Value, key: Value, value: Value) -> Value:
    """Return a dict with one more entry."""
    new = lifted(items, key).copy()
    new[key] = value
    return new


# Constructors.


def set_(*args: Value) -> Value:
    """The builtin `set`; the empty one is of the lane, as it is made to be filled."""
    if not args:
        return LaneSet()
    if len(args) > 1 or not _needs_lane(args[0]):
        return set(*args)
    return LaneSet.from_items(args[0])


def frozenset_(*args: Value) -> Value:
    """The builtin `frozenset`; the empty one is of the lane, as operators add elements of the lane."""
    if not args:
        return LaneFrozenSet()
    if len(args) > 1 or not _needs_lane(args[0]):
        return frozenset(*args)
    return LaneFrozenSet.from_items(args[0])


def dict_(*args: Value, **named: Value) -> Value:
    """The builtin `dict`, also for the lane's dicts."""
    if len(args) != 1:
        return dict(*args, **named)
    source = with_members(args[0])
    if isinstance(source, LaneDict | LaneList | DictView):
        new = LaneDict()
        new.update(source, **named)
        return new
    if isinstance(source, Mapping):
        return dict(source, **named)
    pairs = [tuple(pair) for pair in source]
    if any(is_of_lane(pair[0]) or has_member(pair[0]) for pair in pairs if pair):
        new = LaneDict.of_items(pairs)
        new.update(**named)
        return new
    return dict(pairs, **named)


def counter(*args: Value, **named: Value) -> Value:
    """The class `collections.Counter`."""
    new = LaneDict(COUNTER)
    new.update(*args, **named)
    return new


def defaultdict(*args: Value, **named: Value) -> Value:
    """The class `collections.defaultdict`."""
    factory: Callable[[], Value] | None = args[0] if args else None
    new = LaneDict(missing_of(factory))
    new.update(*args[1:], **named)
    return new


def ordered_dict(*args: Value, **named: Value) -> Value:
    """The class `collections.OrderedDict`; one with names for keys is a pytree of JAX."""
    source = dict_(*args, **named)
    if type(source) is dict and source and all(isinstance(key, str) for key in source):
        return collections.OrderedDict(source)
    new = LaneDict(ORDERED)
    new.update(source)
    return new


def _needs_lane(values: Value) -> bool:
    """Whether a set of the elements of a collection holds values of the lane."""
    of_known = isinstance(values, list | tuple) and any(map(is_of_lane, values))
    return of_known or isinstance(values, Container | jax.Array)


# Questions.


def any_order(value: Value) -> Value:
    """Return a set as a list of its elements, in no order that Python would know; other values as they are."""
    if isinstance(value, LaneSet):
        return value.unordered()
    return list(value) if isinstance(value, set | frozenset) else value


def own_order(value: Value) -> Value:
    """Return a set as a list of its elements, in Python's order where that is known; other values as they are."""
    return value.as_list() if isinstance(value, LaneSet) and value.order_is_known else any_order(value)


def without_order(value: Value) -> Value:
    """Return a set whose order is not known; None for any other value."""
    return value if isinstance(value, LaneSet) and not value.order_is_known else None


def of_any_order(made: Value) -> Value:
    """Return a set that is made of elements in any order, so that its own is not known."""
    if not isinstance(made, LaneSet):
        return made
    new = Entries.copy(made)
    new.history = MIXED
    return new


def elements_at(mapping: Value, key: Value) -> Value:
    """Return the value of a key of a dict, of which only the elements are taken, or an empty one of its kind."""
    if not isinstance(mapping, LaneDict):  # one that is known, or an object of the user's
        return substitute(load_method(mapping, "get"))(key, ())
    try:
        return mapping.get(key, ())
    except UnlikeError as unlike:
        others: tuple[Value, ...] = ([], set(), {})
        for empty in others:
            with suppress(UnlikeError):
                return mapping.get(key, empty)
        raise unlike from None
