"""The queues of the module `queue`, as one thread uses them: `get` of an empty one would wait for ever, and fails."""

from __future__ import annotations

from typing import Any

import jax

from pcbatch.containers.lane_deque import LaneDeque
from pcbatch.errors import Refusal


@jax.tree_util.register_pytree_node_class
class LaneQueue(LaneDeque):
    """A `queue.Queue` of the lane: first in, first out."""

    __slots__ = ()
    EMPTY = "`get` of an empty queue waits for ever"

    @classmethod
    def new(cls, maxsize: Any = 0) -> Any:
        """Return an empty queue."""
        if not isinstance(maxsize, int) or maxsize > 0:
            title = "a queue of a lane has no greatest size: what puts one element more into it would wait for ever"
            raise Refusal("PCB304", title, helps=("leave `maxsize` out, and compare `q.qsize()` with it",))
        return cls.of(())

    def put(self, item: Any, /) -> None:
        """Add an element at the end."""
        self.append(item)

    def get(self) -> Any:
        """Remove the first element and return it."""
        return self.popleft()

    put_nowait = put

    def get_nowait(self) -> Any:
        """Remove the next element and return it."""
        return self.get()

    def empty(self) -> Any:
        """Return whether there is no element."""
        return self.length <= 0

    def qsize(self) -> Any:
        """Return the number of elements."""
        return self.length

    def full(self) -> bool:
        """Return False: there is no greatest size."""
        return False


@jax.tree_util.register_pytree_node_class
class LaneStack(LaneQueue):
    """A `queue.LifoQueue` of the lane: last in, first out."""

    __slots__ = ()

    def get(self) -> Any:
        """Remove the last element and return it."""
        return self.pop()
