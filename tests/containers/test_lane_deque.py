"""Deques of the lane, compared with Python's own over random sequences of operations."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np
import pytest

from pcbatch.data.sequences.lane_deque import LaneDeque, LaneQueue, LaneStack

pytestmark = pytest.mark.share(3)


def plain(value: Any) -> Any:
    if isinstance(value, LaneDeque):
        return [plain(value.element(k)) for k in range(int(value.length))]
    if isinstance(value, deque):
        return list(value)
    return None if value is None else np.asarray(value).item()


def operation(r: random.Random) -> tuple[Any, ...]:
    value, index = r.randint(0, 5), r.randint(-5, 5)
    several = [r.randint(0, 4) for _ in range(r.randint(0, 3))]
    return r.choice(
        [
            ("append", value), ("append", value), ("appendleft", value), ("appendleft", value), ("pop",),
            ("popleft",), ("popleft",), ("extend", several), ("extendleft", several), ("rotate", index),
            ("insert", index, value), ("remove", value), ("count", value), ("index", value), ("reverse",),
            ("copy",), ("__getitem__", index), ("__setitem__", index, value), ("__delitem__", index), ("clear",),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("maxlen", [None, 0, 3])
def test_every_operation_means_what_it_means_in_python(maxlen: int | None) -> None:
    r = random.Random(str(maxlen))
    start = [r.randint(0, 5) for _ in range(4)]
    want, have = deque(start, maxlen), LaneDeque.of(start, maxlen)
    for _ in range(60):
        name, *args = operation(r)
        try:
            outcome: Any = getattr(want, name)(*args)
        except (IndexError, ValueError) as error:
            with pytest.raises(type(error)):
                getattr(have, name)(*args)
        else:
            assert plain(getattr(have, name)(*args)) == plain(outcome), (name, args)
        assert plain(have) == list(want), (name, args)


def test_more_room_keeps_the_order_of_a_ring() -> None:
    have = LaneDeque.of([1, 2, 3])
    for value in range(30):
        have.append(value)
        have.popleft()
    have.appendleft(7)
    before = plain(have)
    have._reserve(100)
    assert plain(have) == before


def test_what_deques_do_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="must be integer"):
        LaneDeque.of([1])[:1]


def test_queues_give_what_was_put_first_or_last() -> None:
    first, last = LaneQueue.new(), LaneStack.new()
    for value in range(3):
        first.put(value)
        last.put(value)
    assert (int(first.get()), int(last.get()), int(last.get_nowait())) == (0, 2, 1)
    assert int(first.qsize()) == 2 and not bool(first.empty())
