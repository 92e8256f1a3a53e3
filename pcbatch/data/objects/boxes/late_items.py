"""Values of keys that a dict by name may lack: None stands for what is not there, in a field of the box."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from pcbatch.data.checks import limit, require
from pcbatch.data.objects.ref_type import require_present
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional
from pcbatch.data.values import Value
from pcbatch.errors import Refusal


def item_there(value: Value, key: str) -> Value:
    """Return the value of a key, of a field of a box; the lane raises a KeyError where the dict lacks it."""
    if value is None:
        raise KeyError(key)
    if isinstance(value, Optional):
        require(value.present, "KeyError", repr(key), argument=lambda: key)
        return value.value
    if isinstance(value, Ref) and value.pcbatch_type.optional:
        require_present(value, "KeyError", repr(key))
        return value.present()
    return value


def item_to_store(value: Value) -> Value:
    """Return a value that a field of a box gets, where None says that the dict lacks the key."""
    if value is None or isinstance(value, Optional) or (isinstance(value, Ref) and value.pcbatch_type.optional):
        title = "None becomes the value of a key that a dict by name gets later"
        raise Refusal("PCB304", title, helps=("put the key into the display, with None as its first value",))
    return value


def require_items(column: Value, count: Value, key: str, place: str) -> Value:
    """Return the column of the values of a key without None; a lane stops in which one of `count` dicts lacks it."""
    if isinstance(column, Optional):
        there, column = column.present, column.value
    elif isinstance(column, Ref) and column.pcbatch_type.optional:
        there, column = column.pcbatch_id >= 0, column.typed(replace(column.pcbatch_type, optional=False))
    else:
        return column
    made = jnp.arange(there.shape[0], dtype=jnp.int32) < count
    limit(jnp.all(there | ~made), f"a dict of those made at {place} is returned without the key {key!r}")
    return column
