"""Room of lists, of texts and of the heap: where one was full, the run is repeated with more of that, and no more."""

from __future__ import annotations

from collections import deque
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from pcbatch.data.capacity import START_CHARACTERS, FullError, Room, capacity, characters, next_rooms, using_capacity
from pcbatch.data.checks import require_characters
from tests.oracles.plans import replanned

pytestmark = [pytest.mark.promotion("standard"), pytest.mark.unsized]


@pcbatch.batch
def words(n):
    """The number of words of two letters and their lengths, in a set of texts."""
    seen = set()
    for k in range(n):
        seen.add("ab"[k % 2] + "cd"[k // 2 % 2] + str(k))
    return len(seen), sum(len(word) for word in seen)


@pcbatch.batch
def long_text(n):
    """A text that gets longer and longer, and a list that stays short."""
    parts = [n]
    text = ""
    for k in range(n):
        text = text + "ab"[k % 2]
        if k % 40 == 0:
            parts.append(len(text))
    return text, parts


@pcbatch.batch
def both(n):
    text, numbers = "", []
    for k in range(n):
        text = text + "x"
        numbers.append(k)
    return text, len(numbers)


def rooms(f: Any) -> set[Room]:
    return {program.room for program in f._programs.cache.values()}


def test_rooms_grow_by_what_is_needed() -> None:
    assert next_rooms(Room(32, 32), Room(33, 0), 2**24) == (Room(128, 32), Room(64, 32))
    assert next_rooms(Room(128, 32), Room(0, 40), 2**24) == (Room(128, 128), Room(128, 64))
    assert next_rooms(Room(32, 32), Room(33, 1000), 2**24) == (Room(128, 1024), Room(64, 1024))
    assert next_rooms(Room(32, 32, 32), Room(0, 0, 33), 2**24)[0] == Room(32, 32, 256)
    assert next_rooms(Room(32, 32, 32), Room(33, 0, 33), 2**24, nested=True)[0] == Room(64, 32, 128)
    few, many = (Room(32, 32, 32, rows=(("A", 1), ("B", n))) for n in (64, 512))
    assert next_rooms(few, Room(rows=(("B", 65),)), 2**24)[0] == many
    assert next_rooms(few, Room(rows=(("C", 33),)), 2**24)[0] == Room(32, 32, 256, rows=few.rows)
    assert next_rooms(Room(64, 32), Room(65, 0), 64) == next_rooms(Room(64, 64), Room(1, 65), 64) == ()


def test_many_words_stay_short() -> None:
    f = replanned(words)
    ns = jnp.array([3, 0, 150])
    count, letters = f(ns)
    assert list(zip(count.tolist(), letters.tolist(), strict=True)) == [words.plain(int(n)) for n in ns]
    assert {room.characters for room in rooms(f)} == {START_CHARACTERS}
    assert max(room.elements for room in rooms(f)) >= 150


def test_a_long_text_makes_no_list_longer() -> None:
    f = replanned(long_text)
    ns = jnp.array([3, 70, 33])
    text, parts = f(ns)
    assert list(zip(text.tolist(), parts.tolist(), strict=True)) == [long_text.plain(int(n)) for n in ns]
    assert {room.elements for room in rooms(f)} == {32}
    assert max(room.characters for room in rooms(f)) >= 70


def test_both_grow_in_one_program() -> None:
    f = replanned(both)
    text, count = f(jnp.array([2, 90]))
    assert (text.tolist(), count.tolist()) == (["xx", "x" * 90], [2, 90])
    assert max(room.elements for room in rooms(f)) >= 90 <= max(room.characters for room in rooms(f))


class Link:
    def __init__(self, value, rest):
        self.value = value
        self.rest = rest


@pcbatch.batch
def chain(n):
    """The length and the sum of a chain of records, and the length of a list that stays short."""
    last, few = None, []
    for k in range(n):
        last = Link(k, last)
        if k % 40 == 0:
            few.append(k)
    total = length = 0
    while last is not None:
        total += last.value
        length += 1
        last = last.rest
    return length, total, len(few)


def test_many_records_make_no_list_longer() -> None:
    f = replanned(chain)
    ns = jnp.array([3, 0, 150])
    out = [part.tolist() for part in f(ns)]
    assert list(zip(*out, strict=True)) == [chain.plain(int(n)) for n in ns]
    assert {room.elements for room in rooms(f)} == {32}
    assert max(room.records for room in rooms(f)) >= 150


def test_the_error_says_which_was_full() -> None:
    limited = replanned(long_text, max_length=64)
    assert limited.run(jnp.array([3, 70])).status.tolist() == [0, int(Status.LIST_FULL)]
    with pytest.raises(pcbatch.BatchRuntimeError) as info:
        limited(jnp.array([3, 70]))
    (diagnostic,) = info.value.diagnostics
    assert diagnostic.code == "PCB906"
    assert diagnostic.title == "1 of 2 lanes need a text of more than 64 characters (max_length=64)"
    with pytest.raises(pcbatch.BatchRuntimeError) as info:
        replanned(words, max_length=64)(jnp.array([3, 150]))
    assert "a list, dict or set of more than 64 elements" in info.value.diagnostics[0].title
    with pytest.raises(pcbatch.BatchRuntimeError) as info:
        replanned(chain, max_length=64)(jnp.array([3, 70]))
    assert info.value.diagnostics[0].title == "1 of 2 lanes need a class of more than 64 objects (max_length=64)"


def test_a_text_known_to_be_too_long() -> None:
    with using_capacity(Room(8, 16)):
        assert (capacity(), characters()) == (8, 16)
        with pytest.raises(FullError) as info:
            require_characters(17, 16)
    assert info.value.needed == Room(0, 17)


def test_words_of_a_text_with_one_that_is_long() -> None:
    """Rows of words begin with room for words, whatever the length of the text."""

    @pcbatch.batch
    def longest(text):
        found = sorted(text.split())
        return max(len(word) for word in found), found[0]

    texts = ["a bc d" * 20, "b" * 100 + " a", "x y"]
    lengths, first = longest(pcbatch.ragged(texts))
    assert list(zip(lengths.tolist(), first.tolist(), strict=True)) == [longest.plain(text) for text in texts]


@pcbatch.batch
def steps_of_a_puzzle(start):
    """Breadth-first search over texts, with more states than a text could ever have characters."""
    seen = {start}
    queue = deque([(start, 0)])
    while queue:
        board, steps = queue.popleft()
        if board == "abcd_":
            return steps, len(seen)
        blank = board.index("_")
        for other in (blank - 1, blank + 1, blank + 2):
            if 0 <= other < 5:
                cells = list(board)
                cells[blank], cells[other] = cells[other], cells[blank]
                new = "".join(cells)
                if new not in seen:
                    seen.add(new)
                    queue.append((new, steps + 1))
    return -1, len(seen)


def test_a_search_over_texts() -> None:
    starts = ["abcd_", "ab_cd", "dcba_", "_adcb"]
    steps, seen = steps_of_a_puzzle(pcbatch.ragged(starts))
    found = list(zip(np.asarray(steps).tolist(), np.asarray(seen).tolist(), strict=True))
    assert found == [steps_of_a_puzzle.plain(start) for start in starts]
    assert max(seen) > 100
