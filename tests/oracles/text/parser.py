"""The parser of the text form (see `pcbatch/ir/text/printer.py`): `parse_program(print_program(p)) == p`.

Line by line with regular expressions; only expression texts need a scanner. The result is not verified. Sources of
operations (`loc`) and functions (`Expr.fn`) have no text form and stay empty; the interpreters then evaluate texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pcbatch.ir.cfg import Block, CfgProgram, Function, Op
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import PureOp
from pcbatch.ir.stack import PushJump, StackBlock, StackOp, StackProgram, Storage, Var
from pcbatch.ir.tasks import TaskBlock, TaskOp, TaskProgram
from pcbatch.ir.text.syntax import BRANCH, FAIL, OPS, STACK_ENDS, Form
from pcbatch.ir.types import ArrayType, parse_type
from tests.oracles.text.forms import ASSIGN, STACK_LEAVES, TASK_LEAVES, Leaves, read_line, read_tree
from tests.oracles.text.lines import FUNC, LABEL, NAME, NAMES, SOURCE, Line, Lines, ParseError, split_lines, split_names

_HEADER = re.compile(r"pcir 1 (cfg|stack|tasks)")
_ENTRY = re.compile(rf"entry @({FUNC})")
_SIGNATURE = re.compile(rf"func @({FUNC})\((.*?)\) -> \((.*)\) \{{")
_PROGRAM = re.compile(rf"program entry=({LABEL}) in=\((.*)\) out=\((.*)\) \{{")
_DECLARATION = re.compile(rf"({NAMES}): (\S+)(?: (\S+))?")
_PARAMETER = re.compile(rf"({NAME})(?:: (\S+))?")
_PROLOGUE = re.compile("prologue:")
_CONSTANTS = re.compile(rf"constants \(({NAMES})\)")
_SHARED = re.compile(rf"shared \(({NAMES})\)")
_SUMS = re.compile(rf"(exact )?sums \(({FUNC}(?:, *{FUNC})*)\)")

Types = dict[str, ArrayType | None]


@dataclass(frozen=True, slots=True)
class _Kind:
    """The blocks of a type of programs.

    Attributes:
        where: how a program is called in an error.
        header: the line that opens a block.
        lacks: the operations and terminators of other types.
        ends: the forms of terminators.
        leaves: those of the edges of forks.
        end: how a terminator is called where there is none.
    """

    where: str
    header: re.Pattern[str]
    lacks: tuple[type, ...]
    ends: tuple[Form, ...]
    leaves: Leaves

    def blocks(self, lines: Lines, declared: Collection[str]) -> Iterator[tuple[re.Match[str], tuple[Any, ...], Any]]:
        """Take all blocks up to the closing brace: the header, the operations and the terminator of each."""
        while header := lines.optional_after_comments(self.header):
            ops = tuple(_ops(lines, declared, self.lacks, self.where))
            yield header, ops, self._terminator(lines.take("a jump"))
        line = lines.take("a block `label:` or `}`")
        if line.text != "}":
            line.fail("a block `label:` or `}`")

    def _terminator(self, line: Line) -> Any:
        node = read_line(line, self.ends)
        if node is None:
            if self.leaves is STACK_LEAVES and not line.text.startswith("branch "):
                line.fail("an operation or a jump")
            node, end = read_tree(line, 0, self.leaves)
            if end < len(line.text):
                line.fail(f"nothing after the {'branch' if isinstance(node, Fork) else 'terminator'}")
        return _kept(node, line, self.lacks, self.where)


def _without(union: Any) -> tuple[type, ...]:
    """Return the operations that are none of a union."""
    return tuple({form.cls for form in OPS} - {*get_args(union)})


_PURE_ONLY = _without(PureOp)
_CFG = _Kind(
    "a cfg program",
    re.compile(rf"({LABEL}):"),
    (*_without(Op), PushJump, Fork),
    (BRANCH, *STACK_ENDS),
    STACK_LEAVES,
)
_STACK = _Kind(
    "a stack program",
    re.compile(rf"({LABEL})(?: \((\d+) rounds\))?:"),
    _without(StackOp),
    STACK_ENDS,
    STACK_LEAVES,
)
_TASKS = _Kind(
    "a task program",
    re.compile(rf"({LABEL})\(((?:{NAMES})?)\)( after sync)?( in frame)?:"),
    _without(TaskOp),
    (FAIL,),
    TASK_LEAVES,
)


def parse_program(text: str) -> CfgProgram | StackProgram | TaskProgram:
    """Read a program of any type; raises ParseError, with the line number, for text that is none."""
    lines = Lines(list(split_lines(text)))
    kind = lines.match(_HEADER, "the header `pcir 1 cfg`, `pcir 1 stack` or `pcir 1 tasks`")[1]
    program = _READERS[kind](lines)
    if not lines.done:
        lines.next.fail("the end of the text")
    return program


def _cfg(lines: Lines) -> CfgProgram:
    entry = lines.optional(_ENTRY)
    functions = []
    while not lines.done:
        if not lines.optional(SOURCE):
            functions.append(_function(lines))
    if entry is None and not functions:
        lines.take("a function")
    return CfgProgram(entry[1] if entry else functions[0].name, tuple(functions))


def _function(lines: Lines) -> Function:
    match = lines.match(_SIGNATURE, "`func @name(a: i32[]) -> (r: i32[]) {`")
    types: Types = {}
    params, results = (_typed_names(lines, match[i], types) for i in (2, 3))
    types |= _types(lines, _CFG)
    found = _CFG.blocks(lines, {*params, *results, *types})
    return Function(match[1], params, results, tuple(Block(header[1], ops, end) for header, ops, end in found), types)


def _stack(lines: Lines) -> StackProgram:
    entry, params, results = _program(lines)
    variables = {
        name: Var(_type(lines, type_text), _storage(lines, storage))
        for name, type_text, storage in _declarations(lines)
    }
    declared = {*params, *results, *variables}
    prologue = _prologue(lines, declared)
    blocks = tuple(
        StackBlock(header[1], ops, end, lines.source, int(header[2] or 1))
        for header, ops, end in _STACK.blocks(lines, declared)
    )
    return StackProgram(entry, params, results, variables, blocks, prologue)


def _tasks(lines: Lines) -> TaskProgram:
    entry, params, results = _program(lines)
    constants, shared = (split_names(match and match[1]) for match in map(lines.optional, (_CONSTANTS, _SHARED)))
    sums = lines.optional(_SUMS)
    types = _types(lines, _TASKS)
    declared = {*params, *results, *types}
    prologue = _prologue(lines, declared)
    blocks = tuple(
        TaskBlock(header[1], split_names(header[2]), ops, end, bool(header[3]), bool(header[4]), lines.source)
        for header, ops, end in _TASKS.blocks(lines, declared)
    )
    added, exact = frozenset(split_names(sums and sums[2])), bool(sums and sums[1])
    return TaskProgram(entry, params, results, types, constants, shared, blocks, prologue, added, exact)


def _program(lines: Lines) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    match = lines.match(_PROGRAM, "`program entry=label in=(a) out=(r) {`")
    return match[1], split_names(match[2]), split_names(match[3])


def _ops(lines: Lines, declared: Collection[str], lacks: tuple[type, ...], where: str) -> Iterator[Any]:
    """Take the operations up to the next terminator; raise ParseError for those that the program lacks."""
    while not lines.done:
        line = lines.next
        op = read_line(line, OPS, declared)
        if op is None:
            if ASSIGN.match(line.text):
                line.fail("`a = { text }`, `a = b`, `a = select c, x, y` or `a = call @f(x)`")
            return
        lines.take("an operation")
        yield _kept(op, line, lacks, where)


def _kept(node: Any, line: Line, lacks: tuple[type, ...], where: str) -> Any:
    if isinstance(node, lacks):
        raise ParseError(line.number, f"no {type(node).__name__.lower()} in {where}: {line.text!r}")
    return node


def _prologue(lines: Lines, declared: Collection[str]) -> tuple[Any, ...]:
    """Take the operations of the prologue, if there is one."""
    return tuple(_ops(lines, declared, _PURE_ONLY, "the prologue")) if lines.optional(_PROLOGUE) else ()


def _types(lines: Lines, kind: _Kind) -> Types:
    types: Types = {}
    for name, type_text, storage in _declarations(lines):
        if storage:
            raise ParseError(lines.number, f"no storage classes in {kind.where}: {storage}")
        types[name] = _type(lines, type_text)
    return types


def _typed_names(lines: Lines, text: str, types: Types) -> tuple[str, ...]:
    names = []
    for part in re.split(r", +", text) if text.strip() else []:
        match = _PARAMETER.fullmatch(part.strip())
        if match is None:
            raise ParseError(lines.number, f"expected `name: type`, not {part!r}")
        names.append(match[1])
        if match[2]:
            types[match[1]] = _type(lines, match[2])
    return tuple(names)


def _declarations(lines: Lines) -> Iterator[tuple[str, str, str | None]]:
    """Take the declarations: name, type and storage class of each variable, as texts."""
    while not lines.done and all(_DECLARATION.fullmatch(part) for part in _parts(lines.next.text)):
        for part in _parts(lines.take("a declaration").text):
            if match := _DECLARATION.fullmatch(part):
                for name in split_names(match[1]):
                    yield name, match[2], match[3]


def _parts(text: str) -> list[str]:
    return re.split(r" {2,}", text)


def _type(lines: Lines, text: str) -> ArrayType | None:
    """Read a type of the line that was taken last."""
    try:
        return parse_type(text)
    except ValueError as error:
        raise ParseError(lines.number, str(error)) from None


def _storage(lines: Lines, text: str | None) -> Storage | None:
    try:
        return Storage(text) if text else None
    except ValueError:
        known = ", ".join(storage.value for storage in Storage)
        raise ParseError(lines.number, f"unknown storage class {text!r} (known: {known})") from None


_READERS: Mapping[str, Callable[[Lines], CfgProgram | StackProgram | TaskProgram]] = {
    "cfg": _cfg,
    "stack": _stack,
    "tasks": _tasks,
}
