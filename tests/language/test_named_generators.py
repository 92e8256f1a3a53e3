"""Generator expressions that have a name, and that the next statement goes over."""

from __future__ import annotations

from typing import Any

import pytest

import pcbatch
from tests.strangers.rows import argument, as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")

LISTS = [[3, 4, 5], [3], [5], []]


def below(x, step):
    while x > 0:
        x -= step
    return x if x < -1 else None


def first(xs):
    ends = (below(x, 3) for x in xs)
    return next((e for e in ends if e is not None), 7)


def total(xs):
    ends = (below(x, 3) or 0 for x in xs)
    found = sum(ends)
    return 2 * found


def all_of_rest(xs):
    good = (below(x, 3) is None for x in xs[1:])
    if all(good):
        return 1
    return len(xs)


def with_a_step_that_changes(xs):
    """The elements are made one by one, so that those after the first one see the new step."""
    out, step = [], 3
    for x in xs:
        parts = (below(y, step) for y in xs if y != x)
        for part in parts:
            if part is not None:
                out.append(part)
                step = 2
    return out, step


def walk(node, k):
    if node[0] == "either":
        ends = (walk(part, k) for part in node[1])
        return next((e for e in ends if e is not None), None)
    return k + node[1] if (k + node[1]) % 2 else None


def in_a_tree(xs):
    parts = [("number", x) for x in xs]
    return walk(("either", parts) if len(parts) != 1 else parts[0], 2) or -1


@pytest.mark.parametrize("fn", [first, total, all_of_rest, with_a_step_that_changes, in_a_tree])
def test_elements_are_taken_where_the_name_stands(fn: Any) -> None:
    found = pcbatch.batch(fn)(argument(LISTS))
    assert [as_plain(lane_of(found, k)) for k in range(len(LISTS))] == [as_plain(fn(list(xs))) for xs in LISTS]


def changed_before(xs):
    more = (below(x, 3) or x for x in xs)
    xs.append(4)
    return sum(more)


def changed_meanwhile(xs):
    more = (below(x, 3) or x for x in xs)
    return xs.pop() + sum(more)


def read_twice(xs):
    more = (below(x, 3) or x for x in xs)
    one = next(more, 0)
    return one * 100 + sum(more)


@pytest.mark.parametrize("fn", [changed_before, changed_meanwhile, read_twice])
def test_others_are_refused_or_mean_what_python_does(fn: Any) -> None:
    lists = [[3, 4, 5], [3, 1]]
    try:
        found = pcbatch.batch(fn)(argument(lists))
    except pcbatch.CompileError:
        return
    assert found.tolist() == [fn(list(xs)) for xs in lists]
