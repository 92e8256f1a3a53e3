"""The scalars of a lane in two arrays, of 32 and of 64 bits.

    {"pc": int32[], "r:x": float32[], "r:xs": float32[32]}   ->   {"words": int32[2], "r:xs": float32[32]}

In a native function a loop keeps a table of the addresses of all that it carries, and writes it before the loop and in
each round. There is a loop around each block, so that with an address for each scalar a lane spends more time on these
tables than on its work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.scalar.native import own_call
from pcbatch.runtime.vm.block_body import Values

NUMBER = "number of this lane"  # int32[], in the state of a lane that works in arrays of all lanes
ARRAYS: dict[str, Any] = {"words": np.dtype(np.int32), "long words": np.dtype(np.int64)}
"""State keys of the arrays, and what a scalar is in them."""


@dataclass(frozen=True, slots=True)
class Words:
    """The places of the scalars of a lane.

    Attributes:
        places: For the state key of a scalar the key of its array, its index there, and its dtype.
        in_place: The state keys of arrays [lanes, ...] in which the lane has a row.
        constant: Those of them that no block writes.
    """

    places: Mapping[str, tuple[str, int, Any]]
    in_place: frozenset[str] = frozenset()
    constant: frozenset[str] = frozenset()

    @classmethod
    def of(cls, lane: Values, in_place: frozenset[str] = frozenset(), constant: frozenset[str] = frozenset()) -> Words:
        """Return places for all scalars of a lane that have a form in these arrays."""
        places: dict[str, tuple[str, int, Any]] = {}
        sizes = dict.fromkeys(ARRAYS, 0)
        for key, value in lane.items():
            array = None if value.shape or key in in_place else array_for(value.dtype)
            if array is not None:
                places[key] = array, sizes[array], value.dtype
                sizes[array] += 1
        return cls(places, in_place, constant)

    def packed(self, lane: Values) -> Values:
        """Return the state of a lane with its scalars in the arrays."""
        words: dict[str, list[jax.Array]] = {}
        for key, (array, _, _) in self.places.items():
            words.setdefault(array, []).append(to_word(lane[key], ARRAYS[array]))
        rest = {key: value for key, value in lane.items() if key not in self.places}
        return rest | {array: jnp.stack(values) for array, values in words.items()}

    def unpacked(self, lane: Values) -> Values:
        """Return the state of a lane with its scalars by themselves: the inverse of `packed`."""
        rest = {key: value for key, value in lane.items() if key not in ARRAYS}
        return rest | {key: self.scalar(lane, key) for key in self.places}

    def scalar(self, lane: Values, key: str) -> jax.Array:
        """Return one scalar of a lane whose scalars are packed."""
        array, k, dtype = self.places[key]
        value: jax.Array = from_word(jax.lax.index_in_dim(lane[array], k, keepdims=False), dtype)
        return value

    def read(self, lane: Values, keys: Collection[str]) -> tuple[Values, Values]:
        """Return the state of a lane, packed, and the values of some of its keys.

        The arrays in the first are those after they are read: a store into one of them needs no copy.
        """
        scalars, rows = ([key for key in keys if key in some] for some in (self.places, self.in_place))
        beside = {key: lane[key] for key in keys if key not in self.places and key not in self.in_place and key in lane}
        arrays = sorted({*rows, *(self.places[key][0] for key in scalars)})
        if not arrays:
            return lane, beside

        def load(packed: Values) -> tuple[Values, Values]:
            values = {key: self.scalar(packed, key) for key in scalars}
            values |= {key: row_of(packed[key], values[NUMBER]) for key in rows}
            return {key: array for key, array in packed.items() if key not in self.constant}, values

        packed, values = own_call(load, {key: lane[key] for key in arrays})
        return lane | packed, values | beside

    def stored(self, lane: Values, old: Values, new: Values) -> Values:
        """Return the state of a lane, packed, with new values for some of its keys; `old` are those that were read.

        Arrays that were read are part of it, so that a loop carries them: XLA computes what depends on others alone in
        front of the loop, even if no lane goes round.
        """
        out = lane | {key: value for key, value in old.items() if key in lane and key not in self.in_place}
        for key, value in new.items():
            if key in self.in_place:
                out[key] = with_row(out[key], value, old[NUMBER])
            elif key in self.places:
                array, k, _ = self.places[key]
                word = to_word(value, ARRAYS[array])
                out[array] = jax.lax.dynamic_update_index_in_dim(out[array], word, k, 0, allow_negative_indices=False)
            else:
                out[key] = value
        return out


def row_of(array: jax.Array, number: Any) -> jax.Array:
    """Return the row of a lane in an array [lanes, ...]."""
    row: jax.Array = jax.lax.dynamic_index_in_dim(array, number, 0, False, allow_negative_indices=False)
    return row


def with_row(array: jax.Array, row: jax.Array, number: Any) -> jax.Array:
    """Return an array [lanes, ...] with another row for a lane."""
    new: jax.Array = jax.lax.dynamic_update_index_in_dim(array, row, number, 0, allow_negative_indices=False)
    return new


def array_for(dtype: Any) -> str | None:
    """Return the array for scalars of a dtype; None if there is none, as for complex numbers and halves of a word."""
    if dtype == np.bool_ or dtype in (np.int8, np.uint8, np.int32, np.uint32, np.float32):
        return "words"
    return "long words" if dtype in (np.int64, np.uint64, np.float64) else None


def to_word(value: jax.Array, word: Any) -> jax.Array:
    """Return scalars as elements of an array of this dtype."""
    value = jnp.asarray(value)
    return value.astype(word) if value.dtype.itemsize == 1 else jax.lax.bitcast_convert_type(value, word)


def from_word(word: Any, dtype: Any) -> Any:
    """Return elements of the arrays as the scalars of a dtype that they were; the inverse of `to_word`."""
    if dtype.itemsize == 1:
        return word.astype(dtype)
    return word.view(dtype) if isinstance(word, np.ndarray) else jax.lax.bitcast_convert_type(word, dtype)
