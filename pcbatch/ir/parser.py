"""The parser of the text form (see `printer`): `parse_program(print_program(p)) == p`.

Line by line with regular expressions; only expression texts need a scanner. The result is not verified. Sources of
operations (`loc`) and functions (`Expr.fn`) have no text form and stay empty; the interpreters then evaluate texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op, Terminator
from pcbatch.ir.def_use import AnyOp
from pcbatch.ir.expr_text import default_reads, unbrace
from pcbatch.ir.ops import RETURN, Branch, Check, Expr, Fail, Jump, Move, Prim, Print, PureOp, Return, Select
from pcbatch.ir.stack import (
    Edge,
    Fork,
    Pop,
    Push,
    PushJump,
    StackBlock,
    StackOp,
    StackProgram,
    StackTerminator,
    Storage,
    Var,
)
from pcbatch.ir.types import ArrayType, parse_type

OpT = TypeVar("OpT")

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_NAMES = rf"{_NAME}(?:, *{_NAME})*"
_LABEL = r"[^\s,:(){}=]+"
_FUNC = r"[^\s(){},]+"

_HEADER = re.compile(r"pcir 1 (cfg|stack)")
_ENTRY = re.compile(rf"entry @({_FUNC})")
_SIGNATURE = re.compile(rf"func @({_FUNC})\((.*?)\) -> \((.*)\) \{{")
_PROGRAM = re.compile(rf"program entry=({_LABEL}) in=\((.*)\) out=\((.*)\) \{{")
_SECTION = re.compile(rf"({_LABEL}):")
_SOURCE = re.compile(rf"// (?:function @({_FUNC})|no function)")
_DECLARATION = re.compile(rf"({_NAMES}): (\S+)(?: (\S+))?")
_PARAMETER = re.compile(rf"({_NAME})(?:: (\S+))?")
_ASSIGN = re.compile(rf"(?:update +)?({_NAMES}) = (?=\S)")
_READS = re.compile(rf" *(?:reads \(((?:{_NAMES})?)\))?")
_SELECT = re.compile(rf"select ({_NAME}), *({_NAME}), *({_NAME})")
_CALL = re.compile(rf"call @({_FUNC})\(((?:{_NAMES})?)\)")
_CHECK = re.compile(rf"check ({_NAME}), (\w+) (\w+)")
_PUSH = re.compile(rf"push ({_NAME})(?: = ({_NAME}))?")
_POP = re.compile(rf"pop ({_NAME})")
_JUMP = re.compile(rf"jump ({_LABEL})")
_BRANCH = re.compile(rf"branch ({_NAME}), *({_LABEL}), *({_LABEL})")
_FORK = re.compile(rf"branch ({_NAME}), *")
_COMMA = re.compile(r", *")
_EDGE_CALL = re.compile(rf"call ({_LABEL}) +ret=({_LABEL})")
_EDGE_LABEL = re.compile(_LABEL)
_FAIL = re.compile(rf"fail (\w+) ({_NAME})(?=\()")
_MESSAGE = re.compile(rf"(?:print|(?:fail|check {_NAME},) \w+ {_NAME})(?=\()")
_PUSHJUMP = re.compile(rf"pushjump ({_LABEL}), *ret=({_LABEL})")


class ParseError(ValueError):
    """A text that is no program; the message starts with the line number."""

    def __init__(self, number: int, message: str) -> None:
        self.number = number
        super().__init__(f"line {number}: {message}")


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str

    def fail(self, expected: str) -> NoReturn:
        raise ParseError(self.number, f"expected {expected}, not {self.text!r}")


@dataclass(slots=True)
class _Lines:
    """A cursor over the lines that are not empty."""

    lines: list[_Line]
    position: int = 0
    source: str = field(default="")  # the name in the last `// function @name`

    @property
    def next(self) -> _Line:
        return self.lines[self.position]

    @property
    def number(self) -> int:
        """The number of the last line taken."""
        return self.lines[self.position - 1].number

    @property
    def done(self) -> bool:
        return self.position >= len(self.lines)

    def take(self, expected: str) -> _Line:
        if self.done:
            raise ParseError(self.lines[-1].number if self.lines else 1, f"the text ends, expected {expected}")
        self.position += 1
        return self.lines[self.position - 1]

    def match(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        line = self.take(expected)
        return pattern.fullmatch(line.text) or line.fail(expected)

    def optional(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take the next line if it matches."""
        match = None if self.done else pattern.fullmatch(self.next.text)
        self.position += match is not None
        return match


def parse_program(text: str) -> CfgProgram | StackProgram:
    """Read a program of either type; raises ParseError, with the line number, for text that is none."""
    lines = _Lines(list(_split(text)))
    kind = lines.match(_HEADER, "the header `pcir 1 cfg` or `pcir 1 stack`")[1]
    program = _cfg(lines) if kind == "cfg" else _stack(lines)
    if not lines.done:
        lines.next.fail("the end of the text")
    return program


