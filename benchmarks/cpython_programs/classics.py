"""Programs that everybody writes first: recursions, loops, lists, deques, dicts, heaps, texts."""

from __future__ import annotations

import heapq
import math
from collections import deque

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


@program("Fibonacci by recursion, 5 to 17", lambda rng: (rng.randint(5, 17),))
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@program("Collatz, starts up to 1,000", lambda rng: (rng.randint(1, 1000),))
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program("Mandelbrot, 200 rounds at most", lambda rng: (rng.uniform(-2, 0.5), rng.uniform(-1.2, 1.2)))
def mandelbrot(a, b):
    x = y = 0.0
    for k in range(200):
        if x * x + y * y > 4.0:
            return k
        x, y = x * x - y * y + a, 2 * x * y + b
    return 200


@program("Newton's method, square roots", lambda rng: (rng.uniform(0.1, 1e4),))
def newton(a):
    x = a
    while abs(x * x - a) > 1e-4 * a:
        x = 0.5 * (x + a / x)
    return x


def _bump(x, centre):
    return math.exp(-50.0 * (x - centre) * (x - centre)) + math.sin(x)


def _simpson(a, b, fa, fm, fb):
    return (b - a) / 6.0 * (fa + 4.0 * fm + fb)


def _refine(a, b, fa, fm, fb, whole, tolerance, centre):
    m = 0.5 * (a + b)
    fl, fr = _bump(0.5 * (a + m), centre), _bump(0.5 * (m + b), centre)
    left, right = _simpson(a, m, fa, fl, fm), _simpson(m, b, fm, fr, fb)
    if abs(left + right - whole) <= tolerance or b - a < 1e-3:
        return left + right
    return _refine(a, m, fa, fl, fm, left, 0.5 * tolerance, centre) + _refine(
        m, b, fm, fr, fb, right, 0.5 * tolerance, centre
    )


@program("adaptive Simpson, a bump of its own", lambda rng: (rng.uniform(0.5, 3.5),))
def quadrature(centre):
    fa, fm, fb = _bump(0.0, centre), _bump(2.0, centre), _bump(4.0, centre)
    return _refine(0.0, 4.0, fa, fm, fb, _simpson(0.0, 4.0, fa, fm, fb), 1e-4, centre)


def _queens(n, columns, diagonals, others):
    if columns == (1 << n) - 1:
        return 1
    count = 0
    free = ((1 << n) - 1) & ~(columns | diagonals | others)
    while free:
        bit = free & -free
        free ^= bit
        count += _queens(n, columns | bit, ((diagonals | bit) << 1) & ((1 << n) - 1), (others | bit) >> 1)
    return count


@program("queens by bits, 4 to 7", lambda rng: (rng.randint(4, 7),))
def queens(n):
    return _queens(n, 0, 0, 0)


def _word(rng, least, most):
    return [rng.randint(0, 3) for _ in range(rng.randint(least, most))]


@program("edit distance, 8 to 16 letters", lambda rng: (_word(rng, 8, 16), _word(rng, 8, 16)))
def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i in range(len(a)):
        diagonal = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            best = min(row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j]))
            diagonal = row[j + 1]
            row[j + 1] = best
    return row[-1]


def _tokens(rng):
    out = []
    for _ in range(rng.randint(6, 14)):
        out += [rng.randint(0, 9), -rng.randint(1, 3)]
    return ([*out, rng.randint(0, 9)],)


@program("calculator with two stacks", _tokens)
def calculator(tokens):
    values, operators = [], []
    for token in tokens:
        if token >= 0:
            values.append(token)
        else:
            while operators and operators[-1] <= token:
                right = values.pop()
                left = values.pop()
                operator = operators.pop()
                if operator == -1:
                    values.append(left + right)
                elif operator == -2:
                    values.append(left - right)
                else:
                    values.append(left * right % 1009)
            operators.append(token)
    while operators:
        right = values.pop()
        left = values.pop()
        operator = operators.pop()
        if operator == -1:
            values.append(left + right)
        elif operator == -2:
            values.append(left - right)
        else:
            values.append(left * right % 1009)
    return values[0]


