"""The elements of containers of the lane: pytrees, and their columns with one more axis in front for each list around.

    [(1, 2.5), (3, 4.0)]      columns (i32[capacity], f32[capacity]), length 2
    [[1, 2], [3]]             columns of the outer list: an inner list with columns i32[capacity, capacity']
                              and lengths i32[capacity]

A container in an element is a node of the pytree. Where it lies in the columns of another one its leaves, its length
among them, have the axes of those around it, called its *lead* here.
"""

from __future__ import annotations

from functools import partial, reduce
from itertools import islice

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import one_of
from pcbatch.data.checks import going_on
from pcbatch.data.columns import Shape, Unset, as_array, numbers, one_level, padded, unify_leaves, zero_of
from pcbatch.data.container import Container, Varying, class_for, lane_value
from pcbatch.data.joinable import Joinable, joined
from pcbatch.data.mappings.ordered_keys import keeping_order, ordered, plain
from pcbatch.data.members import of_member
from pcbatch.data.object_parts import is_frozen, is_plain_object, register_class
from pcbatch.data.optional import Optional
from pcbatch.data.origins import KINDS, Origin, both, either, kind_of, met, note, source_of
from pcbatch.data.stored import Stored, UnlikeError, by_identity, is_part, is_stored, is_table, parts
from pcbatch.data.values import Column, Flag, Value
from pcbatch.errors import Refusal


def prepare(value: Value) -> Value:
    """Return an element with the containers in it as containers of the lane."""
    value = of_member(value)
    if isinstance(value, Stored):
        return value.as_rows()
    if isinstance(value, list | set | str | bytes) or is_table(value):
        return lane_value(value)
    if isinstance(value, Container):
        title = f"a {getattr(value, 'python_name', 'container')} of the lane cannot be an element of another container"
        raise Refusal("PCB304", title, helps=("use one whose keys are tuples: `seen[a, b]` for `seen[a][b]`",))
    value = ordered(value)
    children, tree = one_level(value)
    if tree is None and is_plain_object(value) and is_frozen(type(value)):
        register_class(type(value))
        children, tree = one_level(value)
    elif tree is None and is_plain_object(value):  # the first one of its class, of which JAX does not know the parts
        title = f"an object of {type(value).__name__} is an element of a list of the lane"
        raise by_identity("PCB304", title, "keep its attributes in the list, as a tuple", value)
    return value if tree is None else jax.tree.unflatten(tree, [prepare(child) for child in children])


def as_element(value: Value) -> Value:
    """Return an element, prepared, whose containers have no more room than those inside of others have."""
    return jax.tree.map(lambda part: part.cut() if is_stored(part) else part, prepare(value), is_leaf=is_stored)


def beside(value: Value, lead: Shape, other: Value) -> Value:
    """Return an element, or columns of such, that is known as the container of the lane that it meets, if it is one."""
    return other.beside(value, lead) if isinstance(other, Stored) else value


