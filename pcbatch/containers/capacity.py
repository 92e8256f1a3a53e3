"""The capacity of new containers: how many elements a list, dict or set of a lane has room for.

It belongs to the program. Where a lane needs more, the run is repeated by a program with a larger one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

START_CAPACITY = 32  # first guess, a power of two

_capacity: ContextVar[int] = ContextVar("pcbatch_capacity", default=START_CAPACITY)


class FullError(Exception):
    """A container is known, while compiling, to need more room than it has; `needed` is the number of its elements."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"a container needs room for {needed} elements")
        self.needed = needed


def capacity() -> int:
    """Return the number of elements that a new container of the program being compiled has room for."""
    return _capacity.get()


@contextlib.contextmanager
def using_capacity(elements: int) -> Iterator[None]:
    """Give new containers room for this many elements within the context."""
    token = _capacity.set(elements)
    try:
        yield
    finally:
        _capacity.reset(token)


def rounded(elements: int) -> int:
    """Return the least power of two that is at least this number, and 1."""
    return 1 << max(0, elements - 1).bit_length()
