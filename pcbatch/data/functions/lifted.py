"""Objects of the lane in place of those that are known while compiling, where these meet a value of the lane.

    lifted([1, 2], k)[k] = x     lifted("ab", n) * n     lifted({1: 2}, k)[k]

Python's own list, text or dict costs nothing and may hold anything, so it is lifted as late as possible, and only where
its own methods would need a number that is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import jax
import jax.extend.source_info_util

from pcbatch.data.aliasing import holds_same
from pcbatch.data.catalogue import facts
from pcbatch.data.container import Container, lane_value
from pcbatch.data.mappings.keys import is_of_lane
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import LaneSet, set_class
from pcbatch.data.members import of_member
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Tracer
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_range import LaneRange
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)

CHOSEN = "call a function where it is chosen, `TABLE[k](...)`, or keep `k` in its place until it is called"


def lifted(value: Any, *with_: Any) -> Any:
    """Return a value, as an object of the lane where it is known while compiling and what it meets is not.

    A sequence meets indices, slices and counts, a dict or set keys. An array that is known while compiling is an index
    of Python's own lists, but no key of its dicts: it has no hash.
    """
    meets = is_of_lane if isinstance(value, dict | set | frozenset) else is_index_of_lane
    if not any(map(meets, with_)):
        return value
    match value:
        case str() | bytes():
            return lane_value(value)
        case list():
            return LaneList.from_list(value)
        case tuple():
            return (LaneTuple if type(value) is tuple else LaneList).from_list(list(value))
        case range() if not any(isinstance(part, slice) for part in with_):
            return LaneRange(value.start, value.stop, value.step)
    if type(value) is dict:
        return holds_same(lane_dict(value), value)
    return set_class(value).from_items(value) if type(value) in (set, frozenset) else value


def has_member(key: Any) -> bool:
    """Return whether a key is, or holds, a member of an enumeration that is no number: JAX cannot sort such keys."""
    return any(of_member(leaf) is not leaf for leaf in jax.tree.leaves(key))


def with_members(value: Any, *keys: Any) -> Any:
    """Return a dict that has members for keys, or gets such `keys`, as one of the lane; other values as they are."""
    return (
        holds_same(lane_dict(value), value) if type(value) is dict and any(map(has_member, (*value, *keys))) else value
    )


def changeable(value: Any, name: str, args: Sequence[Any]) -> Any:
    """Return what a method is to change, as an object of the lane where its arguments need that.

    A set that is known while compiling never changes. A dict does, by what is known, and so does a list: an index of
    the lane, a comparison with values of the lane and elements of one of its containers need a list of the lane.
    """
    known, first = facts(name), args[0] if args else ()
    if type(value) is set:
        return LaneSet.from_items(list(value))
    if type(value) is dict:
        if isinstance(first, list | tuple) and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in first):
            first = tuple(pair[0] for pair in first)  # the items of `update`
        of_lane = not isinstance(first, dict) and (is_of_lane(first) or has_member(first))
        return lane_dict(value) if of_lane or any(isinstance(arg, Container) for arg in args) else value
    if type(value) is not list or not hasattr(value, name):
        return value
    if known.iterates and isinstance(first, jax.Array) and first.ndim == 0:
        raise TypeError("'int' object is not iterable")
    needed = (
        (known.by_index and isinstance(first, jax.Array))
        or (known.by_value and is_of_lane([value, args]))
        or (known.iterates and isinstance(first, Container))
    )
    return LaneList.from_list(value) if needed else value


def is_index_of_lane(value: Any) -> bool:
    """Return whether a value is one of the lane, or a slice with one."""
    if isinstance(value, slice):
        return any(isinstance(bound, Tracer | Optional) for bound in (value.start, value.stop, value.step))
    return isinstance(value, Tracer)


def lane_dict(value: Mapping[Any, Any]) -> LaneDict:
    """Return a dict whose keys are known as a dict of the lane."""
    if any(isinstance(part, FunctionType | MethodType | BuiltinFunctionType) for part in value.values()):
        raise Refusal("PCB304", "a lane chooses a function, which is no value of a lane", helps=(CHOSEN,))
    texts = [key for key in value if isinstance(key, str)]
    if 0 < len(texts) < len(value):
        title = f"a dict with the key {texts[0]!r} takes no value of a lane as a key"
        raise Refusal("PCB304", title, helps=("keep texts and numbers in dicts of their own",))
    return LaneDict.known(value)
