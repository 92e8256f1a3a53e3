"""The parser of the text form (see `printer`): `parse_program(print_program(p)) == p`.

Line by line with regular expressions; only expression texts need a scanner. The result is not verified. Sources of
operations (`loc`) and functions (`Expr.fn`) have no text form and stay empty; the interpreters then evaluate texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op, Terminator
from pcbatch.ir.def_use import AnyOp
from pcbatch.ir.forks import Fork
from pcbatch.ir.op_parser import (
    FUNC,
    LABEL,
    NAME,
    PROGRAM,
    SOURCE,
    Line,
    Lines,
    ParseError,
    closing,
    declarations,
    read_fail,
    read_ops,
    read_prologue,
    read_tree,
    read_type,
    split_lines,
    split_names,
)
from pcbatch.ir.ops import RETURN, Branch, Check, Jump, Return
from pcbatch.ir.stack import Leaf, Pop, Push, PushJump, StackBlock, StackOp, StackProgram, StackTerminator, Storage, Var
from pcbatch.ir.task_parser import read_tasks
from pcbatch.ir.tasks import TaskProgram
from pcbatch.ir.types import ArrayType

_HEADER = re.compile(r"pcir 1 (cfg|stack|tasks)")
_ENTRY = re.compile(rf"entry @({FUNC})")
_SIGNATURE = re.compile(rf"func @({FUNC})\((.*?)\) -> \((.*)\) \{{")
_SECTION = re.compile(rf"({LABEL}):")
_ROUNDS = re.compile(rf"({LABEL})(?: \((\d+) rounds\))?:")
_PARAMETER = re.compile(rf"({NAME})(?:: (\S+))?")
_JUMP = re.compile(rf"jump ({LABEL})")
_BRANCH = re.compile(rf"branch ({NAME}), *({LABEL}), *({LABEL})")
_EDGE_CALL = re.compile(rf"call ({LABEL}) +ret=({LABEL})")
_EDGE_LABEL = re.compile(LABEL)
_PUSHJUMP = re.compile(rf"pushjump ({LABEL}), *ret=({LABEL})")


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
    types: dict[str, ArrayType | None] = {}
    params, results = (_typed_names(lines, match[i], types) for i in (2, 3))
    for name, type_text, storage in declarations(lines):
        if storage:
            raise ParseError(lines.number, f"no storage classes in a cfg program: {storage}")
        types[name] = read_type(lines, type_text)
    blocks = []
    while label := lines.optional(_SECTION):
        ops: tuple[Op, ...] = tuple(read_ops(lines, {*params, *results, *types}, _cfg_op, "a cfg program"))
        blocks.append(Block(label[1], ops, _cfg_terminator(lines)))
    closing(lines)
    return Function(match[1], params, results, tuple(blocks), types)


def _stack(lines: Lines) -> StackProgram:
    match = lines.match(PROGRAM, "`program entry=label in=(a) out=(r) {`")
    params, results = split_names(match[2]), split_names(match[3])
    variables = {
        name: Var(read_type(lines, type_text), _storage(lines, storage))
        for name, type_text, storage in declarations(lines)
    }
    declared = {*params, *results, *variables}
    prologue = read_prologue(lines, declared)
    blocks: list[StackBlock] = []
    while label := lines.optional_after_comments(_ROUNDS):
        ops: tuple[StackOp, ...] = tuple(read_ops(lines, declared, _stack_op, "a stack program"))
        blocks.append(StackBlock(label[1], ops, _terminator(lines.take("a jump")), lines.source, int(label[2] or 1)))
    closing(lines)
    return StackProgram(match[1], params, results, variables, tuple(blocks), prologue)


def _typed_names(lines: Lines, text: str, types: dict[str, ArrayType | None]) -> tuple[str, ...]:
    names = []
    for part in re.split(r", +", text) if text.strip() else []:
        match = _PARAMETER.fullmatch(part.strip())
        if match is None:
            raise ParseError(lines.number, f"expected `name: type`, not {part!r}")
        names.append(match[1])
        if match[2]:
            types[match[1]] = read_type(lines, match[2])
    return tuple(names)


def _storage(lines: Lines, text: str | None) -> Storage | None:
    try:
        return Storage(text) if text else None
    except ValueError:
        known = ", ".join(storage.value for storage in Storage)
        number = lines.number
        raise ParseError(number, f"unknown storage class {text!r} (known: {known})") from None


def _cfg_op(op: AnyOp) -> Op | None:
    return None if isinstance(op, Push | Pop) else op


def _stack_op(op: AnyOp) -> StackOp | None:
    return None if isinstance(op, Call | Check) else op


def _cfg_terminator(lines: Lines) -> Terminator:
    line = lines.take("a jump")
    if match := _BRANCH.fullmatch(line.text):
        return Branch(match[1], match[2], match[3])
    terminator = _terminator(line)
    if isinstance(terminator, PushJump | Fork):
        what = "pushjump" if isinstance(terminator, PushJump) else "fork"
        raise ParseError(line.number, f"no {what} in a cfg program: {line.text!r}")
    return terminator


def _terminator(line: Line) -> StackTerminator:
    if line.text == RETURN:
        return Return()
    if match := _JUMP.fullmatch(line.text):
        return Jump(match[1])
    if match := _PUSHJUMP.fullmatch(line.text):
        return PushJump(match[1], match[2])
    if fail := read_fail(line):
        return fail
    if line.text.startswith("branch "):
        edge, end = read_tree(line, 0, _edge)
        return edge if end == len(line.text) else line.fail("nothing after the branch")
    line.fail("an operation or a jump")


def _edge(line: Line, start: int) -> tuple[Leaf, int]:
    if call := _EDGE_CALL.match(line.text, start):
        return PushJump(call[1], call[2]), call.end()
    label = _EDGE_LABEL.match(line.text, start) or line.fail("a label, `return`, a call or a branch in parentheses")
    return (Return() if label[0] == RETURN else Jump(label[0])), label.end()


_READERS: Mapping[str, Callable[[Lines], CfgProgram | StackProgram | TaskProgram]] = {
    "cfg": _cfg,
    "stack": _stack,
    "tasks": read_tasks,
}