def _grid(rng):
    cells = [0 if rng.random() < 0.7 else 1 for _ in range(64)]
    cells[0] = cells[63] = 0
    return (cells,)


@program("breadth-first search, 8 x 8, a deque and a set", _grid)
def maze(cells):
    waiting = deque([(0, 0)])
    seen = {0}
    while waiting:
        cell, distance = waiting.popleft()
        if cell == 63:
            return distance
        row, column = cell // 8, cell % 8
        for step in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            r, c = row + step[0], column + step[1]
            if 0 <= r < 8 and 0 <= c < 8:
                other = 8 * r + c
                if cells[other] == 0 and other not in seen:
                    seen.add(other)
                    waiting.append((other, distance + 1))
    return -1


def _graph(rng):
    return [rng.randrange(24) for _ in range(72)], [rng.randint(1, 9) for _ in range(72)], rng.randrange(24)


@program("Dijkstra, 24 nodes, a dict and a heap", _graph)
def dijkstra(ends, lengths, goal):
    distances = {}
    heap = [(0, 0)]
    while heap:
        distance, node = heapq.heappop(heap)
        if node == goal:
            return distance
        if node not in distances:
            distances[node] = distance
            for k in range(3 * node, 3 * node + 3):
                heapq.heappush(heap, (distance + lengths[k], ends[k]))
    return -1


def _coins(rng):
    return sorted(rng.sample(range(2, 25), 5)), rng.randint(40, 90)


@program("coins by dynamic programming", _coins)
def coins(kinds, amount):
    best = [0] + [1000] * amount
    for total in range(1, amount + 1):
        for coin in kinds:
            if coin <= total and best[total - coin] + 1 < best[total]:
                best[total] = best[total - coin] + 1
    return best[amount]


def _sudoku_free(board, cell, digit):
    row, column = cell // 4, cell % 4
    for k in range(4):
        if board[4 * row + k] == digit or board[4 * k + column] == digit:
            return False
        if board[4 * (row // 2 * 2 + k // 2) + column // 2 * 2 + k % 2] == digit:
            return False
    return True


def _sudoku_count(board, cell):
    if cell == 16:
        return 1
    if board[cell] != 0:
        return _sudoku_count(board, cell + 1)
    count = 0
    for digit in range(1, 5):
        if _sudoku_free(board, cell, digit):
            board[cell] = digit
            count += _sudoku_count(board, cell + 1)
            board[cell] = 0
    return count


def _board(rng):
    full = [1, 2, 3, 4, 3, 4, 1, 2, 2, 1, 4, 3, 4, 3, 2, 1]
    return ([digit if rng.random() < 0.5 else 0 for digit in full],)


@program("solutions of a 4 x 4 Sudoku by backtracking", _board)
def sudoku(board):
    return _sudoku_count(board, 0)


def _words(rng):
    return ("".join(rng.choice("ab  12+") for _ in range(rng.randint(12, 30))),)


@program("tokenizer of a text", _words)
def tokenizer(text):
    words = numbers = signs = i = 0
    while i < len(text):
        c = text[i]
        if c.isalpha():
            words += 1
            while i < len(text) and text[i].isalnum():
                i += 1
        elif c.isdigit():
            numbers += 1
            while i < len(text) and text[i].isdigit():
                i += 1
        else:
            if c != " ":
                signs += 1
            i += 1
    return words, numbers, signs


@program("queue of customers, an event heap", lambda rng: (rng.randint(1, 10**6), rng.randint(20, 60)))
def queue_network(seed, customers):
    state = seed
    events = []
    time = 0
    for k in range(customers):
        state = (state * 75 + 74) % 65537
        time += state % 10 + 1
        heapq.heappush(events, (time, k))
    free = 0
    waited = 0
    while events:
        time, k = heapq.heappop(events)
        state = (state * 75 + 74) % 65537
        start = max(time, free)
        waited += start - time
        free = start + state % 12 + 1
    return waited
