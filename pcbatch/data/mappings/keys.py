"""The keys of dicts and sets of the lane: numbers, texts, or tuples of them, told apart as Python tells them apart.

A key is a tree of parts with an equality and a hash. Texts and tuples of the lane, its *rows*, are equal if their
lengths and the elements in them are, whatever room they have and whatever lies behind their ends. `1`, `1.0` and
`True` are one key, `0.0` and `-0.0` too. No key is a NaN: Python finds a NaN again by the identity of the object, which
values of lanes do not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit
from pcbatch.data.columns import Shape, Unset, leaf_at, one_level, room
from pcbatch.data.container import Container, lane_value
from pcbatch.data.elements import unify
from pcbatch.data.joinable import Joinable
from pcbatch.data.mappings import key_objects
from pcbatch.data.mappings.key_objects import KeyRecord
from pcbatch.data.members import MemberValue, of_member
from pcbatch.data.object_parts import attributes
from pcbatch.data.optional import Optional
from pcbatch.data.origins import KINDS
from pcbatch.data.own_order import comparing
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.stored import UnlikeError, describe
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Column, Columns, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import KeyRefusal

ROWS = (LaneText, LaneTuple)
HELP = "use numbers, texts, or tuples of them"
NONE_KEY = "None as a key of a dict or set that has others"
OF_KINDS = "use one kind of keys, or a dict for each kind; write numbers as texts, `str(n)`"
OF_OBJECTS = (
    "keep a dict whose keys are tuples of the numbers and texts that make two objects equal: `found[x.a, x.b] = x` in "
    "place of `found.add(x)`; of a Fraction `(x.numerator, x.denominator)`",
    "objects that Python tells apart by their identity need a number of their own: `x.id`, different for each of them",
)


def hashable(key: Value) -> Value:
    """Return a key: a number, a text or a (nested) tuple of them; raises TypeError for one that Python refuses.

    A lane in which it is None stops, if it is something else in others.
    """
    key = of_member(key)
    if isinstance(key, MemberValue) and issubclass(key.members, str | float):
        raise refusal(f"a member of {key!r} equals its value, and cannot be a key of a dict or set of the lane")
    if isinstance(key, MemberValue | str | bytes | LaneText):
        return key
    if isinstance(key, LaneTuple):
        hashable(jax.tree.map(lambda leaf: leaf_at(leaf, (0,)), key.columns))
        return key
    if isinstance(key, Container | list | dict | set):
        raise TypeError(f"unhashable type: '{type_name(key)}'")
    if isinstance(key, tuple):
        parts = [hashable(part) for part in key]
        return key if all(a is b for a, b in zip(parts, key, strict=True)) else tuple_like(key, parts)
    if isinstance(key, KeyRecord):
        return key
    if key_objects.is_object(key) and not (isinstance(key, Joinable) and jnp.ndim(key.identity)):
        return _hashable_object(key)
    if key is None or type(key) in KINDS or isinstance(key, Unset):
        return key
    if isinstance(key, jax.Array | np.ndarray | np.generic):
        if key.shape != ():
            raise refusal(f"an array of shape {key.shape} cannot be a key of a dict or set")
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            raise refusal("a PRNG key cannot be a key of a dict or set")
        return key
    if isinstance(key, Optional):
        limit(key.present, NONE_KEY)
        return hashable(key.value)
    raise refusal(f"a dict or set of the lane cannot have a key of type {type_name(key)}", *OF_OBJECTS)


def tuple_like(key: Value, parts: Iterable[Value]) -> Value:
    """Return a tuple of the class of another one."""
    return key._make(parts) if hasattr(key, "_make") else tuple(parts)


def _hashable_object(key: Value) -> Value:
    classes: Any = key_objects.classes_of(key)
    if unhashable := [cls.__name__ for cls in classes if cls.__hash__ is None]:
        raise TypeError(f"unhashable type: '{unhashable[0]}'")
    if all(map(key_objects.compares_identity, classes)):
        if not isinstance(key, Joinable):
            key_objects.require_values(key)
        return key
    told = key_objects.telling(classes[0]) if len(classes) == 1 else None
    if told is None:
        names = " or ".join(cls.__name__ for cls in classes)
        title = f"a dict or set of the lane cannot have a key of type {names}"
        raise refusal(title, *([key_objects.BY_FIELDS] if len(classes) == 1 else ()), *OF_OBJECTS)
    if not isinstance(key, Joinable):
        key_objects.require_values(key)
        with comparing(classes[0]):
            for name in told.names:
                hashable(getattr(key, name))
                if isinstance(getattr(key, name), Optional):
                    title = f"`{name}` may be None, by which objects of {classes[0].__name__} are told apart"
                    raise refusal(title, "use a number in place of None, such as -1")
    return key


def refusal(title: str, *helps: str) -> KeyRefusal:
    """Return the error of a key that no dict or set of the lane can have."""
    return KeyRefusal("PCB304", title, helps=helps or (HELP,))


def covering(columns: Columns, lead: Shape, key: Value) -> Value:
    """Return columns of keys, with these axes in front, in a type that covers a key, too."""
    return unified(columns, lead, plain(key), ())[0]


def unified(a: Columns, a_lead: Shape, b: Columns, b_lead: Shape) -> tuple[Columns, Columns]:
    """Return keys, or columns of keys with these axes in front, in the type that covers both; named tuples and others
    are tuples, as Python finds them equal."""
    try:
        made = unify(a, a_lead, b, b_lead)
    except UnlikeError:
        pass
    else:
        if any(isinstance(part, Optional) for part in jax.tree.leaves(made, is_leaf=lambda x: isinstance(x, Optional))):
            raise refusal(f"{NONE_KEY}, in a part of it", "use a number in place of None, such as -1")
        return made
    try:
        return unify(_unnamed(a), a_lead, _unnamed(b), b_lead)
    except UnlikeError:
        one, other = (
            jax.tree.map(partial(_first, axes=len(lead)), columns) for columns, lead in ((a, a_lead), (b, b_lead))
        )
        kinds = f"{describe(one)} and {describe(other)}"
        raise refusal(f"the keys of a dict or set of the lane must be alike, not {kinds}", OF_KINDS) from None


def _first(leaf: Column, axes: int) -> Value:
    return leaf_at(jnp.asarray(leaf), (0,) * axes)


def _unnamed(key: Value) -> Value:
    """A key, or columns of keys, with tuples in place of named tuples."""
    return tuple(map(_unnamed, key)) if isinstance(key, tuple) else key


def is_of_lane(key: Value) -> bool:
    """Return whether a key holds a number that is not known while compiling."""
    return any(isinstance(leaf, jax.Array) or _has_of_lane(leaf) for leaf in jax.tree.leaves(key))


def _has_of_lane(leaf: Value) -> bool:
    """Whether an object of which JAX does not know the parts, as it is the first of its class, has one of the lane."""
    return key_objects.is_object(leaf) and any(map(is_of_lane, attributes(leaf).values()))


def plain(key: Value) -> Value:
    """Return a key, or columns of keys, as they are stored: with members and texts of the lane, and references to
    objects that fields tell apart with these fields."""
    key = of_member(key)
    if isinstance(key, str | bytes):
        return lane_value(key)
    if isinstance(key, tuple):
        return tuple_like(key, map(plain, key))
    if not key_objects.is_object(key):
        return key
    if isinstance(key, Joinable):
        return _plain_reference(key)
    children, tree = one_level(key)
    return key if tree is None else jax.tree.unflatten(tree, map(plain, children))


def _plain_reference(key: Value) -> Value:
    if jnp.ndim(key.identity):
        return jax.vmap(plain)(key)
    classes = key_objects.classes_of(key)
    several = len(classes) > 1 or key_objects.compares_identity(classes[0])
    told = None if several else key_objects.telling(classes[0])
    if told is None:
        return key
    with comparing(classes[0]):
        fields = [plain(hashable(part)) for part in key_objects.fields_told(key.assumed(), told.names)]
    return key_objects.where_present(key, tuple(fields))


def is_row(part: Value) -> bool:
    """Return whether a part of a key, or a column of such parts, is a text or a tuple of the lane."""
    return isinstance(part, ROWS)


def parts(key: Value) -> tuple[list[Value], Value]:
    """Return the numbers and rows that tell a key apart, or columns of keys, and the structure of these."""
    return jax.tree.flatten(_told(plain(key)), is_leaf=is_row)


def _told(key: Value) -> Value:
    """What tells a key apart, of a class of the user's its fields."""
    if isinstance(key, KeyRecord):
        return key.told
    if isinstance(key, tuple):
        return tuple(map(_told, key))
    if not key_objects.is_object(key):
        return key
    if isinstance(key, Joinable):
        return key.identity
    told = key_objects.told_of(key)
    return tuple(map(_told, key_objects.fields_told(key, told.names))) if told else key


