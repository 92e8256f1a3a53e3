"""Windows: the lanes that one visit of a block computes on, all of them under a mask, or a few that were looked up.

A block that few lanes wait for is computed for the first K of them: their registers are gathered, the block runs at
width K, and its results are scattered back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.lowering_platform import lowering_platform


@dataclass(frozen=True, slots=True)
class Window:
    """The places of one visit, each of which computes for one lane or for none."""

    lanes: int  # of the machine
    here: jax.Array  # bool[width]: the place stands for an active lane
    source: jax.Array  # int32[width]: the lane whose values the place computes on
    index: jax.Array  # int32[width]: the lane that it stands for, or a number out of range
    dense: bool  # place k stands for lane k
    borrowed: bool  # places of inactive lanes compute on the values of an active lane

    @property
    def width(self) -> int:
        """The number of places of the window."""
        return self.here.shape[0]

    def read(self, array: Any, lanes_are_last: bool = False) -> Any:
        """Return the values that the places compute on, [width, ...].

        `array` has one value per lane: [lanes, ...], or [..., lanes] if `lanes_are_last`.
        """
        if not self.dense or self.borrowed:
            index = (..., self.source) if lanes_are_last else self.source
            array = array.at[index].get(mode="clip")
        return lanes_first(array) if lanes_are_last else array

    def name(self, names: jax.Array) -> jax.Array:
        """Return the names of the places' lanes, int32[width], from those of all lanes, int32[lanes]."""
        return names if self.dense else names.at[self.index].get(mode="clip")

    def write(self, array: Any, new: Any, mask: jax.Array, lanes_are_last: bool = False) -> jax.Array:
        """Return an array with the values of some places' lanes replaced.

        Args:
            array: One value per lane: [lanes, ...], or [..., lanes] if `lanes_are_last`.
            new: The values of the places, [width, ...].
            mask: bool[width]: the places that write; a part of `here`.
            lanes_are_last: Whether the lanes are the last axis of `array`.
        """
        new = lanes_last(new) if lanes_are_last else new
        if self.dense:
            return jnp.where(mask[(None,) * (new.ndim - 1)] if lanes_are_last else lane_mask(mask, new), new, array)
        index = (..., self.targets(mask)) if lanes_are_last else self.targets(mask)
        written: jax.Array = array.at[index].set(new, mode="drop", unique_indices=True)
        return written

    def targets(self, mask: jax.Array) -> jax.Array:
        """Return the lanes that the places in `mask` stand for, int32[width]; other places get numbers out of range."""
        # All different, so that scatters may rely on unique indices.
        return jnp.where(mask, self.index, self.lanes + jnp.arange(self.width, dtype=jnp.int32))


def lanes_first(array: Any) -> Any:
    """Return an array [..., lanes] as [lanes, ...]."""
    return jnp.moveaxis(array, -1, 0)


def lanes_last(array: Any) -> Any:
    """Return an array [lanes, ...] as [..., lanes]."""
    return jnp.moveaxis(array, 0, -1)


def lane_mask(mask: jax.Array, value: Any) -> jax.Array:
    """Return a mask bool[lanes] with trailing axes of size 1, to select whole lanes of `value` [lanes, ...]."""
    return mask.reshape(mask.shape + (1,) * (value.ndim - 1))


def everyone(here: jax.Array, careful: bool = False) -> Window:
    """Return the window of all lanes.

    Args:
        here: bool[lanes]: the active lanes.
        careful: Whether inactive lanes compute on the values of an active lane (there must be one).
    """
    lanes = here.shape[0]
    place = jnp.arange(lanes, dtype=jnp.int32)
    source = jnp.where(here, place, jnp.argmax(here).astype(jnp.int32)) if careful else place
    return Window(lanes, here, source, place, dense=True, borrowed=careful)


def agreeing(keys: Mapping[str, jax.Array], mask: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Return the places of a mask, bool[width], whose keys, [width], are those of its first place, and these keys."""
    if mask.shape[0] == 1:
        return mask, {v: x[0] for v, x in keys.items()}
    agreed = {v: x[jnp.argmax(mask)] for v, x in keys.items()}
    for v, x in keys.items():
        mask = mask & (x == agreed[v])
    return mask, agreed


def first(mask: jax.Array, width: int) -> Window:
    """Return the window of the first `width` lanes of a mask bool[lanes], which must have one.

    Places that are left over compute on the values of the first one.
    """
    lanes = mask.shape[0]
    index = first_lanes(mask, width)
    here = index < lanes
    lender = jnp.minimum(index[0], lanes - 1)
    return Window(lanes, here, jnp.where(here, index, lender), index, dense=False, borrowed=True)


def first_lanes(mask: jax.Array, width: int) -> jax.Array:
    """Return the numbers of the first lanes of a mask bool[lanes], int32[width], filled up with `lanes`.

    On a CPU a sequential loop, which XLA compiles into a few instructions per lane and which stops when it has found
    enough; elsewhere a prefix sum.
    """
    lanes = mask.shape[0]
    if lowering_platform() != "cpu":
        return jnp.nonzero(mask, size=width, fill_value=lanes)[0].astype(jnp.int32)

    def step(c: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        lane, found, out = c
        number = jnp.where(mask[lane], lane, lanes)
        return lane + 1, found + mask[lane].astype(jnp.int32), out.at[found].set(number, mode="promise_in_bounds")

    start = (jnp.int32(0), jnp.int32(0), jnp.full(width + 1, lanes, jnp.int32))
    found: jax.Array = jax.lax.while_loop(lambda c: (c[0] < lanes) & (c[1] < width), step, start)[2]
    return found[:width]
