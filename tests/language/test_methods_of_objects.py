"""Methods of objects that a lane makes: they are compiled along where they branch on values of the lane."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.language import own_shapes
from tests.language.own_shapes import Holder


class Cache:
    """A cache that drops what was used longest ago."""

    def __init__(self, capacity):
        self.capacity, self.pages, self.misses = capacity, [], 0

    def visit(self, page):
        if page in self.pages:
            self.pages.remove(page)
        else:
            self.miss()
            if len(self.pages) == self.capacity:
                self.pages.pop(0)
        self.pages.append(page)

    def miss(self):
        if self.misses >= 0:
            self.misses += 1


class Walker:
    """A position that steps down while it is high."""

    def __init__(self, x):
        self.x = x

    def step(self, k=1):
        if self.x > 2:
            self.x -= k
        return self.x * 2


class Base:
    """A class whose method a subclass has as well."""

    def __init__(self, x):
        self.x = x

    def worth(self):
        return self.x if self.x > 0 else -self.x


class Double(Base):
    """A subclass with a method of its own."""

    def worth(self):
        return 2 * self.x if self.x > 0 else 0


def test_a_class_with_a_list() -> None:
    @pcbatch.batch
    def misses(pages, capacity):
        cache = Cache(capacity)
        for page in pages:
            cache.visit(page)
        return cache.misses

    pages = np.array([[1, 2, 1, 3], [1, 1, 1, 2]])
    assert misses(pages, np.array([2, 1])).tolist() == [
        misses.plain(row, n) for row, n in zip(pages, (2, 1), strict=True)
    ]


def test_a_method_with_a_result_changes_its_object() -> None:
    @pcbatch.batch
    def walk(n):
        p = Walker(n)
        total = 0
        for _ in range(3):
            total += p.step(k=1)
        return total, p.x

    total, x = walk(jnp.array([1, 5, 9]))
    assert list(zip(total.tolist(), x.tolist(), strict=True)) == [walk.plain(n) for n in (1, 5, 9)]


def test_the_class_of_an_object_decides() -> None:
    @pcbatch.batch
    def both(n):
        a, b = 0, 0
        one = Base(n)
        other = Double(n)
        a = one.worth()
        b = other.worth()
        return a * 100 + b

    assert both(jnp.array([3, -4])).tolist() == [both.plain(3), both.plain(-4)]


class Twice:
    def __init__(self):
        self.total = 0

    def update(self, it):
        self.total += sum(it) * 100 + sum(it)

    def join(self, it):
        return sum(it) * 100 + sum(it)

    def __iadd__(self, it):
        self.total += sum(it) * 100 + sum(it)
        return self


def _methods_that_go_over_it_twice(n):
    twice = Twice()
    twice.update(reversed([n, 1, 2]))
    twice += reversed([n, 5])
    return twice.total + twice.join(reversed(list(range(n))))


def test_methods_of_the_users_get_an_iterator_whatever_their_name() -> None:
    found = pcbatch.batch(_methods_that_go_over_it_twice)(np.arange(5))
    assert found.tolist() == [_methods_that_go_over_it_twice(n) for n in range(5)]


class Shares:
    """Numbers divided among so many, with -7 where there is nobody."""

    def __init__(self, n):
        self.n = n

    def __getitem__(self, k):
        try:
            return (10 + k) // self.n
        except ZeroDivisionError:
            return -7

    def __iter__(self):
        try:
            first = 10 // self.n
        except ZeroDivisionError:
            first = -7
        return iter([first, first + 1])


def test_what_python_calls_for_a_subscript_may_catch_exceptions() -> None:
    def known_and_computed(n):
        shares = Shares(n)
        return shares[0] + 100 * shares[n]

    assert pcbatch.batch(known_and_computed)(np.arange(4)).tolist() == [known_and_computed(n) for n in range(4)]


def _summed(n):
    total = 0
    for share in Shares(n):
        total += share
    return total


def _unpacked(n):
    first, second = Shares(n)
    return first + second


@pytest.mark.parametrize("function", [_summed, lambda n: sum(list(Shares(n)))])
def test_what_python_calls_for_a_loop(function: Any) -> None:
    assert pcbatch.batch(function)(np.arange(4)).tolist() == [function(n) for n in range(4)]


def test_what_python_calls_to_unpack_may_not_branch() -> None:
    with pytest.raises(pcbatch.CompileError) as info:
        pcbatch.batch(_unpacked)(np.arange(4))
    assert info.value.diagnostics[0].code == "PCB305"


def _through_a_module(x, y):
    v = own_shapes.Vector(x, y)
    v.grow(y)
    return v.norm(), (v + v)[0], v[0] + v[1]


def _through_a_function(x, y):
    v = own_shapes.made(x, y)
    return v.norm(), v[0], v(y), abs(v)


def _through_an_attribute(x, y):
    holder = Holder(x)
    holder.bag += y
    return holder.bag.n, len(holder.bag)


def _with_a_metaclass(x, y):
    shape = own_shapes.Square(x) if x > 3 else own_shapes.Line(y)
    return shape.area() + sum(each.area() for each in [own_shapes.Square(x), own_shapes.Square(y)])


def _stored_by_methods(x, y):
    v = own_shapes.Vector(x, y)
    v[x % 2] = 5
    v[1] += y
    w = own_shapes.Vector(x, y)
    del w[y % 2]
    return v.x, v.y, w.x, w.y


def _augmented_by_methods(x, y):
    v = own_shapes.Vector(x, y)
    v += own_shapes.Vector(y, y)
    bag = same = own_shapes.Bag(x)
    bag += y
    return v.x, v.y, bag.n, same.n


def _true_by_methods(x, y):
    v, bag, nothing = own_shapes.Vector(x, y), own_shapes.Bag(x), None if x > 3 else own_shapes.Bag(y)
    rounds = 0
    while bag and rounds < 9:
        bag.n -= 1
        rounds += 1
    return bool(v), not v, 1 if v and y else 2, rounds, not nothing, (-v).x


def _gone_over_by_methods(x, y):
    v = own_shapes.Vector(x, y)
    total = sum(k * each for k, each in enumerate(v))
    for each in own_shapes.Vector(y, x):
        total = 3 * total + each
    return total, max(v), len([*v])


def _around(k):
    class Turned:
        def __init__(self, x):
            self.x = x

        def __getitem__(self, i):
            return 7 if self.x > k else self.x + i

    def turned(x, y):
        return Turned(x)[1] + Turned(y)[0]

    return turned


@pytest.mark.parametrize(
    "function",
    [
        _through_a_module,
        _through_a_function,
        _through_an_attribute,
        _with_a_metaclass,
        _stored_by_methods,
        _augmented_by_methods,
        _true_by_methods,
        _gone_over_by_methods,
        _around(2),
    ],
)
def test_methods_that_branch_of_classes_that_stand_anywhere(function: Any) -> None:
    xs, ys = np.arange(1, 9), np.array([1, 2, 0, 1, 2, 3, 1, 2])
    found = pcbatch.batch(function)(xs, ys)
    columns = found if isinstance(found, tuple) else (found,)
    wanted = [function(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
    rows = wanted if isinstance(wanted[0], tuple) else [(row,) for row in wanted]
    assert [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)] == rows


class Machine:
    """A machine whose operations stand in a table of the class."""

    OPERATIONS = {"+": lambda a, b: a + b, "*": lambda a, b: a * b}

    def __init__(self):
        self.stack = []

    def run(self, text):
        for sign in text:
            if sign in self.OPERATIONS:
                right = self.stack.pop()
                self.stack.append(self.OPERATIONS[sign](self.stack.pop(), right))
            else:
                self.stack.append(int(sign))
        return self.stack[-1]


class Other(Base):
    """A class of which a subclass has another table."""

    TABLE = {1: lambda a: a + 1, 2: lambda a: a * 5}

    def asked(self, k):
        return self.TABLE[k](self.x)


class Another(Other):
    """That subclass."""

    TABLE = {1: lambda a: a - 1, 2: lambda a: a * 7}


def test_a_table_of_functions_of_the_class() -> None:
    texts = ["12+", "34*5+", "7", "99*9*"]
    found = pcbatch.batch(lambda text: Machine().run(text))(pcbatch.ragged(texts))
    assert found.tolist() == [Machine().run(text) for text in texts]


def test_a_table_of_a_subclass_is_not_taken_for_another() -> None:
    with pytest.raises(pcbatch.CompileError):
        pcbatch.batch(lambda k: Another(3).asked(k) + Other(3).asked(k))(np.array([1, 2]))


class Tally:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self, k: Any) -> Any:
        self.n += k
        return self.n


def _counted(n):
    tally = Tally()
    tally(3)
    x = tally(n)
    return 10 * tally.n + x


def _counted_inside(n):
    tally = Tally()

    def add(k):
        return tally(k)

    add(2)
    return tally.n + n


@pytest.mark.parametrize("function", [_counted, _counted_inside])
def test_a_call_of_an_object_changes_it(function: Any) -> None:
    assert pcbatch.batch(function)(jnp.arange(3)).tolist() == [function(n) for n in range(3)]