def kinds(columns: Columns) -> Value:
    """Return what the hash of a key depends on: the structure of keys, and the dtypes of numbers in them."""
    leaves, tree = parts(columns)
    return str(tree), [(type(leaf), kinds(leaf.columns)) if is_row(leaf) else leaf.dtype for leaf in leaves]


def shown(key: Value) -> Iterator[Value]:
    """Yield the texts and scalars that show a key as `repr` does."""
    if isinstance(key, Joinable):
        yield f"<{key!r}>"  # what it leads to may lead back
        return
    if (names := key_objects.names_shown(key)) is not None:
        yield f"{type(key).__qualname__}("
        for k, name in enumerate(names):
            yield f"{', ' * (k > 0)}{name}="
            yield from shown(getattr(key, name))
        yield ")"
        return
    if not isinstance(key, tuple):
        yield key if isinstance(key, jax.Array) else f"<{type_name(key)}>" if key_objects.is_object(key) else repr(key)
        return
    yield "("
    for k, part in enumerate(key):
        if k:
            yield ", "
        yield from shown(part)
    yield ",)" if len(key) == 1 else ")"


def python_form(keys: Columns) -> Columns:
    """Return keys, or columns of keys, as that of which Python takes the hash: of an object the tuple of its fields."""
    if isinstance(keys, tuple):
        return tuple(map(python_form, keys))
    record = keys.record if isinstance(keys, KeyRecord) else keys
    if isinstance(keys, Joinable) or not key_objects.is_object(record):
        return keys
    told = key_objects.told_of(record)
    if told is None or told.hashed is None or (record is not keys and record.may_be_none):
        return keys
    fields = key_objects.fields_told(keys, told.names) if record is keys else keys.told[1]
    return tuple(python_form(fields[told.names.index(name)]) for name in told.hashed)


