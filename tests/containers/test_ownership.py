"""Changes in place that another name would show are refused, with the place of the second name."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

OUTSIDE = [1, 2]
TABLE = np.zeros(3)


def second_name(x):
    a = [x]
    b = a
    b.append(1)
    return a[0] + len(b)


def chained_assignment(x):
    a = b = []
    a.append(x)
    return len(b)


def row_of_a_list(x):
    grid = [[0, 0], [1, x]]
    row = grid[1]
    row[0] = 5
    return grid[1][0]


def repeated_row(x):
    g = [[0] * 2] * 3
    g[1][0] = x
    return g[0][0]


def loop_over_what_changes(x):
    xs = [x, x]
    n = 0
    for v in xs:
        xs.append(v)
        n += 1
    return n


def list_in_a_tuple(x):
    c = [1, x]
    t = (c, 2)
    c.append(1)
    return len(t[0])


def global_list(x):
    g = OUTSIDE
    g.append(x)
    return g[-1]


def view_of_an_array(x, k):
    rest = x[1:]
    x[k] = 7
    return rest.sum()


def global_array(x):
    z = TABLE
    z[0] = x
    return z.sum()


def extended_in_place(x):
    a = [x]
    d = {"a": a}
    a += [1]
    return len(d["a"])


def transposed(x):
    v = x.T
    v[0, 0] = 1
    return x.sum()


def changed_by_an_operator(x):
    y = x
    y += 1
    y[0] = 3
    return x.sum()


def sometimes_copied(a, c):
    if c > 0:
        a = a.copy()
    a[0] = 9
    return a[1]


def depends_on_the_path(x, c):
    y = sometimes_copied(x, c)
    return y + x[0]


def store_first(a, b):
    a[0] = b[0] + 1


def given_twice(x):
    store_first(x, x)
    return x


def view_across_a_call(x):
    v = x[1:]
    store_first(x, x[0:1] + 1)
    return v.sum()


def extend(a):
    a += [1]


def extended_for_the_caller(x):
    xs = [x]
    extend(xs)
    return len(xs)


class Node:
    def __init__(self, v):
        self.v = v
        self.kids = []


def second_name_of_an_object(x):
    p = Node(x)
    q = p
    q.v = 3
    return p.v


X, VECTOR, MATRIX = jnp.arange(4), jnp.zeros((4, 5), int), jnp.zeros((4, 2, 2), int)
CASES = [
    (second_name, "this changes `b`, and `a` may be the same object", X),
    (chained_assignment, "this changes `a`, and `b` may be the same object", X),
    (row_of_a_list, "this changes `row`, and `grid` may be the same object or hold it", X),
    (repeated_row, "may stand at several places of `g`", X),
    (loop_over_what_changes, "`xs` changes here while a value taken from it is still used", X),
    (list_in_a_tuple, "this changes `c`, and `t`", X),
    (global_list, "`g` may be an object from outside", X),
    (view_of_an_array, "this changes `x`, and `rest`", VECTOR, X),
    (global_array, "`z` may be an object from outside", X),
    (extended_in_place, "this changes `a`, and `d`", X),
    (transposed, "this changes `v`, and `x`", MATRIX),
    (changed_by_an_operator, "this changes `y`, and `x`", VECTOR),
    (depends_on_the_path, "`a` is changed in place for the caller, and is another object in the end", VECTOR, X),
    (given_twice, "changes here while its value from before is still used", VECTOR),
    (view_across_a_call, "this changes `x`, and `v`", VECTOR),
    (extended_for_the_caller, "this changes the caller's `a` in place", X),
    (second_name_of_an_object, "this changes `q`, and `p`", X),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_refused(case):
    function, title, *args = case
    with pytest.raises(pcbatch.CompileError, match="PCB330") as error:
        pcbatch.batch(function).trace(*args)
    assert title in str(error.value)
