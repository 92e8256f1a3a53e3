"""Texts and numbers in one place: in tuples of a list, told apart by a text in front, and in fields of objects."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")

LANES = [1, 2, 3]


class Token:
    def __init__(self, kind, value):
        self.kind = kind
        self.value = value


Pair = namedtuple("Pair", "kind value")


def scanned(text, make):
    out, i = [], 0
    while i < len(text):
        c = text[i]
        if c.isdigit():
            j = i
            while j < len(text) and text[j].isdigit():
                j += 1
            out.append(make("num", int(text[i:j])))
            i = j
        else:
            out.append(make("op", c))
            i += 1
    return out


def scanned_tuples(text):
    out, number = [], ""
    for c in text + " ":
        if c.isdigit():
            number += c
            continue
        if number:
            out.append(("num", int(number)))
            number = ""
        if c != " ":
            out.append(("op", c))
    return out


def tuples(n):
    total = 0
    for kind, value in scanned_tuples(f"({n}+2)*13"):
        if kind == "num":
            total += value
        elif value == "+":
            total += 100
    return total


def objects(n):
    total, texts = 0, []
    for token in scanned(f"({n}+2)*13", Token):
        if token.kind == "num":
            total = total * 2 + token.value
        else:
            texts.append(token.value)
    return total, texts


def named_tuples(n):
    found = scanned(f"{n}+2-7", Pair)
    return sum(pair.value for pair in found if pair.kind == "num"), found[1].value == "+", found[0].value == n


def in_branches(n):
    tokens = []
    for k in range(n + 2):
        tokens.append(Token("num", k) if k % 2 else Token("op", "+"))
    tokens[n % 2].value = "x"
    tokens[(n + 1) % 2].value = n * 10
    return [token.value for token in tokens]


def one_raises(n):
    tokens = []
    for k in range(n + 2):
        tokens.append(Token("num", k) if k % 2 else Token("op", "+"))
    try:
        return sum(token.value for token in tokens)
    except TypeError:
        return -1


class Parser:
    def __init__(self, tokens):
        self.tokens = tokens
        self.pos = 0

    def peek(self):
        return self.tokens[self.pos] if self.pos < len(self.tokens) else None

    def summed(self):
        total = 0
        while self.peek():
            token = self.peek()
            self.pos += 1
            if token[0] == "num":
                total += token[1]
        return total


def parts_of_an_object(n):
    return Parser(scanned_tuples(f"{n}+20+3")).summed()


def machine(n):
    code = [("push", n), ("push", 3), ("add", None), ("jmp", "end"), ("push", 9), ("label", "end"), ("print", "x")]
    labels = {arg: at for at, (op, arg) in enumerate(code) if op == "label"}
    stack, out, at = [], [], 0
    while at < len(code):
        op, arg = code[at]
        if op == "push":
            stack.append(arg)
        elif op == "add":
            stack.append(stack.pop() + stack.pop())
        elif op == "jmp":
            at = labels[arg]
        elif op == "print":
            out.append(arg)
        at += 1
    return stack, out


def machine_of_two_lengths(n):
    code = [("push", 1), ("push", 3), ("add",), ("dec",), ("jnz", 1), ("print",)]
    stack, out, at, left = [], [], 0, n
    while at < len(code):
        op, *args = code[at]
        at += 1
        if op == "push":
            stack.append(args[0])
        elif op == "add":
            stack.append(stack.pop() + stack.pop())
        elif op == "dec":
            left -= 1
        elif op == "jnz":
            if left > 0:
                at = args[0]
        else:
            out.append(stack[-1])
    return out


def asked(n):
    tokens = scanned(f"2*{n}+1", Token)
    xs = [10, 20, 30, 40]
    return (
        [token.value in "+-" for token in tokens if token.kind == "op"],
        [len(token.value) for token in tokens if token.kind == "op"],
        [xs[token.value] for token in tokens if token.kind == "num"],
        [f"<{token.value}>" for token in tokens],
        [isinstance(token.value, int) for token in tokens],
        [token.value == 2 for token in tokens],
        [(token.value - 1, 2**token.value, -token.value) for token in tokens if token.kind == "num"],
        sorted([int(token.value) for token in tokens if isinstance(token.value, int)]),
    )


PROGRAMS = (
    asked, tuples, objects, named_tuples, in_branches, one_raises, parts_of_an_object, machine, machine_of_two_lengths,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_lanes_do_as_python(program: Callable[[int], Any]) -> None:
    found = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(found, k)), as_plain(program(n)), 0.0), (program.__name__, n)


def of_two(n):
    tokens = []
    for k in range(4):
        tokens.append(Token("num", k + 1) if k % 2 else Token("op", "x"))
    a, b = tokens[n % 4], tokens[(n + 2) % 4]
    return a.value + b.value


def by_two(n):
    tokens = []
    for k in range(2):
        tokens.append(Token("num", k + 1) if k % 2 else Token("op", "x"))
    return tokens[n % 2].value * 2


def less_one(n):
    tokens = []
    for k in range(2):
        tokens.append(Token("num", k + 1) if k % 2 else Token("op", "x"))
    return tokens[n % 2].value - 1


def below(n):
    tokens = []
    for k in range(4):
        tokens.append(Token("num", k + 1) if k % 2 else Token("op", "x"))
    return tokens[n % 4].value < tokens[(n + 2) % 4].value


STOPPED: dict[Callable[[int], Any], int] = {of_two: 7, by_two: 7, below: 7, less_one: 5}


@pytest.mark.parametrize("program", STOPPED, ids=lambda program: program.__name__)
def test_a_lane_stops_at_what_only_texts_can(program: Callable[[int], Any]) -> None:
    """A sum or a product of texts is one in Python, so the lane stops; what Python refuses raises."""
    result = pcbatch.batch(program).run(np.array([1, 2]))
    assert result.status.tolist() == [0, STOPPED[program]]
    assert np.asarray(result.value)[0] == program(1)


def in_order(n):
    return sorted(token.value for token in scanned(f"2*{n}+1", Token) if token.kind == "num")


def test_an_order_of_what_may_be_texts_is_refused() -> None:
    with pytest.raises(pcbatch.CompileError, match="an order of what may be texts and numbers"):
        pcbatch.batch(in_order).lower(np.array([1, 2]))
