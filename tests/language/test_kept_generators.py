"""Generators that are kept, in variables, attributes and lists: who asks for an element gets the next one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from itertools import count, cycle, islice
from typing import Any

import pytest

import pcbatch
from tests.strangers.rows import argument, as_plain, lane_of


def lcg(seed):
    state = seed
    while True:
        state = (1103515245 * state + 12345) % 2**31
        yield state


def upto(n):
    for i in range(n):
        yield i + 0


def pairs(xs):
    for i, x in enumerate(xs):
        for j, y in zip(range(i), xs):
            if x > y:
                yield i, j, x - y


def falling(n):
    yield n
    if n > 2:
        yield n * 2
    while n > 0:
        n -= 1
        if n == 3:
            continue
        yield n
    return


def draw(rand, k):
    return next(rand) % k


def two_streams(seed, n, xs):
    a, b = lcg(seed), lcg(seed + 1)
    out = []
    for i in range(n):
        if draw(a, 3) == 0:
            out.append(draw(b, 10))
        else:
            out.append(draw(a, 100))
    return out


def maybe(rand, x):
    if x % 2:
        return next(rand) % 5
    return -1


def in_some_lanes(seed, n, xs):
    r = lcg(seed)
    return [maybe(r, x) for x in xs], next(r) % 7


def exhausted(seed, n, xs):
    g = falling(n)
    out = []
    for v in g:
        out.append(v)
    out.append(next(g, -100))
    out.append(next(g, -200))
    for v in g:
        out.append(1000)
    return out


def walk(rand, depth):
    if depth == 0:
        return next(rand) % 10
    left = walk(rand, depth - 1)
    if left % 2:
        return left + walk(rand, depth - 1)
    return left - next(rand) % 3


def in_a_recursion(seed, n, xs):
    r = lcg(seed)
    return walk(r, n), next(r) % 11


def stop_is_caught(seed, n, xs):
    g = upto(n)
    out = 0
    try:
        while True:
            out = out * 3 + next(g) + 1
    except StopIteration:
        out = -out
    try:
        next(g)
    except StopIteration:
        out -= 1000
    return out


def goes_on(seed, n, xs):
    g = pairs(xs)
    total = 0
    for i, j, d in g:
        total += d
        if total > 3:
            break
    rest = 0
    for i, j, d in g:
        rest += i * j + d
    return total, rest


def stop_escapes(seed, n, xs):
    g = upto(2)
    t = 0
    for x in xs:
        t += next(g) + x
    return t


def summed(seed, n, xs):
    g = falling(n)
    first = next(g)
    return first, sum(g), list(g)


def by_two_names(seed, n, xs):
    a = upto(10)
    b = a
    out = [next(a), next(b), next(a)]
    c = b if seed % 2 else upto(4)
    out.append(next(c))
    out.append(next(a))
    return out


def take(g, k):
    out = []
    for _ in range(k):
        out.append(next(g))
    return out


def taken_by_a_helper(seed, n, xs):
    g = upto(50)
    a = take(g, n)
    b = take(g, 2)
    return a, b, next(g)


def live(xs):
    n = len(xs)
    for x in xs:
        yield x + n


def bad(n):
    if n > 2:
        raise ValueError("big")
    k = 10 // n
    while True:
        yield k
        k -= 1


def raises_at_first(seed, n, xs):
    g = bad(n)
    t = 1
    try:
        t = next(g)
        t = t * 10 + next(g)
    except ValueError:
        t = -1
    return t, next(g, -5)


def divides(xs):
    for x in xs:
        yield 12 // x


def ends_by_an_exception(seed, n, xs):
    g = divides(xs)
    out = []
    for _ in range(n + 2):
        try:
            out.append(next(g))
        except ZeroDivisionError:
            out.append(-1)
        except StopIteration:
            out.append(-2)
    return out


def inner(g):
    while True:
        yield next(g) * 2


def stop_inside(seed, n, xs):
    g = inner(upto(n))
    t = 0
    try:
        for _ in range(3):
            t += next(g)
    except RuntimeError:
        t = -t - 1
    return t


def window(xs, k):
    held = []
    for x in xs:
        held.append(x)
        if len(held) > k:
            held.pop(0)
        if len(held) == k:
            yield sum(held), held[:]


def of_lists(seed, n, xs):
    g = window(xs, 2)
    s, w = next(g, (0, []))
    out = [s]
    for s, w in g:
        out.append(s * 10 + w[0])
    return out


class Shop:
    def __init__(self, seed, names):
        self.ids = itertools.count(100)
        self.rng = lcg(seed)
        self.turn = cycle(names)
        self.log = []

    def order(self, n):
        for _ in range(n):
            self.log.append((next(self.ids), next(self.turn), next(self.rng) % 7))

    def steps(self, n):
        for i in range(n):
            yield i + next(self.ids)
            if i > 1:
                yield -next(self.rng) % 5


def counts(seed, n, xs):
    tick = count(1)
    step = count(0, n)
    total = 0
    for x in xs:
        if x % 2:
            total += next(tick) * x
        total -= next(step)
    return total, next(tick), next(step)


def of_a_method(seed, n, xs):
    s = Shop(seed, xs)
    g = s.steps(n)
    out = [next(g), next(s.ids), next(g, -1), next(g, -1)]
    out.append(next(s.ids))
    for v in g:
        out.append(v)
    return out


def nested(seed, n, xs):
    def stream(k):
        s = seed
        while True:
            s = (s * 31 + k) % 1009
            yield s
            for x in xs:
                if x < n:
                    yield x

    a, b = stream(1), stream(2)
    out = []
    for i in range(6):
        out.append(next(a))
        if i % n == 1:
            out.append(next(b))
    return out


def in_a_list(seed, n, xs):
    gens = [lcg(seed + i) for i in range(3)]
    return [next(gens[i % 3]) % 100 for i in range(n + 3)]


class Node:
    def __init__(self, v, left=None):
        self.v, self.left = v, left

    def items(self):
        if self.left is not None:
            yield from self.left.items()
        yield self.v


def build(k, d):
    if d == 0:
        return None
    return Node(k, build(2 * k, d - 1))


def tree(seed, n, xs):
    g = build(1, n).items()
    first = next(g)
    return first, next(g, -1), list(g)


class Up:
    def __init__(self, n):
        self.i, self.n = 0, n

    def __iter__(self):
        return self

    def __next__(self):
        if self.i < self.n:
            self.i += 1
            return self.i
        raise StopIteration


def zipped_with_an_iterator(seed, n, xs):
    g = Up(seed)
    t = 0
    for x, y in zip(xs, g):
        t = t * 3 + x * y
    return t, next(g, -1)


def left_early(seed, n, xs):
    g = upto(seed)
    return any(x > 3 for x in g), next(g, -1), all(x < 5 for x in g), next(g, -1)


def in_an_expression(seed, n, xs):
    g = upto(seed)
    out = []
    for y in (x * 2 for x in g if x != 1):
        out.append(y)
        if y > 3:
            break
    return out, next(g, -1)


def zipped(seed, n, xs):
    g, h = upto(seed), upto(n)
    out = [a * 10 + b for a, b in zip(g, h)]
    return out, next(g, -1), next(h, -1)


def zipped_with_itself(seed, n, xs):
    g = upto(seed)
    return [a * 10 + b for a, b in zip(g, g)], next(g, -1)


def first_of_an_expression(seed, n, xs):
    g = upto(seed)
    a = next((x for x in g if x > 2), -5)
    return a, next(g, -1), 3 in g, next(g, -1), max((x for x in g), default=0)


def sliced(seed, n, xs):
    g = Up(20)
    return list(islice(g, n)), next(g)


def zipped_cycle(seed, n, xs):
    t = 0
    for i, c in zip(range(n), cycle([3, 4, 5])):
        t = t * 3 + i * c
    return t


def half(points):
    hull = []
    for p in points:
        while len(hull) >= 2 and hull[-1][0] >= p[0]:
            hull.pop()
        hull.append(p)
    return hull


def points(seed, n, xs):
    pts = sorted({((i * n) % 11, x) for i, x in enumerate(xs)})
    return half(pts), half(reversed(pts))


def gaps(n):
    g = n // 2
    while g > 0:
        yield g
        g //= 2


def threes(n):
    for g in (9, 3, 1):
        if g < n or g == 1:
            yield g


def folded(steps):
    total = 0
    for step in steps:
        total = total * 3 + step
    return total


def chosen(seed, n, xs):
    function = gaps if seed % 2 else threes
    return folded(function(seed % 13 + n))


EXAMPLES = [(i * 7 + 1, i % 5 + 1, [(j * j * 3 + i) % 7 for j in range(i % 5)]) for i in range(8)]
KEEPING = [
    two_streams,
    in_some_lanes,
    exhausted,
    in_a_recursion,
    stop_is_caught,
    goes_on,
    stop_escapes,
    summed,
    by_two_names,
    taken_by_a_helper,
    raises_at_first,
    ends_by_an_exception,
    stop_inside,
    of_lists,
    counts,
    of_a_method,
    nested,
    in_a_list,
    zipped_with_an_iterator,
    left_early,
    in_an_expression,
    zipped,
    zipped_with_itself,
    first_of_an_expression,
    sliced,
    zipped_cycle,
    tree,
    points,
    chosen,
]


@pytest.mark.parametrize("function", KEEPING, ids=lambda function: function.__name__)
def test_as_in_python(function: Callable[..., Any]) -> None:
    result = pcbatch.batch(function).run(*(argument(list(column)) for column in zip(*EXAMPLES, strict=True)))
    for lane, (seed, n, xs) in enumerate(EXAMPLES):
        try:
            plain = function(seed, n, list(xs))
        except StopIteration:
            assert result.status[lane] == pcbatch.Status.ERROR
        else:
            assert result.status[lane] == pcbatch.Status.OK
            assert as_plain(lane_of(result.value, lane)) == as_plain(plain)


def _returned(seed, n, xs):
    return upto(n)


def _sent(seed, n, xs):
    g = upto(n)
    return g.send(None)


def echo(n):
    got = yield n
    yield got


def _receives(seed, n, xs):
    g = echo(n)
    return next(g), next(g)


def cleans_up(n):
    try:
        yield n
    finally:
        n += 1


def _cleans_up(seed, n, xs):
    g = cleans_up(n)
    return next(g)


def differences(xs):
    for i, x in enumerate(xs):
        if i > 0:
            yield x - before  # noqa: F821
        before = x


def _without_value(seed, n, xs):
    g = differences(xs)
    return next(g, 0)


def _assigns_outside(seed, n, xs):
    def stream():
        nonlocal seed
        while True:
            seed += 1
            yield seed

    g = stream()
    return next(g), seed


def _later_list(seed, n, xs):
    g = live(xs)
    xs.append(5)
    return next(g)


def keys(d):
    yield from d


def _of_a_dict(seed, n, xs):
    g = keys({x: 1 for x in xs})
    return next(g, 0)


@pytest.mark.parametrize(
    ("function", "code", "words"),
    [
        (_returned, "PCB311", "returns a generator"),
        (_sent, "PCB105", "nothing is sent"),
        (_receives, "PCB304", "the value of this `yield` is used"),
        (_cleans_up, "PCB304", "the `finally` around a `yield`"),
        (_without_value, "PCB304", "`before` is read behind a `yield`"),
        (_assigns_outside, "PCB304", "may assign again"),
        (_later_list, "PCB330", "`g`"),
        (_of_a_dict, "PCB304", "goes over a dict"),
    ],
)
def test_what_is_refused(function: Callable[..., Any], code: str, words: str) -> None:
    with pytest.raises(pcbatch.CompileError) as info:
        pcbatch.batch(function)(*(argument(list(column)) for column in zip(*EXAMPLES, strict=True)))
    assert info.value.diagnostics[0].code == code
    assert words in str(info.value)


def _counting(n):
    yield from range(n)


def test_the_default_of_next_is_for_whichever_generator_is_chosen() -> None:
    def chosen(a, b):
        streams = [_counting(a), _counting(b)]
        g, h = _counting(a), _counting(b)
        found = [next(g if k % 2 else h, -7) for k in range(4)]
        try:
            return found, next(streams[a % 2], -7)
        except StopIteration:
            return found, 999

    examples = [(0, 0), (1, 2), (2, 0)]
    found = pcbatch.batch(chosen)(*(argument(list(column)) for column in zip(*examples, strict=True)))
    assert [as_plain(lane_of(found, k)) for k in range(3)] == [as_plain(chosen(*one)) for one in examples]
