"""The functions of the module `copy`, for values of a lane: of a record they make a new one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jax

from pcbatch.data.container import Container
from pcbatch.data.objects.made import recorded
from pcbatch.data.objects.ref_type import MADE_TABLE
from pcbatch.data.objects.reference import Ref
from pcbatch.data.stored import lists_in
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

COPYING = ("__copy__", "__deepcopy__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
"""Methods of a class by which Python makes copies, of which lanes know none."""


def copied(value: Value) -> Value:
    """Return `copy.copy` of a value: of a record a new one with its fields, none of which both may change."""
    return _new_record(value, _shared) if isinstance(value, Ref) else copy.copy(value)


def deeply_copied(value: Value, memo: Any = None) -> Value:
    """Return `copy.deepcopy` of a value: of a record a new one, whose fields lead to no other."""
    if isinstance(value, Ref):
        return _new_record(value, _own)
    return copy.deepcopy(_without_records(value), memo)


def _shared(value: Value) -> Value:
    if lists_in(value):
        raise _no_copy("an object with a list, dict or set that the copy would have, too")
    return value


def _own(value: Value) -> Value:
    """A field of a deep copy."""
    value = _without_records(value)
    if isinstance(value, Container):
        raise _no_copy("an object with a list, dict or set")
    return copy.deepcopy(value)


def _without_records(value: Value) -> Value:
    if any(isinstance(part, Ref) for part in jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, Ref))):
        raise _no_copy("what leads to records of the lane")
    return value


def _new_record(record: Ref, of_field: Callable[[Value], Value]) -> Value:
    type_ = record.pcbatch_type
    cls: Any = type_.types[0] if len(type_.types) == 1 else None
    if cls is None or type_.table != MADE_TABLE or type_.optional or any(hasattr(cls, name) for name in COPYING):
        raise _no_copy(" or ".join(one.__name__ for one in type_.types))
    made: Value = object.__new__(cls)
    for name in type_.schema.classes[type_.classes[0]].fields:
        object.__setattr__(made, name, of_field(getattr(record, name)))
    return recorded(made)


def _no_copy(what: str) -> Refusal:
    title = f"a lane cannot copy {what}"
    return Refusal("PCB320", title, helps=("write a method that makes the copy, `Node(self.v, self.next)`",))