def unify(a: Value, a_lead: Shape, b: Value, b_lead: Shape) -> tuple[Value, Value]:
    """Return two elements with the type that covers both.

    Args:
        a: an element, prepared, or columns of elements.
        a_lead: the shape of the axes in front of all its leaves.
        b: likewise.
        b_lead: likewise.

    Raises:
        Refusal: if there is no such type.
    """
    if isinstance(a, Unset) or isinstance(b, Unset):
        return (blank(b, b_lead, a_lead) if isinstance(a, Unset) else a), (
            blank(a, a_lead, b_lead) if isinstance(b, Unset) else b
        )
    if type(a) is type(b) is tuple and len(a) != len(b):
        varying = class_for(Varying).varying
        one, other = varying(a, a_lead), varying(b, b_lead)
        if one is a and other is b:
            raise UnlikeError(a, b)
        try:
            return unify(one, a_lead, other, b_lead)
        except UnlikeError as unlike:
            raise unlike.inside(None, a, b) from None
    a, b = beside(a, a_lead, b), beside(b, b_lead, a)
    if isinstance(a, Stored) and isinstance(b, Stored):
        return a.unified(a_lead, b, b_lead)
    if isinstance(a, Joinable) or isinstance(b, Joinable):
        if (alike := joined(a, a_lead, b, b_lead)) is None:
            raise UnlikeError(a, b)
        return alike
    if isinstance(a, Optional) or isinstance(b, Optional) or (a is None) is not (b is None):
        a, b = _optional(a, a_lead, b, b_lead), _optional(b, b_lead, a, a_lead)
        value, other = unify(a.value, a_lead, b.value, b_lead)
        return Optional(value, a.present), Optional(other, b.present)
    (a_children, a_tree), (b_children, b_tree) = one_level(a), one_level(b)
    stored = isinstance(a, Stored) or isinstance(b, Stored)
    if a_tree is None and b_tree is None and not stored:
        return unify_leaves(a, a_lead, b, b_lead)
    if a_tree is None or b_tree is None or a_tree != b_tree or stored:
        raise UnlikeError(a, b)
    pairs = []
    for k, (x, y) in enumerate(zip(a_children, b_children, strict=True)):
        try:
            pairs.append(unify(x, a_lead, y, b_lead))
        except UnlikeError as unlike:
            raise unlike.inside(k, a, b) from None
    return jax.tree.unflatten(a_tree, [x for x, _ in pairs]), jax.tree.unflatten(b_tree, [y for _, y in pairs])


def or_else(present: Flag, value: Value, default: Value) -> Value:
    """Return a value where it is present, and a default elsewhere."""
    if default is None and not isinstance(value, Joinable | Optional):
        return Optional(one_of(keeping_order(jnp.asarray, value), [value]), present)
    objects = (value, default)
    value, other = unify(prepare(value), (), prepare(default), ())

    def choose(x: Value, y: Value) -> Value:
        return note(jnp.where(present, x, y), either(x, y))

    return one_of(plain(jax.tree.map(choose, value, other)), objects)


def _optional(value: Value, lead: Shape, other: Value, other_lead: Shape) -> Optional:
    """Return a value as one that may be None; `other` has its type."""
    if isinstance(value, Optional):
        return value
    if value is not None:
        return Optional(value, jnp.ones(lead, bool))
    other = other.value if isinstance(other, Optional) else other
    return Optional(blank(other, other_lead, lead), jnp.zeros(lead, bool))


def join_origins(
    a: Value, a_origins: tuple[Origin, ...], b: Value, b_origins: tuple[Origin, ...]
) -> tuple[Origin, ...]:
    """Return the origins, by leaf, of the type that covers two elements; they may be columns of elements."""
    if isinstance(a, Unset) or isinstance(b, Unset):
        return b_origins if isinstance(a, Unset) else a_origins
    if is_stored(a) is not is_stored(b):  # a known tuple and one of the lane
        return a_origins if is_stored(a) else b_origins
    # `unify` says if they are not alike.
    if type(a) is type(b) is tuple and len(a) != len(b):
        return (Origin.ARRAY,)
    (xs, tree), (ys, other) = ([], None) if is_part(a) else one_level(a), ([], None) if is_part(b) else one_level(b)
    if xs and ys and tree == other:  # parts are a known tuple here, of any number of leaves, and a row there
        groups = zip(xs, _by_child(xs, a_origins), ys, _by_child(ys, b_origins), strict=False)
        return tuple(origin for group in groups for origin in join_origins(*group))
    pairs = zip(parts(a), parts(b), a_origins, b_origins, strict=False)
    return tuple(_join_origin(x, y, one, other) for x, y, one, other in pairs)


def _by_child(children: list[Value], origins: tuple[Origin, ...]) -> list[tuple[Origin, ...]]:
    """The origins of each part of a tuple or an object."""
    rest = iter(origins)
    return [tuple(islice(rest, len(parts(child)))) for child in children]


def _join_origin(x: Value, y: Value, one: Origin, other: Origin) -> Origin:
    if x is None or y is None:
        return other if x is None else one
    if is_part(x) or is_part(y):
        return met(one, None, other, None)
    return met(one, kind_of(jnp.result_type(x)), other, kind_of(jnp.result_type(y)))


