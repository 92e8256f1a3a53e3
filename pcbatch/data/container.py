"""The base class of Python's own data in a lane."""

from __future__ import annotations


class Container:
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
