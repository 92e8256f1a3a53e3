"""How objects that are keys are told apart: which fields `__eq__` compares, None beside objects, hashes of numbers."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.mappings.key_hashes import hashed
from pcbatch.data.mappings.key_objects import Telling, telling


@dataclass(frozen=True)
class Road:
    a: int
    b: int
    w: float = field(compare=False, default=0.0)


class Vec:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return isinstance(other, Vec) and (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.y, self.x))


class Slots:
    __slots__ = ("key", "rest")

    def __init__(self, key, rest):
        self.key, self.rest = key, rest

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return self._id() == other._id()

    def _id(self):
        return self.key

    def __hash__(self):
        return hash(self._id())


class Half(Vec):
    def __eq__(self, other):
        return self.x == other.x

    def __hash__(self):
        return hash(self.y)


class Either(Vec):
    def __eq__(self, other):
        return self.x == other.x or self.y == other.y

    def __hash__(self):
        return hash(self.x)


class Near(Vec):
    def __eq__(self, other):
        return abs(self.x - other.x) < 2

    def __hash__(self):
        return 1


class Unlike(Vec):
    def __eq__(self, other):
        return self.x != other.x

    __hash__ = Vec.__hash__


class ByKind(Vec):
    def __eq__(self, other):
        return self.x == other.x if isinstance(self.x, int) else self.y == other.y

    __hash__ = Near.__hash__


class ByNone(Vec):
    def __eq__(self, other):
        if self.x is None or other.x is None:
            return self.y == other.y
        return self.x == other.x and self.y == other.y

    __hash__ = Near.__hash__


class OfOneKind(Vec):
    def __eq__(self, other):
        return type(self.x) is type(other.x) and self.y == other.y

    __hash__ = Near.__hash__


class Together(Vec):
    def __eq__(self, other):
        return (self.x == other.x) == (self.y == other.y)

    __hash__ = Near.__hash__


class ByAddress(Vec):
    __eq__ = Vec.__eq__
    __hash__ = object.__hash__


@pytest.mark.parametrize("cls", [ByKind, ByNone, OfOneKind, Together, ByAddress])
def test_a_method_that_asks_fields_for_more_is_not_followed(cls: type) -> None:
    assert telling(cls) is None


def test_how_objects_are_told_apart() -> None:
    assert telling(Road) == Telling(("a", "b"), ("a", "b"))
    assert telling(Vec) == Telling(("x", "y"), ("y", "x"))
    assert telling(Slots) == Telling(("key",), None)
    assert telling(Half) is None  # the hash reads a field that is not compared
    assert telling(Either) is None
    assert telling(Near) is None
    assert telling(Unlike) is None


def test_none_beside_objects_is_a_key() -> None:
    def found(n):
        d = {Vec(0, 0): 1}
        v = None if n == 1 else Vec(0, n - 2)
        d[Vec(0, 5)] = 2
        return v in d, d.get(v, -1)

    there, values = pcbatch.batch(found)(np.array([1, 2, 3]))
    assert (there.tolist(), values.tolist()) == ([False, True, False], [-1, 1, -1])


def test_a_key_shows_what_its_object_becomes() -> None:
    def changed(n):
        road = Slots(n, 0)
        d = {road: 7}
        road.rest = 5 * n
        for key in d:
            return key.rest + d[key]

    assert pcbatch.batch(changed)(np.array([1, 2])).tolist() == [12, 17]


def test_a_copy_has_the_hashes_of_keys_as_they_are_now() -> None:
    def joined(n):
        road = Slots(1, 0)
        d = {road: 1}
        road.key = n
        return len({**d, Slots(n, 1): 4})

    run = pcbatch.batch(joined).run(np.array([1, 2]))
    assert [int(status) == pcbatch.Status.OK for status in run.status] == [True, False]


def test_copies_of_records_are_other_records() -> None:
    def copied(n):
        a = Slots(n, 1)
        b, c = copy.copy(a), copy.deepcopy(a)
        d = {id(a): 1, id(b): 2, id(c): 3}
        b.key, c.key = 50, 60
        return a.key, b.key, c.key, len(d), a is b

    results = pcbatch.batch(copied)(np.array([1, 2]))
    assert [part.tolist() for part in results] == [[1, 2], [50, 50], [60, 60], [3, 3], [False, False]]


def test_copies_of_what_leads_to_records_are_refused() -> None:
    with pytest.raises(pcbatch.CompileError, match="a lane cannot copy"):
        pcbatch.batch(lambda n: len({x: 1 for x in copy.deepcopy([Slots(n, 1)])} | {Slots(n, 1): 2}))(np.array([1]))


def test_hashes_tell_small_integers_apart() -> None:
    with jax.enable_x64(True):
        hashes = [int(hashed([jnp.asarray(k, jnp.int64)])) for k in (*range(64), 2**40)]
    assert len(set(hashes)) == len(hashes)
