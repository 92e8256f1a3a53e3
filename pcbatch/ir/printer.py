"""The text form of CFG and stack programs, and of task programs by `task_text`; `parser.parse_program` reads it back.

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

The entry of a CFG program is its first function unless a line `entry @name` says otherwise. An expression whose
inputs are not the default reading of its text (see `text`) is followed by `reads (a, b)`. What follows `//` outside
an expression or a message is a comment. The order of everything is that of the program, so equal programs print
equally.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from pcbatch.ir.cfg import CfgProgram, Function
from pcbatch.ir.def_use import AnyBlock, AnyTerminator
from pcbatch.ir.forks import Fork
from pcbatch.ir.op_text import declarations, fail_text, op_lines, tree_text, type_text, with_loc
from pcbatch.ir.ops import RETURN, Branch, Fail, Jump, Return
from pcbatch.ir.stack import Leaf, PushJump, StackProgram, Var
from pcbatch.ir.task_text import task_lines
from pcbatch.ir.tasks import TaskProgram


def print_program(program: CfgProgram | StackProgram | TaskProgram, locations: bool = False) -> str:
    """Return the text of a program, with a final newline; with `locations`, the source line of each operation."""
    match program:
        case CfgProgram():
            lines = _cfg_lines(program, locations)
        case StackProgram():
            lines = _stack_lines(program, locations)
        case _:
            lines = task_lines(program, locations)
    return "\n".join(lines) + "\n"


def print_terminator(terminator: AnyTerminator) -> str:
    """Return the text of a terminator."""
    match terminator:
        case Jump(target=target):
            return f"jump {target}"
        case Branch():
            return f"branch {terminator.cond}, {terminator.on_true}, {terminator.on_false}"
        case Fork():
            return tree_text(terminator, _edge)
        case PushJump(target=target, ret=ret):
            return f"pushjump {target}, ret={ret}"
        case Return():
            return "return"
        case Fail():
            return fail_text(terminator)
        case _:
            assert_never(terminator)


def _edge(edge: Leaf) -> str:
    """Return the text of an edge of a fork."""
    match edge:
        case Jump(target=target):
            return target
        case PushJump(target=target, ret=ret):
            return f"call {target} ret={ret}"
        case Return():
            return RETURN
        case _:
            assert_never(edge)


def _cfg_lines(program: CfgProgram, locations: bool) -> Iterator[str]:
    yield "pcir 1 cfg"
    if not program.functions or program.functions[0].name != program.entry:
        yield f"entry @{program.entry}"
    for function in program.functions:
        yield with_loc(_signature(function), function.loc, locations)
        shown = {*function.params, *function.results}
        yield from declarations({n: type_text(t) for n, t in function.types.items() if n not in shown})
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
    yield from declarations({name: _var_text(var) for name, var in program.vars.items()})
    declared = {**dict.fromkeys((*program.params, *program.results)), **program.vars}
    if program.prologue:
        yield "prologue:"
        yield from op_lines(program.prologue, declared, locations)
    function = ""
    for block in program.blocks:
        if block.function != function:
            function = block.function
            yield f"// function @{function}" if function else "// no function"
        label, *lines = _blocks((block,), declared, locations)
        yield f"{block.label} ({block.rounds} rounds):" if block.rounds > 1 else label
        yield from lines
    yield "}"


def _var_text(var: Var) -> str:
    return type_text(var.type) + (f" {var.storage.value}" if var.storage else "")


def _blocks(blocks: Iterable[AnyBlock], declared: Mapping[str, object], locations: bool) -> Iterator[str]:
    for block in blocks:
        yield f"{block.label}:"
        yield from op_lines(block.ops, declared, locations)
        loc = None if isinstance(block.terminator, Jump | Return) else block.terminator.loc
        yield with_loc(f"  {print_terminator(block.terminator)}", loc, locations)
