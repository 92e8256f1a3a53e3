"""Methods of the user's that change their object only by what they call."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, CompileError


def bump(counter):
    counter.n += 5


def paid(bank):
    return bank.pay()


class Counter:
    def __init__(self, n):
        self.n = n

    def step(self):
        self.n -= 1

    def go(self):
        self.step()

    def bumped(self):
        bump(self)

    @property
    def following(self):
        self.n += 1
        return self.n

    def by_property(self):
        return self.following + 1

    def up(self):
        self.n += 2
        return self.n

    def several(self):
        return sum([self.up() for _ in range(3)])

    def ping(self, k):
        if k > 0:
            self.pong(k - 1)

    def pong(self, k):
        self.n += 3
        if k > 0:
            self.ping(k - 1)

    def by_name(self):
        setattr(self, "n", self.n * 2)

    def by_argument(self, change):
        change(self)

    def check(self):
        if self.n > 3:
            raise ValueError("large")

    def show(self):
        print("n is", self.n)

    def look(self):
        return self.n + 1

    def itself(self):
        kept = [0]
        kept[0] = self.n
        return self

    @staticmethod
    def told(n):
        print("told", n)

    @classmethod
    def said(cls, n):
        print("said", n)


class Inherited(Counter):
    def go(self):
        super().go()
        self.bumped()


class Overridden(Counter):
    def step(self):
        super().step()
        super().step()


class Bank:
    def __init__(self):
        self.money = 10

    def pay(self):
        self.money -= 1
        return self.money


class Owner:
    def __init__(self):
        self.bank, self.heap = Bank(), []

    def act(self):
        self.bank.pay()

    def hand(self):
        return paid(self.bank)

    def shown(self, other):
        kept = []
        kept.append(self.bank.money)
        return self.bank, other

    def push(self, x):
        heapq.heappush(self.heap, x)

    def pop(self):
        return heapq.heappop(self.heap)


PLUS, TIMES, OPEN, CLOSE = 10, 11, 12, 13


class Parser:
    """Recursive descent over sums of products of digits."""

    def __init__(self, tokens):
        self.tokens, self.pos = tokens, 0

    def peek(self):
        return self.tokens[self.pos] if self.pos < len(self.tokens) else -1

    def take(self):
        token = self.tokens[self.pos]
        self.pos += 1
        return token

    def parse(self):
        return self.expr()

    def expr(self):
        value = self.term()
        while self.peek() == PLUS:
            self.take()
            value = value + self.term()
        return value

    def term(self):
        value = self.factor()
        while self.peek() == TIMES:
            self.take()
            value = value * self.factor()
        return value

    def factor(self):
        if self.peek() == OPEN:
            self.take()
            value = self.expr()
            self.take()
            return value
        return self.take()


def _statement(n):
    m = Counter(n)
    m.go()
    return m.n


def _by_a_function(n):
    m = Counter(n)
    m.bumped()
    return m.n


def _by_a_property(n):
    m = Counter(n)
    k = m.by_property()
    return m.n * 100 + k


def _in_a_comprehension(n):
    m = Counter(n)
    k = m.several()
    return m.n * 100 + k


def _mutual_recursion(n):
    m = Counter(n)
    m.ping(n)
    return m.n


def _inherited(n):
    m = Inherited(n)
    m.go()
    return m.n


def _super(n):
    m = Overridden(n)
    m.go()
    return m.n


def _by_setattr(n):
    m = Counter(n)
    m.by_name()
    return m.n


def _by_an_argument(n):
    m = Counter(n)
    m.by_argument(bump)
    return m.n


def _attributes(n):
    o = Owner()
    o.act()
    k = o.hand()
    o.bank.pay()
    return o.bank.money * 100 + k + n


def _heap(n):
    o = Owner()
    for k in range(n):
        o.push((k * 7) % 5 - n)
    return o.pop() * 100 + o.pop()


def _elements(n):
    counters = [Counter(n), Counter(n + 1)]
    for m in counters:
        m.go()
    return counters[0].n * 100 + counters[1].n


def _order(n):
    m = Counter(n)
    return m.n + m.by_property() * 10 + m.by_property() * 100 + m.n


def _branches(n):
    m = Counter(n)
    if n > 3:
        m.go()
    else:
        m.bumped()
    return m.n


def _only_looks(n):
    m = Counter(n)
    m.look()
    return m.n


def _gives_itself(n):
    m = Counter(n)
    same = m.itself()
    same.n += 3
    return m.n * 100 + same.n


def _gives_parts(n):
    o, c = Owner(), Counter(n)
    bank, same = o.shown(c)
    bank.money += n
    same.n += 7
    return o.bank.money * 100 + c.n


class Queues:
    def __init__(self):
        self.by_name, self.by_number, self.rows = {"buy": [], "sell": [1]}, {1: [], 2: [4]}, [[1], [2, 3]]

    def put(self, side, k):
        self.by_name[side].append(k)
        self.by_number[k].append(k)

    def put_row(self, k):
        self.rows[k].append(7)


def _tables_of_lists(n):
    """The lists are chosen by keys of the lane, which are tables of the lane only while they are looked up."""
    q = Queues()
    q.put("buy" if n > 2 else "sell", n % 2 + 1)
    q.put_row(n % 2)
    return len(q.by_name["sell"]) * 100 + sum(q.by_number[1]) * 10 + sum(q.rows[1])


def _raises(n):
    m = Counter(n)
    try:
        m.check()
    except ValueError:
        return -1
    return m.n


@pytest.mark.parametrize(
    "function",
    [
        _statement,
        _by_a_function,
        _by_a_property,
        _in_a_comprehension,
        _mutual_recursion,
        _inherited,
        _super,
        _by_setattr,
        _by_an_argument,
        _attributes,
        _heap,
        _elements,
        _order,
        _branches,
        _only_looks,
        _gives_itself,
        _gives_parts,
        _tables_of_lists,
        _raises,
    ],
)
def test_as_in_python(function: Any) -> None:
    args = np.array([2, 3, 6])
    assert pcbatch.batch(function)(args).tolist() == [function(n) for n in args.tolist()]


def test_recursive_descent() -> None:
    def value(tokens):
        parser = Parser(tokens)
        found = parser.parse()
        return found * 100 + parser.pos

    texts = np.array([[2, PLUS, 3, TIMES, 4, -1, -1], [OPEN, 2, PLUS, 3, CLOSE, TIMES, 4]])
    assert pcbatch.batch(value)(texts).tolist() == [value(list(text)) for text in texts.tolist()] == [1405, 2007]


def test_a_method_that_raises_or_prints(capfd: pytest.CaptureFixture[str]) -> None:
    def f(n):
        m = Counter(n)
        m.show()
        m.check()
        Counter.told(n)
        Counter.said(n)
        return n

    with pytest.raises(BatchRuntimeError, match="large"):
        pcbatch.batch(f)(np.array([3, 4]))
    assert sorted(capfd.readouterr().out.splitlines()) == [
        "[lane 0] n is 3",
        "[lane 0] said 3",
        "[lane 0] told 3",
        "[lane 1] n is 4",
    ]


def _static(n):
    m = Counter(n)
    m.told(n)
    return n


def _class(n):
    m = Counter(n)
    m.said(n)
    return n


@pytest.mark.parametrize(
    ("function", "help"),
    [
        (_static, "call it by its class: `Counter.told(n)`"),
        (_class, "call it by its class: `Counter.said(n)`"),
    ],
)
def test_helps_for_methods_of_the_users(function: Any, help: str) -> None:
    with pytest.raises(CompileError, match="PCB119") as info:
        pcbatch.batch(function)(np.arange(3))
    assert info.value.diagnostics[0].helps == (help,)
