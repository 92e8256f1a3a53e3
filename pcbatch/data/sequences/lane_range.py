"""A `range` with bounds of the lane, where it is a value: `list(range(n))`, `k in range(a, b)`."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import capacity
from pcbatch.data.checks import require_room
from pcbatch.data.container import Collection
from pcbatch.data.origins import Origin, number
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.sequences.indices import checked_index, length_of_range
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.values import Index, Value
from pcbatch.errors import Refusal


@pytree_node("start", "stop", "step")
class LaneRange(Collection):
    """A range whose bounds depend on the lane."""

    def __init__(self, start: Index, stop: Index, step: Index) -> None:
        self.start, self.stop, self.step = start, stop, step

    def __repr__(self) -> str:
        return "range of the lane"

    @property
    def length(self) -> Index:
        """The number of elements, as of `len`."""
        return length_of_range(self.start, self.stop, self.step)

    def as_list(self) -> LaneList:
        """Return the list of the elements."""
        n = self.length
        size = n if isinstance(n, int) else capacity()
        require_room(n, size)
        values = self.start + self.step * jnp.arange(size) if size else jnp.zeros((0,), np.int32)
        new: LaneList = LaneList.tree_unflatten((Origin.NUMBER,), (values, n))
        return new

    def __reversed__(self) -> LaneRange:
        """Return the range from the last element to the first."""
        return LaneRange(self.element(self.length - 1), self.start - jnp.sign(self.step), -self.step)

    def contains(self, item: Value) -> Value:
        """Return whether a number is an element."""
        inside = (item >= self.start) & (item < self.stop)
        if isinstance(self.step, int) and self.step == 1:
            return number(
                inside & (item == jnp.floor(item)) if jnp.issubdtype(jnp.result_type(item), float) else inside
            )
        backwards = (item <= self.start) & (item > self.stop)
        size = jnp.maximum(jnp.abs(self.step), 1)
        return number(jnp.where(self.step > 0, inside, backwards) & ((item - self.start) % size == 0))

    def element(self, index: Index) -> Value:
        """Return the element at an index in range."""
        return number(self.start + index * self.step)

    def __getitem__(self, index: Index) -> Value:
        if isinstance(index, slice):
            raise Refusal("PCB306", "a slice of a range with bounds of the lane", helps=("write its own bounds",))
        return self.element(checked_index(index, self.length, 0, "range object index out of range")[0])
