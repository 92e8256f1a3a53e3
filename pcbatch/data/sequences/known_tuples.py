"""Tuples that are known while compiling, where they meet tuples of the lane."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from pcbatch.data.columns import Shape, Unset
from pcbatch.data.origins import Origin


def tuple_beside(value: Any, lead: Shape, other: Any) -> Any:
    """Return a known tuple, or the columns of such, as one of the lane if that is what it meets; others as they are.

    Args:
        value: an element, prepared, or columns of elements.
        lead: the shape of the axes in front of all its leaves.
        other: what it meets.
    """
    from pcbatch.data.elements import text_of
    from pcbatch.data.sequences.lane_tuple import LaneTuple

    if type(value) is bytes and isinstance(other, LaneTuple):
        return text_of(value)
    if type(value) is not tuple or type(other) is not LaneTuple:
        return value
    if not lead:
        return LaneTuple.from_list(list(value))
    if not value:
        return LaneTuple.tree_unflatten((), (Unset(), jnp.zeros(lead, np.int32)))
    if any(not hasattr(part, "dtype") or part.shape != lead for part in value):
        return value
    columns = jnp.stack(value, axis=len(lead))
    return LaneTuple.tree_unflatten((Origin.UNKNOWN,), (columns, jnp.full(lead, len(value), np.int32)))
