"""Elements in an order that a method or a function of the user's tells, one comparison after the other."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Node:
    def __init__(self, place, cost):
        self.place = place
        self.cost = cost

    def __lt__(self, other):
        return self.cost < other.cost


class Card:
    def __init__(self, rank, suit):
        self.rank = rank
        self.suit = suit

    def __lt__(self, other):
        if self.rank == other.rank:
            return self.suit < other.suit
        return self.rank < other.rank

    def __eq__(self, other):
        return (self.rank, self.suit) == (other.rank, other.suit)


class Person:
    def __init__(self, name, pay, boss=None):
        self.name = name
        self.pay = pay
        self.boss = boss

    def __lt__(self, other):
        return self.name < other.name if self.pay == other.pay else self.pay < other.pay


@dataclass(order=True)
class Job:
    rank: int
    name: str = "x"


@functools.total_ordering
class Version:
    def __init__(self, major, minor):
        self.major = major
        self.minor = minor

    def __eq__(self, other):
        return (self.major, self.minor) == (other.major, other.minor)

    def __lt__(self, other):
        return (self.major, self.minor) < (other.major, other.minor)


@functools.total_ordering
class Least:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x if self.x > 0 else False

    def __ge__(self, other):
        return self.x >= other.x if other.x > 0 else True


def nodes(n):
    return [Node(i, (n * (i + 3) * 7919) % 5) for i in range(6)]


def sorted_in_place(n):
    found = nodes(n)
    found.sort()
    return [node.place for node in found]


def backwards(n):
    """Equal elements stay in their order, also where it is turned."""
    return [node.place for node in sorted(nodes(n), reverse=True)]


def of_lanes_lengths(n):
    hand = []
    for k in range(n):
        hand.append(Card((n * k * 5) % 4, (n + k) % 3))
    hand.sort()
    best, least = max(hand), min(hand)
    return [card.rank * 4 + card.suit for card in hand], best.rank * 4 + best.suit, least.rank * 4 + least.suit


def by_keys(n):
    found = sorted(range(6), key=lambda k: Card((n * k) % 3, k % 2))
    return found, max(range(5), key=lambda k: Card((n * k) % 3, 0))


def by_function(n):
    def rank(a, b):
        if a % 3 != b % 3:
            return a % 3 - b % 3
        return b - a

    values = [(n * k * 7) % 11 for k in range(6)]
    longest = ["pear", "fig", "apple"]
    if n > 2:
        longest.append("plum")
    longest.sort(key=functools.cmp_to_key(lambda a, b: len(b) - len(a)), reverse=True)
    return sorted(values, key=functools.cmp_to_key(rank)), " ".join(longest)


def of_linked_objects(n):
    ann = Person("zed", n)
    team = [ann, Person("amy", 3, ann)]
    if n > 3:
        team.append(Person("bob", 5, team[1]))
    team = sorted(team)
    return ",".join(person.name for person in team) + ":" + min(team).name


def of_dataclasses(n):
    jobs = [Job((n * k) % 3, "abc"[k % 3]) for k in range(5)]
    jobs.sort()
    return "".join(job.name for job in jobs), min(jobs).rank


def by_total_ordering(n):
    one, other = Version(n % 3, n % 5), Version(1, 2)
    found = [one >= other, one > other, one <= other, one < other, one == other, one != other]
    a, b = Least(n - 2), Least(1)
    return found + [a < b, a > b, a <= b, a >= b]


def reflected(n):
    one, other = Card(n, 2), Card(3, n)
    return [one > other, other > one, one != other, Card(3, 3) in [one, other]]


def texts_beside_keys(n):
    """Texts that are known, in elements whose order the lane tells."""
    pairs = [("Ann", n), ("Cleo", 3), ("Bo", 2 * n)]
    people = [Person("Ann", n), Person("Cleo", 3)]
    pairs.sort(key=lambda pair: -pair[1])
    best = max(people, key=lambda person: person.pay)
    names = ",".join(pair[0] for pair in sorted(pairs, key=lambda pair: pair[1]))
    return pairs[0][0] + best.name + names + min(pairs, key=lambda pair: pair[1])[0]


def events(n):
    """Texts that are known, in a heap that begins empty."""
    queue = []
    heapq.heappush(queue, (n, "arrive"))
    heapq.heappush(queue, (3, "go"))
    time, what = heapq.heappop(queue)
    return time * 10 + len(what)


def made_for_a_comparison(n):
    return [Version(n, 1) > Version(3, 0), Version(n, 1) <= Version(2, 2), Least(n) < Least(2)]


class Stairs:
    def __init__(self, n):
        self.n = n

    def steps(self, k):
        count = 0
        while k > 0 and (k + self.n) % 5:
            k -= 1
            count += 1
        return count

    def extremes(self):
        return min(range(9), key=lambda k: self.steps(k)), sorted(range(9), key=lambda k: -self.steps(k))


def by_a_method_that_branches(n):
    return Stairs(n).extremes()


PROGRAMS = [
    by_a_method_that_branches,
    texts_beside_keys,
    events,
    made_for_a_comparison,
    sorted_in_place,
    backwards,
    of_lanes_lengths,
    by_keys,
    by_function,
    of_linked_objects,
    of_dataclasses,
    by_total_ordering,
    reflected,
]


def of_lane(found: Any, lane: int) -> Any:
    if isinstance(found, tuple):
        return tuple(of_lane(part, lane) for part in found)
    return [of_lane(part, lane) for part in found] if isinstance(found, list) else found.tolist()[lane]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_the_order_is_that_of_python(fn: Callable[[int], Any]) -> None:
    values = np.array([1, 2, 3, 7])
    found = pcbatch.batch(fn)(values)
    assert [of_lane(found, k) for k in range(len(values))] == [fn(n) for n in values.tolist()]


def counting(n):
    calls = 0

    def rank(a, b):
        nonlocal calls
        calls += 1
        return a - b

    return sorted([n, 3, 1, 2], key=functools.cmp_to_key(rank))[0] * 100 + calls


class Counted:
    def __init__(self, x):
        self.x = x
        self.asked = 0

    def __lt__(self, other):
        self.asked += 1
        return self.x < other.x


def counting_in_objects(n):
    counted = [Counted((n * k) % 5) for k in range(5)]
    counted.sort()
    return sum(one.asked for one in counted)


@pytest.mark.parametrize("fn", [counting, counting_in_objects], ids=lambda fn: fn.__name__)
def test_comparisons_with_effects_are_refused(fn: Callable[[int], int]) -> None:
    """Python makes other comparisons, and their number depends on how it sorts."""
    with pytest.raises(pcbatch.CompileError):
        pcbatch.batch(fn)(np.array([1, 2]))


class Shape:
    """A base class with an order that subclasses inherit."""

    def area(self):
        raise NotImplementedError

    def __lt__(self, other):
        return self.area() < other.area()


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2


class Disc(Shape):
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return 3 * self.radius**2


def largest_of_two_classes(n):
    shapes = [Square(n), Disc(2)]
    shapes.sort()
    return max(shapes).area(), min(shapes).area(), max([Disc(n), Square(7)]).area()


def largest_of_many(n):
    shapes = []
    for k in range(1, n):
        shapes.append(Square(k) if k % 2 else Disc(k))
    return max(shapes).area(), sorted(shapes)[0].area(), Square(2) > Disc(n), Disc(n) > Square(2)


@pytest.mark.parametrize("program", (largest_of_two_classes, largest_of_many))
def test_an_inherited_order_compares_objects_of_several_classes(program):
    result = pcbatch.batch(program)(np.arange(2, 7))
    for place, n in enumerate(range(2, 7)):
        assert [int(column[place]) for column in result] == list(map(int, program(n)))
