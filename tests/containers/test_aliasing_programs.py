"""Programs in which two names may mean one object: a lane does what Python does, or the program is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch


class Plain:
    def __init__(self, x):
        self.x = x


def two_names(n):
    a = [1, 2, 3]
    b = a
    b[0] = n
    return a[0]


def twice_in_a_list(n):
    a = [1, 2, 3]
    b = [a, a]
    b[0][0] = n
    return b[1][0]


def one_row_many_times(n):
    g = [[0] * 2] * 2
    g[0][0] = n
    return g[1][0]


def a_row_changes_its_grid(n):
    g = [[0] * 2 for _ in range(n)]
    row = g[0]
    row[1] = 5
    return g[0][1]


def appended_and_changed_after(n):
    result, part = [], []
    for i in range(n):
        part.append(i)
        result.append(part)
    return sum(len(r) for r in result)


def one_of_two(n):
    a, b = [1], [2]
    c = a if n > 2 else b
    c.append(n)
    return len(a) * 10 + len(b)


def shallow_copy(n):
    a = [[1], [2]]
    b = a[:]
    b[0].append(n)
    return len(a[0])


def in_a_dict(n):
    m = {1: [n]}
    v = m[1]
    v.append(2)
    return len(m[1])


def sorted_is_a_copy(n):
    a = [3, 1, 2]
    b = sorted(a)
    a.sort(reverse=True)
    return a[0] * 10 + b[0] + n


def numbers_are_values(n):
    x = 5
    y = x
    y += n
    return x


def list_of_is_a_copy(n):
    a = [1, 2]
    a += [n]
    b = a + [4]
    b[0] = 9
    return a[0] * 100 + len(a) * 10 + len(b)


def targets_from_left_to_right(n):
    a = [1, 2, 3]
    a[0], a[a[0]] = a[1], n
    return a[0] * 100 + a[1] * 10 + a[2]


def stores_of_a_loop_are_seen_by_it(n):
    a = [1, 2, 3]
    for v in a:
        a[2] = n
        n += v
    return n * 10 + a[2]


def evaluated_from_left_to_right(n):
    a = [1, 2, 3]
    return a.pop(0) + a.pop() * a[0] + n


class Called:
    """A class whose objects can be called: they hold attributes all the same."""

    def __init__(self, x):
        self.x = x

    def __call__(self, v):
        return self.x * v


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


def chosen_by_a_comprehension(n):
    ps = [Plain(k) for k in range(n)]
    qs = [p for p in ps if p.x != 1]
    for q in qs:
        q.x += 10
    return sum(p.x for p in ps)


def a_comprehension_of_all(n):
    ps = [Plain(k) for k in range(n)]
    qs = [p for p in ps]
    qs[0].x += 10
    return ps[0].x


def values_of_a_dict(n):
    ps = [Plain(k) for k in range(n)]
    by_number = {k: p for k, p in enumerate(ps)}
    by_number[0].x = 7
    return ps[0].x


def objects_that_can_be_called(n):
    ps = [Called(k) for k in range(n)]
    best = ps[0]
    for p in ps:
        if p.x > best.x:
            best = p
    best.x += 100
    return sum(p.x for p in ps) + best(2)


def objects_with_slots(n):
    ps = [Slotted(k) for k in range(n)]
    best = ps[0]
    for p in ps:
        if p.x > best.x:
            best = p
    best.x += 100
    return sum(p.x for p in ps)


def defaults_that_are_read(n):
    def weight(k, table=[3, 1, 2], more={1: 5}):
        return table[k % 3] + more.get(k, 0)

    return weight(n) + weight(1)


def a_default_keeps_what_is_appended(n):
    def count(k, seen=[]):
        seen.append(k)
        return len(seen)

    return count(n) * 10 + count(n)


def a_default_of_a_lambda(n):
    count = lambda k, seen=[]: (seen.append(k), len(seen))[1]
    return count(n) * 10 + count(n)


def a_default_that_is_a_set(n):
    def count(k, seen=set()):
        seen.add(k)
        return len(seen)

    return sum([count(k) for k in range(n)])


def a_default_that_is_given_away(n):
    def start(path=[]):
        return path

    path = start()
    path.append(n)
    return len(start())


class Bag:
    def __init__(self, x):
        self.items = [x]

    def add(self, x):
        self.items.append(x)


def a_list_of_an_object_and_its_method(n):
    bag = Bag(n)
    items = bag.items
    bag.add(3)
    return sum(items)


def read_before_a_method_of_a_list(n):
    a = [n, 2, 3]
    return a[0] * 100 + a.pop(0) * 10 + a[0]


def global_default(path=[]):
    return path


def a_default_of_a_global_function(n):
    path = global_default()
    path.append(n)
    return len(global_default())


def reversed_twice(n):
    k, b = 1, reversed([n, 2, 3])
    return sum(b) + sum(b) + k


REFUSED = [
    a_list_of_an_object_and_its_method,
    a_default_keeps_what_is_appended,
    a_default_of_a_lambda,
    a_default_that_is_a_set,
    a_default_that_is_given_away,
    a_default_of_a_global_function,
]
RIGHT = [
    read_before_a_method_of_a_list,
    chosen_by_a_comprehension,
    a_comprehension_of_all,
    values_of_a_dict,
    objects_that_can_be_called,
    objects_with_slots,
    defaults_that_are_read,
    two_names,
    a_row_changes_its_grid,
    in_a_dict,
    sorted_is_a_copy,
    numbers_are_values,
    list_of_is_a_copy,
    targets_from_left_to_right,
    reversed_twice,
    stores_of_a_loop_are_seen_by_it,
    evaluated_from_left_to_right,
    twice_in_a_list,
    one_row_many_times,
    appended_and_changed_after,
    one_of_two,
    shallow_copy,
]


def _ids(fns: Sequence[Callable[..., Any]]) -> list[str]:
    return [fn.__name__ for fn in fns]


def reversed_and_changed(n):
    a = [n, 2, 3]
    b = reversed(a)
    a[0] = 7
    return list(b)[-1]


def reversed_by_the_way(n):
    a = [n, 2, 3]
    return sum(b := reversed(a)) + sum(b)


@pytest.mark.parametrize(
    ("fn", "refusal"),
    [
        (reversed_and_changed, "PCB330.*this changes `a`, and `b`"),
        (reversed_by_the_way, "PCB304.*an iterator that is kept"),
    ],
)
def test_an_iterator_that_would_show_a_change_or_an_end_is_refused(fn: Callable[..., Any], refusal: str) -> None:
    with pytest.raises(pcbatch.CompileError, match=refusal):
        pcbatch.batch(fn).lower(jnp.array([1, 3]))


@pytest.mark.parametrize("fn", REFUSED, ids=_ids(REFUSED))
def test_a_change_that_another_name_would_show_is_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(fn).lower(jnp.array([1, 3]))


@pytest.mark.parametrize("fn", RIGHT, ids=_ids(RIGHT))
def test_a_lane_does_what_python_does(fn: Callable[..., Any]) -> None:
    assert pcbatch.batch(fn)(jnp.array([1, 3])).tolist() == [fn(1), fn(3)]


def test_whether_two_names_mean_one_collection() -> None:
    def one_object(n):
        a = [n]
        b = a
        return a is b, a is list(a)

    assert [part.tolist() for part in pcbatch.batch(one_object)(jnp.array([1, 3]))] == [[True, True], [False, False]]


def test_whether_an_argument_is_another_collection() -> None:
    def one_object(xs, n):
        ys = xs
        return xs is list(xs), xs is ys

    found = pcbatch.batch(one_object)(pcbatch.ragged([[1], [2]]), jnp.array([1, 3]))
    assert [part.tolist() for part in found] == [[False, False], [True, True]]


class Holder:
    def __init__(self, items):
        self.items = items
        self.other = None


def _two_that_share(n):
    first, second = Holder([n]), Holder([0])
    second.other = first
    return first, second


def _one_twice(n):
    only = Holder([n])
    return only, only


def changed_in_another_result(n):
    first, second = _two_that_share(n)
    second.other.items.append(1)
    a, b = _one_twice(n)
    b.items.append(5)
    return sum(first.items) * 10 + len(a.items)


def test_results_of_one_helper_that_share_an_object_show_a_change() -> None:
    found = pcbatch.batch(changed_in_another_result)(jnp.array([1, 3])).tolist()
    assert found == [changed_in_another_result(1), changed_in_another_result(3)]