NAN_KEY = "a key of a dict or set of the lane is NaN, of which Python keeps as many as there are objects"


def is_nan(key: Value) -> Value:
    """Return whether a key holds a NaN, for each of those in columns."""
    found: Value = False
    held: Value
    for part in parts(key)[0]:
        if is_row(part):
            holds = is_nan(part.columns)
            held = holds if holds is False else jnp.any(holds & ~behind_end(part), axis=-1)
        elif isinstance(part, jax.Array) and jnp.issubdtype(part.dtype, jnp.inexact):
            held = jnp.isnan(part)
        else:
            held = isinstance(part, float | complex) and part != part
        found = held if found is False else found | held
    return found


def require_no_nan(key: Value) -> None:
    """Let the lane stop where a key that is to be stored holds a NaN."""
    limit(list_order.not_(is_nan(key)), NAN_KEY)


def behind_end(row: Value) -> Value:
    """Return the mask of the places behind the end of a row, for each in a column."""
    size = room(row.columns, jnp.ndim(row.length))
    length = jnp.asarray(row.length)[..., None]
    return with_axes(jnp.arange(size, dtype=np.int32), length.ndim) >= length


def with_axes(value: Value, count: int) -> Value:
    """Return a number, or an array with axes of size one in front so that it has so many."""
    missing = count - jnp.ndim(value) if jnp.ndim(value) else 0
    return jnp.expand_dims(value, tuple(range(missing))) if missing else value
