"""Two names for one object, or for a part of one: a change through either is seen in both, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of


def _collect(path, k, out):
    if k == 0:
        out.append(path)
        return
    path.append(k)
    _collect(path, k - 1, out)
    path.pop()


def _pad(x, k):
    x += [0] * k
    return x


def _both(out):
    x = [1]
    out.append(x)
    return x


def _inner(g):
    if g[0][0] > 0:
        g[0][0] = 9


def rows_of_a_call_that_were_empty(n):
    if n == 0:
        return [[]]
    out = []
    for k in range(n):
        rows = rows_of_a_call_that_were_empty(n - 1)
        for row in rows:
            row.append(k)
        out.extend(rows)
    return out


def two_names(n):
    a = [n]
    b = a
    b.append(1)
    return a, len(b)


class Shop:
    def __init__(self, n):
        self.queues, self.rows, self._hidden = {"buy": [1, 4, n], "sell": [n]}, [[1, n], [n]], [[n], [1]]

    def best(self, side):
        queue = self.queues[side]
        while queue and queue[0] < 3:
            queue.pop(0)
        return queue[0] if queue else -1

    def replaced(self):
        row = self.rows[0]
        self.rows = [[7], [8]]
        row.append(5)
        return row

    @property
    def copies(self):
        return [list(row) for row in self._hidden]

    def grown(self, k):
        row = self.copies[k]
        while len(row) < 3:
            row.append(1)
        return row


def parts_of_attributes(n):
    s = Shop(n)
    best = s.best("buy" if n > 2 else "sell")
    return best, s.queues["buy"], s.queues["sell"]


def parts_of_attributes_that_are_assigned(n):
    s = Shop(n)
    row = s.replaced() if n > 2 else [n]
    return row, s.rows[0], s.grown(n % 2), s.copies[0]


def row_alias_parent_read(n):
    g = [[n, 0], [0, n]]
    r = g[0]
    r[0] = 5
    g[0][1] = 9
    return g, r[1]


def row_alias_index_changed(n):
    g = [[1, 0], [0, 2]]
    i = n % 2
    r = g[i]
    i = 1 - i
    r[0] = 5
    return g


def row_of_two(n):
    g = [[1, 0], [0, 2]]
    a = g[0]
    b = g[n % 2]
    a[0] = 5
    b[1] = 6
    a[1] += 1
    return g, a, b


def swapped_lists(n):
    a = [n]
    b = [0]
    a, b = b, a
    c = a
    a.append(1)
    return a, b, c


def last_is_stored(n):
    out, p = [], [0]
    for i in range(n):
        out.append(p)
        p = [i]
        out[-1].append(3)
    return out, p


def loop_row_changes_grid(n):
    g = [[1, 2], [3, n]]
    for r in g:
        g[1][0] += 1
        r[0] += 10
    return g


def loop_rows_rebinding(n):
    g = [[1, 2], [3, n]]
    for r in g:
        r = r + [1]
        r[0] = 9
    return g


def loop_zip_same(n):
    g = [[1, 2], [3, n]]
    for a, b in zip(g, g):
        a[0] += 1
        b[0] += a[0]
    return g


def loop_grid_changes_length(n):
    g = [[1], [3]]
    for r in g:
        r.append(5)
        if len(g) < 4:
            g.append([n])
    return g


def graph_self(n):
    g = [[0, 1], [0]]
    for u in range(2):
        for v in g[u]:
            if len(g[v]) < 5:
                g[v].append(u)
    return g


def params_swap(n):
    def rec(k, left, right):
        if k == 0:
            return left, right
        left.append(k)
        return rec(k - 1, right, left)

    return rec(n, [], [])


def pad_callee2(n):
    a = [1]
    _pad(a, n)
    return a


def negative_index_alias(n):
    g = [[1], [2]]
    r = g[-1]
    g.append([3])
    r.append(4)
    return g, r


def deep_alias(n):
    g = [[[1, n], [2, 0]], [[3, 0], [4, 0]]]
    r = g[0][1]
    r[0] = 9
    p = g[0]
    p[1][1] = 8
    return g


def other_index_written(n):
    g = [[1, 0], [2, 0]]
    r = g[n % 2]
    g[0][1] = 5
    r[0] = r[1] + 1
    return g


def opt_change(n):
    v = None
    if n > 2:
        v = [n]
    if v is not None:
        v.append(1)
    return 0 if v is None else len(v)


def opt_store(n):
    v = None
    if n > 2:
        v = [n, 5]
    v[0] += 4
    return v[0]


def opt_iadd(n):
    v = None
    if n > 2:
        v = [n, 5]
    if v:
        v += [1]
    return 0 if v is None else len(v)


def rows_of_an_array(n):
    m = np.zeros((2, 2))
    for row in m:
        row[0] = n
    return float(m[0, 0] + m[1, 1] + m[1, 0])


class Node:
    def __init__(self, v):
        self.v = v


def second_name_of_an_object(n):
    p = Node(n)
    q = p
    q.v = 3
    return p.v


def chained_assignment(n):
    a = b = []
    a.append(n)
    return len(b)


def extend(a):
    a += [1]


def extended_for_the_caller(n):
    xs = [n]
    extend(xs)
    return len(xs)


def list_that_grows_below_its_loop(n):
    order = [0]
    for u in order:
        if u < n:
            order.append(u + 1)
    return order


def element_added_in_place(n):
    g = [[n], [2]]
    for row in g:
        g[0] += [n]
    return g


def row_alias_after(n):
    g = [[n, 0], [0, n]]
    r = g[0]
    g[0] = [7, 7]
    r[0] = 5
    return g, r[0]


def row_alias_swap(n):
    g = [[1, 0], [0, 2]]
    r = g[0]
    g[0], g[1] = g[1], g[0]
    r[0] = 5
    return g


def row_alias_pop(n):
    g = [[1, 0], [0, 2], [n, n]]
    r = g[0]
    g.pop(0)
    r[0] = 5
    return g, r


def row_alias_maybe(n):
    g = [[1, 0], [0, 2]]
    r = g[0]
    if n:
        r = [8, 8]
    r[0] = 5
    return g, r


def row_alias_maybe2(n):
    g = [[1, 0], [0, 2]]
    r = g[0]
    if n:
        g = [[3, 3]]
    r[0] = 5
    return g, r


def rolling_shared(n):
    prev = [0] * 3
    cur = prev
    for i in range(n):
        cur[0] += 1
        prev, cur = cur, prev
    return prev, cur


def rolling_three(n):
    a, b, c = [0, 0], [1, 1], [2, 2]
    for i in range(n):
        a, b, c = b, c, a
        a[0] += b[0]
        if i == 1:
            c = a
            c[1] = 50
    return a, b, c


def appended_same(n):
    out, p = [], []
    for i in range(n):
        p.append(i)
        out.append(p)
    return out


def last_is_same(n):
    out, p = [], [0]
    for i in range(n):
        out.append(p)
        out[-1].append(3)
    return out


def merge_shares(n):
    iv = [[1, 3], [2, 6], [8, 8 + n]]
    out = [iv[0]]
    for c in iv[1:]:
        if c[0] <= out[-1][1]:
            out[-1][1] = max(out[-1][1], c[1])
        else:
            out.append(c)
    return iv, out


def merge_shares2(n):
    iv = [[1, 3], [2, 6], [8, 8 + n]]
    out = []
    for c in iv:
        if not out or out[-1][-1] < c[0]:
            out.append(c)
        else:
            out[-1][-1] = max(out[-1][-1], c[-1])
    return iv, out


def same_row_twice_sorted(n):
    r = [3, 1, n]
    g = [r, r]
    for line in g:
        line.reverse()
    return g


def same_row_assigned(n):
    g = [[1, 2], [3, n]]
    g[1] = g[0]
    for line in g:
        line.reverse()
    return g


def temp_swap_half(n):
    g = [[1, 2], [3, n]]
    t = g[0]
    g[0] = g[1]
    g[0][0] = 50
    g[1] = t
    return g


def loop_rows_copy(n):
    g = [[1, 2], [3, n]]
    for r in g[:]:
        r[0] = 9
    return g


def loop_inner_alias(n):
    g = [[1, 2], [3, n]]
    keep = []
    for r in g:
        keep.append(r)
        r[0] = 7
    return keep, g


def path_without_copy(n):
    out, path = [], []

    def rec(k):
        out.append(path)
        if k == 0:
            return
        path.append(k)
        rec(k - 1)
        path.pop()

    rec(n)
    return out


def path_without_copy_top(n):
    out = []
    _collect([], n, out)
    return out


def both_params_one(n):
    def rec(k, left, right):
        if k == 0:
            return left, right
        left.append(k)
        return rec(k - 1, left, right)

    e = []
    return rec(n, e, e)


def params_cross(n):
    def rec(k, left, right):
        if k == 0:
            return left, right
        left.append(k)
        return rec(k - 1, left, left if k == 1 else right)

    return rec(n, [], [])


def row_in_dict(n):
    d = {0: [1], 1: [2]}
    r = d[n % 2]
    r.append(3)
    d[0] = [9]
    r.append(4)
    return d[0], d[1], r


def row_through_call(n):
    g = [[1], [2]]
    r = g[0]

    def change(h):
        h[0].append(5)

    change(g)
    r.append(6)
    return g, r


def slice_rows_shared(n):
    g = [[0, 0], [0, 0]]
    h = g[:1]
    h[0][0] = n
    return g, h


def slice_assign_shared(n):
    g = [[0, 0], [0, 0]]
    g[0:1] = [g[1]]
    g[0][0] = n
    return g


def extend_shared(n):
    a = [[n]]
    b = [[0]]
    b.extend(a)
    b[1].append(2)
    return a, b


def comprehension_reshared(n):
    r = [n]
    b = [r for _ in range(n)]
    b[0].append(2)
    return b


def sorted_shared(n):
    a = [[n], [1]]
    b = sorted(a)
    b[0].append(2)
    return a, b


def min_shared(n):
    a = [[n], [1]]
    m = min(a)
    m.append(2)
    return a


def pop_append(n):
    a = [[n], [1]]
    p = a.pop()
    a.append(p)
    p.append(3)
    return a, p


def row_and_element(n):
    g = [[[1, n], [2, 0]], [[3, 0], [4, 0]]]
    p = g[0]
    q = p[1]
    q[0] = 9
    return g, p, q


def setdefault_same(n):
    d = {0: [1], 1: [n]}
    r = d.setdefault(0, [])
    r.append(3)
    return d[0], r


def pop_default(n):
    d = {0: [1], 1: [n]}
    z = [5]
    r = d.pop(n, z)
    r.append(3)
    return z, r


def fresh_in_two_results(n):
    out = []
    x = _both(out)
    if n > 2:
        x.append(5)
    return out, x


def twice_into_call(n):
    r = [n]
    g = [r, r]
    _inner(g)
    return g


def opt_alias(n):
    g = {0: [1], n: [2]}
    v = g.get(3)
    if v is not None:
        v.append(7)
    return g[0], g[n]


def pad_callee(n):
    a = [1]
    b = _pad(a, n)
    b.append(4)
    return a, b


def element_extended_in_place(n):
    g = [[n], [2]]
    r = g[0]
    g[n % 2] += [5]
    return g, r


def chosen_list(n):
    a, b = [1], [2]
    (a if n > 2 else b).append(n)
    return a, b


def choices_as_statements(n):
    xs, ys = list(range(n % 3)), [1, 2]
    xs and ys and xs.pop()
    n > 3 or ys.append(n)
    ys.pop() if n % 2 else xs.append(n)
    xs.clear() if n > 4 else None
    return xs, ys


def swapped_by_a_third_name(n):
    g = [[1, n], [2, 0]]
    t = g[0]
    g[0] = g[1]
    g[1] = t
    g[0][1] = 5
    return g


def rows_swapped_beside_others(n):
    g, places, sign = [[0, n], [1, 2], [n]], [[4], [5]], 1
    i = n % 2
    count, g[i], g[2], sign = n + 1, g[2], g[i], -sign
    g[0], g[2], places[0], places[i] = g[2], g[0], places[i], places[0]
    g[0][0] = 5
    places[0].append(6)
    return g, places, sign, count


def rows_in_a_cycle(n):
    g = [[n], [1, 2], [3], [4]]
    g[2], g[0], last, g[1] = g[0], g[1], n, g[2]
    g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
    g[0].append(last)
    g[1].append(8)
    return g


def index_from_the_list_that_is_swapped(n):
    x = [2, n, 1]
    a = x
    x[0], x[a[0]] = x[a[0]], x[0]
    places = [2, 0, 1]
    a[places[0]], a[places[1]] = a[places[1]], a[places[0]]
    return x


def two_names_of_what_is_swapped(n):
    x = [1, 2, n, 4]
    a = x
    x[0], x[1], a[0], a[2] = x[1], x[0], a[2], a[0]
    return x


def rows_unpacked(n):
    g = [[1, n], [3]]
    for _ in range(2):
        a, b = g
        a.append(n)
        b[0] += a[0]
    return g


def parts_of_a_tuple_unpacked(n):
    pair = ([n], 3)
    r, m = pair
    s = r
    r.append(m)
    i = n % 2
    g = [[[1, n], [3]], [[4], [5, n]]]
    i, row = g[i]
    row.append(i[0])
    return g, row, r, s, pair


def reversed_below_its_loop(n):
    g = [[n, 2], [3, 4]]
    for s in g:
        s[0] = 9
        g.reverse()
    return g


RIGHT = [
    rows_of_a_call_that_were_empty,
    reversed_below_its_loop,
    chosen_list,
    choices_as_statements,
    swapped_by_a_third_name,
    rows_swapped_beside_others,
    rows_in_a_cycle,
    rows_unpacked,
    parts_of_a_tuple_unpacked,
    index_from_the_list_that_is_swapped,
    two_names_of_what_is_swapped,
    two_names,
    parts_of_attributes,
    parts_of_attributes_that_are_assigned,
    row_alias_parent_read,
    row_alias_index_changed,
    row_of_two,
    swapped_lists,
    last_is_stored,
    loop_row_changes_grid,
    loop_rows_rebinding,
    loop_zip_same,
    loop_grid_changes_length,
    graph_self,
    params_swap,
    pad_callee2,
    negative_index_alias,
    deep_alias,
    other_index_written,
    opt_change,
    opt_store,
    opt_iadd,
    rows_of_an_array,
    second_name_of_an_object,
    chained_assignment,
    extended_for_the_caller,
    list_that_grows_below_its_loop,
    element_added_in_place,
    setdefault_same,
    row_alias_after,
    row_alias_swap,
    row_alias_pop,
    row_alias_maybe,
    row_alias_maybe2,
    rolling_shared,
    rolling_three,
    appended_same,
    last_is_same,
    merge_shares,
    merge_shares2,
    same_row_twice_sorted,
    same_row_assigned,
    temp_swap_half,
    loop_rows_copy,
    loop_inner_alias,
    path_without_copy_top,
    row_in_dict,
    row_through_call,
    slice_rows_shared,
    slice_assign_shared,
    extend_shared,
    comprehension_reshared,
    sorted_shared,
    min_shared,
    pop_append,
    row_and_element,
    pop_default,
    fresh_in_two_results,
    opt_alias,
    pad_callee,
    path_without_copy,
    both_params_one,
    params_cross,
]


def cycle_whose_rows_may_be_one(n):
    g, i = [[n], [1], [2]], n % 3
    g[i], g[1], g[2] = g[1], g[2], g[i]
    g[1].append(7)
    return g


def reversed_while_a_row_is_kept(n):
    g = [[n, 2], [3, 4]]
    for s in g:
        g.reverse()
        s[0] = 9
    return g


def default_that_may_be_none(n):
    kept = None
    if n > 2:
        kept = [1]
    d = {0: [3], 1: [4, n]}
    d[n + 5] = [n]
    found = d.get(n % 3, kept)
    if found is not None:
        found.append(9)
    return len(d[0]), len(d[1]), 0 if kept is None else len(kept)


RIGHT += [cycle_whose_rows_may_be_one, default_that_may_be_none, reversed_while_a_row_is_kept]

REFUSED = [
    twice_into_call,
    element_extended_in_place,
]


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", RIGHT, ids=[fn.__name__ for fn in RIGHT])
def test_a_change_is_seen_by_both_names(fn: Callable[..., Any]) -> None:
    examples = [2, 3]
    result = pcbatch.batch(fn).run(jnp.array(examples))
    for lane, example in enumerate(examples):
        try:
            want = fn(example)
        except TypeError:
            assert int(result.status[lane]) != int(pcbatch.Status.OK)
            continue
        assert alike(as_plain(lane_of(result.value, lane)), as_plain(want), 1e-6)


@pytest.mark.parametrize("fn", REFUSED, ids=[fn.__name__ for fn in REFUSED])
def test_what_is_not_certain_is_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(fn).trace(jnp.array([2, 3]))
