"""The capacity of new containers: how many elements a list, dict or set of a lane has room for.

It belongs to the program. Where a lane needs more, the run is repeated by a program with a larger one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from pcbatch.contexts import setting

START_CAPACITY = 32  # first guess, a power of two
LARGEST = 2**24  # elements, beyond which no container gets more room by itself
FACTORS = (4, 2, 1)  # by how much the capacity grows, each time a program to compile: the first that memory allows

_capacity: ContextVar[int] = ContextVar("pcbatch_capacity", default=START_CAPACITY)


class FullError(BaseException):  # no error of the program, and no `except Exception` may take it for one
    """A container is known, while compiling, to need more room than it has; `needed` is the number of its elements."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"a container needs room for {needed} elements")
        self.needed = needed


def capacity() -> int:
    """Return the number of elements that a new container of the program being compiled has room for."""
    return _capacity.get()


def using_capacity(elements: int) -> AbstractContextManager[None]:
    """Give new containers room for this many elements within the context."""
    return setting(_capacity, elements)


def next_capacities(elements: int, needed: int, limit: int) -> tuple[int, ...]:
    """Return the capacities that may follow one of this many elements, the best first; none if it may not grow.

    Args:
        elements: the capacity that was too small.
        needed: the largest number of elements that lanes are known to need.
        limit: the largest capacity.
    """
    wanted = [min(max(factor * elements, rounded(needed)), limit) for factor in FACTORS]
    return tuple(dict.fromkeys(capacity for capacity in wanted if capacity > elements))


def rounded(elements: int) -> int:
    """Return the least power of two that is at least this number, and 1."""
    return 1 << max(0, elements - 1).bit_length()
