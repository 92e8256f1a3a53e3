"""Let functions know how deep they are called, for the option `max_depth`.

before:  bb2: left = call @fib(t1)              after:  bb2: deep = { depth >= 9 }; branch deep, bb5, bb4
              ...                                       bb4: deeper = { depth + 1 }; left = call @fib(t1, deeper)
                                                             ...
                                                        bb5: fail

An example fails where a call would be deeper than the limit; lanes then run it again, and they decide. So the depth may
be overestimated, and never underestimated: it counts all calls but those in tail position, which take no stack in lanes
either. Lanes open at most one frame for each of them, and none for a call whose first test ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax

from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import ERROR, Branch, Expr, Fail, Prim, Return
from pcbatch.ir.types import BOOL, ArrayType
from pcbatch.lowering.cfg_passes.wrap_entry import ENTRY
from pcbatch.lowering.tasks.pending_calls import tails
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.jax_types import to_aval
from pcbatch.lowering.typing.leaves import constant
from pcbatch.lowering.typing.trace import JaxprFn

DEPTH = ArrayType("int32", ())
FAILURE = Fail(ERROR, "RecursionError")


def run(program: CfgProgram, most: int) -> CfgProgram:
    """Return the program in which examples fail that make more than `most` nested calls.

    Args:
        program: A typed program without prints and checks.
        most: The calls that may be open at once.
    """
    functions = {f.name: f for f in program.functions}
    limited = tuple(_limited(f, functions, most) for f in program.functions)
    entry = _entry(functions[program.entry])
    return CfgProgram(entry.name, (entry, *limited))


def _entry(function: Function) -> Function:
    """A new entry, which calls the function at depth zero."""
    depth = Fresh({*function.types, *function.params, *function.results})("depth")
    ops = (
        constant(depth, Known(0), DEPTH, function.loc),
        Call(function.results, function.name, (*function.params, depth), function.loc),
    )
    types = {v: function.types[v] for v in (*function.params, *function.results)} | {depth: DEPTH}
    block = Block("bb0", ops, Return())
    return Function(function.name + ENTRY, function.params, function.results, (block,), types, function.loc)


def _limited(function: Function, functions: dict[str, Function], most: int) -> Function:
    fresh = Fresh({*function.types, *function.params, *function.results})
    depth, deeper, deep = fresh("depth"), fresh("depth"), fresh("depth")
    next_label = function.last_label + 1
    last = f"bb{next_label}"
    blocks: list[Block] = []
    tail_sites = frozenset(tails(function, functions))
    for block in function.blocks:
        calls = [k for k, op in enumerate(block.ops) if isinstance(op, Call)]
        opens = [block.ops[k] for k in calls if (block.label, k) not in tail_sites]
        ops = tuple(_given(op, depth if (block.label, k) in tail_sites else deeper) for k, op in enumerate(block.ops))
        if not opens:
            blocks.append(replace(block, ops=ops))
            continue
        next_label += 1
        behind = f"bb{next_label}"
        loc = opens[0].loc
        test = Prim((deep,), _expr(f"{depth} >= {most}", depth, lambda d: d >= most), loc)
        more = Prim((deeper,), _expr(f"{depth} + 1", depth, lambda d: d + 1), loc)
        blocks.append(Block(block.label, (test,), Branch(deep, last, behind, loc)))
        blocks.append(Block(behind, (more, *ops), block.terminator))
    if len(blocks) > len(function.blocks):
        blocks.append(Block(last, (), FAILURE))
    types = {**function.types, depth: DEPTH, deeper: DEPTH, deep: BOOL}
    return replace(function, params=(*function.params, depth), blocks=tuple(blocks), types=types)


def _given(op: Op, depth: str) -> Op:
    """An operation, with the depth as the last argument if it is a call."""
    return replace(op, args=(*op.args, depth)) if isinstance(op, Call) else op


def _expr(text: str, read: str, compute: Callable[[Any], Any]) -> Expr:
    closed = jax.make_jaxpr(compute)(to_aval(DEPTH))
    return Expr(text, (read,), JaxprFn(closed, [None]))
