"""Changes in place that another name would show are refused, with the place of the second name."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

OUTSIDE = [1, 2]
TABLE = np.zeros(3)


def repeated_row(x):
    g = [[0] * 2] * 3
    g[1][0] = x
    return g[0][0]


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


def ident(a):
    if len(a) > 5:
        return []
    return a


def first_if(a, n):
    if n > 5:
        return [0]
    return a


def push(s, v):
    s.append(v)


def h(x, acc=[]):
    acc.append(x)
    return len(acc)


class N:
    def __init__(self, v):
        self.v = v
        self.next = None


def one_row_again_and_again(x):
    grid = []
    row = [x]
    for i in range(2 + x):
        grid.append(row)
        row.append(1)
    return len(grid[0])


def result_of_a_call(x):
    xs = [x]
    b = ident(xs)
    b.append(1)
    return len(xs)


def result_that_depends_on_the_lane(x):
    xs = [x]
    b = first_if(xs, x)
    b.append(1)
    return len(xs)


def either_list(x):
    a = [x]
    d = [x, x]
    b = a if x > 1 else d
    b.append(1)
    return len(a)


def stored_by_a_call(x):
    s = []
    row = [x]
    push(s, row)
    row.append(1)
    return len(s[0])


def stored_in_a_dict(x):
    d = {}
    row = [x]
    d[x] = row
    row.append(2)
    return len(d[x])


def default_argument(x):
    return h(x) + h(x)


def shallow_copy(x):
    a = [[x]]
    b = a.copy()
    b[0].append(1)
    return len(a[0])


def array_twice(x):
    a = np.zeros(3)
    b = [a, a]
    b[0][0] = x
    return b[1][0]


def taken_out_and_put_twice(x):
    q = [[x]]
    row = q.pop()
    q.append(row)
    q.append(row)
    q[0].append(1)
    return len(q[1])


X, VECTOR, MATRIX = jnp.arange(4), jnp.zeros((4, 5), int), jnp.zeros((4, 2, 2), int)
CASES = [
    (global_list, "`g` may be an object from outside", X),
    (view_of_an_array, "this changes `x`, and `rest`", VECTOR, X),
    (global_array, "`z` may be an object from outside", X),
    (transposed, "this changes `v`, and `x`", MATRIX),
    (changed_by_an_operator, "this changes `y`, and `x`", VECTOR),
    (depends_on_the_path, "`a` is changed in place for the caller, and may be another object by then", VECTOR, X),
    (given_twice, "is given to `store_first` twice, and `store_first` changes it", VECTOR),
    (view_across_a_call, "this changes `x`, and `v`", VECTOR),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_refused(case):
    function, title, *args = case
    with pytest.raises(pcbatch.CompileError, match="PCB330") as error:
        pcbatch.batch(function).trace(*args)
    assert title in str(error.value)


@pytest.mark.parametrize("function", [default_argument, array_twice])
def test_also_refused(function):
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(function).trace(X)


BOXED = (
    repeated_row, list_in_a_tuple, extended_in_place, one_row_again_and_again, result_of_a_call,
    result_that_depends_on_the_lane, either_list, stored_by_a_call, stored_in_a_dict, shallow_copy,
    taken_out_and_put_twice,
)  # fmt: skip


@pytest.mark.parametrize("function", BOXED, ids=lambda function: function.__name__)
def test_all_names_show_a_change(function):
    result = pcbatch.batch(function)(X)
    for k, x in enumerate(X.tolist()):
        assert alike(as_plain(lane_of(result, k)), as_plain(function(x)), 0)


def _rows(n):
    xs = [[n], [n + 1]]
    while n > 3:
        xs.append([n])
        n -= 1
    return xs


def nested_assigns(n):
    xs = _rows(n)
    before = xs

    def cut():
        nonlocal xs
        xs = xs[1:]

    cut()
    xs.append([7])
    return before[0][0] + 10 * len(before) + 100 * xs[0][0] + 1000 * len(xs)


def nested_assigns_and_changes_the_new_one(n):
    xs = _rows(n)
    before, row = xs, xs[0]

    def cut(v):
        nonlocal xs
        xs = xs[1:]
        xs.append([v])
        return cut(v - 2) if v > 2 and len(xs) > 1 else v

    v = cut(n)
    return v + len(row) + 10 * len(before) + 100 * xs[0][0] + 1000 * len(xs)


def nested_swaps(n):
    xs, ys = _rows(n), [[n]]
    before = xs

    def swap():
        nonlocal xs, ys
        if n > 2:
            xs, ys = ys, xs

    swap()
    return len(before) + 10 * len(xs) + 100 * len(ys)


@pytest.mark.parametrize("function", [nested_assigns, nested_assigns_and_changes_the_new_one, nested_swaps])
def test_a_nested_function_that_only_assigns_a_variable_changes_no_object(function):
    values = [1, 3, 6, 4]
    assert pcbatch.batch(function)(jnp.array(values)).tolist() == [function(n) for n in values]


def nested_changes_and_assigns(n):
    xs = _rows(n)
    before = xs

    def cut():
        nonlocal xs
        xs.append([n])
        xs = xs[1:]

    cut()
    return len(before)


def nested_assigns_on_some_paths(n):
    xs = _rows(n)
    before = xs

    def cut():
        nonlocal xs
        if n > 3:
            xs = xs[1:]
        xs.append([n])

    cut()
    return len(before)


def nested_assigns_and_changes_by_another_name(n):
    xs = _rows(n)
    before = xs

    def cut():
        nonlocal xs
        ys = xs
        xs = xs[1:]
        ys.append([n])

    cut()
    return len(before)


def nested_assigns_and_changes_a_row(n):
    xs = _rows(n)
    row = xs[1]

    def cut():
        nonlocal xs
        xs = xs[1:]
        xs[0].append(n)

    cut()
    return len(row)


def nested_changes_a_row_through_another(n):
    xs = _rows(n)
    row = xs[0]

    def store(v):
        while v > 3:
            v -= 1
        xs[0].append(v)
        return v

    def twice(v):
        while v > 5:
            v -= 1
        return store(v)

    v = twice(n)
    return v + len(row)


def nested_takes_and_assigns(n):
    numbers = iter([n, n + 1, n + 2])
    other = numbers

    def take(v):
        nonlocal numbers
        while v > 3:
            v -= 1
        v += next(numbers)
        numbers = iter([v])
        return v

    v = take(n)
    return v + next(other)


@pytest.mark.parametrize(
    "function",
    [
        nested_changes_and_assigns,
        nested_assigns_on_some_paths,
        nested_assigns_and_changes_by_another_name,
        nested_assigns_and_changes_a_row,
        nested_changes_a_row_through_another,
        nested_takes_and_assigns,
    ],
)
def test_a_nested_function_that_changes_an_object_of_two_names_is_refused(function):
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(function).trace(X)


def test_rows_that_a_loop_makes_are_apart():
    @pcbatch.batch
    def count(x):
        rows = []
        for i in range(x + 1):
            row = [i]
            row.append(1)
            rows.append(row)
        return len(rows)

    count.trace(X)


def test_a_name_that_is_not_read_again_forbids_nothing():
    @pcbatch.batch
    def length(x):
        a = [x]
        b = a
        b.append(1)
        return len(b)

    length.trace(X)


def push_twice(s, v):
    push(s, v)
    push(s, v)


def test_changes_reach_callers_through_two_calls():
    @pcbatch.batch
    def length(x):
        s = [x]
        push_twice(s, x)
        return len(s)

    assert length(X).tolist() == [3, 3, 3, 3]


def digits(s, n):
    s = [0]
    for k in range(n):
        s.append(k)
    return len(s)


def test_a_parameter_that_was_assigned_is_not_given_back():
    @pcbatch.batch
    def lengths(x):
        s = [x]
        return digits(s, x) * 10 + len(s)

    assert lengths(X).tolist() == [11, 21, 31, 41]


def test_two_names_of_a_list_of_the_lane_show_a_change():
    def lengths(x):
        a = [k for k in range(x)]
        b = a
        b.append(1)
        return len(a) * 10 + len(b)

    assert pcbatch.batch(lengths)(X).tolist() == [lengths(int(x)) for x in X]
