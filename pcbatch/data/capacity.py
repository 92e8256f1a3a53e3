"""The room of new containers: the capacity of a list, dict or set of a lane in elements, of a text in characters, and
of the heap in records of a class.

It belongs to the program. Where a lane needs more, the run is repeated by a program with more, of what was full: a set
of thousands of words has room for thousands, and each word for some characters; a tree of thousands of nodes has short
lists of children. Lists that are made of others at once (by a comprehension or `+`) seldom have more elements than
these, so they may begin with the room of the lists among the arguments; what gets its elements one by one begins with
`START_CAPACITY` at least, and so do texts and the heap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, NamedTuple

from pcbatch.contexts import setting

START_CAPACITY = 32  # first guess, a power of two
START_CHARACTERS = 128  # that of texts, which sentences with a few numbers fill
LEAST_CAPACITY = 8  # that of lists which are made of others, where the lists of the arguments are short
LARGEST = 2**24  # elements, beyond which no container gets more room by itself
FACTORS = (4, 2, 1)  # by how much the capacity grows, each time a program to compile: the first that memory allows
NESTED_FACTORS = (2, 1)  # the same for containers in containers, whose room is the square of it
HEAP_FACTORS = (8, 4, 2, 1)  # the same for the heap, unless records hold containers


Rows = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Room:
    """The room that a program has in its containers, or that lanes need in them, 0 for what was not too small.

    Attributes:
        elements: of a list, dict or set.
        characters: of a text.
        records: of a class of objects made in a lane.
        inner: of a list that is inside of another container; 0 in a program: that of any other.
        inner_characters: the same of a text.
        entries: of a dict or set that is in no other container; 0 in a program: that of a list.
        inner_entries: of a dict or set that is inside of another container; 0 in a program: that of any other.
        rows: records of classes that have a number of their own, by name, in the order of the names.
    """

    elements: int = 0
    characters: int = 0
    records: int = 0
    inner: int = 0
    inner_characters: int = 0
    entries: int = 0
    inner_entries: int = 0
    rows: Rows = field(default=(), kw_only=True)

    def joined(self, other: Room) -> Room:
        """Return the room that has both."""
        own = dict(self.rows)
        more = {name: max(size, own.get(name, 0)) for name, size in other.rows}
        return Room(*map(max, self.parts, other.parts), rows=_ordered(own | more))

    def needing(self, needed: Room) -> Room:
        """Return what is needed of this room: what has no room of its own needs that of others, a dict or set that is
        inside of another container that of those that are not, and these that of lists."""
        classes = dict(needed.rows)
        rows = tuple((name, classes.pop(name, 0)) for name, _ in self.rows)
        records = max(needed.records, *classes.values(), 0)
        needed = replace(needed, entries=max(needed.entries, 0 if self.inner_entries else needed.inner_entries))
        inner, entries = (0 if self.inner else needed.inner), (0 if self.entries else needed.entries)
        elements = max(needed.elements, inner, entries)
        characters = max(needed.characters, 0 if self.inner_characters else needed.inner_characters)
        own = (need if has else 0 for has, need in zip(self.parts[3:], needed.parts[3:], strict=True))
        return Room(elements, characters, records, *own, rows=rows)

    def within(self, limit: int) -> Room:
        """Return the room with at most so much of each."""
        rows = tuple((name, min(size, limit)) for name, size in self.rows)
        return Room(*(min(part, limit) for part in self.parts), rows=rows)

    @property
    def parts(self) -> tuple[int, ...]:
        """All parts in order."""
        outer, inner = (self.elements, self.characters, self.records), (self.inner, self.inner_characters)
        return *outer, *inner, self.entries, self.inner_entries

    @property
    def sizes(self) -> tuple[int, ...]:
        """All sizes: those of the parts, then those of classes."""
        return *self.parts, *(size for _, size in self.rows)

    @property
    def words(self) -> tuple[tuple[str, str, str], ...]:
        """The words for each of the sizes: for what has it, what it counts, and several of those that have it."""
        return *PARTS, *((f"`{name}`", *PARTS[2][1:]) for name, _ in self.rows)

    def __bool__(self) -> bool:
        return any(self.sizes)


NO_ROOM = Room()
START_ROOM = Room(START_CAPACITY, START_CHARACTERS, START_CAPACITY)
PARTS = (
    ("a list, dict or set", "elements", "lists"),
    ("a text", "characters", "texts"),
    ("a class", "objects", "classes"),
    ("a list in another container", "elements", "lists in containers"),
    ("a text in a container", "characters", "texts in containers"),
    ("a dict or set", "entries", "dicts and sets"),
    ("a dict or set in another container", "entries", "dicts and sets in containers"),
)
"""The parts of a room, in words: what has it, of what, and several of those that have it."""


class Capacities(NamedTuple):
    """The room of new containers, and the elements of lists that are made of others at once."""

    room: Room
    of_others: int


_START = Capacities(START_ROOM, START_CAPACITY)
_capacity: ContextVar[Capacities] = ContextVar("pcbatch_capacity", default=_START)


class FullError(BaseException):  # no error of the program, and no `except Exception` may take it for one
    """A container is known, while compiling, to need more room than it has: compiling starts again with more.

    Attributes:
        needed: the room that it needs.
        decided: the decisions that had been made so far.
    """

    decided: Any = None

    def __init__(self, needed: Room) -> None:
        super().__init__(f"a container needs {needed}")
        self.needed = needed


def capacity(grows: bool = True) -> int:
    """Return the number of elements that a new container of the program being compiled has room for.

    Args:
        grows: whether it gets its elements one by one; else it is a list that is made of others.
    """
    return _capacity.get().room.elements if grows else _capacity.get().of_others


def characters() -> int:
    """Return the number of characters that a new text of the program being compiled has room for."""
    return _capacity.get().room.characters


def records(name: str) -> int:
    """Return the number of records of a class that the heap of the program being compiled has room for."""
    room = _capacity.get().room
    return dict(room.rows).get(name) or room.records


def inner() -> int:
    """Return the number of elements that a list inside of a container has room for; 0: as many as any other."""
    return _capacity.get().room.inner


def inner_characters() -> int:
    """Return the number of characters that a text inside of a container has room for; 0: as many as any other."""
    return _capacity.get().room.inner_characters


def entries(inside: bool) -> int:
    """Return the number of entries that a dict or set has room for, inside of another container or not."""
    room = _capacity.get().room
    return (inside and room.inner_entries) or room.entries or room.elements


def capacities() -> Capacities:
    """Return all that the types of new containers of the program being compiled depend on."""
    return _capacity.get()


def using_capacity(room: Room, limit: int = 0) -> AbstractContextManager[None]:
    """Give new containers this room within the context; texts and the heap that of lists where it has none for them.

    Those that grow, texts and the heap have room for as many as runs begin with, up to `limit`.
    """
    elements, start, text = room.elements, min(START_CAPACITY, limit), min(START_CHARACTERS, limit)
    longest, heap = (part or elements for part in (room.characters, room.records))
    around = max(elements, start), max(longest, text), max(heap, start)
    return setting(_capacity, Capacities(Room(*around, *room.parts[3:], rows=room.rows), elements))


def made_of_others() -> AbstractContextManager[None]:
    """Count what is made and changed within the context as lists that are made of others."""
    room, of_others = _capacity.get()
    return setting(_capacity, Capacities(replace(room, elements=of_others), of_others))


def first_capacity(longest: int) -> int:
    """Return the capacity with which a run begins whose arguments hold lists of so many elements, 0 for none."""
    return min(max(rounded(longest), LEAST_CAPACITY), START_CAPACITY) if longest else START_CAPACITY


def next_capacities(elements: int, needed: int, limit: int, factors: Sequence[int] = FACTORS) -> tuple[int, ...]:
    """Return the capacities that may follow one of this many elements, the best first; none if it may not grow.

    Args:
        elements: the capacity that was too small.
        needed: the largest number of elements that lanes are known to need.
        limit: the largest capacity.
        factors: by how much it may grow, the best first.
    """
    grown = max(elements, min(START_CAPACITY, limit))  # what containers that grow had room for
    if elements < grown and needed <= grown:
        return (grown,)
    wanted = [min(max(factor * grown, rounded(needed)), limit) for factor in factors]
    return tuple(dict.fromkeys(capacity for capacity in wanted if capacity > elements))


def next_rooms(room: Room, needed: Room, limit: int, nested: bool = False) -> tuple[Room, ...]:
    """Return the rooms that may follow one, the best first; none if what was too small may not grow.

    The arguments are those of `next_capacities`, and whether there are containers in others; what is `needed` is 0
    where there was room.
    """
    inside = NESTED_FACTORS, NESTED_FACTORS, FACTORS, NESTED_FACTORS
    heap = FACTORS if nested else HEAP_FACTORS
    factors = (NESTED_FACTORS if nested else FACTORS, FACTORS, heap, *inside, *[heap] * len(room.rows))
    needed = room.needing(needed)
    if any(needed.parts[3:]):  # examples have told too little: all that they told begins as it does without them
        without = (*[0] * 3, START_CAPACITY, START_CHARACTERS, START_CAPACITY, START_CAPACITY)
        begun = (n if has else 0 for n, has in zip(without, room.parts, strict=True))
        starts = Room(*begun, rows=room.rows).within(limit)
        if starts.joined(needed) == starts:
            return (room.joined(starts),)
        room = room.joined(starts)
    choices = [
        next_capacities(has, need, limit, grows) if need else (has,)
        for has, need, grows in zip(room.sizes, needed.sizes, factors, strict=True)
    ]
    if not all(choices):
        return ()
    # What has no more to choose from stays at its last choice.
    last = [choice[-1] for choice in choices]
    chosen = ([n or m for n, m in zip(sizes, last, strict=True)] for sizes in zip_longest(*choices))
    parts, classes = len(room.parts), dict(room.rows)
    return tuple(Room(*n[:parts], rows=tuple(zip(classes, n[parts:], strict=True))) for n in chosen)


def _ordered(rows: Mapping[str, int]) -> Rows:
    return tuple(sorted(rows.items()))


def rounded(elements: int) -> int:
    """Return the least power of two that is at least this number, and 1."""
    return 1 << max(0, elements - 1).bit_length()
