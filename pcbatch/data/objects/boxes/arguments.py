"""Arguments of a program in which objects are boxed: their elements become boxes, all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.columns import Shape, Unset
from pcbatch.data.mappings.stored_table import StoredTable
from pcbatch.data.objects.boxes.classes import BoxValue
from pcbatch.data.objects.boxes.values import boxed, has_identity
from pcbatch.data.objects.made import heap_lists, made_schema
from pcbatch.data.objects.ref_type import MADE_TABLE, RefType
from pcbatch.data.objects.reference import Ref
from pcbatch.data.origins import Origin
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import parts
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

Pattern = tuple[type[BoxValue] | None, Any]  # the class of the box of a value, and the pattern of its elements

NO_CONTAINER = "an argument has no elements that could have an identity"


def with_boxes(value: Value, pattern: Pattern) -> Value:
    """Return an argument with boxes in the places of what a pattern says."""
    cls, inner = pattern
    if value is None:
        return None
    if inner is not None:
        value = _elements(value, inner)
    return value if cls is None else boxed(cls, value)


def _elements(value: Value, pattern: Pattern) -> Value:
    """Return a container with boxes in its elements, or in place of these."""
    if isinstance(value, Rows | StoredTable):
        return _inside(value, (), pattern)
    if type(value) in (list, tuple):
        return type(value)(with_boxes(part, pattern) for part in value)
    if type(value) is dict:
        return {key: with_boxes(part, pattern) for key, part in value.items()}
    raise Refusal("PCB304", NO_CONTAINER)


def _inside(value: Value, lead: Shape, pattern: Pattern) -> Value:
    """Return a container whose leaves have so many axes in front, with boxes in place of its elements."""
    if isinstance(value, Rows):
        if isinstance(value.columns, Unset):
            return value
        shape = jax.tree.leaves(value.columns)[0].shape[: len(lead) + 1]
        columns, origins = _column(value.columns, value.origins, shape, pattern)
        return value.with_data(columns, value.state, origins)
    table = value.table if isinstance(value, StoredTable) else None
    if table is None or table.values is None:
        raise Refusal("PCB304", NO_CONTAINER)
    values, origins = _column(table.values, value.value_origins, table.stamps.shape, pattern)
    new = value.with_table(replace(table, values=values))
    new.value_origins = origins
    return new


def _column(
    columns: Value, origins: Sequence[Origin], lead: Shape, pattern: Pattern
) -> tuple[Value, tuple[Origin, ...]]:
    """Return columns of elements with boxes in the places of a pattern, also where there is no element."""
    cls, inner = pattern
    if inner is not None:
        if len(parts(columns)) != 1 or not isinstance(columns, Rows | StoredTable):
            raise Refusal("PCB304", NO_CONTAINER)
        columns = _inside(columns, lead, inner)
    if cls is None:
        return columns, tuple(origins)
    if len(parts(columns)) != 1 or not has_identity(columns):
        raise Refusal("PCB304", NO_CONTAINER)
    schema, count = made_schema(), math.prod(lead)
    number = schema.number_of(cls)
    assert number is not None
    rows = heap_lists()[number]
    first = rows.length
    flat = jax.tree.map(lambda leaf: jnp.reshape(leaf, (count, *leaf.shape[len(lead) :])), columns)
    rows.extend(LaneList.tree_unflatten(tuple(origins), ((flat,), count)))
    ids = (first + jnp.arange(count, dtype=np.int32)) * len(schema.classes) + number
    return Ref(ids.reshape(lead), RefType(MADE_TABLE, schema, (number,), False)), (Origin.ARRAY,)
