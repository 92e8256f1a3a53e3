"""Texts that methods `__str__` and `__repr__` of the user's make, and properties, where they depend on the lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Card:
    def __init__(self, rank, suit):
        self.rank = rank
        self.suit = suit

    def __str__(self):
        return f"J{self.suit}" if self.rank == 11 else f"{self.rank}/{self.suit}"

    def __repr__(self):
        return f"Card({self.rank}, {self.suit})"


class Hand:
    def __init__(self):
        self.cards = []

    def add(self, card):
        self.cards.append(card)

    def top(self):
        return self.cards[-1]

    def __str__(self):
        return " ".join(map(str, self.cards))


class Short:
    """A class with `__repr__` alone."""

    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return "-" if self.x < 0 else "+" * self.x


class Fraction:
    """A text that shows a float, which a lane can only print."""

    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return f"F({self.x:.2f})"


def by_str(a, b):
    return str(Card(a, b)) + "!"


def by_repr(a, b):
    return repr(Card(a, b)) + repr(a)


def in_template(a, b):
    card, short = Card(a, b), Short(a - 9)
    return f"<{card}> {card!r} {card!s} {short} {short!r} {a}"


def of_elements(a, b):
    hand = Hand()
    for k in range(b % 4):
        hand.add(Card(a + k, b))
    return str(hand) + ", ".join(map(str, hand.cards)) + ", ".join(str(card) for card in hand.cards)


def of_chosen_objects(a, b):
    shown = Card(a, b) if a > 9 else Card(b, a)
    return f"{shown} " + str(Short(b % 3))


TEXTS = [by_str, by_repr, in_template, of_elements, of_chosen_objects]
RANKS, SUITS = np.array([5, 11, 10]), np.array([7, 14, 11])


@pytest.mark.parametrize("fn", TEXTS, ids=lambda fn: fn.__name__)
def test_the_texts_are_those_of_python(fn: Callable[[int, int], str]) -> None:
    found = pcbatch.batch(fn)(RANKS, SUITS).tolist()
    assert found == [fn(a, b) for a, b in zip(RANKS.tolist(), SUITS.tolist(), strict=True)]


def printing(a, b):
    card, short, fraction = Card(a, b), Short(a - 9), Fraction(a * 0.5)
    hand = Hand()
    hand.add(card)
    print(card)
    print("card", card, f"{card} and {a}", repr(card), hand.top())
    print(short, f"{short!r}", fraction, [fraction], f"{fraction}")
    if a == 11:
        raise ValueError(f"bad {card} {fraction}")
    return a


def test_what_a_lane_prints_and_raises(capfd: pytest.CaptureFixture[str]) -> None:
    """A method that branches was asked once for all lanes, which all showed one of its texts."""
    with pytest.raises(pcbatch.BatchRuntimeError, match=r"bad J14 F\(5.50\)"):
        pcbatch.batch(printing)(RANKS, SUITS)
    lines = capfd.readouterr().out.splitlines()
    for k, (a, b) in enumerate(zip(RANKS.tolist(), SUITS.tolist(), strict=True)):
        try:
            printing(a, b)
        except ValueError:
            pass
        plain = capfd.readouterr().out.splitlines()
        assert [line for line in lines if line.startswith(f"[lane {k}] ")] == [f"[lane {k}] {line}" for line in plain]


def printing_one(a, b):
    print(Card(a, b))
    return a


def test_what_alone_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    pcbatch.batch(printing_one)(RANKS, SUITS)
    assert sorted(capfd.readouterr().out.splitlines()) == ["[lane 0] 5/7", "[lane 1] J14", "[lane 2] 10/11"]


def printing_a_list(a, b):
    print([Short(a), Short(b)])
    return a


def test_a_text_that_cannot_be_made_for_each_lane_is_refused() -> None:
    with pytest.raises(pcbatch.CompileError, match="the text of an object depends on values of the lane"):
        pcbatch.batch(printing_a_list)(RANKS, SUITS)


class Account:
    def __init__(self, balance, limit):
        self.balance = balance
        self.limit = limit

    @property
    def status(self):
        if self.balance < 0:
            return -1
        return 1 if self.balance > self.limit else 0

    @property
    def fee(self):
        total, rest = 0, self.balance
        while rest > 10:
            rest //= 10
            total += 1
        return total

    @property
    def half(self):
        return self.balance // 2

    def pay(self, x):
        if self.status < 0:
            return 0
        self.balance -= x
        return self.fee


class Closed(Account):
    @property
    def status(self):
        return -1 if self.limit % 2 else 0


class Link:
    def __init__(self, value, following=None):
        self.value = value
        self.following = following

    @property
    def length(self):
        return 1 if self.following is None else 1 + self.following.length


def of_one(a, b):
    account = Account(a, b)
    account.balance += account.status
    return account.status * 100 + account.fee + account.half


def of_many(a, b):
    accounts = [Account(a, b)]
    for k in range(b % 5):
        accounts.append(Account(a * k, b))
    return sum(account.status for account in accounts) * 10 + max(account.fee for account in accounts)


def of_two_classes(a, b):
    account = Account(a, b) if a > 5 else Closed(a, b)
    return account.status * 10 + account.pay(b) + account.balance


def of_links(a, b):
    head = None
    for k in range(b % 6 + 1):
        head = Link(k, head)
    return head.length + a


@pytest.mark.parametrize("fn", [of_one, of_many, of_two_classes, of_links], ids=lambda fn: fn.__name__)
def test_properties_are_those_of_python(fn: Callable[[int, int], Any]) -> None:
    values, limits = np.array([5, 600, -3]), np.array([7, 14, 33])
    found = pcbatch.batch(fn)(values, limits).tolist()
    assert found == [fn(a, b) for a, b in zip(values.tolist(), limits.tolist(), strict=True)]
