"""The text form of programs; `tests/oracles/text/parser.py` reads it back to an equal program.

    pcir 1 cfg
    func @fib(n: i32[]) -> (r: i32[]) {
      t0: bool[]   t1, left: i32[]           // the other variables, grouped by type
    bb0:
      t0 = { n <= 1 }
      branch t0, bb1, bb2
    ...
      left = call @fib(t1)
      r = select t0, left, t1
      return
    }

    pcir 1 stack
    program entry=bb0 in=(n) out=(r) {
      n: i32[] reg+stack   r: i32[] reg   left: i32[] stack
    prologue:                                // only if there are shared variables
      half = { 1 / 2 }
    // function @fib
    bb3:
      pop n
      update n = { n - 1 }                   // `update`: the destination has a register
      push left = r
      pushjump bb0, ret=bb4
    }

    bb5 (4 rounds):                          // a loop of which one visit computes four rounds
      ...
    bb7:                                     // an edge of a fork: a label, `return`, a call, or another fork
      branch t0, (branch t1, bb3, return), call bb0 ret=bb4

    bb9:
      print("h = ", h:(".3f"), "\\n")         // constant text and values, as in an f-string
      fail error ValueError("bad step ", h)  // the lane ends; or `fail assertion`, `fail capacity`, `fail limit`

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
`label(param=variable)`, `give (a, b)` or a fork in parentheses.

The entry of a CFG program is its first function unless a line `entry @name` says otherwise. An expression whose
inputs are not the default reading of its text (see `expr_text`) is followed by `reads (a, b)`. What follows `//`
outside an expression or a message is a comment. The order of everything is that of the program, so equal programs print
equally.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.analysis.def_use import AnyBlock
from pcbatch.ir.cfg import CfgProgram, Function
from pcbatch.ir.ops import PureOp
from pcbatch.ir.stack import StackBlock, StackProgram, Var
from pcbatch.ir.tasks import TaskBlock, TaskProgram
from pcbatch.ir.text.syntax import Declared, node_text
from pcbatch.ir.types import ArrayType

_WIDTH = 100  # where declarations wrap
_COLUMN = 44  # where locations start


def print_program(program: CfgProgram | StackProgram | TaskProgram, locations: bool = False) -> str:
    """Return the text of a program, with a final newline; with `locations`, the source line of each operation."""
    lines = _cfg(program, locations) if isinstance(program, CfgProgram) else _flat(program, locations)
    return "\n".join(lines) + "\n"


def _cfg(program: CfgProgram, locations: bool) -> Iterator[str]:
    yield "pcir 1 cfg"
    if not program.functions or program.functions[0].name != program.entry:
        yield f"entry @{program.entry}"
    for function in program.functions:
        yield _with_loc(_signature(function), function.loc, locations)
        shown = {*function.params, *function.results}
        yield from _declarations({name: type_ for name, type_ in function.types.items() if name not in shown})
        for block in function.blocks:
            yield from _block(block, declared_names(function), locations)
        yield "}"


def _signature(function: Function) -> str:
    def names(items: Iterable[str]) -> str:
        types = function.types
        return ", ".join(f"{name}: {_type_text(types[name])}" if name in types else name for name in items)

    return f"func @{function.name}({names(function.params)}) -> ({names(function.results)}) {{"


def _flat(program: StackProgram | TaskProgram, locations: bool) -> Iterator[str]:
    yield "pcir 1 stack" if isinstance(program, StackProgram) else "pcir 1 tasks"
    yield f"program entry={program.entry} in=({', '.join(program.params)}) out=({', '.join(program.results)}) {{"
    if isinstance(program, TaskProgram):
        sums = "exact sums" if program.exact else "sums"
        for kind, names in (("constants", program.constants), ("shared", program.shared), (sums, sorted(program.sums))):
            if names:
                yield f"  {kind} ({', '.join(names)})"
    yield from _declarations(program.vars if isinstance(program, StackProgram) else program.types)
    declared = declared_names(program)
    yield from prologue(program.prologue, declared, locations)
    function = ""
    for block in program.blocks:
        if block.function != function:
            function = block.function
            yield f"// function @{function}" if function else "// no function"
        yield from _block(block, declared, locations)
    yield "}"


def declared_names(program: Function | StackProgram | TaskProgram) -> Mapping[str, object]:
    """The variables that texts of expressions may read by default (see `expr_text`)."""
    variables = program.vars if isinstance(program, StackProgram) else program.types
    return {**dict.fromkeys((*program.params, *program.results)), **variables}


def prologue(ops: tuple[PureOp, ...], declared: Declared, locations: bool = False) -> Iterator[str]:
    """The lines of a prologue, if there is one."""
    if ops:
        yield "prologue:"
        yield from (_with_loc(f"  {node_text(op, declared)}", op.loc, locations) for op in ops)


def block_header(block: AnyBlock | TaskBlock) -> str:
    """Return the line that opens a block."""
    match block:
        case TaskBlock():
            notes = (" after sync" if block.joins else "") + (" in frame" if block.open else "")
            return f"{block.label}({', '.join(block.params)}){notes}:"
        case StackBlock(label=label, rounds=rounds) if rounds > 1:
            return f"{label} ({rounds} rounds):"
        case _:
            return f"{block.label}:"


def _block(block: AnyBlock | TaskBlock, declared: Declared, locations: bool) -> Iterator[str]:
    yield block_header(block)
    for node in (*block.ops, block.terminator):
        yield _with_loc(f"  {node_text(node, declared)}", getattr(node, "loc", None), locations)


def _type_text(type_: ArrayType | None) -> str:
    """Return the text of a type, such as `i32[3]`, or `?` for one that is not known."""
    return "?" if type_ is None else str(type_)


def _var_text(var: Any) -> str:
    if not isinstance(var, Var):
        return _type_text(var)
    return _type_text(var.type) + (f" {var.storage.value}" if var.storage else "")


def _declarations(variables: Mapping[str, object]) -> Iterator[str]:
    """The lines that declare variables, grouped by their texts."""
    groups: dict[str, list[str]] = {}
    for name, var in variables.items():
        groups.setdefault(_var_text(var), []).append(name)
    line = ""
    for group in (f"{', '.join(names)}: {text}" for text, names in groups.items()):
        if line and len(line) + len(group) > _WIDTH:
            yield f"  {line}"
            line = ""
        line += ("   " if line else "") + group
    if line:
        yield f"  {line}"


def _with_loc(line: str, loc: Loc | None, locations: bool) -> str:
    """Return a line, followed by its place in the source where that is asked for and known."""
    if not locations or loc is None:
        return line
    return f"{line:<{_COLUMN}} // {os.path.basename(loc.file)}:{loc.line}:{loc.col + 1}"