def origins_of(element: Value) -> tuple[Origin, ...]:
    """Return the origins of an element, by leaf; lists in it and arrays count as arrays."""
    return tuple(_origin(part) for part in parts(element))


def _origin(part: Value) -> Origin:
    if isinstance(part, Optional):
        return reduce(both, map(_origin, parts(part.value)))
    if is_part(part) or jnp.shape(part) != ():
        return Origin.ARRAY
    return source_of(part) or Origin.ARRAY


def blank(value: Value, lead: Shape, new: Shape) -> Value:
    """Return columns with the type of `value` and another lead; they hold anything, and lists in them are empty."""
    if isinstance(value, Unset):
        return Unset()

    def fill(leaf: Column) -> Value:
        if isinstance(leaf, Stored):
            return leaf.blanked(lead, new)
        leaf = jnp.asarray(leaf)
        shape = (*new, *leaf.shape[len(lead) :])
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jnp.broadcast_to(leaf[(0,) * len(lead)] if leaf.size else zero_of(leaf), shape)
        if leaf.weak_type:
            return jax.lax.full_like(leaf, 0, shape=shape)
        # A register of a lane alone keeps what it has held before (`runtime/scalar/visit_order.py`).
        empty: Value = jax.lax.empty
        return empty(shape, leaf.dtype)

    return jax.tree.map(fill, value, is_leaf=is_stored)


def as_tables(items: list[Value]) -> list[Value]:
    """Return dicts by name as dicts of the lane where some lack keys of others, or are such already; other elements as
    they are."""
    table = class_for(dict)
    named = [frozenset(item) if isinstance(item, dict) else None for item in items]
    if len(set(named)) < 2 or not all(isinstance(item, dict | table) for item in items):
        return items
    return [lane_value(dict(item)) if isinstance(item, dict) else item for item in items]


def stacked(items: list[Value]) -> tuple[Value, tuple[Origin, ...]]:
    """Return the columns of elements, which are prepared, and the origins of an element."""
    if not items:
        return Unset(), ()
    items = as_tables(items)
    origins = origins_of(items[0])
    items = [_counted(item) for item in items]
    if type(items[0]) in KINDS and all(type(item) is type(items[0]) for item in items):
        return numbers(items), origins
    whole = items[0]
    for item in items[1:]:
        origins = join_origins(whole, origins, item, origins_of(item))
        whole, _ = unify(whole, (), item, ())
    if len(items) == 1:
        return jax.tree.map(lambda leaf: as_array(leaf)[None], whole), origins
    alike = [unify(whole, (), item, ())[1] for item in items]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *alike), origins


def _counted(item: Value) -> Value:
    """Return an element in which known lengths of lists and texts have the dtype that lengths of a lane have."""

    def counted(part: Value) -> Value:
        if not isinstance(part, Stored):
            return part
        leaves, tree = jax.tree.flatten(part)
        return jax.tree.unflatten(tree, [np.int32(leaf) if type(leaf) is int else leaf for leaf in leaves])

    return jax.tree.map(counted, item, is_leaf=is_stored)


def side_by_side(columns: tuple[Value, ...], lead: Shape) -> Value:
    """Return the columns of several elements as those of rows, each of so many elements: their axis follows the lead.

    Raises:
        Refusal: if the elements are not alike.
    """
    whole = reduce(lambda a, b: unify(a, lead, b, lead)[0], columns)
    alike = [unify(whole, lead, each, lead)[1] for each in columns]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=len(lead)), *alike)


def kept(old: Value, new: Value, lead: Shape = ()) -> Value:
    """Return an element, or columns with a lead, in place of old ones, which stay where a lane has raised before."""
    if (here := going_on()) is True or isinstance(old, Unset):
        return new
    if lead:
        old, new = unify(padded(old, 0, lead[0]), lead, new, lead)
        return jax.tree.map(partial(jnp.where, here), new, old)
    old, new = unify(prepare(old), (), prepare(new), ())
    return plain(jax.tree.map(lambda x, y: note(jnp.where(here, y, x), either(x, y)), old, new))
