"""Loops over containers whose contents are known at first, and that an outer loop comes back with changed: a loop that
was copied for each element has to stay one."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch


def counted_while_keys_go(a):
    d = {1: 2, 6: 3}
    i1 = 3
    n = 0
    while i1 > 0:
        i1 -= 1
        for i2 in list(d):
            n += 1
            if i2 > 2:
                del d[i2]
    return n, d


def by_a_range(a):
    d = {1: 2, 6: 3}
    n = 0
    for k in range(3):
        for i2 in list(d):
            n += 1
            if i2 > a:
                del d[i2]
    return n, d


def sets(a):
    s = {1, 6}
    n = 0
    while a > 0:
        for i2 in list(s):
            n += 1
            if i2 > 2:
                s.discard(i2)
        a -= 1
    return n


def popped(a):
    s = [1, 6]
    n = 0
    while a > 0:
        for i2 in list(s):
            n += 1
            if i2 > 2:
                s.pop()
        a -= 1
    return n


def items(a):
    d = {1: 2, 6: 3}
    n = 0
    while a > 0:
        for k, v in list(d.items()):
            n += v
            if k > 2:
                d.pop(k)
        a -= 1
    return n


def sorted_keys(a):
    d = {1: 2, 6: 3}
    n = 0
    while a > 0:
        ks = sorted(d)
        for k in ks:
            n += k
            if k > 2:
                d.pop(k)
        n += len(ks)
        a -= 1
    return n


def appended_behind(a):
    xs = [1, 2]
    n = 0
    while a > 0:
        for x in xs:
            n += x
        xs.append(5)
        a -= 1
    return n


def copies_of_a_growing_list(a):
    xs = [1, 6]
    n = 0
    while a > 0:
        for x in list(xs):
            n += x
        xs.append(5)
        a -= 1
    return n


def grows_in_the_body(a):
    xs = [1, 6]
    n = 0
    while a > 0:
        for x in list(xs):
            n += x
            if x > 2 and a % 2:
                xs.append(3)
        a -= 1
    return n


def keys_that_go_behind(a):
    d = {1: 2, 6: 3}
    n = 0
    while a > 0:
        for x in d:
            n += x
        if 6 in d:
            del d[6]
        a -= 1
    return n


def copied_keys_that_go_behind(a):
    d = {1: 2, 6: 3}
    n = 0
    while a > 0:
        for x in list(d):
            n += x
        if 6 in d:
            del d[6]
        a -= 1
    return n


def keys_that_come(a):
    d = {1: 2, 6: 3}
    n = 0
    while a > 0:
        for x in list(d):
            n += x
        d[n] = 1
        a -= 1
    return n


def sorted_sets(a):
    s = {1, 6}
    n = 0
    while a > 0:
        for x in sorted(s):
            n += x
            if x > 2:
                s.discard(x)
        a -= 1
    return n


def comprehensions(a):
    d = {1: 2, 6: 3}
    n = 0
    while a > 0:
        for x in [k for k in d]:
            n += x
            if x > 2:
                del d[x]
        a -= 1
    return n


def tuples_of_keys(a):
    d = {1: 2, 6: 3}
    n = 0
    while a > 0:
        for x in tuple(d):
            n += 1
            if x > 2:
                del d[x]
        a -= 1
    return n


def in_consumers(a):
    d = {1: 2, 6: 3}
    n = 0
    while a > 0:
        n += sum(1 for x in list(d) if x > 0)
        for x in [k for k in d if k > 2]:
            del d[x]
        a -= 1
    return n


def zipped(a):
    d, n = {1: 2, 6: 3}, 0
    while a > 0:
        for k, x in enumerate(list(d)):
            n += k + 1
            if x > 2:
                del d[x]
        for x, y in zip(list(d), [5, 7]):
            n += x * y
        a -= 1
    return n


def in_a_callee(a):
    xs, n = [1, 6], 0
    for _ in range(a):
        n += drained(xs)
    return n


def drained(xs):
    n = 0
    for x in list(xs):
        n += x
        if x > 2:
            xs.remove(x)
    return n


def nested(a):
    rows, n = [[1, 6], [2, 7]], 0
    while a > 0:
        for row in rows:
            for x in list(row):
                n += x
                if x > 5:
                    row.remove(x)
        a -= 1
    return n


def left_early(a):
    d, n = {1: 2, 6: 3, 8: 1}, 0
    while a > 0:
        for x in list(d):
            n += 1
            if x > 5:
                del d[x]
                break
        else:
            n += 100
        a -= 1
    return n


def pops_of_as_many(a):
    q = [1, 2]
    n = 0
    while a > 0:
        ys = [q.pop() for _ in range(len(q))]
        n += sum(ys) * 10 + len(ys)
        q.append(a)
        a -= 1
    return n


def sums_of_pops(a):
    q = [1, 2]
    n = 0
    while a > 0:
        n += sum(q.pop() for _ in range(len(q)))
        q.append(a)
        q.append(1)
        q.append(2)
        a -= 1
    return n


def texts(a):
    s = "abc"
    n = 0
    while a > 0:
        for c in s:
            n += ord(c)
            if c == "b":
                s = s + "x"
        a -= 1
    return n


def lists_in_lists(a):
    xs = [[1], [2]]
    n = 0
    while a > 0:
        for x in list(xs):
            n += len(x)
            if len(xs) < 5:
                xs.append([n])
        a -= 1
    return n


FNS = [
    counted_while_keys_go, by_a_range, sets, popped, items, sorted_keys, appended_behind, copies_of_a_growing_list,
    grows_in_the_body, keys_that_go_behind, copied_keys_that_go_behind, keys_that_come, sorted_sets, comprehensions,
    tuples_of_keys, in_consumers, zipped, in_a_callee, nested, left_early,
    pops_of_as_many, sums_of_pops, texts, lists_in_lists,
]  # fmt: skip


@pytest.mark.parametrize("fn", FNS, ids=lambda fn: fn.__name__)
def test_like_python(fn):
    batched, ns = pcbatch.batch(fn), [3, 4]
    got = batched(jnp.asarray(ns))
    for lane, n in enumerate(ns):
        want = fn(n)
        parts = got if isinstance(got, tuple) else (got,)
        found = tuple(np.asarray(part[lane]).tolist() for part in parts)
        assert found == (want if isinstance(want, tuple) else (want,))
