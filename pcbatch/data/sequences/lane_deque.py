"""Double-ended queues of the lane, as `collections.deque`: rings with a start, so that both ends are near.

Beside them the queues of the module `queue`: `get` of an empty one would wait for ever in one thread, and fails.

columns i32[8], length 3, start 6          the elements lie in places 6, 7 and 0
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import capacity, rounded
from pcbatch.data.catalogue import Facts
from pcbatch.data.checks import making, require
from pcbatch.data.columns import Shape, leaf_at, put, room, taken
from pcbatch.data.sequences.indices import integer
from pcbatch.data.sequences.lane_list import LaneList, as_list
from pcbatch.data.values import Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal


@jax.tree_util.register_pytree_node_class
class LaneDeque(LaneList):
    """A double-ended queue of the lane.

    In the place of the length of a list it has its state: length and start, and `maxlen` if it has one.
    """

    __slots__ = ()
    EMPTY = "pop from an empty deque"
    NO_INDEX = "deque index out of range"
    NO_PLACE = "deque index out of range"
    ABSENT = {"index": "x is not in deque", "remove": "deque.remove(x): x not in deque"}

    @classmethod
    @making()
    def of(cls, values: Value = (), maxlen: Value = None) -> LaneDeque:
        """Return `deque(values, maxlen)`."""
        source = as_list(values)
        n = source.length
        state = [jnp.asarray(part, np.int32) for part in (n, 0)]
        if maxlen is not None:
            state.append(jnp.asarray(integer(maxlen, "an integer is required"), np.int32))
            require(maxlen >= 0, "ValueError", "maxlen must be non-negative")
        new: LaneDeque = cls.tree_unflatten(source.origins, (source.columns, jnp.stack(state)))
        new._reserve(max(capacity(), rounded(n) if isinstance(n, int) else 0))
        new._trim_left()
        new.hold(new.elements_in(source))
        return new

    @property
    def state(self) -> Value:
        """The length, the start and perhaps `maxlen`, int32[2] or int32[3]."""
        return self._length if self._node is self else leaf_at(self.node._length, self.place)

    def _set_state(self, k: int, value: Value) -> None:
        self.node._length = put(self.node._length, (*self.place, k), value)

    @property
    def lead(self) -> Shape:
        """The axes of the containers around a view; none for a queue that is none."""
        return () if self._node is self else tuple(jnp.shape(self.node._length)[:-1])

    def no_state(self, lead: Shape, new: Shape) -> Value:
        """Return the state of empty queues."""
        return jnp.zeros((*new, jnp.shape(self.state)[-1]), np.int32)

    @property
    def length(self) -> Index:
        """The number of elements, int32[]."""
        return self.state[..., 0]

    @length.setter
    def length(self, length: Index) -> None:
        self._set_state(0, length)

    @property
    def start(self) -> Value:
        """The place of the first element."""
        return self.state[1]

    @property
    def maxlen(self) -> Value:
        """The greatest number of elements; None if there is none."""
        return self.state[2] if self.state.shape[0] == 3 else None

    def _wrapped(self, place: Index) -> Value:
        size = self.capacity
        return jnp.where(place >= size, place - size, jnp.where(place < 0, place + size, place))

    def _place(self, index: Index) -> Value:
        # A store that is to be dropped has an index out of range.
        return jnp.where(index < self.capacity, self._wrapped(self.start + index), self.capacity)

    def _straighten(self) -> None:
        self.columns = self._plain().columns
        self._set_state(1, 0)

    def _plain(self) -> Value:
        columns = self.columns
        if room(columns, 0) is not None:
            columns = taken(columns, self._wrapped(self.start + self._numbers()))
        return self._new(columns, self.length)

    def cut(self) -> LaneDeque:
        """Return the queue itself: the room of a ring stays as it is."""
        return self

    def straight(self) -> LaneDeque:
        """Return the same queue with its first element in place 0, so that it may be given more room."""

        def run(queue: LaneDeque) -> LaneDeque:
            plain = queue._plain()
            new: LaneDeque = queue.with_data(plain.columns, queue.state.at[1].set(0), queue.origins)
            return new

        for _ in jnp.shape(self.state)[:-1]:  # the axes of the containers around a queue in their columns
            run = jax.vmap(run)
        return run(self)

    def _splice(self, at: Index, removed: Index, other: LaneList) -> None:
        self._straighten()
        super()._splice(at, removed, other)

    def _reserve(self, size: int) -> None:
        here = room(self.node._columns, len(self.lead))
        if here is not None and here < size:
            straight = self.node.straight()
            self.node._columns, self.node._length = straight._columns, straight._length
            super()._reserve(size)

    def _full(self) -> Value:
        """Whether an element must go where one is added, 0 or 1."""
        return 0 if self.maxlen is None else jnp.where(self.length >= self.maxlen, 1, 0)

    def append(self, value: Value, /) -> None:
        """Add an element at the right end; one more than `maxlen` goes at the left."""
        n, full = self.length, self._full()
        self._make_place(value, n + 1 - full)
        self._store(self._wrapped(self.start + n), value)
        if self.maxlen is not None:
            self._set_state(1, self._wrapped(self.start + full))
        self.length = n + 1 - full

    @Facts(changes=True, moves=True)
    def appendleft(self, value: Value, /) -> None:
        """Add an element at the left end; one more than `maxlen` goes at the right."""
        n, full = self.length, self._full()
        self._make_place(value, n + 1 - full)
        first = self._wrapped(self.start - 1)
        self._store(first, value)
        self._set_state(1, first)
        self.length = n + 1 - full

    def _make_place(self, value: Value, needed: Index) -> None:
        self.hold(value)
        self._fit(value)
        self._make_room(needed)

    def _store(self, place: Index, value: Value) -> None:
        if self.maxlen is not None:
            place = jnp.where(self.maxlen > 0, place, self.capacity)
        self._put(place, value)

    @Facts(changes=True, removes=True, moves=True)
    def popleft(self) -> Value:
        """Remove the first element and return it."""
        n = self.length
        some = n > 0
        require(some, "IndexError", self.EMPTY)
        value = self._taken(0)
        self._set_state(1, self._wrapped(self.start + jnp.where(some, 1, 0)))
        self.length = jnp.maximum(n - 1, 0)
        return value

    def pop(self) -> Value:  # type: ignore[override]
        """Remove the last element and return it."""
        return super().pop()

    def extend(self, values: Value, /) -> None:
        """Add elements at the right end."""
        super().extend(values)
        self._trim_left()

    @Facts(changes=True, moves=True, iterates=True, stepwise=True, one="appendleft")
    def extendleft(self, values: Value, /) -> None:
        """Add elements at the left end, one after the other, so that their order is reversed."""
        other = as_list(values)
        other = other.copy()
        other.reverse()
        self.hold(self.elements_in(other))
        self._splice(0, 0, other)
        if self.maxlen is not None:
            self.length = jnp.minimum(self.length, self.maxlen)

    def _trim_left(self) -> None:
        if self.maxlen is not None:
            extra = jnp.maximum(self.length - self.maxlen, 0)
            self._set_state(1, self._wrapped(self.start + extra))
            self.length = self.length - extra

    def insert(self, index: Index, value: Value, /) -> None:
        """Insert an element before an index, which may be out of range."""
        if self.maxlen is not None:
            require(self.length < self.maxlen, "IndexError", "deque already at its maximum size")
        super().insert(index, value)

    @Facts(changes=True)
    def reverse(self) -> None:
        """Reverse the order of the elements; they take the same places, so that a loop over the queue goes on."""
        self._reorder(lambda k: self.length - 1 - k)

    @Facts(changes=True, moves=True)
    def rotate(self, n: Index = 1, /) -> None:
        """Move all elements to the right, and those that leave it there to the left end."""
        self._reorder(lambda k: (k - n) % jnp.maximum(self.length, 1))

    def _reorder(self, source: Callable[[Index], Index]) -> None:
        """Have at each index the element of another one; the first element stays in its place."""
        places = self._numbers()
        k = self._wrapped(places - self.start)
        taken_from = jnp.where(k < self.length, self._wrapped(self.start + source(k)), places)
        self.columns = taken(self.columns, taken_from)

    def __reversed__(self) -> Value:
        new = self.copy()
        new.reverse()
        return new

    def __getitem__(self, index: Index) -> Value:
        self._check_index(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Index, value: Value) -> None:
        self._check_index(index)
        super().__setitem__(index, value)

    def __delitem__(self, index: Index) -> None:
        self._check_index(index)
        super().__delitem__(index)

    def _check_index(self, index: Index) -> None:
        if isinstance(index, slice):
            raise TypeError("sequence index must be integer, not 'slice'")

    def __add__(self, other: Value) -> Value:
        if not isinstance(other, LaneDeque):
            return NotImplemented
        new = self.copy()
        new.extend(other)
        return new

    def __mul__(self, times: Index) -> Value:
        return LaneDeque.of(self._plain() * times, self.maxlen)

    __rmul__ = __mul__


@jax.tree_util.register_pytree_node_class
class LaneQueue(LaneDeque):
    """A `queue.Queue` of the lane: first in, first out."""

    __slots__ = ()
    EMPTY = "`get` of an empty queue waits for ever"

    @classmethod
    def new(cls, maxsize: Value = 0) -> Value:
        """Return an empty queue."""
        if not isinstance(maxsize, int) or maxsize > 0:
            title = "a queue of a lane has no greatest size: what puts one element more into it would wait for ever"
            raise Refusal("PCB304", title, helps=("leave `maxsize` out, and compare `q.qsize()` with it",))
        return cls.of(())

    @Facts(changes=True)
    def put(self, item: Value, /) -> None:
        """Add an element at the end."""
        self.append(item)

    @Facts(changes_bare=True)
    def get(self) -> Value:
        """Remove the first element and return it."""
        return self.popleft()

    @Facts(changes=True)
    def put_nowait(self, item: Value, /) -> None:
        """Add an element at the end."""
        self.append(item)

    @Facts(changes=True)
    def get_nowait(self) -> Value:
        """Remove the next element and return it."""
        return self.get()

    def __eq__(self, other: object) -> Value:
        title = "queues are compared by identity, and values of lanes are not objects"
        raise Refusal("PCB304", title, helps=("keep elements that are to be compared in a list or a deque",))

    __ne__ = __eq__

    def as_list(self) -> Value:
        """Raise TypeError: a queue of Python gives its elements one by one, and removes them."""
        raise TypeError(f"'{type_name(self)}' object is not iterable")

    gone_over = as_list

    def empty(self) -> Value:
        """Return whether there is no element."""
        return self.length <= 0

    def qsize(self) -> Value:
        """Return the number of elements."""
        return self.length

    def full(self) -> bool:
        """Return False: there is no greatest size."""
        return False


@jax.tree_util.register_pytree_node_class
class LaneStack(LaneQueue):
    """A `queue.LifoQueue` of the lane: last in, first out."""

    __slots__ = ()

    def get(self) -> Value:
        """Remove the last element and return it."""
        return self.pop()
