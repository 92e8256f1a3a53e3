"""The base classes of Python's own data in a lane, and the classes of the lane by what they stand for.

What knows none of these classes makes their objects all the same: an element that is a list becomes a `LaneList`, a
field that is a pointer is read as a `Ref`. Each class is entered where it is defined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

ClassT = TypeVar("ClassT", bound=type[Any])
_CLASSES: dict[type, Any] = {}


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


class Varying:
    """The kind of the tuples whose length depends on the lane."""


def for_kind(kind: type) -> Callable[[ClassT], ClassT]:
    """Return a decorator that enters the class of the lane for a class of Python's, or for a kind of fields."""

    def entered(cls: ClassT) -> ClassT:
        _CLASSES[kind] = cls
        return cls

    return entered


def class_for(kind: type) -> Any:
    """Return the class of the lane for a class of Python's, or for a kind of fields."""
    return _CLASSES[kind]


def class_of(value: Any) -> Any:
    """Return the class of the lane for a value of Python's; None if there is none."""
    return next((cls for kind, cls in _CLASSES.items() if isinstance(value, kind)), None)


def lane_value(value: Any) -> Any:
    """Return a list, dict, set, text or bytes as one of the lane, which it may be already."""
    return value if isinstance(value, Container) else class_of(value).known(value)


def in_order(values: Any) -> Any:
    """Return the list of the elements of a collection of the lane in order; None for all other values."""
    return values.as_list() if isinstance(values, Collection) else None


def as_lane_list(values: Any) -> Any:
    """Return the list of the elements of a collection of the lane, those of a set in no order that Python would know;
    None for all other values."""
    return values.unordered() if isinstance(values, Collection) else None
