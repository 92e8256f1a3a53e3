"""The texts of objects, numbers and texts that may be None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pcbatch


class Plain:
    """An object whose text is one expression."""

    def __init__(self, c):
        self.c = c

    def __repr__(self):
        return f"<{self.c}>"


class Bin:
    """An object whose texts have loops and branches."""

    def __init__(self, c):
        self.c = c
        self.items = []

    def __repr__(self):
        return f"[{' '.join(map(str, self.items))}|{self.c}]"

    def __str__(self):
        if self.c > 3:
            return "large"
        return f"s{self.c}"


@dataclass
class Point:
    """A point of a chain."""

    x: int
    next: Point | None = None


class Packer:
    """Has a list of bins."""

    def __init__(self, c):
        self.bins = []

    def pack(self, n):
        for i in range(n):
            self.add(i)
        return self

    def add(self, size):
        made = Bin(size)
        made.items.append(size)
        self.bins.append(made)


class Twice(Packer):
    """Another one."""

    def add(self, size):
        made = Bin(size)
        made.items.append(2 * size)
        self.bins.append(made)


def one_expression(n):
    best = None
    if n > 2:
        best = Plain(n)
    return f"{best!r} {best}", repr(best), str(best), f"{best!r:>9}|"


def loops_and_branches(n):
    best = None
    for i in range(n):
        if i % 3 == 2:
            best = Bin(i)
            best.items.append(i)
            best.items.append(n)
    return f"{best!r} {best}", repr(best), str(best)


def found_or_none(n):
    bins = [Plain(i) for i in range(n - 1)]
    return repr(max(bins, key=lambda b: b.c % 3, default=None)), str(next((b for b in bins if b.c > 1), None))


def numbers_and_texts(n):
    x = n * 3 if n > 2 else None
    t = "ab" * n if n > 3 else None
    return f"{x}", str(x), repr(t), f"{t!r:<8}|", f"{t}"


def no_format(n):
    x = n / 2 if n > 2 else None
    try:
        return f"{x:.2f}"
    except TypeError:
        return "none"


def of_a_dataclass(n):
    p = Point(n) if n > 2 else None
    return repr(p), f"{p}"


def of_classes_in_turn(n):
    """The bins are known to be some only after the list of them has been looked at while it is empty."""
    best = None
    for cls in (Packer, Twice):
        packer = cls(n).pack(n)
        if best is None or len(packer.bins) > len(best.bins):
            best = packer
    fullest = max(best.bins, key=lambda b: (b.c, len(b.items)))
    return repr(fullest)


OF_NONE = [one_expression, loops_and_branches, found_or_none, numbers_and_texts, no_format, of_a_dataclass]


@pytest.mark.parametrize("fn", [*OF_NONE, of_classes_in_turn])
def test_lanes_have_the_texts_of_python(fn: Any) -> None:
    found, plain = pcbatch.batch(fn)(np.arange(1, 6)), [fn(n) for n in range(1, 6)]
    if isinstance(found, tuple):
        found = list(zip(*(column.tolist() for column in found), strict=True))
    assert list(found) == plain


def chain(n):
    p = None
    for i in range(n):
        p = Point(i, p)
    return str(p)


def test_the_text_of_a_chain_is_refused() -> None:
    with pytest.raises(pcbatch.errors.CompileError, match="PCB304"):
        pcbatch.batch(chain)(np.arange(3))
