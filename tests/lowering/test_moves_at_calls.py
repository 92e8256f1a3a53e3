"""Objects that functions hand to one another stay at their place: no call copies them."""

from __future__ import annotations

import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Calculator:
    """A parser by recursive descent, whose methods all change the place, and one of them what it stores."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.pos = 0
        self.stored = {}
        self.out = []

    def peek(self):
        return self.tokens[self.pos] if self.pos < len(self.tokens) else ""

    def take(self):
        token = self.peek()
        self.pos += 1
        return token

    def factor(self):
        token = self.take()
        if token == "(":
            value = self.sum()
            self.take()
            return value
        return int(token) if token.isdigit() else self.stored[token]

    def sum(self):
        value = self.factor()
        while self.peek() == "+":
            self.take()
            value += self.factor()
        return value

    def statements(self):
        while self.peek() not in ("", "}"):
            name = self.take()
            if name == "{":
                self.statements()
                self.take()
            elif name == "print":
                self.out.append(self.sum())
            else:
                self.stored[name] = self.sum()


@pcbatch.batch
def calculate(text):
    calculator = Calculator(text.split())
    calculator.statements()
    return calculator.out


TEXTS = ["x 1 + 2 { y ( x + 1 ) print y + x } print y", "foo 7 print foo", "print 1 + ( 2 + ( 3 + 4 ) ) print 0"]


def test_objects_that_methods_change_are_moved_at_no_call():
    """`peek` and `take` are called by all methods, on one object, of which no two copies live at once."""
    text = calculate.lower(pcbatch.ragged(TEXTS)).as_text("opt")
    assert text.count("pushjump") + text.count(" call ") > 5
    moved = [line for line in text.splitlines() if line.lstrip().startswith(("update", "push")) and "{" not in line]
    assert [line for line in moved if ".stored." in line or ".tokens._0" in line] == []


def test_types_of_such_objects_come_to_an_end():
    """A dict that one method fills, and others read, is empty where the object is made: that type and the filled one
    have one type above both, whichever of them is seen first."""
    assert calculate(pcbatch.ragged(TEXTS)).tolist() == [calculate.plain(text) for text in TEXTS]
