"""Which lanes a visit of a block computes: all of them under a mask, or a few that were looked up.

A block that few lanes wait for is computed for the first K of them: their registers are gathered, the block runs at
width K, and what it writes is scattered back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True, slots=True)
class Window:
    """`width` places for lanes. `here` bool[width]: which places stand for a lane that waits; `source` int32[width]:
    the lane whose values each place computes on; `index` int32[width]: the lane it stands for, or one out of range."""

    lanes: int
    here: jax.Array
    source: jax.Array
    index: jax.Array
    dense: bool  # place k stands for lane k
    borrowed: bool  # places of lanes that are elsewhere compute on another lane's values

    @property
    def width(self) -> int:
        """The number of places."""
        return self.here.shape[0]

    def read(self, array: Any, turned: bool = False) -> Any:
        """[width, ...] of a per-lane array; `turned`: the lanes are its last axis."""
        if not self.dense or self.borrowed:
            index = (..., self.source) if turned else self.source
            array = array.at[index].get(mode="clip")
        return lanes_first(array) if turned else array

    def name(self, names: jax.Array) -> jax.Array:
        """int32[width]: what the lanes are called that the places stand for."""
        return names if self.dense else names.at[self.index].get(mode="clip")

    def write(self, array: Any, new: Any, mask: jax.Array, turned: bool = False) -> jax.Array:
        """The array with the values of the places in `mask` (a part of `here`) replaced by those of `new`
        [width, ...]; `turned`: the lanes are its last axis."""
        new = lanes_last(new) if turned else new
        if self.dense:
            return jnp.where(mask[(None,) * (new.ndim - 1)] if turned else lane_mask(mask, new), new, array)
        index = (..., self.targets(mask)) if turned else self.targets(mask)
        written: jax.Array = array.at[index].set(new, mode="drop", unique_indices=True)
        return written

    def targets(self, mask: jax.Array) -> jax.Array:
        """int32[width]: the lanes that the places in `mask` stand for; the others get numbers beyond all lanes."""
        return jnp.where(mask, self.index, self.lanes + jnp.arange(self.width, dtype=jnp.int32))


def lanes_first(array: Any) -> Any:
    """[lanes, ...] of an array whose last axis are the lanes."""
    return jnp.moveaxis(array, -1, 0)


def lanes_last(array: Any) -> Any:
    """The inverse of `lanes_first`."""
    return jnp.moveaxis(array, 0, -1)


def lane_mask(mask: jax.Array, value: Any) -> jax.Array:
    """The mask with trailing axes, to select whole lanes of `value`."""
    return mask.reshape(mask.shape + (1,) * (value.ndim - 1))


def everyone(here: jax.Array, careful: bool = False) -> Window:
    """All lanes. When `careful`, places of lanes that are elsewhere read one that is here (there must be one)."""
    lanes = here.shape[0]
    place = jnp.arange(lanes, dtype=jnp.int32)
    source = jnp.where(here, place, jnp.argmax(here).astype(jnp.int32)) if careful else place
    return Window(lanes, here, source, place, dense=True, borrowed=careful)


def first(mask: jax.Array, width: int) -> Window:
    """The first `width` lanes of a mask (there must be one); places left over compute on the first once more."""
    lanes = mask.shape[0]
    index = first_lanes(mask, width)
    here = index < lanes
    lender = jnp.minimum(index[0], lanes - 1)
    return Window(lanes, here, jnp.where(here, index, lender), index, dense=False, borrowed=True)


def first_lanes(mask: jax.Array, width: int) -> jax.Array:
    """int32[width]: numbers of the first lanes in the mask, filled up with len(mask).

    A sequential loop, which XLA compiles for a CPU into a few instructions per lane and which stops when it has found
    enough; elsewhere a prefix sum.
    """
    lanes = mask.shape[0]
    if jax.default_backend() != "cpu":
        return jnp.nonzero(mask, size=width, fill_value=lanes)[0].astype(jnp.int32)

    def step(c: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        lane, found, out = c
        number = jnp.where(mask[lane], lane, lanes)
        return lane + 1, found + mask[lane].astype(jnp.int32), out.at[found].set(number, mode="promise_in_bounds")

    start = (jnp.int32(0), jnp.int32(0), jnp.full(width + 1, lanes, jnp.int32))
    found: jax.Array = jax.lax.while_loop(lambda c: (c[0] < lanes) & (c[1] < width), step, start)[2]
    return found[:width]