def _split(text: str) -> Iterator[_Line]:
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not _SOURCE.fullmatch(line):
            line = _without_comment(line, number)
        if line:
            yield _Line(number, line)


def _without_comment(line: str, number: int) -> str:
    """Cut a line at `//`, unless that is in an expression, where it is a floor division, or in a message."""
    brace, comment = line.find("{"), line.find("//")
    start = 0
    if match := _MESSAGE.match(line):
        start = _message(_Line(number, line), match.end())[1]
    elif 0 <= brace < comment and not line.startswith(("func @", "program entry=")):
        try:
            _, start = unbrace(line, brace)
        except ValueError as error:
            raise ParseError(number, f"{error}: {line!r}") from None
    head, tail = line[:start], line[start:]
    return (head + tail.partition("//")[0]).rstrip()


def _cfg(lines: _Lines) -> CfgProgram:
    entry = lines.optional(_ENTRY)
    functions = []
    while not lines.done:
        if not lines.optional(_SOURCE):
            functions.append(_function(lines))
    if entry is None and not functions:
        lines.take("a function")
    return CfgProgram(entry[1] if entry else functions[0].name, tuple(functions))


def _function(lines: _Lines) -> Function:
    match = lines.match(_SIGNATURE, "`func @name(a: i32[]) -> (r: i32[]) {`")
    types: dict[str, ArrayType | None] = {}
    params, results = (_typed_names(lines, match[i], types) for i in (2, 3))
    for name, type_text, storage in _declarations(lines):
        if storage:
            raise ParseError(lines.number, f"no storage classes in a cfg program: {storage}")
        types[name] = _type(lines, type_text)
    blocks = []
    while label := lines.optional(_SECTION):
        ops: tuple[Op, ...] = tuple(_ops(lines, {*params, *results, *types}, _cfg_op, "a cfg program"))
        blocks.append(Block(label[1], ops, _cfg_terminator(lines)))
    _closing(lines)
    return Function(match[1], params, results, tuple(blocks), types)


def _stack(lines: _Lines) -> StackProgram:
    match = lines.match(_PROGRAM, "`program entry=label in=(a) out=(r) {`")
    params, results = _split_names(match[2]), _split_names(match[3])
    variables = {
        name: Var(_type(lines, type_text), _storage(lines, storage))
        for name, type_text, storage in _declarations(lines)
    }
    declared = {*params, *results, *variables}
    prologue: tuple[PureOp, ...] = ()
    if not lines.done and lines.next.text == "prologue:":
        lines.take("the prologue")
        prologue = tuple(_ops(lines, declared, _pure_op, "the prologue"))
    blocks: list[StackBlock] = []
    while label := _label_after_comments(lines):
        ops: tuple[StackOp, ...] = tuple(_ops(lines, declared, _stack_op, "a stack program"))
        blocks.append(StackBlock(label[1], ops, _terminator(lines.take("a jump")), lines.source))
    _closing(lines)
    return StackProgram(match[1], params, results, variables, tuple(blocks), prologue)


def _label_after_comments(lines: _Lines) -> re.Match[str] | None:
    while source := lines.optional(_SOURCE):
        lines.source = source[1] or ""
    return lines.optional(_SECTION)


def _closing(lines: _Lines) -> None:
    line = lines.take("a block `label:` or `}`")
    if line.text != "}":
        line.fail("a block `label:` or `}`")


def _declarations(lines: _Lines) -> Iterator[tuple[str, str, str | None]]:
    while not lines.done and all(_DECLARATION.fullmatch(part) for part in _parts(lines.next.text)):
        for part in _parts(lines.take("a declaration").text):
            if match := _DECLARATION.fullmatch(part):
                for name in _split_names(match[1]):
                    yield name, match[2], match[3]


def _parts(text: str) -> list[str]:
    return re.split(r" {2,}", text)


def _typed_names(lines: _Lines, text: str, types: dict[str, ArrayType | None]) -> tuple[str, ...]:
    names = []
    for part in re.split(r", +", text) if text.strip() else []:
        match = _PARAMETER.fullmatch(part.strip())
        if match is None:
            raise ParseError(lines.number, f"expected `name: type`, not {part!r}")
        names.append(match[1])
        if match[2]:
            types[match[1]] = _type(lines, match[2])
    return tuple(names)


def _type(lines: _Lines, text: str) -> ArrayType | None:
    try:
        return parse_type(text)
    except ValueError as error:
        raise ParseError(lines.number, str(error)) from None


def _storage(lines: _Lines, text: str | None) -> Storage | None:
    try:
        return Storage(text) if text else None
    except ValueError:
        known = ", ".join(storage.value for storage in Storage)
        number = lines.number
        raise ParseError(number, f"unknown storage class {text!r} (known: {known})") from None


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()


