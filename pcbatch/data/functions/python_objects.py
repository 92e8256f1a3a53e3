"""The objects of Python that containers of the lane stand for, which say what these are and which attributes they have.

of_lane.length          AttributeError, as for `[]`: what a container has for this package is none of the user's
of_lane.elements()      of a `Counter`, and an AttributeError for any other dict
"""

from __future__ import annotations

import collections
import queue
from collections.abc import Callable
from typing import Any

from pcbatch.data.container import Collection
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import DictView, LaneFrozenSet, LaneSet
from pcbatch.data.sequences.lane_deque import LaneDeque, LaneQueue, LaneStack
from pcbatch.data.sequences.lane_iterator import LaneIterator
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_range import LaneRange
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.texts.lane_bytes import LaneByteArray, LaneBytes
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Value
from pcbatch.errors import NoAttribute

OBJECTS: dict[type, Callable[[], Any]] = {
    LaneList: list,
    LaneTuple: tuple,
    LaneBytes: bytes,
    LaneByteArray: bytearray,
    LaneDeque: collections.deque,
    LaneQueue: queue.Queue,
    LaneStack: queue.LifoQueue,
    LaneRange: lambda: range(0),
    LaneIterator: lambda: iter([]),
    LaneSet: set,
    LaneFrozenSet: frozenset,
    LaneText: str,
}
"""An object of Python for each class of the lane; a class that is not here stands for what its base does."""
PYTHONS = frozenset({list, tuple, dict, set, frozenset, str, bytes, bytearray, range})


def python_object(value: Value) -> Value:
    """Return an object of the type that a container of the lane has in Python; other objects as they are."""
    if isinstance(value, DictView):
        return getattr(python_object(value.source), value.part)()
    if isinstance(value, LaneDict):
        return {} if value.missing is None else getattr(collections, value.missing.name)()
    made = next((OBJECTS[cls] for cls in type(value).__mro__ if cls in OBJECTS), None)
    return value if made is None else made()


def as_in_python(value: Value, access: Callable[[Value], Value]) -> bool:
    """Return whether this is of one of Python's own containers, whose attributes Python lets one access like this.

    Raises:
        NoAttribute: if it is, and Python does not.
    """
    plain = python_object(value)
    if plain is value and type(value) not in PYTHONS:
        return False
    try:
        access(plain)
    except AttributeError as error:
        raise NoAttribute(str(error)) from None
    return True


def require_attribute(value: Value, name: str) -> None:
    """Raise NoAttribute if a container has no attribute of this name in Python."""
    as_in_python(value, lambda plain: getattr(plain, name))


def is_without(value: Value, name: str) -> bool:
    """Return whether a collection of the lane has no method of this name in Python, such as `__len__` of a queue."""
    return isinstance(value, Collection) and not hasattr(python_object(value), name)
