"""Lanes choose among objects of several classes, which are known while compiling or made in the lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import unlike_plain

pytestmark = pytest.mark.promotion("standard")
NUMBERS = (0, 1, 2, 3, 5, 6, 7)


class Centre:
    def __init__(self, x):
        self.x = x


class Sphere:
    def __init__(self, x, radius):
        self.centre = Centre(x)
        self.radius = radius

    def distance(self, place):
        return abs(place - self.centre.x) - self.radius

    def area(self):
        return self.radius * self.radius


class Box:
    weight = 2.5

    def __init__(self, x, half):
        self.x = x
        self.half = half

    def distance(self, place):
        if place < self.x:
            return self.x - place
        return place - self.x + self.half

    def area(self):
        return self.half * 2


class Plane:
    def __init__(self, height):
        self.height = height
        self.weight = 1.5

    def distance(self, place):
        return place - self.height

    def area(self):
        return -1.0


SCENE = [Sphere(1.0, 0.5), Box(3.0, 0.25), Plane(-1.0)]
PLANES = (Plane(2.0), Plane(-1.0), Plane(4.0))
NAMES = [("one", 1, True), ("three", 3, False), ("x", 9, True)]


class Item:
    def __init__(self, name, price):
        self.name, self.price = name, price


SHOP = [Item("rope", 3), Item("axe", 7)]


def indexed(n):
    found = SCENE[n % 3]
    return found.distance(2.0 * n), isinstance(found, Box), found.area(), SCENE[-1 - n % 3].area()


def nearest(n):
    found = min(SCENE, key=lambda one: one.distance(n * 1.0))
    return found.area(), isinstance(found, Plane), max(PLANES, key=lambda one: one.distance(n * -1.0)).height


def constants_and_fields(n):
    return [SCENE, PLANES][1][n % 3].height, SCENE[1 + n % 2].weight


def rows_of_several_kinds(n):
    name, number, flag = NAMES[n % 3]
    return name * 2, number + 1, flag


def made_in_the_lane(n):
    shapes = [Sphere(n * 1.0, 1.0), Box(2.0, n * 0.5)]
    return min(shapes, key=lambda one: one.distance(3.0)).area(), shapes[n % 2].area()


def three_made_in_the_lane(n):
    shapes = [Sphere(n * 1.0, 1.0), Box(2.0, n * 0.5), Plane(n * 2.0)]
    one, some, pair = shapes[n % 3], shapes[n % 2 :], (None, Box(1.0, n * 1.0), Sphere(n * 1.0, 2.0))
    either = pair[n % 3]
    return one.area(), shapes[-1 - n % 3].distance(2.0), some[n % 2].area(), either.area() if either else -5.0


def known_choice(n):
    """A choice that is made while compiling needs no records."""
    return min(SHOP, key=lambda one: one.price).name * n


def double(x):
    return x * 2


def counted(x):
    while x < 0:
        x += 1
    return x + 1


def classes_and_functions(n):
    made = [(Box if k % 2 else Sphere)(k, 2.0) for k in range(4)]
    return [one.area() for one in made], sum((double if k % 2 else counted)(k - n) for k in range(n))


PROGRAMS: tuple[Callable[..., Any], ...] = (
    indexed, nearest, constants_and_fields, rows_of_several_kinds, made_in_the_lane,
    three_made_in_the_lane, known_choice, classes_and_functions,
)  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_as_plain_python(function: Callable[..., Any]) -> None:
    assert unlike_plain(function, NUMBERS) == []


def chosen_by_the_lane(n):
    return SHOP[n % 2].price


def assigned(n):
    found = SCENE[n % 3]
    found.weight = 3
    return n


@pytest.mark.parametrize(
    ("function", "title"),
    [(chosen_by_the_lane, "a field of theirs is no number"), (assigned, "existed before the call")],
)
def test_refused(function: Callable[..., Any], title: str) -> None:
    with pytest.raises(pcbatch.CompileError, match=title):
        pcbatch.batch(function)(np.array(NUMBERS))
