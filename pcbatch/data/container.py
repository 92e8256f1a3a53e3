"""The base classes of Python's own data in a lane."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any


class Collection:
    """A collection of a lane, with the answers that Python's own `len`, `in` and `iter` would have to know."""

    __slots__ = ()

    @property
    def length(self) -> Any:
        """The number of elements: int32[], or an int where it is known while compiling."""
        raise NotImplementedError

    def contains(self, value: Any) -> Any:
        """Return `value in` the collection."""
        raise NotImplementedError

    def element(self, index: Any) -> Any:
        """Return the element at an index that is known to be in range."""
        raise NotImplementedError

    def as_list(self) -> Any:
        """Return the list of the elements in the order in which Python goes over them."""
        raise NotImplementedError

    def unordered(self) -> Any:
        """Return the list of the elements, in any order, for a function that does not ask for theirs."""
        return self.as_list()

    def gone_over(self) -> Any:
        """Return what a `for` loop goes over, a sequence."""
        return self

    # What Python decides itself; JAX raises its errors where it depends on a value of the lane.

    def __len__(self) -> int:
        return operator.index(self.length)

    def __bool__(self) -> bool:
        return bool(self.length > 0)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.as_list())

    def __reversed__(self) -> Any:
        new = self.as_list()
        new.reverse()
        return new

    def __contains__(self, value: Any) -> bool:
        return bool(self.contains(value))


class Container(Collection):
    """A mutable container of a lane: a pytree that is used like Python's own list, dict or set while a primitive is
    traced.

    Attributes:
        parent: the container that this one is a view of; None if it has storage of its own.
        snapshot: the container whose elements these are, as they were when a loop over them began.
        held: the mutable objects that have become elements while this primitive is traced.
    """

    parent: Container | None = None
    snapshot: Container | None = None
    held: tuple[object, ...] = ()


def in_order(values: Any) -> Any:
    """Return the list of the elements of a collection of the lane in order; None for all other values."""
    return values.as_list() if isinstance(values, Collection) else None


def as_lane_list(values: Any) -> Any:
    """Return the list of the elements of a collection of the lane, those of a set in no order that Python would know;
    None for all other values."""
    return values.unordered() if isinstance(values, Collection) else None
