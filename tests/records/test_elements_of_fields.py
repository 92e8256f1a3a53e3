"""Lists in fields of records whose elements are replaced: what shows that, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]


class Table:
    def __init__(self, n):
        self.rows = [[float(i * j + 1) for j in range(n)] for i in range(n)]
        self.items = list(range(n))
        self.named = {0: [1.0], 1: [2.0]}
        self.parents = {i: i // 2 for i in range(n)}
        self.next = None

    def pivot(self, r):
        pivot_row = [x / 2 for x in self.rows[r]]
        self.rows[r] = pivot_row
        kept = self.rows[0]
        for i, row in enumerate(self.rows):
            if i != r:
                self.rows[i] = [x - row[0] * y for x, y in zip(row, pivot_row)]
        return sum(kept)

    def ahead(self):
        total = 0.0
        for i, row in enumerate(self.rows):
            total += sum(row)
            if i + 1 < len(self.rows):
                self.rows[i + 1] = [x + 1 for x in row]
        return total

    def grow(self):
        for x in self.items:
            if 0 < x < 9:
                self.items.append(x * 3)
        return len(self.items)

    def drop(self):
        last = self.rows[-1]
        self.rows.pop()
        old = self.items
        self.items = [len(last)]
        return sum(last) + sum(old)

    def root(self, x):
        while self.parents[x] != x:
            self.parents[x] = self.parents[self.parents[x]]
            x = self.parents[x]
        return x

    def noted(self, x):
        if x == 3:
            self.parents[x + 100] = self.root(x)
        return x

    def groups(self):
        out = {e: [] for e in self.parents}
        for e in self.parents:
            out[self.root(e)].append(e)
        return out

    def sum_of_noted(self):
        total = 0
        for e in self.parents:
            total += self.noted(e)
        return total


def table(n):
    """A table that is a record, as it leads to another one."""
    made = Table(n)
    for i in range(n):
        if i == 1:
            made.next = Table(n)
    return made


def replaced(n):
    t = table(n)
    return t.pivot(1), t.ahead(), t.grow(), t.drop(), t.rows, t.items


def in_a_dict(n):
    t = table(n)
    first = t.named[0]
    t.named[0] = [3.0, 4.0]
    t.rows[0], t.rows[1] = t.rows[1], t.rows[0]
    t.rows[1].append(9.0)
    return sum(first), t.rows, t.groups()


class Bin:
    def __init__(self, first):
        self.items = [first]
        self.counts = {first: 1}

    def try_add(self, item):
        if sum(self.items) + item <= 10:
            self.items.append(item)
            self.counts[item] = len(self.items)
            return True
        return False


def listed(n):
    """The fields of records, collected where they are read."""
    bins = []
    for x in (3, 9, n, 4):
        if not any(b.try_add(x) for b in bins):
            bins.append(Bin(x))
    return [b.items for b in bins], [(b.counts, b.items) for b in bins]


@pytest.mark.parametrize("function", [replaced, in_a_dict, listed])
def test_as_in_python(function):
    made = pcbatch.batch(function)(np.array([2, 4], np.int32))
    assert all(alike(as_plain(lane_of(made, i)), as_plain(function(n)), 1e-5) for i, n in enumerate((2, 4)))


def test_a_loop_raises_where_a_method_adds_a_key():
    made = pcbatch.batch(lambda n: table(n).sum_of_noted()).run(np.array([3, 5], np.int32))
    assert made.status.tolist()[0] == 0 != made.status.tolist()[1]
    assert int(made.value[0]) == table(3).sum_of_noted()
    with pytest.raises(RuntimeError):
        table(5).sum_of_noted()


def changes_what_it_stored(t):
    xs = [1.0]
    t.rows[0] = xs
    xs.append(2.0)
    return sum(t.rows[0])


def shows_what_it_stored(t):
    xs = [1.0]
    t.named[5] = xs
    t.named[5].append(2.0)
    return sum(xs)


def stores_an_element_twice(t):
    t.rows[0] = t.rows[1]
    t.rows[1].append(2.0)
    return sum(t.rows[0])


def give(t, xs):
    for i in range(2):
        t.named[i] = xs


def stores_it_twice_in_a_call(t):
    give(t, [1.0])
    t.named[0].append(2.0)
    return sum(t.named[1])


def shows_an_element_that_grows(t):
    row = t.rows[0]
    t.rows[0] += [7.0]
    return sum(row)


def shows_an_element_that_is_replaced(t):
    rows = t.rows
    t.rows[0] = [7.0]
    return sum(rows[0])


def shows_a_list_that_grows(t):
    items = t.items
    t.items += [7]
    return sum(items)


@pytest.mark.parametrize(
    "function",
    [
        shows_what_it_stored,
        stores_an_element_twice,
        stores_it_twice_in_a_call,
        shows_an_element_that_grows,
    ],
)
def test_what_another_name_would_show_is_refused(function):
    def run(n):
        return function(table(n))

    with pytest.raises(pcbatch.CompileError) as caught:
        print(run(3), pcbatch.batch(run)(np.array([3, 4], np.int32)))
    assert [one.code for one in caught.value.diagnostics] == ["PCB330"]
    assert caught.value.diagnostics[0].helps


@pytest.mark.parametrize(
    "function", [changes_what_it_stored, shows_an_element_that_is_replaced, shows_a_list_that_grows]
)
def test_what_is_stored_may_change_by_its_own_name(function):
    def run(n):
        return function(table(n))

    assert pcbatch.batch(run)(np.array([3, 4], np.int32)).tolist() == [run(3), run(4)]
