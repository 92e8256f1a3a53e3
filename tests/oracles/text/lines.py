"""The lines of the text form of a program (see `pcbatch/ir/text/printer.py`), and a cursor over them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from pcbatch.ir.message import Message
from pcbatch.ir.text.expr_text import matching
from tests.oracles.text import message

NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
NAMES = rf"{NAME}(?:, *{NAME})*"
LABEL = r"[^\s,:(){}=]+"
FUNC = r"[^\s(){},]+"
SOURCE = re.compile(rf"// (?:function @({FUNC})|no function)")
_MESSAGE = re.compile(rf"(?:print|(?:fail|check {NAME},) \w+ {NAME})(?=\()")


class ParseError(ValueError):
    """A text that is no program; the message starts with the line number."""

    def __init__(self, number: int, message: str) -> None:
        self.number = number
        super().__init__(f"line {number}: {message}")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the text, without spaces around it."""

    number: int
    text: str

    def fail(self, expected: str) -> NoReturn:
        """Raise ParseError, which says what was expected."""
        raise ParseError(self.number, f"expected {expected}, not {self.text!r}")

    def braced(self, start: int) -> tuple[str, int]:
        """The text in the braces that open at a position, and the position after them."""
        try:
            return unbrace(self.text, start)
        except ValueError as error:
            raise ParseError(self.number, f"{error}: {self.text!r}") from None

    def message(self, start: int) -> tuple[Message, int]:
        """The message in the parentheses that open at a position, and the position after them."""
        try:
            return message.parse(self.text, start)
        except ValueError as error:
            raise ParseError(self.number, f"{error}: {self.text!r}") from None


@dataclass(slots=True)
class Lines:
    """A cursor over the lines that are not empty."""

    lines: list[Line]
    position: int = 0
    source: str = field(default="")  # the name in the last `// function @name`

    @property
    def next(self) -> Line:
        """The next line, not taken yet."""
        return self.lines[self.position]

    @property
    def number(self) -> int:
        """The number of the last line taken."""
        return self.lines[self.position - 1].number

    @property
    def done(self) -> bool:
        """Whether all lines are taken."""
        return self.position >= len(self.lines)

    def take(self, expected: str) -> Line:
        """Return the next line of the text, and go on to the one behind it."""
        if self.done:
            raise ParseError(self.lines[-1].number if self.lines else 1, f"the text ends, expected {expected}")
        self.position += 1
        return self.lines[self.position - 1]

    def match(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """Take the next line, which must match."""
        line = self.take(expected)
        return pattern.fullmatch(line.text) or line.fail(expected)

    def optional(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take the next line if it matches."""
        match = None if self.done else pattern.fullmatch(self.next.text)
        self.position += match is not None
        return match

    def optional_after_comments(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take the next line if it matches, and before it lines that name functions."""
        while source := self.optional(SOURCE):
            self.source = source[1] or ""
        return self.optional(pattern)


def split_lines(text: str) -> Iterator[Line]:
    """The lines of a text without comments and empty lines; those that name functions stay."""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not SOURCE.fullmatch(line):
            line = _without_comment(Line(number, line))
        if line:
            yield Line(number, line)


def _without_comment(line: Line) -> str:
    """Cut a line at `//`, unless that is in an expression, where it is a floor division, or in a message."""
    text = line.text
    brace, comment = text.find("{"), text.find("//")
    start = 0
    if match := _MESSAGE.match(text):
        start = line.message(match.end())[1]
    elif 0 <= brace < comment and not text.startswith(("func @", "program entry=")):
        start = line.braced(brace)[1]
    return (text[:start] + text[start:].partition("//")[0]).rstrip()


def split_names(text: str | None) -> tuple[str, ...]:
    """Split a list of names at its commas."""
    return tuple(name.strip() for name in text.split(",")) if text and text.strip() else ()


def unbrace(line: str, start: int) -> tuple[str, int]:
    """Read a braced text that opens at `line[start]`.

    Returns the text and the position after its closing brace; raises ValueError if it has none.
    """
    if line.startswith('{"', start):
        text, end = json.JSONDecoder().raw_decode(line, start + 1)
        if not isinstance(text, str) or not line.startswith("}", end):
            raise ValueError("expected } after the quoted text")
        return text, end + 1
    closing = matching(line, start)
    if closing is None:
        raise ValueError("the brace { is never closed")
    return line[start + 1 : closing].strip(), closing + 1
