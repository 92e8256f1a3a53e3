"""The parser of the text form of task programs (see `task_text`); `parser.parse_program` calls it."""

from __future__ import annotations

import re
from collections.abc import Collection

from pcbatch.ir.op_parser import (
    FUNC,
    LABEL,
    NAME,
    NAMES,
    PROGRAM,
    Line,
    Lines,
    ParseError,
    closing,
    declarations,
    pure_op,
    read_fail,
    read_ops,
    read_prologue,
    read_tree,
    read_type,
    split_names,
)
from pcbatch.ir.tasks import (
    Begun,
    Finish,
    Give,
    OpenFrame,
    Spawn,
    SpawnInto,
    Start,
    Sync,
    TaskBlock,
    TaskJump,
    TaskLeaf,
    TaskOp,
    TaskProgram,
    TaskTerminator,
)
from pcbatch.ir.types import ArrayType

_CONSTANTS = re.compile(rf"constants \(({NAMES})\)")
_SHARED = re.compile(rf"shared \(({NAMES})\)")
_SUMS = re.compile(rf"(exact )?sums \(({FUNC}(?:, *{FUNC})*)\)")
_BLOCK = re.compile(rf"({LABEL})\(((?:{NAMES})?)\)( after sync)?( in frame)?:")
_SPAWN = re.compile(rf"spawn (?:({NAMES}|return)(?: at ({NAME}))? (\+?=) )?")
_BINDING = rf"{NAME}={NAME}"
_START = re.compile(rf"({LABEL})\(((?:{_BINDING}(?:, *{_BINDING})*)?)\)")
_GIVE = re.compile(rf"give \(((?:{NAMES})?)\)")
_LEAF = re.compile(r"(jump|sync) ")
_VALUE = rf"(?!return\b){NAME}(?= *(?:,|\)|$))"  # `jump` in `return a, jump bb1()` begins the next edge
_FINISH = re.compile(rf"return\b(?: ({_VALUE}(?:, *{_VALUE})*))?")


def read_tasks(lines: Lines) -> TaskProgram:
    """Take the lines of a task program, after its header."""
    match = lines.match(PROGRAM, "`program entry=label in=(a) out=(r) {`")
    params, results = split_names(match[2]), split_names(match[3])
    constants, shared = (_optional_names(lines, pattern) for pattern in (_CONSTANTS, _SHARED))
    added = lines.optional(_SUMS)
    sums, exact = (frozenset(split_names(added[2])), bool(added[1])) if added else (frozenset[str](), False)
    types: dict[str, ArrayType | None] = {}
    for name, type_text, storage in declarations(lines):
        if storage:
            raise ParseError(lines.number, f"no storage classes in a task program: {storage}")
        types[name] = read_type(lines, type_text)
    declared = {*params, *results, *types}
    prologue = read_prologue(lines, declared)
    blocks: list[TaskBlock] = []
    while header := lines.optional_after_comments(_BLOCK):
        ops = _ops(lines, declared)
        end = _terminator(lines.take("a jump"))
        names = split_names(header[2])
        blocks.append(TaskBlock(header[1], names, ops, end, bool(header[3]), bool(header[4]), lines.source))
    closing(lines)
    return TaskProgram(match[1], params, results, types, constants, shared, tuple(blocks), prologue, sums, exact)


def _optional_names(lines: Lines, pattern: re.Pattern[str]) -> tuple[str, ...]:
    match = lines.optional(pattern)
    return split_names(match[1]) if match else ()


def _ops(lines: Lines, declared: Collection[str]) -> tuple[TaskOp, ...]:
    ops: list[TaskOp] = []
    while True:
        ops += read_ops(lines, declared, pure_op, "a task program")
        spawn = _optional_spawn(lines)
        if spawn is None:
            return tuple(ops)
        ops.append(spawn)


def _optional_spawn(lines: Lines) -> TaskOp | None:
    """Take the next line if it is `frame` or `spawn ...`."""
    if lines.done:
        return None
    line = lines.next
    if line.text == "frame":
        lines.take("frame")
        return OpenFrame()
    match = _SPAWN.match(line.text)
    if match is None:
        return None
    lines.take("spawn")
    way, end = read_tree(line, match.end(), _way)
    if end != len(line.text):
        line.fail("nothing after the way of a spawn")
    adds = match[3] == "+="
    if match[1] == "return":
        return SpawnInto(way) if adds and not match[2] else line.fail("`spawn return += way`")
    return Spawn(split_names(match[1] or ""), way, adds, row=match[2])


def _way(line: Line, start: int) -> tuple[Begun, int]:
    if give := _GIVE.match(line.text, start):
        return Give(split_names(give[1])), give.end()
    label, args, end = _start(line, start)
    return Start(label, args), end


def _start(line: Line, start: int) -> tuple[str, tuple[tuple[str, str], ...], int]:
    match = _START.match(line.text, start) or line.fail("`label(param=variable)`")
    pairs = (pair.partition("=") for pair in split_names(match[2]))
    return match[1], tuple((param, source) for param, _, source in pairs), match.end()


def _terminator(line: Line) -> TaskTerminator:
    if fail := read_fail(line):
        return fail
    edge, end = read_tree(line, 0, _edge)
    return edge if end == len(line.text) else line.fail("nothing after the terminator")


def _edge(line: Line, start: int) -> tuple[TaskLeaf, int]:
    if finish := _FINISH.match(line.text, start):
        return Finish(split_names(finish[1] or "")), finish.end()
    leaf = _LEAF.match(line.text, start) or line.fail("an operation, `jump`, `sync`, `return`, `fail` or `branch`")
    label, args, end = _start(line, leaf.end())
    return (TaskJump(label, args) if leaf[1] == "jump" else Sync(label, args)), end
