"""Generators inside of generators, and calls of them with `*cell`."""

from __future__ import annotations

from collections import deque
from itertools import count, islice

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("yielding", ROWS)


def neighbours(r, c):
    """Yield the cells beside a cell."""
    for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        yield r + dr, c + dc


@row((1, 2), (0, 0))
def reached(r, c):
    queue, seen, order = deque([(r, c)]), {(r, c)}, []
    while queue:
        cell = queue.popleft()
        order.append(cell)
        for beside in neighbours(*cell):
            if 0 <= beside[0] < 3 and 0 <= beside[1] < 3 and beside not in seen:
                seen.add(beside)
                queue.append(beside)
    return order, [a * 10 + b for a, b in neighbours(*order[-1])]


@row((1, 2), (0, 3))
def the_cell_moves(r, c):
    cell, path = (r, c), []
    for beside in neighbours(*cell):
        cell = beside
        path.append(cell)
        if len(path) > 2:
            break
    return path, cell


def blocks(k, m):
    """Yield numbers by generators that are defined inside, one of which goes over the other."""

    def block(j):
        def pair(q):
            yield q
            yield q + m

        for q in range(j):
            yield from pair(q)

    for i in range(k):
        yield from block(i)
        yield -i


@row((3, 2), (4, 1), (0, 0))
def inner_generators(k, m):
    total = 0
    for a in blocks(k, m):
        for b in blocks(2, a):
            total = (total * 3 + b) % 1000
    return list(blocks(k, m)), sum(blocks(m, k)), total


def fibonacci():
    """Yield the Fibonacci numbers, without end."""
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


@row((1, 2), (4, 1), (0, 5))
def some_of_endless_generators(n, m):
    g = fibonacci()
    first = [next(g) for _ in range(n)]
    return (
        list(islice(fibonacci(), n)), sum(islice(fibonacci(), n, n + m)), [2 * x for x in islice(fibonacci(), m)],
        first + list(islice(g, m)), list(islice((k * k for k in count(n)), m)),
    )  # fmt: skip


@row((3, 2), (1, 0))
def streams_behind_stars(n, m):
    return [*map(str, range(n)), *"ab"], (*range(m), n), [*(k * k for k in range(n)), *islice(fibonacci(), m)]


@row((1, 0), (2, 3))
def parts_of_a_choice(n, m):
    text = "a=b" if n > 1 else "c"
    key, value = text.split("=") if "=" in text else (text, "")
    first, *rest = (n, m, 3) if n > 1 else [m]
    return key + value, first, sum(rest)


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Pair(self.x + other.x, self.y + other.y)

    def __iter__(self):
        yield self.x
        yield self.y


@row((1, 2), (4, 1))
def sums_of_objects_with_elements(n, m):
    whole = sum([Pair(1, n), Pair(m, 2)], Pair(0, 5))
    return whole.x, whole.y, list(enumerate(whole, n)), list(islice(Pair(n, m), 1))
