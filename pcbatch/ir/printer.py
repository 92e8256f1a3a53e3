"""The text form of both program types; `parser.parse_program` reads it back to an equal program.

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

    bb7:                                     // an edge of a fork: a label, `return`, a call, or another fork
      branch t0, (branch t1, bb3, return), call bb0 ret=bb4

    bb9:
      print("h = ", h:(".3f"), "\\n")         // constant text and values, as in an f-string
      fail error ValueError("bad step ", h)  // the lane ends; or `fail assertion`, `fail capacity`

The entry of a CFG program is its first function unless a line `entry @name` says otherwise. An expression whose
inputs are not the default reading of its text (see `text`) is followed by `reads (a, b)`. What follows `//` outside
an expression or a message is a comment. The order of everything is that of the program, so equal programs print
equally.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.def_use import AnyBlock, AnyOp, AnyTerminator
from pcbatch.ir.expr_text import braced, default_reads
from pcbatch.ir.ops import RETURN, Branch, Check, Expr, Fail, Jump, Move, Prim, Print, Return, Select
from pcbatch.ir.stack import Edge, Fork, Pop, Push, PushJump, StackProgram, Var
from pcbatch.ir.types import ArrayType

_WIDTH = 100  # where declarations wrap
_COLUMN = 44  # where locations start


def print_program(program: CfgProgram | StackProgram, locations: bool = False) -> str:
    """Return the text of a program, with a final newline; with `locations`, the source line of each operation."""
    lines = _cfg_lines(program, locations) if isinstance(program, CfgProgram) else _stack_lines(program, locations)
    return "\n".join(lines) + "\n"


def print_op(op: AnyOp, declared: Mapping[str, object]) -> str:
    """Return the text of an operation; `declared` has the variables, with a `Var` for those whose storage is known."""
    match op:
        case Prim(dsts=dsts, expr=expr):
            return _assign(dsts, print_expr(expr, declared), declared)
        case Move(dst=dst, src=src):
            return _assign((dst,), src, declared)
        case Select(dst=dst):
            return _assign((dst,), f"select {op.cond}, {op.on_true}, {op.on_false}", declared)
        case Call(dsts=dsts):
            return _assign(dsts, f"call @{op.func}({', '.join(op.args)})", declared)
        case Push(dst=dst, src=src):
            return f"push {dst}" if dst == src else f"push {dst} = {src}"
        case Pop(dst=dst):
            return f"pop {dst}"
        case Print(message=message):
            return f"print({messages.show(message)})"
        case Check(failed=failed, kind=kind, name=name, message=message):
            return f"check {failed}, {kind} {name}({messages.show(message)})"
        case _:
            assert_never(op)


def print_terminator(terminator: AnyTerminator) -> str:
    """Return the text of a terminator."""
    match terminator:
        case Jump(target=target):
            return f"jump {target}"
        case Branch():
            return f"branch {terminator.cond}, {terminator.on_true}, {terminator.on_false}"
        case Fork():
            return f"branch {terminator.cond}, {_edge(terminator.on_true)}, {_edge(terminator.on_false)}"
        case PushJump(target=target, ret=ret):
            return f"pushjump {target}, ret={ret}"
        case Return():
            return "return"
        case Fail(kind=kind, name=name, message=message):
            return f"fail {kind} {name}({messages.show(message)})"
        case _:
            assert_never(terminator)


def _edge(edge: Edge) -> str:
    """Return the text of an edge of a fork."""
    match edge:
        case Jump(target=target):
            return target
        case PushJump(target=target, ret=ret):
            return f"call {target} ret={ret}"
        case Return():
            return RETURN
        case Fork():
            return f"({print_terminator(edge)})"
        case _:
            assert_never(edge)


def print_expr(expr: Expr, declared: Mapping[str, object]) -> str:
    """Return an expression in braces, followed by its inputs where they are not the default reading of the text."""
    is_default = default_reads(expr.text, declared) == expr.ins
    return braced(expr.text) + ("" if is_default else f" reads ({', '.join(expr.ins)})")


def _assign(dsts: Sequence[str], value: str, declared: Mapping[str, object]) -> str:
    update = "update " if any(_has_register(declared.get(dst)) for dst in dsts) else ""
    return f"{update}{', '.join(dsts)} = {value}" if dsts else value


def _has_register(declaration: object) -> bool:
    return isinstance(declaration, Var) and declaration.storage is not None and declaration.storage.has_register


def _cfg_lines(program: CfgProgram, locations: bool) -> Iterator[str]:
    yield "pcir 1 cfg"
    if not program.functions or program.functions[0].name != program.entry:
        yield f"entry @{program.entry}"
    for function in program.functions:
        yield _with_loc(_signature(function), function.loc, locations)
        shown = {*function.params, *function.results}
        yield from _declarations({n: type_text(t) for n, t in function.types.items() if n not in shown})
        yield from _blocks(function.blocks, {**dict.fromkeys(shown), **function.types}, locations)
        yield "}"


def _signature(function: Function) -> str:
    def names(items: Iterable[str]) -> str:
        types = function.types
        return ", ".join(f"{name}: {type_text(types[name])}" if name in types else name for name in items)

    return f"func @{function.name}({names(function.params)}) -> ({names(function.results)}) {{"


def _stack_lines(program: StackProgram, locations: bool) -> Iterator[str]:
    yield "pcir 1 stack"
    yield f"program entry={program.entry} in=({', '.join(program.params)}) out=({', '.join(program.results)}) {{"
    yield from _declarations({name: _var_text(var) for name, var in program.vars.items()})
    declared = {**dict.fromkeys((*program.params, *program.results)), **program.vars}
    if program.prologue:
        yield "prologue:"
        yield from _ops(program.prologue, declared, locations)
    function = ""
    for block in program.blocks:
        if block.function != function:
            function = block.function
            yield f"// function @{function}" if function else "// no function"
        yield from _blocks((block,), declared, locations)
    yield "}"


def type_text(type_: ArrayType | None) -> str:
    """Return the text of a type, such as `i32[3]`, or `?` for one that is not known."""
    return "?" if type_ is None else str(type_)


def _var_text(var: Var) -> str:
    return type_text(var.type) + (f" {var.storage.value}" if var.storage else "")


def _declarations(texts: Mapping[str, str]) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(text, []).append(name)
    line = ""
    for group in (f"{', '.join(names)}: {text}" for text, names in groups.items()):
        if line and len(line) + len(group) > _WIDTH:
            yield f"  {line}"
            line = ""
        line += ("   " if line else "") + group
    if line:
        yield f"  {line}"


def _blocks(blocks: Iterable[AnyBlock], declared: Mapping[str, object], locations: bool) -> Iterator[str]:
    for block in blocks:
        yield f"{block.label}:"
        yield from _ops(block.ops, declared, locations)
        loc = None if isinstance(block.terminator, Jump | Return) else block.terminator.loc
        yield _with_loc(f"  {print_terminator(block.terminator)}", loc, locations)


def _ops(ops: Iterable[AnyOp], declared: Mapping[str, object], locations: bool) -> Iterator[str]:
    for op in ops:
        yield _with_loc(f"  {print_op(op, declared)}", op.loc, locations)


def _with_loc(line: str, loc: Loc | None, locations: bool) -> str:
    if not locations or loc is None:
        return line
    return f"{line:<{_COLUMN}} // {os.path.basename(loc.file)}:{loc.line}:{loc.col + 1}"