def _ops(lines: _Lines, declared: Collection[str], keep: Callable[[AnyOp], OpT | None], where: str) -> Iterator[OpT]:
    """Read the operations up to the next terminator; raise ParseError for one that `keep` rejects."""
    while not lines.done and (op := _op(lines.next, declared)) is not None:
        line = lines.take("an operation")
        kept = keep(op)
        if kept is None:
            raise ParseError(line.number, f"no {type(op).__name__.lower()} in {where}: {line.text!r}")
        yield kept


def _cfg_op(op: AnyOp) -> Op | None:
    return None if isinstance(op, Push | Pop) else op


def _stack_op(op: AnyOp) -> StackOp | None:
    return None if isinstance(op, Call | Check) else op


def _pure_op(op: AnyOp) -> PureOp | None:
    return None if isinstance(op, Call | Push | Pop | Print | Check) else op


def _op(line: _Line, declared: Collection[str]) -> AnyOp | None:
    text = line.text
    if assign := _ASSIGN.match(text):
        return _value(line, assign.end(), _split_names(assign[1]), declared)
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


def _message(line: _Line, start: int) -> tuple[messages.Message, int]:
    try:
        return messages.parse(line.text, start)
    except ValueError as error:
        raise ParseError(line.number, f"{error}: {line.text!r}") from None


def _whole_message(line: _Line, start: int) -> messages.Message:
    message, end = _message(line, start)
    return message if end == len(line.text) else line.fail("nothing after the message")


def _value(line: _Line, start: int, dsts: tuple[str, ...], declared: Collection[str]) -> AnyOp:
    text = line.text[start:]
    if text.startswith("{"):
        return Prim(dsts, _expr(line, start, declared))
    if match := _CALL.fullmatch(text):
        return Call(dsts, match[1], _split_names(match[2]))
    if len(dsts) == 1:
        if match := _SELECT.fullmatch(text):
            return Select(dsts[0], match[1], match[2], match[3])
        if re.fullmatch(_NAME, text):
            return Move(dsts[0], text)
    line.fail("`a = { text }`, `a = b`, `a = select c, x, y` or `a = call @f(x)`")


def _expr(line: _Line, start: int, declared: Collection[str]) -> Expr:
    try:
        text, end = unbrace(line.text, start)
    except ValueError as error:
        raise ParseError(line.number, f"{error}: {line.text!r}") from None
    reads = _READS.fullmatch(line.text, end) or line.fail("`reads (a, b)` or nothing after the expression")
    if reads[1] is not None:
        return Expr(text, _split_names(reads[1]))
    ins = default_reads(text, declared)
    if ins is None:
        line.fail("`reads (...)` after a text that is not a Python expression")
    return Expr(text, ins)


def _cfg_terminator(lines: _Lines) -> Terminator:
    line = lines.take("a jump")
    if match := _BRANCH.fullmatch(line.text):
        return Branch(match[1], match[2], match[3])
    terminator = _terminator(line)
    if isinstance(terminator, PushJump | Fork):
        what = "pushjump" if isinstance(terminator, PushJump) else "fork"
        raise ParseError(line.number, f"no {what} in a cfg program: {line.text!r}")
    return terminator


def _terminator(line: _Line) -> StackTerminator:
    if line.text == RETURN:
        return Return()
    if match := _JUMP.fullmatch(line.text):
        return Jump(match[1])
    if match := _PUSHJUMP.fullmatch(line.text):
        return PushJump(match[1], match[2])
    if match := _FAIL.match(line.text):
        return Fail(match[1], match[2], _whole_message(line, match.end()))
    if _FORK.match(line.text):
        edge, end = _fork(line, 0)
        return edge if end == len(line.text) else line.fail("nothing after the branch")
    line.fail("an operation or a jump")


def _fork(line: _Line, start: int) -> tuple[Fork, int]:
    """Read a fork that starts at a position; return it and the position after it."""
    match = _FORK.match(line.text, start) or line.fail("`branch condition, way, way`")
    on_true, middle = _edge(line, match.end())
    comma = _COMMA.match(line.text, middle) or line.fail("a comma between the ways of a branch")
    on_false, end = _edge(line, comma.end())
    return Fork(match[1], on_true, on_false), end


def _edge(line: _Line, start: int) -> tuple[Edge, int]:
    if line.text.startswith("(", start):
        inner, end = _fork(line, start + 1)
        return (inner, end + 1) if line.text.startswith(")", end) else line.fail("`)` after the inner branch")
    if call := _EDGE_CALL.match(line.text, start):
        return PushJump(call[1], call[2]), call.end()
    label = _EDGE_LABEL.match(line.text, start) or line.fail("a label, `return`, a call or a branch in parentheses")
    return (Return() if label[0] == RETURN else Jump(label[0])), label.end()
