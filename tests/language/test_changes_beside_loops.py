"""Changes of what a loop goes over: those inside the loop are seen by it, those beside it or after it are not."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import pcbatch

# mypy: disable-error-code="no-untyped-def"


def in_another_branch(n):
    xs = []
    for k in range(4):
        if n > 2:
            for x in xs:
                if len(xs) < 6:
                    xs.append(x + k)
            xs.append(n)
        else:
            xs.sort()
            n = n + 1
    return xs


def behind_the_loop(n):
    d = deque([n, 2, 3])
    if n % 2:
        for x in d:
            n = n + x
    d.rotate(n)
    return list(d)


def in_one_of_two_loops(n):
    d = deque([1, 2, 3])
    if n == 1:
        for x in d:
            if x == 2:
                d.rotate(1)
    elif n == 2:
        d.rotate(n)
        for _k, x in enumerate(d):
            d.append(x)
    return list(d)


@pytest.mark.parametrize("fn", [in_another_branch, behind_the_loop, in_one_of_two_loops])
def test_a_loop_sees_the_changes_of_its_own_body(fn) -> None:
    got = pcbatch.batch(fn, on_failure="ignore").run(np.arange(6)).value.tolist()
    for n in range(6):
        try:
            want = fn(n)
        except RuntimeError:
            want = None
        assert got[n] == want, n


def stores_what_it_computes_of_all(xs):
    for i, c in enumerate(xs):
        if c == 0:
            xs[i] = 5
            xs[i] += sum(xs)
    return xs


def grows(xs):
    for x in xs:
        if x == 0 and len(xs) < 6:
            xs.append(max(xs))


def searches(board):
    for i, c in enumerate(board):
        if c == 0:
            for v in range(1, 4):
                if v not in board:
                    board[i] = v
                    if searches(board):
                        return True
                    board[i] = 0
            return False
    return True


def stores_in_its_rows(grid):
    for row in grid:
        for i, c in enumerate(row):
            if c == 0:
                row[i] = sum(row)


def stores_values(counts):
    for k in counts:
        if counts[k] == 0:
            counts[k] = max(counts.values()) + len(counts)


def puts_a_key_in_the_place_of_one(counts):
    for k in counts:
        if counts[k] == 0:
            del counts[k]
            counts[k + 9] = len(counts)
            break


GOES_OVER = [
    (stores_what_it_computes_of_all, lambda n: [0, n, 0]),
    (grows, lambda n: [0, n, 4]),
    (searches, lambda n: [0, n, 0]),
    (stores_in_its_rows, lambda n: [[0, n], [n, 0]]),
    (stores_values, lambda n: {1: 0, 2: n, 3: 5}),
    (puts_a_key_in_the_place_of_one, lambda n: {1: 0, 2: n, 3: 5}),
]


@pytest.mark.parametrize(("helper", "made"), GOES_OVER, ids=[helper.__name__ for helper, _ in GOES_OVER])
def test_the_caller_sees_what_the_body_of_a_loop_changes(helper, made) -> None:
    def changed(n):
        xs = made(n)
        helper(xs)
        return xs

    assert pcbatch.batch(changed)(np.array([1, 3])).tolist() == [changed(1), changed(3)]


def test_names_of_a_function_that_is_written_out() -> None:
    def falls(xs, k):
        for x in reversed(xs):
            xs[k] = max(xs) + x

    def changed(n):
        xs = [0, n, 5]
        falls(xs, 1)
        return xs[1]

    with pytest.raises(pcbatch.CompileError, match="changes here while a value taken from it is still used"):
        pcbatch.batch(changed)(np.array([1, 3]))


def reversed_or_cleared(a, b):
    q = deque([b, a], maxlen=3)
    total = 0
    for x in q:
        total = total * 10 + x
        if a > 0:
            q.reverse()
        else:
            q.clear()
    return total, list(q)


def as_long_as_before(a, b):
    q = deque([b, a])
    for x in q:
        if a > 0:
            q.append(x)
            q.pop()
        elif b > 1:
            q.reverse()
    return 0, list(q)


def reversed_after_a_change_at_the_left(a, b):
    q = deque([a])
    q.appendleft(b)
    if a > 0:
        q.append(7)
        q.popleft()
    total = 0
    for x in q:
        total = total * 10 + x
        q.reverse()
    return total, list(q)


def rotated(a, b):
    """One element alone does not move."""
    q = deque()
    q.appendleft(b)
    if a > 0:
        q.appendleft(a)
    for x in q:
        q.rotate(x - x)
    q.rotate(-1)
    return 0, list(q)


def rotated_after_a_change_at_the_left(a, b):
    q = deque([b])
    if a > 0:
        q.appendleft(a)
        q.appendleft(7)
    q.rotate(1)
    return 0, list(q)


ENDED = [
    reversed_or_cleared,
    as_long_as_before,
    reversed_after_a_change_at_the_left,
    rotated,
    rotated_after_a_change_at_the_left,
]


@pytest.mark.parametrize("fn", ENDED, ids=lambda fn: fn.__name__)
def test_a_loop_over_a_deque_ends_where_its_elements_move(fn) -> None:
    """A deque that is reversed keeps its places: a loop over it goes on, beside others that may not."""
    firsts, seconds = np.array([1, 0, 2, -1]), np.array([1, 2, 3, 0])
    result = pcbatch.batch(fn).run(firsts, seconds)
    found = zip(*(column.tolist() for column in result.value), strict=True)
    for a, b, value, status in zip(firsts.tolist(), seconds.tolist(), found, result.status.tolist(), strict=True):
        try:
            assert (status, value) == (0, fn(a, b))
        except RuntimeError:
            assert status == int(pcbatch.Status.ERROR)


class Fighter:
    def __init__(self, life):
        self.life = life

    def hit(self, other, n):
        other.life -= n


def ended_by_another_name(n):
    """What is known of the objects does not end the loop; they change by names that take turns."""
    first, second = Fighter(40), Fighter(55)
    one, other = first, second
    while first.life > 0 and second.life > 0:
        one.hit(other, n)
        one, other = other, one
    return first.life * 100 + second.life


def ended_by_an_alias(n):
    numbers = [1]
    alias = numbers
    rounds = 0
    while numbers[0] < 5:
        alias[0] += n
        rounds += 1
    return rounds


@pytest.mark.parametrize("fn", [ended_by_another_name, ended_by_an_alias], ids=lambda fn: fn.__name__)
def test_a_loop_ends_by_a_change_of_another_name(fn) -> None:
    values = np.array([1, 3, 7])
    assert pcbatch.batch(fn)(values).tolist() == [fn(n) for n in values.tolist()]
