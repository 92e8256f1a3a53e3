"""Heaps of objects whose order is a method that branches: the steps of `heapq`, in its order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")


class Event:
    def __init__(self, time, kind):
        self.time = time
        self.kind = kind

    def __lt__(self, other):
        if self.time != other.time:
            return self.time < other.time
        return self.kind // 2 < other.kind // 2


@dataclass
class Job:
    name: str
    cost: int

    def __lt__(self, other):
        if self.cost == other.cost:
            return self.name < other.name
        return self.cost > other.cost


def in_a_list(n):
    """Equal elements come out in the order that `heapq` gives."""
    heap = []
    for k in range(7):
        heapq.heappush(heap, Event((k * n) % 3, k))
    out = []
    while heap:
        event = heapq.heappop(heap)
        out.append(event.time * 10 + event.kind)
    return out


class Simulation:
    def __init__(self):
        self.events = []
        self.now = 0
        self.log = []

    def schedule(self, after, kind):
        heappush(self.events, Event(self.now + after, kind))

    def following(self):
        return heappop(self.events)

    def run(self):
        while self.events:
            event = self.following()
            self.now = event.time
            self.log.append(event.kind * 100 + event.time)
            if event.kind == 1 and event.time < 9:
                self.schedule(3, 2)
                self.schedule(3, 1)


def in_a_field(n):
    simulation = Simulation()
    for after, kind in ((n, 1), (2, 2), (2, 1), (n + 1, 3)):
        simulation.schedule(after, kind)
    simulation.run()
    return simulation.log


def dropped(n):
    heap = []
    for k in range(4):
        heappush(heap, Job("abcd"[(k * n) % 4], (k * n) % 3))
    heappop(heap)
    best = heappop(heap)
    return best.name, best.cost, len(heap)


def text_of_an_empty_heap(n):
    heap = []
    if n > 2:
        heappush(heap, Event(n, 1))
    try:
        event = heappop(heap)
    except IndexError as e:
        return str(e)
    return str(event.time)


@pytest.mark.parametrize("fn", [in_a_list, in_a_field, dropped, text_of_an_empty_heap])
def test_elements_come_out_as_in_plain_python(fn: Callable[..., Any]) -> None:
    ns = range(6)
    found = pcbatch.batch(fn)(np.array(ns))
    assert [as_plain(lane_of(found, n)) for n in ns] == [as_plain(fn(n)) for n in ns]


def test_a_lane_raises_where_the_heap_is_empty() -> None:
    def taken(n):
        heap = []
        for k in range(n):
            heappush(heap, Event(k % 2, k))
        event = heappop(heap)
        return event.kind

    result = pcbatch.batch(taken).run(np.arange(3))
    assert [int(status) != 0 for status in result.status] == [True, False, False]
