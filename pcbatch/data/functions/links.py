"""Reading parts of containers that variables are linked with (see `frontend.build.links`), and storing them back."""

from __future__ import annotations

import inspect

import jax
import jax.extend.source_info_util
import jax.numpy as jnp

from pcbatch.data.checks import limit, require
from pcbatch.data.functions.changes import Field, is_immutable, put_part, set_item
from pcbatch.data.functions.iteration import rows
from pcbatch.data.functions.sequence_builtins import get_item
from pcbatch.data.functions.truth import ARRAYS
from pcbatch.data.mappings.lane_dict import ORDERED, LaneDict
from pcbatch.data.object_parts import is_plain_object
from pcbatch.data.objects.reference import Ref
from pcbatch.data.origins import number
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)

CODE = "PCB330"
PLAIN = "a part of an object that is no list, dict or array"
BY_PLACE = ("use it by its place",)
ONE_PART = "two arguments of this call are one object, which it changes"
GIVEN_ONCE = "give the object once, and use one parameter for it in the function"


def fixed_key(value: Value, key: Value, *path: Value) -> Value:
    """The key of the part `value[path][key]`, which stays that of the part when a list grows."""
    holder = linked_item(value, *path)
    if isinstance(holder, LaneDict) and holder.missing not in (None, ORDERED):  # reading may store
        raise Refusal(CODE, PLAIN, helps=BY_PLACE)
    keyed = type(holder) is dict or isinstance(holder, LaneDict) or _has_own(holder, key)
    return key if keyed else counted_from_start(holder, key)


def counted_from_start(holder: Value, key: Value) -> Value:
    """The index of an element of a list that an index means, which may count from the end."""
    count = holder.length if isinstance(holder, LaneList) else len(holder)
    if isinstance(count, int) and not isinstance(key, jax.Array):
        get_item(holder, key)  # raises where there is no such element
        return key + count if key < 0 else key
    inside = jnp.logical_and(jnp.asarray(key) < count, jnp.asarray(key) >= -count)
    require(inside, "IndexError", LaneList.NO_INDEX)
    return number(jnp.where(jnp.asarray(key) < 0, key + count, key), key)


def linked_item(value: Value, *path: Value) -> Value:
    """The part of a value at a path; lists, dicts, tuples, arrays and plain attributes certainly keep no copies."""
    for key in path:
        if _has_own(value, key):
            value = getattr(value, key)
            continue
        plain = (
            type(value) in (list, dict) or _is_tuple(value) or isinstance(value, LaneList) or type(value) is LaneDict
        )
        if not (plain or isinstance(value, ARRAYS)):
            raise Refusal(CODE, PLAIN, helps=BY_PLACE)
        value = value.present_value(key) if isinstance(value, LaneDict) else get_item(value, key)
    return value


def _is_tuple(value: Value) -> bool:
    """Whether a value is a tuple whose elements no code of the user's reads."""
    plain = (tuple.__getitem__, tuple.__iter__)
    return isinstance(value, tuple) and (type(value).__getitem__, type(value).__iter__) == plain


def _has_own(value: Value, key: Value) -> bool:
    """Whether a key is the name of an attribute of an object, which no code of the user's reads or assigns."""
    if isinstance(value, Ref):
        return isinstance(key, str)
    if not isinstance(key, str) or not is_plain_object(value) or key not in getattr(value, "__dict__", {}):
        return False
    plain = all(getattr(type(value), name) is getattr(object, name) for name in ("__getattribute__", "__setattr__"))
    return plain and not hasattr(inspect.getattr_static(type(value), key, None), "__set__")


def parts_apart(value: Value, *paths: Value) -> tuple[Value, Value]:
    """The parts of a list or an array at two paths of one length, one path behind the other, if they are different."""
    first, second = paths[: len(paths) // 2], paths[len(paths) // 2 :]
    for path in (first, second):
        for count in range(len(path)):
            if not isinstance(linked_item(value, *path[:count]), (list, LaneList, *ARRAYS)):
                raise Refusal(CODE, ONE_PART, helps=(GIVEN_ONCE,))
    equal = [one == other for one, other in zip(first, second, strict=True)]
    known = [each for each in equal if isinstance(each, bool)]
    if all(known):
        if len(known) == len(equal):
            raise Refusal(CODE, ONE_PART, helps=(GIVEN_ONCE,))
        limit(jnp.logical_not(jnp.all(jnp.stack([jnp.asarray(each) for each in equal]))), ONE_PART)
    return linked_item(value, *first), linked_item(value, *second)


def linked_rows(value: Value, *path: Value) -> Value:
    """The list or array at a path that a `for` loop goes over, and whose changes it sees."""
    value = linked_item(value, *path)
    if type(value) is not list and not isinstance(value, (LaneList, *ARRAYS)):
        raise Refusal(CODE, "a loop goes over what is no list, and changes it", helps=("go over a copy of it",))
    return rows(value)


def linked_elements(value: Value, *path: Value) -> Value:
    """The list, tuple or array at a path whose elements an assignment gives to variables."""
    value = linked_item(value, *path)
    return value if _is_tuple(value) else linked_rows(value)


def put_back(value: Value, *rest: Value) -> Value:
    """The value after a part of it has changed: `rest` is the path to the part, and the part as it is now."""
    *keys, part = rest
    holders = [linked_item(value, *keys[:k]) for k in range(len(keys))]
    path = tuple(Field(key) if _has_own(at, key) else key for at, key in zip(holders, keys, strict=True))
    store = put_part if holders and _is_tuple(holders[-1]) else set_item
    return store(value, path, part) if path else part


def as_value(old: Value) -> Value:
    """Return what was at a place, without a name where it is an object that is there still."""
    return old if is_immutable(old) else ()
