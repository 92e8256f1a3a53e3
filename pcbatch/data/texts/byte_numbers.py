"""Bytes of the lane as numbers, and numbers as bytes: `int.from_bytes(data)`, `n.to_bytes(4)`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, require
from pcbatch.data.columns import taken
from pcbatch.data.origins import number
from pcbatch.data.sequences.indices import integer, narrowed
from pcbatch.data.sequences.lane_list import LaneList, as_list
from pcbatch.data.texts.lane_bytes import LaneBytes, bytes_of
from pcbatch.data.values import Index, Num, Value
from pcbatch.errors import Refusal

KNOWN_HELP = "write `'big'` or `'little'`, and `signed=True` or leave it out"


def _is_big(byteorder: Value, signed: Value) -> bool:
    """Whether the first byte is the one that counts most."""
    if not isinstance(byteorder, str) or isinstance(signed, jax.Array):
        raise Refusal("PCB306", "the order of bytes, and whether they have a sign, must be known", helps=(KNOWN_HELP,))
    if byteorder not in ("big", "little"):
        raise ValueError("byteorder must be either 'little' or 'big'")
    return byteorder == "big"


def from_bytes(data: Value, byteorder: Value = "big", *, signed: Value = False) -> Value:
    """Return the number that bytes stand for, as `int.from_bytes`; a lane with one of too many bits stops."""
    if not isinstance(data, LaneList) and not (isinstance(data, list | tuple) and _any_of_lane(data)):
        return int.from_bytes(data, byteorder, signed=signed)
    found = bytes_of(data)
    values = LaneBytes.checked(as_list(data)) if found is None else found
    is_big, n = _is_big(byteorder, signed), values.length
    dtype = np.dtype(jnp.result_type(int))
    word: Any = np.dtype(f"u{dtype.name}")
    places = jnp.arange(values.columns.shape[0], dtype=np.int32)
    significance = n - 1 - places if is_big else places
    first = taken(values.columns, jnp.asarray(0 if is_big else n - 1, np.int32).reshape(1))[0]
    negative = jnp.logical_and(n > 0, first >= 128) if signed else jnp.asarray(False)
    fill = jnp.where(negative, 255, 0)
    low = jnp.arange(word.itemsize, dtype=np.int32)
    parts = jnp.where(low < n, taken(values.columns, n - 1 - low if is_big else low), fill).astype(word)
    value = jnp.sum(parts << (8 * low).astype(word), dtype=word).astype(dtype)
    beyond = (places < n) & (significance >= word.itemsize) & (values.columns != fill)
    limit(~jnp.any(beyond) & ((value < 0) == negative), f"the number of these bytes does not fit {dtype.name}")
    return number(value)


def _any_of_lane(values: Value) -> bool:
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(list(values)))


def to_bytes(n: Num, length: Index = 1, byteorder: Value = "big", *, signed: Value = False) -> Value:
    """Return the bytes of an integer of the lane, as its method `to_bytes`."""
    is_big, length = _is_big(byteorder, signed), narrowed(integer(length, "'length' must be an integer"))
    n = n.astype(np.int32) if n.dtype == np.bool_ or n.dtype.itemsize < 4 else n
    bits = n.dtype.itemsize * 8
    require(length >= 0, "ValueError", "length argument must be non-negative")
    count = max(length, 0) if isinstance(length, int) else jnp.maximum(length, 0)
    if not signed:
        require(n >= 0, "OverflowError", "can't convert negative int to unsigned")
    # All bits from here on are equal to the sign; of no bytes -1 is one that fits, as Python has it.
    top = jnp.clip(8 * jnp.asarray(count, np.int32) - (1 if signed else 0), 0, bits)
    rest = _shifted(n, top)
    require((rest == 0) | ((rest == -1) if signed else False), "OverflowError", "int too big to convert")
    rows = LaneList.filled(0, count)
    places = jnp.arange(rows.columns.shape[0], dtype=np.int32)
    significance = jnp.maximum(count - 1 - places if is_big else places, 0)
    codes = _shifted(n, jnp.minimum(8 * significance, bits)) & n.dtype.type(255)
    return LaneBytes.made(codes.astype(np.int32), rows.length)


def _shifted(n: Num, places: Value) -> Value:
    """An integer without its low bits, of which there may be as many as it has."""
    bits = n.dtype.itemsize * 8
    below = n >> jnp.minimum(places, bits - 1).astype(n.dtype)
    return jnp.where((places >= bits) & (n >= 0), 0, below)
