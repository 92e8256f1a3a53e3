"""The reading of lines, declarations and operations, which the text forms of all program types share (see `parser`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Call
from pcbatch.ir.def_use import AnyOp
from pcbatch.ir.expr_text import default_reads, unbrace
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Check, Expr, Fail, Move, Prim, Print, PureOp, Select
from pcbatch.ir.stack import Pop, Push
from pcbatch.ir.types import ArrayType, parse_type

OpT = TypeVar("OpT")
LeafT = TypeVar("LeafT")

NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
NAMES = rf"{NAME}(?:, *{NAME})*"
LABEL = r"[^\s,:(){}=]+"
FUNC = r"[^\s(){},]+"
PROGRAM = re.compile(rf"program entry=({LABEL}) in=\((.*)\) out=\((.*)\) \{{")
SOURCE = re.compile(rf"// (?:function @({FUNC})|no function)")
_DECLARATION = re.compile(rf"({NAMES}): (\S+)(?: (\S+))?")
_ASSIGN = re.compile(rf"(?:update +)?({NAMES}) = (?=\S)")
_READS = re.compile(rf" *(?:reads \(((?:{NAMES})?)\))?")
_SELECT = re.compile(rf"select ({NAME}), *({NAME}), *({NAME})")
_CALL = re.compile(rf"call @({FUNC})\(((?:{NAMES})?)\)")
_CHECK = re.compile(rf"check ({NAME}), (\w+) (\w+)")
_PUSH = re.compile(rf"push ({NAME})(?: = ({NAME}))?")
_POP = re.compile(rf"pop ({NAME})")
_FORK = re.compile(rf"branch ({NAME}), *")
_COMMA = re.compile(r", *")
_FAIL = re.compile(rf"fail (\w+) ({NAME})(?=\()")
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
            line = _without_comment(line, number)
        if line:
            yield Line(number, line)


def _without_comment(line: str, number: int) -> str:
    """Cut a line at `//`, unless that is in an expression, where it is a floor division, or in a message."""
    brace, comment = line.find("{"), line.find("//")
    start = 0
    if match := _MESSAGE.match(line):
        start = _message(Line(number, line), match.end())[1]
    elif 0 <= brace < comment and not line.startswith(("func @", "program entry=")):
        try:
            _, start = unbrace(line, brace)
        except ValueError as error:
            raise ParseError(number, f"{error}: {line!r}") from None
    head, tail = line[:start], line[start:]
    return (head + tail.partition("//")[0]).rstrip()


def closing(lines: Lines) -> None:
    """Take the brace that ends a function or a program."""
    line = lines.take("a block `label:` or `}`")
    if line.text != "}":
        line.fail("a block `label:` or `}`")


def declarations(lines: Lines) -> Iterator[tuple[str, str, str | None]]:
    """Take the declarations: name, type and storage class of each variable, as texts."""
    while not lines.done and all(_DECLARATION.fullmatch(part) for part in _parts(lines.next.text)):
        for part in _parts(lines.take("a declaration").text):
            if match := _DECLARATION.fullmatch(part):
                for name in split_names(match[1]):
                    yield name, match[2], match[3]


def _parts(text: str) -> list[str]:
    return re.split(r" {2,}", text)


def read_type(lines: Lines, text: str) -> ArrayType | None:
    """Read a type of the line that was taken last."""
    try:
        return parse_type(text)
    except ValueError as error:
        raise ParseError(lines.number, str(error)) from None


def split_names(text: str) -> tuple[str, ...]:
    """Split a list of names at its commas."""
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()


def read_ops(lines: Lines, declared: Collection[str], keep: Callable[[AnyOp], OpT | None], where: str) -> Iterator[OpT]:
    """Take the operations up to the next terminator; raise ParseError for one that `keep` rejects."""
    while not lines.done and (op := _op(lines.next, declared)) is not None:
        line = lines.take("an operation")
        kept = keep(op)
        if kept is None:
            raise ParseError(line.number, f"no {type(op).__name__.lower()} in {where}: {line.text!r}")
        yield kept


def read_prologue(lines: Lines, declared: Collection[str]) -> tuple[PureOp, ...]:
    """Take the operations of the prologue, if there is one."""
    if lines.done or lines.next.text != "prologue:":
        return ()
    lines.take("the prologue")
    return tuple(read_ops(lines, declared, pure_op, "the prologue"))


def pure_op(op: AnyOp) -> PureOp | None:
    """Return an operation if it is a pure one."""
    return None if isinstance(op, Call | Push | Pop | Print | Check) else op


def _op(line: Line, declared: Collection[str]) -> AnyOp | None:
    text = line.text
    if assign := _ASSIGN.match(text):
        return _value(line, assign.end(), split_names(assign[1]), declared)
    if text.startswith("{") or _CALL.fullmatch(text):
        return _value(line, 0, (), declared)
    if match := _PUSH.fullmatch(text):
        return Push(match[1], match[2] or match[1])
    if match := _POP.fullmatch(text):
        return Pop(match[1])
    if text.startswith("print("):
        return Print(_whole_message(line, len("print")))
    if match := _CHECK.match(text):
        return Check(match[1], match[2], match[3], _whole_message(line, match.end()))
    return None


def _message(line: Line, start: int) -> tuple[messages.Message, int]:
    try:
        return messages.parse(line.text, start)
    except ValueError as error:
        raise ParseError(line.number, f"{error}: {line.text!r}") from None


def read_fail(line: Line) -> Fail | None:
    """Read a line that is a failure."""
    match = _FAIL.match(line.text)
    return Fail(match[1], match[2], _whole_message(line, match.end())) if match else None


def read_tree(
    line: Line, start: int, leaf: Callable[[Line, int], tuple[LeafT, int]]
) -> tuple[LeafT | Fork[LeafT], int]:
    """Read a leaf, or a fork of them, that begins at a position; return it and the position after it."""
    return _fork(line, start, leaf) if _FORK.match(line.text, start) else leaf(line, start)


def _fork(line: Line, start: int, leaf: Callable[[Line, int], tuple[LeafT, int]]) -> tuple[Fork[LeafT], int]:
    def inner(at: int) -> tuple[LeafT | Fork[LeafT], int]:
        if not line.text.startswith("(", at):
            return leaf(line, at)
        fork, end = _fork(line, at + 1, leaf)
        return (fork, end + 1) if line.text.startswith(")", end) else line.fail("`)` after the inner branch")

    match = _FORK.match(line.text, start) or line.fail("`branch condition, way, way`")
    on_true, middle = inner(match.end())
    comma = _COMMA.match(line.text, middle) or line.fail("a comma between the ways of a branch")
    on_false, end = inner(comma.end())
    return Fork(match[1], on_true, on_false), end


def _whole_message(line: Line, start: int) -> messages.Message:
    message, end = _message(line, start)
    return message if end == len(line.text) else line.fail("nothing after the message")


def _value(line: Line, start: int, dsts: tuple[str, ...], declared: Collection[str]) -> AnyOp:
    text = line.text[start:]
    if text.startswith("{"):
        return Prim(dsts, _expr(line, start, declared))
    if match := _CALL.fullmatch(text):
        return Call(dsts, match[1], split_names(match[2]))
    if len(dsts) == 1:
        if match := _SELECT.fullmatch(text):
            return Select(dsts[0], match[1], match[2], match[3])
        if re.fullmatch(NAME, text):
            return Move(dsts[0], text)
    line.fail("`a = { text }`, `a = b`, `a = select c, x, y` or `a = call @f(x)`")


def _expr(line: Line, start: int, declared: Collection[str]) -> Expr:
    try:
        text, end = unbrace(line.text, start)
    except ValueError as error:
        raise ParseError(line.number, f"{error}: {line.text!r}") from None
    reads = _READS.fullmatch(line.text, end) or line.fail("`reads (a, b)` or nothing after the expression")
    if reads[1] is not None:
        return Expr(text, split_names(reads[1]))
    ins = default_reads(text, declared)
    if ins is None:
        line.fail("`reads (...)` after a text that is not a Python expression")
    return Expr(text, ins)
