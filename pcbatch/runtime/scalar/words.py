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

from pcbatch.runtime.scalar.native import apart
from pcbatch.runtime.vm.block_body import Values

ARRAYS: dict[str, Any] = {"words": np.dtype(np.int32), "long words": np.dtype(np.int64)}
"""State keys of the arrays, and what a scalar is in them."""


@dataclass(frozen=True, slots=True)
class Words:
    """The places of the scalars of a lane.

    Attributes:
        places: For the state key of a scalar the key of its array, its index there, and its dtype.
    """

    places: Mapping[str, tuple[str, int, Any]]

    @classmethod
    def of(cls, lane: Values) -> Words:
        """Return places for all scalars of a lane that have a form in these arrays."""
        places: dict[str, tuple[str, int, Any]] = {}
        sizes = dict.fromkeys(ARRAYS, 0)
        for key, value in lane.items():
            array = None if value.shape else array_for(value.dtype)
            if array is not None:
                places[key] = array, sizes[array], value.dtype
                sizes[array] += 1
        return cls(places)

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

    def read(self, lane: Values, keys: Collection[str]) -> Values:
        """Return the state of a lane, packed, with the scalars of these keys beside the arrays.

        The arrays in it are those after the scalars are read: a store into one of them needs no copy.
        """
        wanted = [key for key in keys if key in self.places]
        arrays = {self.places[key][0] for key in wanted}
        if not arrays:
            return lane

        def load(packed: Values) -> Values:
            return packed | {key: self.scalar(packed, key) for key in wanted}

        loaded: Values = apart(load, {array: lane[array] for array in sorted(arrays)})
        return lane | loaded

    def stored(self, lane: Values, new: Values) -> Values:
        """Return the state of a lane, packed, with new values for some of its keys."""
        out = {key: value for key, value in lane.items() if key not in self.places}
        for key, value in new.items():
            if key in self.places:
                array, k, _ = self.places[key]
                word = to_word(value, ARRAYS[array])
                out[array] = jax.lax.dynamic_update_index_in_dim(out[array], word, k, 0, allow_negative_indices=False)
            else:
                out[key] = value
        return out


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
