"""Texts in the fields of records made in lanes, and the texts that Python makes of objects by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Item:
    def __init__(self, name, price, following=None):
        self.name = name
        self.price = price
        self.title = None
        self.following = following


def found_by_name(n):
    head = Item("apple", 3)
    head = Item("pear", n, head)
    if n > 2:
        head = Item("fig", n + 1, head)
    names, price = [], -1
    while head is not None:
        names.append(head.name)
        if head.name == "fig":
            price = head.price
        head = head.following
    return ",".join(names) + str(price)


def one_text_in_two_records(n):
    text = "x" * n
    first = Item(text, 1)
    second = Item(text, 2, first)
    third = Item(second.name + "!", 3, second)
    third.name += "?"
    if n > 2:
        second.title = "Dr"
    out, here = "", third
    while here is not None:
        out += here.name + ("" if here.title is None else here.title) + ";"
        here = here.following
    return out


def of_each_length(n):
    head = None
    for k in range(n):
        head = Item(f"{k * k * k}", k, head)
    out = ""
    while head is not None:
        out += f"{head.name:>4}"
        head = head.following
    return out


def in_lists_of_two_classes(n):
    shapes = [Square("s", n), Cube("c", n)]
    if n > 2:
        shapes.append(Cube("d", 1))
    return "".join(shape.name for shape in shapes) + str(sum(shape.area() for shape in shapes))


class Square:
    def __init__(self, name, side):
        self.name = name
        self.side = side

    def area(self):
        return self.side * self.side


class Cube(Square):
    def area(self):
        return 6 * super().area()


@dataclass
class Point:
    x: int
    y: int
    tag: str = "p"
    hidden: int = field(default=3, repr=False)


class Pair(NamedTuple):
    a: int
    b: bool


class Color(Enum):
    RED = 1
    GREEN = 2


def of_dataclasses(n):
    point = Point(n, n + 1, "it's" if n > 2 else 'say "hi"' if n > 1 else "a\\b\n\t\x01")
    return f"{point}{point!r:>60}|" + str(point)


def of_tuples(n):
    return str((n, "x", (n + 1,), [n, None, 2.5], {"k": n}, ())) + f"{Pair(n, n > 3)}"


def of_lists(n):
    numbers, words = [], []
    for k in range(n):
        numbers.append(k * n)
        words.append("a'b" if k % 2 else "c")
    return f"{numbers} {[k > 2 for k in numbers]} " + str(words)


def of_members(n):
    color = Color.RED if n % 2 else Color.GREEN
    return f"{color} {color!r} {color:>14}| {str(color):>12}|"


def by_templates(n):
    shown = "%s and %r, %5s" % ((n, 1), "q" * n, [n])  # noqa: UP031
    return shown + "{} {!r}".format(Point(n, 1), "z" * n)


class Debt:
    def __init__(self, amount):
        self.amount = amount

    def __str__(self):
        return "debt" if self.amount < 0 else f"acc({self.amount})"


class Named(Debt):
    def __str__(self):
        return "N:" + super().__str__()


def of_methods_in_templates(n):
    debt = Named(n - 3)
    return "%s!%d" % (debt, n) + "{1}{0}".format(debt, n) + f"{debt!s:>12}|"  # noqa: UP030, UP031, UP032


PROGRAMS = [
    found_by_name,
    one_text_in_two_records,
    of_each_length,
    in_lists_of_two_classes,
    of_dataclasses,
    of_tuples,
    of_lists,
    of_members,
    by_templates,
    of_methods_in_templates,
]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_the_texts_are_those_of_python(fn: Callable[[int], str]) -> None:
    values = np.array([1, 2, 5])
    assert pcbatch.batch(fn)(values).tolist() == [fn(n) for n in values.tolist()]


def printing(n):
    color = Color.RED if n % 2 else Color.GREEN
    print(color, [color], f"{color:>14}|{color!r}", {"k": color})
    print(Point(n, 2), (n, "a"), Pair(n, n > 2))
    return n


def test_what_a_lane_prints(capfd: pytest.CaptureFixture[str]) -> None:
    """A member of an enumeration was shown by the name of its class."""
    pcbatch.batch(printing)(np.array([1, 2]))
    lines = capfd.readouterr().out.splitlines()
    for k, n in enumerate((1, 2)):
        printing(n)
        plain = [f"[lane {k}] {line}" for line in capfd.readouterr().out.splitlines()]
        assert [line for line in lines if line.startswith(f"[lane {k}]")] == plain


def of_complex_numbers(n):
    return str(Point(n * 1j, 1))


def test_a_complex_number_has_no_text_in_a_lane() -> None:
    with pytest.raises(pcbatch.CompileError, match="this text is made while compiling"):
        pcbatch.batch(of_complex_numbers)(np.array([1, 2]))


def beyond_ascii(n):
    return str(["ü" if n > 1 else "u"])


def test_a_text_beyond_ascii_between_quotes_stops_its_lane() -> None:
    run: Any = pcbatch.batch(beyond_ascii)
    assert run(np.array([1, 1])).tolist() == ["['u']"] * 2
    with pytest.raises(pcbatch.BatchRuntimeError, match="letters beyond ASCII"):
        run(np.array([1, 2]))
