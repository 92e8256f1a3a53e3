"""Generators inside of generators, and calls of them with `*cell`."""

from __future__ import annotations

from collections import deque

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
