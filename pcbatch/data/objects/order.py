"""The order and the equality of records whose class has those of `dataclass`: their fields are compared as tuples."""

from __future__ import annotations

import operator
from typing import Any

import jax.numpy as jnp

from pcbatch.data.objects.reference import REFUSED, Ref, as_class, refused, require_present, same
from pcbatch.data.origins import number
from pcbatch.data.own_order import comparing, fields_of
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.list_order import ask_identity


def _compared(a: Ref, b: object, name: str) -> tuple[Any, Any] | None:
    """The fields of two records that `dataclass` compares by them, where they are not None; None if it does not."""
    cls, other = a.only_class(), b.only_class() if isinstance(b, Ref) else None
    if cls is None or cls is not other:
        return None
    fields = [fields_of(as_class(x, cls), cls, name) for x in (a, b) if isinstance(x, Ref)]
    return None if fields[0] is None else (fields[0], fields[1])


def equal_by_fields(a: Ref, b: object) -> Any:
    """Return whether two records are equal; None if `dataclass` has not made their equality."""
    if not isinstance(b, Ref) or (pair := _compared(a, b, "eq")) is None:
        return None
    one, present = same(a, b), (a.pcbatch_id >= 0) & (b.pcbatch_id >= 0)
    ask_identity(*pair, present & jnp.logical_not(one))
    with comparing(a.pcbatch_type.types[0]):
        return number(jnp.logical_or(one, present & list_order.equal(*pair)))


def by_fields(name: str, a: Ref, b: Any) -> Any:
    """Return the order of two records; refuses one that `dataclass` has not made."""
    if (pair := _compared(a, b, name)) is None:
        raise refused(f"{REFUSED} cannot be ordered in a lane", "compare fields: `a.key < b.key`")
    for one in (a, b):
        require_present(one, "TypeError", "an order asks for None, which has none")
    ask_identity(*pair, True)
    with comparing(a.pcbatch_type.types[0]):
        return number(list_order.compare(getattr(operator, name), *pair))
