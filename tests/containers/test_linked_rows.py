"""Variables that are rows of one table: stores by one of them where another one may be the same row in some lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [0, 1, 2, 3, 4, 5]


def _fill(above, row):
    for j in range(1, len(row)):
        row[j] = above[j - 1] + row[j - 1] + 1


def _swap(a, b):
    a[0], b[0] = b[0], a[0]
    a[1] += b[1]
    b[1] -= 1


def _first(a, b):
    b[0] += 1
    return a


def _keep(a, b):
    b[0] += 1
    return [a, b]


def _three(a, b, c):
    c[0] = a[0] + b[0]


def _sort(r):
    r.sort()


def _new_row(p):
    p[0] = [0, 0]


def _inside(p):
    p[0][0] = 5


def subsequence(n):
    a = [n % 2, 1, 2, n]
    b = [1, n % 3, 2]
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        above, row = table[i - 1], table[i]
        for j in range(1, len(b) + 1):
            row[j] = max(above[j], row[j - 1], above[j - 1] + int(a[i - 1] == b[j - 1]))
    return table[-1][-1]


def subsequence_in_two_statements(n):
    a = [n % 2, 1, 2, n]
    b = [1, n % 3, 2]
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        row = table[i]
        above = table[i - 1]
        for j in range(1, len(b) + 1):
            row[j] = max(above[j], row[j - 1], above[j - 1] + int(a[i - 1] == b[j - 1]))
    return table[-1][-1]


def two_lists_swapped(n):
    prev, cur = [0] * 4, [0] * 4
    for i in range(n):
        for j in range(1, 4):
            cur[j] = prev[j - 1] + cur[j - 1] + i + 1
        prev, cur = cur, prev
    return prev


def columns_swapped(n):
    rows = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    lo, hi = 0, n % 3
    while lo < 3:
        left, right = rows[lo], rows[hi]
        for k in range(3):
            left[k], right[k] = right[k], left[k]
        lo += 1
    return rows


def eq_indices(n):
    g = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    a, b = g[n % 3], g[1]
    for k in range(3):
        a[k] = b[k] + 1
        b[k] += a[(k + 1) % 3]
    return g, a, b


def eq_negative(n):
    g = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    a, b = g[-1], g[n % 3]
    a[0] = 50
    b[0] += 1
    g.append([0])
    a[1] = b[1] + 1
    return g, a, b


def append_ok(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[1], g[n % 3]
    g.append([0, n])
    a[0] = 5
    b[1] = a[0] + 1
    return g, a, b


def early_return(n):
    g = [[1, 2], [n, 4], [5, 6]]
    for i in range(2):
        a, b = g[i], g[(i + n) % 3]
        a[0] += 10
        if b[0] > 12:
            return g
        b[1] = a[0]
    return g


def rebind_one(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[0], g[1]
    for i in range(3):
        a[0] += b[0]
        b = g[i]
        b[1] += a[1]
    return g, a, b


def cube_levels(n):
    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    a, b = c[0][n % 2], c[n % 2][0]
    a[0] = 50
    b[1] += a[0]
    c[0][0][0] += 3
    return c, a, b


def target_is_index(n):
    g = [[1, 2], [n, 4], [5, 6]]
    i = n % 3
    i, a = g[i], g[i]
    a[0] = 9
    return g, i, a


def twice_same_name(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, a = g[n % 3], g[1]
    a[0] = 9
    return g, a


def with_number(n):
    g = [[1, 2], [n, 4], [5, 6]]
    k, a, b = n % 3, g[1], g[n % 3]
    a[k % 2] = 9
    b[1] += a[0]
    return g, a, b, k


def with_fresh(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[0], list(g[0])
    a[0] = 9
    b[0] = 10
    return g, a, b


def same_twice(n):
    g = [[1, n], [2, 3]]
    a, b = g, g
    a[0][0] = 5
    b.append([7])
    return g, a, b


def dict_rows(n):
    d = {0: [1, n], 1: [2, 3], 2: [3, 4]}
    a, b = d[n % 3], d[1]
    a[0] = 9
    b[1] += a[0]
    return d[0], d[1], d[2], a, b


def index_error(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[n], g[0]
    a[0] = 9
    b[0] += 1
    return g


def swap_elements(n):
    rows = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    left, right = rows[0], rows[n % 3]
    for k in range(3):
        left[k], right[2 - k] = right[2 - k], left[k]
    return rows


def swap_elements_one(n):
    rows = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    left, right = rows[0], rows[n % 3]
    left[0], left[1], right[2] = right[1], right[2], left[0]
    return rows, left, right


def while_two_pointers(n):
    rows = [[1, 2, n], [4, 5, n], [7, 8, 9], [n, 0, 1]]
    i, j = 0, 3
    while i <= j:
        a, b = rows[i], rows[j]
        for k in range(3):
            a[k] += b[2 - k]
            b[k] -= a[k]
        i, j = i + 1, j - 1
        if n == 2:
            i += 1
            j += 1
            if j > 3:
                break
    return rows


def listed_pattern(n):
    g = [[1, 2], [n, 4], [5, 6]]
    [a, b] = [g[0], g[n % 3]]
    a[0] = 9
    b[1] += a[0]
    return g, a, b


def helper_of_one_row(n):
    def change(r, v):
        r[0] += v

    g = [[9, 2], [n, 4], [5, 6]]
    a, b = g[0], g[n % 3]
    change(a, b[1])
    change(b, a[0])
    return g, a, b


def helper_n(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9], [1, 1, 1]]
    for y in range(n % 3):
        _fill(grid[y], grid[y + 1])
        _fill(grid[y + 1], grid[y])
    return grid


def helper_named(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    for y in range(2):
        above, row = grid[y], grid[y + 1]
        _fill(above, row)
        above[0] += row[1]
    return grid, above, row


def helper_both(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9], [n, n, n]]
    for y in range(n % 3):
        _swap(grid[y], grid[y + 1])
    return grid


def helper_both_named(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9], [n, n, n]]
    a, b, c = grid[n % 3], grid[(n + 1) % 3], grid[n % 4]
    _swap(a, b)
    a[2] += 1
    b[2] += 2
    c[2] += 4
    return grid, a, b, c


def helper_third_shows(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9], [n, n, n]]
    c = grid[1]
    _swap(grid[n % 4], grid[(n + 1) % 4])
    return grid, c


def helper_cube(n):
    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    _swap(c[0][n % 2], c[1][0])
    return c


def helper_index_error(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    _fill(grid[n], grid[(n + 1) % 3])
    return grid


def helper_recursive(n):
    g = [[1, 2, n], [4, 5, n], [7, 8, 9]]

    def rec(k):
        if k < 2:
            _fill(g[k], g[k + 1])
            rec(k + 1)
            _fill(g[k + 1], g[k])

    rec(n % 3)
    return g


def helper_keyword(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    _fill(row=grid[n % 2], above=grid[n % 2 + 1])
    return grid


def helper_only_reads(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    x = _first(list(grid[0]), grid[n % 3])
    return grid, x


def new_rows_in_planes(n):
    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    for k in range(n % 3):
        _new_row(c[k % 2])
    return c


def sorted_twice(n):
    g = [[3, 2, n], [n, 5, n], [7, 8, 1]]
    for y in range(3):
        _sort(g[y])
        _sort(g[n % 3])
    g[0][0] += 1
    return g


def alias_whole(n):
    g = [[4, 5], [n, 2]]
    h = g
    _sort(g[0])
    return g, h


def cube_in(n):
    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    for k in range(n % 3):
        _inside(c[k % 2])
        _new_row(c[n % 2])
        c[0][0][1] = k
        _sort(c[1][n % 2])
    return c


def returns_it(n):
    def f(r):
        r.sort()
        return r

    g = [[4, 1], [n, 2]]
    x = f(g[0])
    return g, x


def sorted_in_try(n):
    g = [[4, 1], [n, 2]]
    try:
        _sort(g[n])
        _sort(g[1])
    except IndexError:
        g[0][0] = 1
    return g


def try_raises(n):
    def f(r):
        r.append(5)
        if n > 2:
            raise ValueError
        r.append(6)

    g = [[4, 1], [n, 2]]
    k = 0
    try:
        f(g[n % 2])
        k = 1
    except ValueError:
        g[0].append(9)
    return g, k


def slice_own(n):
    g = [[4, 1], [n, 2]]
    _new_row(g[0:2])
    return g


def _sevens(r):
    r[0] = 7


def arr_slice(n):
    m = np.full((3, 3), 1.0)
    _sevens(m[1:])
    _sevens(m[0])
    _inside(m[1:])
    return m


def helper_eq(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    _fill(grid[1], grid[n % 3])
    return grid


def helper_eq_negative(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    _fill(grid[-2], grid[n % 3])
    return grid


def helper_named_eq(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    above, row = grid[1], grid[n % 3]
    _fill(above, row)
    return grid, above, row


def helper_cube_eq(n):
    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    _swap(c[0][n % 2], c[0][0])
    return c


def helper_array(n):
    m = np.full((3, 3), 1.0)
    _fill(m[n % 3], m[1])
    return m


def row_replaced(n):
    g = [[1, 2], [n, 4]]
    a, b = g[0], g[1]
    g[0] = [7, 7]
    a[0] = 5
    b[1] = 6
    return g, a, b


def row_replaced_maybe(n):
    g = [[1, 2], [n, 4]]
    a, b = g[0], g[1]
    if n % 2:
        g[0] = [7, 7]
    a[0] = 5
    return g, a, b


def container_rebound(n):
    g = [[1, 2], [n, 4]]
    h = g
    a, b = g[0], g[n % 2]
    g = [[0, 0]]
    a[0] = 5
    b[1] = 6
    return g, h, a, b


def insert_shift(n):
    g = [[1, 2], [n, 4]]
    a, b = g[0], g[1]
    g.insert(0, [9, 9])
    a[0] = 5
    b[1] = a[0] + 1
    return g, a, b


def pop_shift(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[1], g[2]
    g.pop(0)
    a[0] = 5
    b[1] = a[0] + 1
    return g, a, b


def rebind_maybe(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[0], g[1]
    if n % 2:
        a = g[2]
    a[0] = 77
    b[0] += a[0]
    return g, a, b


def rebind_maybe_new(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[0], g[1]
    if n % 2:
        a = [8, 8]
    a[0] = 77
    return g, a, b


def cube_plane_row_replaced(n):
    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    p, r = c[n % 2], c[0][1]
    p[1] = [3, 3]
    r[1] += 20
    return c, p, r


def swap_rows_then(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[0], g[n % 3]
    g[0], g[1] = g[1], g[0]
    a[0] = 70
    return g, a, b


def target_is_container2(n):
    g = [[[1, 2], [n, 4]], [[5, 6], [7, 8]]]
    h = g
    g, a = g[n % 2], g[0]
    a[0][0] = 9
    return g, a, h


def with_call(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[0], g.pop()
    a[0] = 9
    b[0] = 10
    return g, a, b


def shared_rows(n):
    r = [1, n]
    g = [r, r, [5, 6]]
    a, b = g[0], g[2]
    a[0] = 9
    return g, a, b, r


def shared_rows_mult(n):
    g = [[0, n]] * 3
    a, b = g[0], g[2]
    a[0] = 9
    return g, a, b


def store_row_var(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[0], g[n % 3]
    g[2] = b
    b[0] = 60
    return g, a, b


def store_row_var2(n):
    g = [[1, 2], [n, 4], [5, 6]]
    a, b = g[0], g[1]
    g[2] = a
    b[0] = 60
    a[1] = 61
    return g, a, b


def row_then_whole_sort(n):
    g = [[9, 2], [n, 4], [5, 6]]
    a, b = g[0], g[n % 3]
    g.sort()
    a[0] = 50
    return g, a, b


def helper_replaces(n):
    def change(h, k):
        h[k] = [3, 3]

    g = [[9, 2], [n, 4], [5, 6]]
    a, b = g[0], g[n % 3]
    change(g, 1)
    b[0] += a[0]
    return g, a, b


def deep_swap_replaced(n):
    g = [[[1, n], [2, 0]], [[3, 0], [4, 0]]]
    p, q = g[0], g[n % 2]
    r, s = p[0], q[1]
    q[0] = [7, 7]
    r[0] = 9
    return g, p, q, r, s


def helper_eq_static(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    _fill(grid[-2], grid[1])
    return grid


def helper_returns(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9], [n, n, n]]
    x = _first(grid[0], grid[n % 3 + 1])
    x[0] = 99
    return grid


def helper_keeps(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9], [n, n, n]]
    x = _keep(grid[0], grid[n % 3 + 1])
    x[1][0] = 99
    return grid


def helper_three(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9], [n, n, n]]
    _three(grid[0], grid[1], grid[n % 4])
    return grid


def helper_repeated(n):
    r = [1, 2, n]
    grid = [r, r]
    _fill(grid[0], grid[1])
    return grid


def helper_repeated_mult(n):
    grid = [[0, 1, n]] * 2
    _fill(grid[0], grid[1])
    return grid


def helper_repeated_store(n):
    grid = [[1, 2, n], [4, 5, n], [7, 8, 9], [n, n, n]]
    grid[n % 3] = grid[1]
    _fill(grid[0], grid[1])
    return grid


def helper_cube_levels(n):
    def change(p, q):
        p[0][0] += q[1]
        q[0] += p[0][0]

    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    change(c[n % 2], c[0][1])
    return c


def helper_whole_and_row(n):
    def change(g, r):
        g[0][0] += r[1]

    c = [[1, n], [3, 4]]
    change(c, c[n % 2])
    return c


def helper_stores_one_in_other(n):
    def change(p, q):
        p[0] = q[1]
        q[1][0] += 7

    c = [[[i + j + n, 1] for j in range(2)] for i in range(3)]
    change(c[n % 2], c[2])
    return c


def helper_captures(n):
    c = [[1, n], [3, 4]]

    def change(p, q):
        p[0] += 1
        q[0] += c[0][0]

    change(c[n % 2], c[1])
    return c


def helper_arg_changes(n):
    g = [[1, 2, n], [4, 5, n], [7, 8, 9]]

    def bump():
        g[0] = [5, 5, 5]
        return 1

    _fill(g[0], g[bump()])
    return g


def helper_arg_pops(n):
    g = [[1, 2, n], [4, 5, n], [7, 8, 9]]
    _three(g[0], g.pop(), g[1])
    return g


def one_row_at_two_places(n):
    r = [3, n]
    g = [r, r]
    _sort(g[0])
    return g


def one_row_multiplied(n):
    g = [[3, n]] * 2
    _sort(g[0])
    return g


def one_row_stored_twice(n):
    r = [3, n]
    g = [[4, 5], [n, 2]]
    g[n % 2] = r
    g[0] = r
    _sort(g[0])
    return g


def a_row_stored_again(n):
    g = [[4, 5], [n, 2]]
    g[0] = g[1]
    _sort(g[0])
    return g


def moves_inside(n):
    def f(p):
        p[0] = p[1]

    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    f(c[0])
    c[0][0][0] = 9
    return c


def moves_from_other(n):
    def f(p, q):
        p[0] = q

    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    q = c[1][1]
    f(c[0], q)
    _sort(c[1][1])
    return c


def moves_from_other2(n):
    def f(p, q):
        p[0] = q[1]

    c = [[[i + j + n, 1] for j in range(2)] for i in range(2)]
    f(c[0], c[1])
    _sort(c[1][1])
    return c


def slice_in(n):
    g = [[4, 1], [n, 2]]
    _inside(g[0:2])
    return g


def slice_alias(n):
    g = [[4, 1], [n, 2]]
    v = g[0]
    _inside(g[0:1])
    return v


RIGHT = [
    subsequence,
    subsequence_in_two_statements,
    two_lists_swapped,
    columns_swapped,
    eq_indices,
    eq_negative,
    append_ok,
    early_return,
    rebind_one,
    cube_levels,
    target_is_index,
    twice_same_name,
    with_number,
    with_fresh,
    same_twice,
    dict_rows,
    index_error,
    swap_elements,
    swap_elements_one,
    while_two_pointers,
    listed_pattern,
    helper_of_one_row,
    helper_n,
    helper_named,
    helper_both,
    helper_both_named,
    helper_third_shows,
    helper_cube,
    helper_index_error,
    helper_recursive,
    helper_keyword,
    helper_only_reads,
    new_rows_in_planes,
    sorted_twice,
    alias_whole,
    cube_in,
    returns_it,
    sorted_in_try,
    try_raises,
    slice_own,
    arr_slice,
    row_replaced,
    row_replaced_maybe,
    container_rebound,
    insert_shift,
    pop_shift,
    rebind_maybe,
    rebind_maybe_new,
    cube_plane_row_replaced,
    swap_rows_then,
    with_call,
    shared_rows,
    shared_rows_mult,
    store_row_var,
    store_row_var2,
    row_then_whole_sort,
    helper_replaces,
    deep_swap_replaced,
    helper_eq_static,
    helper_returns,
    helper_keeps,
    helper_three,
    helper_repeated,
    helper_repeated_mult,
    helper_repeated_store,
    helper_stores_one_in_other,
    helper_captures,
    helper_arg_changes,
    helper_arg_pops,
    one_row_at_two_places,
    one_row_multiplied,
    one_row_stored_twice,
    a_row_stored_again,
    moves_inside,
    moves_from_other,
    moves_from_other2,
]


ONE_OBJECT = [helper_eq, helper_eq_negative, helper_named_eq, helper_cube_eq, helper_array]


REFUSED = [
    target_is_container2,
    helper_cube_levels,
    helper_whole_and_row,
    slice_in,
    slice_alias,
]


def _check(fn: Callable[..., Any]) -> int:
    """Compare each lane with CPython; return the number of lanes that stopped at a limit."""
    result = pcbatch.batch(fn).run(jnp.array(LANES))
    limits = 0
    for lane, example in enumerate(LANES):
        status = pcbatch.Status(int(result.status[lane]))
        if status == pcbatch.Status.LIMIT:
            limits += 1
            continue
        try:
            want = fn(example)
        except IndexError:
            assert status == pcbatch.Status.ERROR
            continue
        assert status == pcbatch.Status.OK
        assert alike(as_plain(lane_of(result.value, lane)), as_plain(want), 1e-6), example
    return limits


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", RIGHT, ids=[fn.__name__ for fn in RIGHT])
def test_all_lanes_are_right(fn: Callable[..., Any]) -> None:
    assert _check(fn) == 0


@pytest.mark.parametrize("fn", ONE_OBJECT, ids=[fn.__name__ for fn in ONE_OBJECT])
def test_lanes_stop_that_give_one_row_twice(fn: Callable[..., Any]) -> None:
    assert 0 < _check(fn) < len(LANES)


@pytest.mark.parametrize("fn", REFUSED, ids=[fn.__name__ for fn in REFUSED])
def test_what_is_not_certain_is_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(fn).trace(jnp.array(LANES))
