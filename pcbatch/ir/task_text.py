"""The text form of task programs; `parser.parse_program` reads it back to an equal program.

    pcir 1 tasks
    program entry=bb0 in=(n) out=(r) {
      constants (tree.left, tree.right)      // these three lines only where there are some
      shared (w)
      sums (fib)
      n, t1: i32[]   t0: bool[]
    prologue:                                // only if there are shared variables to compute
      w = { 1 / 2 }
    // function @fib
    bb2(n):                                  // the parameters: the record of the block
      t1 = { n - 1 }
      frame
      spawn left = bb2(n=t1)
      spawn right = branch t3, give (one), bb2(n=t2)
      spawn total += bb2(n=t2)               // adds to a result of the frame
      spawn all at k = bb2(n=t2)             // row k of a result of the frame
      spawn return += bb2(n=t2)              // adds to the destination of this task
      branch t9, jump bb5(n=t1), sync bb4(k=n)
    bb4(left, right, k) after sync:          // the target of a `sync`
      return r
    bb5(n) in frame:                         // a frame is open where it begins
      ...
    }

An edge is `jump label(param=variable)`, `sync label(saved=variable)`, `return a, b` or a fork in parentheses; a way is
`label(param=variable)`, `give (a, b)` or a fork in parentheses. All else is as in the other forms (see `printer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from pcbatch.ir.op_text import declarations, fail_text, op_lines, print_op, tree_text, type_text, with_loc
from pcbatch.ir.ops import Fail
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


def task_lines(program: TaskProgram, locations: bool) -> Iterator[str]:
    """The lines of a program; with `locations`, the source line of each operation."""
    yield "pcir 1 tasks"
    yield f"program entry={program.entry} in=({', '.join(program.params)}) out=({', '.join(program.results)}) {{"
    sums = "exact sums" if program.exact else "sums"
    for kind, names in (("constants", program.constants), ("shared", program.shared), (sums, sorted(program.sums))):
        if names:
            yield f"  {kind} ({', '.join(names)})"
    yield from declarations({name: type_text(type_) for name, type_ in program.types.items()})
    declared = declared_names(program)
    if program.prologue:
        yield "prologue:"
        yield from op_lines(program.prologue, declared, locations)
    function = ""
    for block in program.blocks:
        if block.function != function:
            function = block.function
            yield f"// function @{function}" if function else "// no function"
        yield from _block(block, declared, locations)
    yield "}"


def declared_names(program: TaskProgram) -> dict[str, object]:
    """The variables that texts of expressions may read by default (see `expr_text`)."""
    return {**dict.fromkeys((*program.params, *program.results)), **program.types}


def print_task_op(op: TaskOp, declared: Mapping[str, object]) -> str:
    """Return the text of an operation."""
    match op:
        case OpenFrame():
            return "frame"
        case Spawn():
            way = tree_text(op.way, _way)
            sign = "+=" if op.adds else "="
            row = "" if op.row is None else f" at {op.row}"
            return f"spawn {', '.join(op.dsts)}{row} {sign} {way}" if op.dsts else f"spawn {way}"
        case SpawnInto(way=way):
            return f"spawn return += {tree_text(way, _way)}"
        case _:
            return print_op(op, declared)


def print_task_terminator(terminator: TaskTerminator) -> str:
    """Return the text of a terminator."""
    return fail_text(terminator) if isinstance(terminator, Fail) else tree_text(terminator, _leaf)


def block_header(block: TaskBlock) -> str:
    """Return the line that opens a block, without its colon."""
    notes = (" after sync" if block.joins else "") + (" in frame" if block.open else "")
    return f"{block.label}({', '.join(block.params)}){notes}"


def _block(block: TaskBlock, declared: Mapping[str, object], locations: bool) -> Iterator[str]:
    yield f"{block_header(block)}:"
    for op in block.ops:
        yield with_loc(f"  {print_task_op(op, declared)}", op.loc, locations)
    loc = None if isinstance(block.terminator, TaskJump | Finish) else block.terminator.loc
    yield with_loc(f"  {print_task_terminator(block.terminator)}", loc, locations)


def _leaf(leaf: TaskLeaf) -> str:
    match leaf:
        case TaskJump(target=target, args=args):
            return f"jump {_start(target, args)}"
        case Sync(target=target, args=args):
            return f"sync {_start(target, args)}"
        case Finish(values=values):
            return f"return {', '.join(values)}".rstrip()
        case _:
            assert_never(leaf)


def _way(way: Begun) -> str:
    match way:
        case Start(label=label, args=args):
            return _start(label, args)
        case Give(values=values):
            return f"give ({', '.join(values)})"
        case _:
            assert_never(way)


def _start(label: str, args: Iterable[tuple[str, str]]) -> str:
    return f"{label}({', '.join(f'{param}={source}' for param, source in args)})"
