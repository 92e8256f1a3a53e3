"""The object of a method, which Python looks up before it evaluates the arguments; see `frontend.build.receivers`."""

from __future__ import annotations

import jax
import jax.extend.source_info_util

from pcbatch.data.functions.changes import Path, copy_of, is_immutable, item
from pcbatch.data.functions.links import counted_from_start
from pcbatch.data.functions.operators import eq
from pcbatch.data.functions.users_code import users_method
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import LaneSet
from pcbatch.data.objects.reference import Ref
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts.lane_bytes import LaneByteArray
from pcbatch.data.values import Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)

REPLACED = "the object that this changes may be another one once the values it gets are evaluated"
LINE_BEFORE = "if the object that is there by then is to change, evaluate the argument in a line before: `value = ...`"
COMPARED = (list, dict, set, LaneList, LaneDict, LaneSet)


def place_key(value: Value, path: Path, key: Value) -> Value:
    """Return the key of `value[path][key]`, by which it is found when its list grows at the end."""
    holder = item(value, path)
    return counted_from_start(holder, key) if type(holder) is list or isinstance(holder, LaneList) else key


def looked_up(value: Value) -> Value:
    """Return a copy of an object, to be compared with what is at its place after other things were evaluated."""
    return copy_of(value)


def require_still(value: Value, path: Path) -> None:
    """Refuse a list at a path, whose elements move while the arguments of a method of one of them are evaluated."""
    holder = item(value, path)
    if type(holder) is list or isinstance(holder, LaneList):
        title = "the arguments of this method move elements of the list that has its object"
        raise Refusal("PCB330", title, helps=(LINE_BEFORE,))


def require_own(value: Value, path: Path) -> None:
    """Refuse an object at an attribute of a record, to which arguments may assign by another name of the record."""
    if isinstance(item(value, path[:-1]), Ref) and not is_immutable(item(value, path)):
        raise Refusal("PCB330", REPLACED, helps=(LINE_BEFORE,))


def is_there(now: Value, before: Value) -> Value:
    """Return whether the object at a place equals what was there before; only containers are compared."""
    if not isinstance(now, COMPARED) or not isinstance(before, COMPARED):
        raise Refusal("PCB330", REPLACED, helps=(LINE_BEFORE,))
    return eq(before, now)


def of_container(value: Value, path: Path, methods: str) -> Value:
    """Return a value whose part at a path gets a list in place of an iterator: no method of the user's may get it."""
    part = item(value, path)
    for name in (name for name in methods.split() if users_method(part, name) is not None):
        title = f"`{name}` of a {type_name(part)} gets an iterator whose elements are the lane's"
        raise Refusal("PCB304", title, helps=("give it the list of them, `[x for x in ...]`",))
    return value


def taken_before(value: Value, path: Path, taken: Value) -> Value:
    """Return what `value[path].extend` has taken of an iterable that raises after some elements: a bytearray none."""
    return [] if isinstance(item(copy_of(value), path), LaneByteArray | bytearray) else taken
