"""Texts and numbers that stand where tuples do, in the leaves of a tree: which values are such."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from pcbatch.data.columns import Unset
from pcbatch.data.joinable import Joinable
from pcbatch.data.objects.tuples.classes import AtomValue, TupleValue
from pcbatch.data.optional import Optional
from pcbatch.data.origins import KINDS, Origin, kind_of, origin_of
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Value

NUMBERS = KINDS[:3]


def atom_kind(value: Value) -> type | None:
    """Return the class of Python of a text or a number; None for anything else."""
    if isinstance(value, str | LaneText):
        return str
    if type(value) in NUMBERS:
        return type(value)
    if isinstance(value, jax.Array) and jnp.shape(value) == () and origin_of(value) is Origin.NUMBER:
        kind = kind_of(value.dtype)
        return kind if kind in NUMBERS else None
    return None


def atom_of(cls: type[AtomValue], value: Value) -> AtomValue:
    """Return a text or a number as an object of its class."""
    made = object.__new__(cls)
    object.__setattr__(made, "value", value)
    return made


def leads_to_tuples(ref: Value) -> bool:
    """Return whether a reference may lead to a tuple of a display, or to what stands where such do."""
    return any(issubclass(cls, TupleValue | AtomValue) for cls in ref.pcbatch_type.types)


_makers: list[Callable[[Value], Value]] = []


def use_maker(maker: Callable[[Value], Value]) -> None:
    """Have texts and numbers made records by this function."""
    _makers.append(maker)


def as_record(value: Value) -> Value:
    """Return a text or a number as a record of the lane; other values as they are."""
    return _makers[0](value)


def kind_of_part(part: Value) -> str | None:
    """Return whether columns, or an element, are of texts, of numbers or of tuples; None for others."""
    part = part.value if isinstance(part, Optional) else part
    if isinstance(part, str | LaneText):
        return "text"
    if isinstance(part, Joinable):
        return "tuple" if leads_to_tuples(part) else None
    return "number" if part is not None and jax.tree_util.all_leaves([part]) else None


def mixed_fields(names: Sequence[str], columns: Value, fields: Value) -> frozenset[str]:
    """Return the fields of a class, of these names, where a text or a number meets what is none of its kind: one of
    `fields` meets the column of those that are there."""
    if isinstance(columns, Unset) or isinstance(fields, Unset):
        return frozenset()
    return frozenset(name for name, a, b in zip(names, columns, fields, strict=False) if may_mix(a, b))


def may_mix(a: Value, b: Value) -> bool:
    """Return whether two values have no common type but that of records: a text, a number, a tuple."""
    kinds = [kind_of_part(part) for part in (a, b)]
    return None not in kinds and kinds[0] != kinds[1]


def element_kind(columns: Value, origins: tuple[Origin, ...]) -> type | None:
    """Return the class of Python of the texts or numbers of a column; None for anything else."""
    if isinstance(columns, LaneText):
        return str
    if isinstance(columns, jax.Array) and columns.ndim == 1 and origins == (Origin.NUMBER,):
        kind = kind_of(columns.dtype)
        return kind if kind in NUMBERS else None
    return None
