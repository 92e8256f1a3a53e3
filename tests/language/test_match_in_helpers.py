"""`match` in helpers without a decorator: what Python itself would answer wrongly for values of a lane."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Circle:
    __match_args__ = ("radius",)

    def __init__(self, radius):
        self.radius = radius


class Rectangle:
    __match_args__ = ("width", "height")

    def __init__(self, width, height):
        self.width, self.height = width, height


class Group:
    def __init__(self, items):
        self.items = items


def area(shape):
    match shape:
        case Circle(0):
            return 1000
        case Circle(radius):
            return 3 * radius * radius
        case Rectangle(w, h) if w == h:
            return w * w + 100
        case Rectangle(width=w, height=h):
            return w * h
        case Group(items=items):
            return sum(area(item) for item in items)
        case _:
            return -1


def records(n):
    shapes = []
    for k in range(n):
        if k % 3 == 0:
            shapes.append(Circle(k))
        elif k % 3 == 1:
            shapes.append(Rectangle(k, 4))
        else:
            shapes.append(Group([Circle(1), Rectangle(2, k)]))
    return sum(area(shape) for shape in shapes)


def one_of_two(n):
    return area(Circle(n) if n % 2 else Rectangle(n, 4))


def kind(x):
    match x:
        case bool():
            return 0
        case int():
            return 1
        case float():
            return 2
        case _:
            return 3


def numbers(n):
    return kind(n) * 100 + kind(n > 2) * 10 + kind(n * 0.5)


def named(x):
    match x:
        case None:
            return -1
        case 3:
            return 33
        case _:
            return 5


def optional(n):
    x = None
    if n > 1:
        x = n
    return named(x)


@pytest.mark.parametrize("f", [records, one_of_two, numbers, optional], ids=lambda f: f.__name__)
def test_as_plain_python(f) -> None:
    assert pcbatch.batch(f)(jnp.arange(7)).tolist() == [f(k) for k in range(7)]
