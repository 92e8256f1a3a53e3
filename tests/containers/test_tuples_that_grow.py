"""Tuples whose length differs between lanes or between paths: they grow, and come back as tuples."""

from __future__ import annotations

import heapq
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import unlike_plain

pytestmark = pytest.mark.promotion("standard")
NUMBERS = (0, 1, 2, 3, 5, 6, 7)


def grown(n):
    t = ()
    for k in range(n):
        t += (k * k, k)
    return (t, len(t), sum(t), t[::-1])


def best_of(n):
    best, bt = (0, ())
    taken = ()
    for k in range(n):
        taken = taken + (k,)
        if k * 7 % 5 > best:
            bt, best = (taken, k * 7 % 5)
    return (bt, best)


def in_a_heap(n):
    h = [(0, 0, ())]
    out = []
    while h:
        b, i, t = heapq.heappop(h)
        if i == n % 5:
            out.append(t)
            continue
        heapq.heappush(h, (b + i, i + 1, t + (i,)))
        if i % 2:
            heapq.heappush(h, (b, i + 1, t))
    return out


def rec(i, n, t):
    if i >= n:
        return t
    a = rec(i + 1, n, t + (i,))
    b = rec(i + 2, n, t)
    return a if sum(a) % 3 >= sum(b) % 3 else b


def recursive(n):
    return rec(0, n % 6, ())


def paths(n):
    q = deque([((0, 0), ())])
    seen = {(0, 0)}
    while q:
        (x, y), path = q.popleft()
        if x + y == n:
            return path
        for d, (dx, dy) in enumerate(((0, 1), (1, 0))):
            p = (x + dx, y + dy)
            if p not in seen:
                seen.add(p)
                q.append((p, path + (d,)))
    return None


@dataclass
class Node:
    level: int
    taken: tuple = ()


def in_fields(n):
    st = [Node(0)]
    out = []
    while st:
        nd = st.pop()
        if nd.level == n % 4:
            out.append(nd.taken)
            continue
        st.append(Node(nd.level + 1, nd.taken + (nd.level,)))
        st.append(Node(nd.level + 1, nd.taken))
    return out


def returned(n):
    if n > 2:
        return (n, n + 1)
    return ()


def of_pairs(n):
    """pairs"""
    path = ((0, 0),)
    for k in range(n):
        path = path + ((k, path[-1][0] + k),)
    return path


def in_a_memo(n):
    memo = {}

    def go(i):
        if i == 0:
            return ()
        if i in memo:
            return memo[i]
        r = go(i - 1) + (i,)
        memo[i] = r
        return r

    return go(n)


def displays(n):
    t = ()
    for k in range(n):
        t = (*t, k)
    return (t, (*t, -1), list(t))


def elements_of_a_set(n):
    seen = set()
    t = ()
    for k in range(n):
        t = t + (k % 2,) if k % 3 else t[1:]
        seen.add(t)
    return (len(seen), () in seen, (0,) in seen, sorted(seen))


def keys(n):
    d = {(): 0}
    for k in range(n):
        key = (k,) if k % 2 else (k, k)
        d[key] = k
    return (sorted(d.items()), d.get((1,), -1), d[()])


def or_none(n):
    best = None
    t = ()
    for k in range(n):
        t = t + (k,)
        if sum(t) % 2 == 0:
            best = t
    return (best, best is None, best == (0,))


def comprehensions(n):
    paths = [()]
    for k in range(n):
        paths = [p + (x,) for p in paths for x in (0, 1) if len(p) < 3][:9]
    return (paths, min(paths, key=len, default=()), len(paths))


def unpacked(n):
    if n % 3 == 0:
        r = (n,)
    elif n % 3 == 1:
        r = (n, n)
    else:
        r = ()
    try:
        a, b = r
        return a + b
    except ValueError:
        return -1


def of_tuples(n):
    st = ((),)
    for k in range(n):
        st = st + (st[-1] + (k,),)
    return st


def defaults(n):
    d = defaultdict(tuple)
    for k in range(n):
        d[k % 3] += (k,)
    return sorted(d.items())


def of_texts(n):
    cur = ("a",)
    for k in range(n):
        if k % 2:
            cur = cur + ("b" * k,)
        else:
            cur = cur[-2:]
    return cur


def compared(n):
    p = (0, 0)
    if n % 2:
        p = (1, 2, 3)
    return (p == (1, 2, 3), p != (0, 0), p < (0, 1), p)


def default_texts_and_orders(n):
    texts, orders = defaultdict(str), defaultdict(OrderedDict)
    for k in range(n):
        texts[k % 3] += str(k)
        orders[k % 2][k * 3 % 5] = True
    if orders[0]:
        orders[0].move_to_end(list(orders[0])[0])
    return sorted(texts.items()), [list(each) for each in orders.values()]


ROUTES = [(1,), (1, 2), (), (3, 4, 5)]


def of_a_table(n):
    route = ROUTES[n % 4]
    return route, len(route), sum(route)


PROGRAMS: tuple[Callable[..., Any], ...] = (
    grown, best_of, in_a_heap, recursive, paths, in_fields, returned, of_pairs, in_a_memo, displays,
    elements_of_a_set, keys, or_none, comprehensions, unpacked, of_tuples, defaults, of_texts, compared,
    default_texts_and_orders, of_a_table,
)  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_as_plain_python(function: Callable[..., Any]) -> None:
    assert unlike_plain(function, NUMBERS) == []


def test_a_tuple_comes_back_as_one() -> None:
    found = pcbatch.batch(returned)(np.array([0, 4]))
    assert found.tolist() == [(), (4, 5)]


def test_a_tuple_with_parts_of_several_kinds_keeps_its_length() -> None:
    """In a tuple of the lane the number of the pair would become a float."""

    def best(n):
        found = ()
        for k in range(n):
            found = (k, k * 0.5)
        return found

    with pytest.raises(pcbatch.CompileError, match="changes type"):
        pcbatch.batch(best)(np.array([1, 2]))
