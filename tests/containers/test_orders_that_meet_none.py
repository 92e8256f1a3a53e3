"""Orders of tuples, lists and records in which there is None, or an object without an order: asked only if reached."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")
NUMBERS = (0, 1, 2, 3, 5, 6, 7, 9)


def pairs(n):
    made = []
    for k in range(n):
        made.append((k * 7 % 3, None if k % 4 == 1 else k * 5 % 7))
    return made


def greatest(n):
    return max(pairs(n))


def least(n):
    return min(pairs(n), key=lambda pair: (pair[1], pair[0]))


def in_order(n):
    return sorted(pairs(n)), sorted(pairs(n), reverse=True)


def operators(n):
    a, b = (1, None if n < 3 else n), (n % 2, None if n % 3 else n)
    return a < b, a <= b, a > b, a >= b, [a] < [b]


def caught(n):
    values = []
    for k in range(n):
        values.append(k if k < 5 else None)
    try:
        return max(values)
    except TypeError:
        return -1


def lists_and_texts(n):
    rows = []
    for k in range(n):
        rows.append((k % 3, [k, None if k % 5 == 2 else 1], None if k == 3 else str(k)))
    return sorted(rows), max(rows, key=lambda row: (row[1][0], row[2]))


def known_values(n):
    m = None if n < 2 else n
    return max((3, m), (n, 1)), sorted([(3, m), (n, 1), (2, None)])


def through_a_heap(n):
    heap = list(pairs(n))
    heapq.heapify(heap)
    return [heapq.heappop(heap) for _ in range(len(heap))]


class Job:
    def __init__(self, at):
        self.at = at
        self.seen = 0
        self.next = None


class Machine:
    def __init__(self, at):
        self.current = None
        self.number = at


def with_payloads(n):
    heap, found = [], []
    for k in range(n):
        payload = None if k % 3 == 0 else Job(k) if k % 3 == 1 else Machine(k)
        heapq.heappush(heap, (k * 7 % 5, k, payload))
    while heap:
        _, k, payload = heapq.heappop(heap)
        if payload is None:
            found.append(-k)
        elif k % 3 == 1:
            payload.seen += payload.at
            found.append(payload.seen)
        else:
            payload.current = payload.number
            found.append(payload.current * 10)
    return found


def without_a_number(n):
    """Entries of one time lead to the objects, which have no order."""
    heap, found = [], []
    for k in range(n):
        job = Job(k)
        heapq.heappush(heap, (k * k % 7, job))
    while heap:
        time, job = heapq.heappop(heap)
        job.seen += 1
        found.append(job.at * 10 + time)
    return found


def dicts_behind_a_number(n):
    heap = []
    for k in range(n):
        heapq.heappush(heap, (k * k % 5, k, {"a": k, "b": k * 2}))
    return [heapq.heappop(heap)[2]["b"] for _ in range(n)]


@dataclass(order=True)
class Item:
    rank: int
    number: int
    job: Job = field(compare=False)


def records_and_objects(n):
    rows = []
    for k in range(n):
        job = Job(k)
        job.next = rows[-1][2] if rows else None
        rows.append((k * k % 5, Item(k % 3, k, job), None if k == 2 else job))
    rows.sort(reverse=True)
    return [row[1].job.at for row in rows], max(rows)[0]


def none_alone_at_first(n):
    """The type of the last part is that of None until the loop pushes numbers."""
    heap, parents = [(0, n, None)], {}
    while heap:
        length, place, before = heapq.heappop(heap)
        if place not in parents:
            parents[place] = before
            for k in (1, 3):
                if place - k >= 0:
                    heapq.heappush(heap, (length + k * k, place - k, place))
    return parents


def none_alone(n):
    heap = []
    for k in range(n):
        heapq.heappush(heap, (k * 7 % 5, k, None))
    return [heapq.heappop(heap) for _ in range(n)], (n % 2, None) < (1, None)


PROGRAMS: tuple[Callable[..., Any], ...] = (
    greatest, least, in_order, operators, caught, lists_and_texts, known_values, through_a_heap, with_payloads,
    without_a_number, dicts_behind_a_number, records_and_objects, none_alone_at_first, none_alone,
)  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_a_lane_raises_where_python_does(function: Callable[..., Any]) -> None:
    run = pcbatch.batch(function).run(np.array(NUMBERS))
    failed = (np.asarray(run.status) != 0).tolist()
    for lane, n in enumerate(NUMBERS):
        try:
            wanted = as_plain(function(n))
        except (TypeError, ValueError):
            assert failed[lane], n
            continue
        assert not failed[lane], n
        assert str(as_plain(lane_of(run.value, lane))) == str(wanted), n


def stored_elsewhere(n):
    """Python makes the attribute, and a lane stops."""
    found = Job(n)
    other = Machine(n)
    one = found if n % 2 else other
    one.seen = 5
    return found.seen


def test_a_lane_stops_where_the_class_lacks_the_attribute() -> None:
    run = pcbatch.batch(stored_elsewhere).run(np.array([1, 2, 3]))
    assert np.asarray(run.status).tolist() == [0, int(pcbatch.Status.LIMIT), 0]
    assert np.asarray(run.value)[[0, 2]].tolist() == [5, 5]
