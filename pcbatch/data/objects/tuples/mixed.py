"""Values in which texts and numbers become records, as tuples of displays stand in the same places.

ATOM                     the value itself
(None, ATOM)             the second part of a tuple
Elements((None, ATOM))   that of each element of a list
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import jax
import jax.numpy as jnp

from pcbatch.data.objects.made import WantsRecords, heap_lists, is_recording, made_schema, recorded
from pcbatch.data.objects.made_classes import class_of
from pcbatch.data.objects.ref_type import MADE_TABLE, RefType
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.schema import NONE
from pcbatch.data.objects.tuples.atoms import atom_kind, atom_of, element_kind, use_maker
from pcbatch.data.objects.tuples.classes import atom_class
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import parts
from pcbatch.data.values import Value

ATOM: Final = "atom"


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a list."""

    of: Any


Pattern = Any  # None, ATOM, a tuple of patterns, or `Elements`


def of_atom(value: Value) -> Value:
    """Return a text or a number that stands where tuples do as a record of the lane; other values as they are."""
    if isinstance(value, Optional):
        inner = of_atom(value.value)
        if not isinstance(inner, Ref):
            return value
        return Ref(jnp.where(value.present, inner.pcbatch_id, NONE), replace(inner.pcbatch_type, optional=True))
    kind = atom_kind(value)
    if kind is None or not is_recording():
        return value
    made = atom_of(atom_class(kind), value)
    if made_schema().number_of(type(made)) is None:
        raise WantsRecords(frozenset({class_of(made)}))
    return recorded(made)


use_maker(of_atom)


def as_mixed(value: Value, pattern: Pattern) -> Value:
    """Return a value with records in the places of a pattern."""
    if pattern is None or value is None:
        return value
    if pattern == ATOM:
        return of_atom(value)
    if isinstance(value, Optional):
        return Optional(as_mixed(value.value, pattern), value.present)
    if isinstance(pattern, tuple) and type(value) is tuple and len(value) == len(pattern):
        return tuple(map(as_mixed, value, pattern))
    if isinstance(pattern, Elements) and type(value) is list:
        return [as_mixed(part, pattern.of) for part in value]
    if isinstance(pattern, Elements) and type(value) is LaneList:
        columns, origins = _columns(value.columns, value.origins, value, pattern.of)
        made: Value = LaneList.tree_unflatten(origins, (columns, value.length))
        return made
    return value


def _columns(
    columns: Value, origins: tuple[Origin, ...], values: LaneList, pattern: Pattern
) -> tuple[Value, tuple[Origin, ...]]:
    """Return the columns of a list, or of a part of its elements, with records in the places of a pattern."""
    if isinstance(pattern, tuple) and type(columns) is tuple and len(columns) == len(pattern):
        made, first = [], 0
        for part, inner in zip(columns, pattern, strict=True):
            end = first + len(parts(part))
            made.append(_columns(part, origins[first:end], values, inner))
            first = end
        return tuple(part for part, _ in made), tuple(one for _, each in made for one in each)
    kind = element_kind(columns, origins) if pattern == ATOM else None
    if kind is None:
        return columns, origins
    schema, cls = made_schema(), atom_class(kind)
    number = schema.number_of(cls)
    if number is None:
        of_atom(kind())  # which asks for the class
        return columns, origins
    rows = heap_lists()[number]
    first = rows.length
    rows.extend(LaneList.tree_unflatten(origins, ((columns,), values.length)))
    places = first + jnp.arange(jax.tree.leaves(columns)[0].shape[0], dtype=jnp.int32)
    ids = places * len(schema.classes) + number
    return Ref(ids, RefType(MADE_TABLE, schema, (number,), False)), (Origin.ARRAY,)
