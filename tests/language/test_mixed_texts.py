"""Numbers that are a bool on some paths only: `True` and `1` are equal, and their texts are not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.data.texts.known_texts import MIXED
from pcbatch.errors import CompileError

pytestmark = pytest.mark.share(2)

A, B = jnp.array([0, 1, 2, -1]), jnp.array([1, 0, 3, -2])


@pytest.fixture(autouse=True)
def _bools_become_numbers():
    with jax.numpy_dtype_promotion("standard"):
        yield


class Cell:
    def __init__(self):
        self.value = 1


def picked(a, b):
    if a > b:
        return True
    return b


def operator(a, b):
    return str(a and b > 0)


def extreme(a, b):
    return f"{max(True, b)}"


def path(a, b):
    c = 1
    if a > 0:
        c = True
    return str(c)


def loop(a, b):
    c = a > 0
    while b > 0:
        c = b
        b -= 1
    return format(c)


def element(a, b):
    return str([a > 0, b][a % 2])


def of_tuple(a, b):
    t = (1, a) if a > 0 else (b > 0, b)
    return str(t[0])


def attribute(a, b):
    cell = Cell()
    if a > 0:
        cell.value = b > 0
    return str(cell.value)


def of_call(a, b):
    return str(picked(a, b))


def value(a, b):
    d = {0: a > 0}
    d[b] = b
    return str(d[0])


def key(a, b):
    d = {a: 1}
    d[b > 0] = 2
    return "".join(str(k) for k in d)


def member(a, b):
    s = {a > 0}
    s.add(b)
    return "".join(str(x) for x in sorted(s))


def bits(a, b):
    return str((a and b > 0) | (b > 0))


def printed(a, b):
    c = b
    if a > 0:
        c = b > 0
    print("c", c)
    return c


def message(a, b):
    if a > 5:
        raise ValueError(f"it is {a and b > 0}")
    return a


MIXED_PROGRAMS = (
    operator,
    extreme,
    path,
    loop,
    element,
    of_tuple,
    attribute,
    of_call,
    value,
    key,
    member,
    bits,
    printed,
    message,
)


@pytest.mark.parametrize("program", MIXED_PROGRAMS, ids=lambda program: program.__name__)
def test_text_of_a_number_that_may_be_a_bool_is_refused(program):
    with pytest.raises(CompileError, match=MIXED):
        pcbatch.batch(program)(A, B)


def settled(a, b):
    c = a and b > 0
    text = str(a) if a == 0 else str(b > 0)
    xs = [a > 0, b > 0, a == b]
    known = str(+(a > 0)) + str((a > 0) + 0) + str((a > 0) | b) + str(sum(xs)) + str(min(xs)) + str(xs[a % 3])
    return text, str(int(c)), f"{c:3d}", str(c + 0), str(-c), known, format(a > 0), format(b), format(a > 0, "2d")


def test_texts_of_bools_and_numbers_apart():
    batched = pcbatch.batch(settled)
    found = zip(*(part.tolist() for part in batched(A, B)), strict=True)
    assert list(found) == [settled(int(a), int(b)) for a, b in zip(A, B, strict=True)]
