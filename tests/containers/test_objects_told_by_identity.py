"""Objects of classes without `__eq__`: Python compares them by which object each is, and so do lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")


class Thing:
    def __init__(self, v):
        self.v = v


@dataclass
class Holder:
    thing: Thing
    k: int


class Mode:
    def __init__(self, name):
        self.name = name


FAST, SLOW = Mode("fast"), Mode("slow")


def in_lists(n):
    xs = [Thing(1), Thing(1), Thing(n)]
    a = xs[n % 2]
    return a in xs, xs.index(xs[1]), xs.count(a), Thing(1) in xs


def compared(n):
    a, b = Thing(n), Thing(n)
    xs = [b, a]
    return xs[1] == a, xs[0] == a, xs[0] != a, a == a


def left_out(n):
    xs = [Thing(k) for k in range(3)]
    best = xs[0]
    for x in xs:
        if x.v == n:
            best = x
    return [x.v for x in xs if x != best]


def in_structures(n):
    xs = [Thing(1), Thing(n)]
    a = xs[0]
    return Holder(a, 1) == Holder(xs[0], 1), (a, 2) == (xs[0], 2), {1: a} == {1: xs[1]}, [a] == xs[:1]


class Room:
    def __init__(self):
        self.line = []

    def leave(self, thing):
        if thing in self.line:
            self.line.remove(thing)


def removed(n):
    room, things = Room(), [Thing(k) for k in range(4)]
    for thing in things:
        room.line.append(thing)
    room.leave(things[n % 4])
    room.leave(things[1])
    return [thing.v for thing in room.line], things[n % 4] is things[1]


def known_before(n):
    mode = FAST
    return mode == FAST, mode == SLOW, mode is SLOW, n


@pytest.mark.parametrize("fn", [in_lists, compared, left_out, in_structures, removed, known_before])
def test_lanes_are_those_of_plain_python(fn: Callable[..., Any]) -> None:
    ns = range(5)
    found = pcbatch.batch(fn)(np.array(ns))
    assert [as_plain(lane_of(found, n)) for n in ns] == [as_plain(fn(n)) for n in ns]
