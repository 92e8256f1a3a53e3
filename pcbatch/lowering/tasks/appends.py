"""Append what calls give so that it need not be waited for (`stored_results.py`).

Where a branch has a call in one of its arms, `[f(x) if x > 0 else 0.0 for x in xs]`, the append stands in both:

before:  bb5: r = call @f(x); jump bb7             after:  bb5: r = call @f(x); xs, n = { append } reads (xs, n, r)
         bb6: r = { 0.0 }; jump bb7                             jump bb7
         bb7: xs, n = { append } reads (xs, n, r)          bb6: r = { 0.0 }; xs, n = { append } reads (xs, n, r)
              ...                                               jump bb7
                                                           bb7: ...

A list has one name through several appends, as a list is known by its variables. Two of them become one if they never
both have a value that is read:

before:  r = call @f(a)                            after:  r = call @f(a)
         xs.v1, n.v1 = { append } reads (xs, n, r)         xs, n = { append } reads (xs, n, r)
         s = call @f(b)                                    s = call @f(b)
         xs, n = { append } reads (xs.v1, n.v1, s)         xs, n = { append } reads (xs, n, s)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import jax.extend.core as jex

from pcbatch.ir.analysis.def_use import predecessors, rename_block
from pcbatch.ir.analysis.liveness import live_after
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.ops import Jump, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.typing.trace import JaxprFn


def run(program: CfgProgram) -> CfgProgram:
    """Return the program in which what calls give is appended where they stand, to lists that keep their names."""
    return replace(program, functions=tuple(_with_one_name(_in_arms(function)) for function in program.functions))


def _in_arms(function: Function) -> Function:
    blocks = {block.label: block for block in function.blocks}
    sources = predecessors(function.blocks)
    for label in [*blocks]:
        while _belongs_into(blocks[label], [blocks[s] for s in sources[label]]) and label != function.blocks[0].label:
            append, *rest = blocks[label].ops
            blocks[label] = replace(blocks[label], ops=tuple(rest))
            for source in sources[label]:
                blocks[source] = replace(blocks[source], ops=(*blocks[source].ops, append))
    return replace(function, blocks=tuple(blocks.values()))


def _belongs_into(block: Block, sources: list[Block]) -> bool:
    """Whether a block begins by appending what a call gives at the end of some of the blocks before it."""
    append = block.ops[0] if block.ops else None
    if len(sources) < 2 or not isinstance(append, Prim) or not isinstance(append.expr.fn, JaxprFn):
        return False
    if not any(eqn.primitive.name == "scatter" for eqn in append.expr.fn.closed.jaxpr.eqns):
        return False
    if any(source.terminator != Jump(block.label) or source.label == block.label for source in sources):
        return False
    lasts = [source.ops[-1] for source in sources if source.ops]
    return any(isinstance(last, Call) and {*last.dsts} & {*reads(append)} for last in lasts)


def _with_one_name(function: Function) -> Function:
    while (pair := next((p for p in _versions(function) if _are_apart(function, *p)), None)) is not None:
        new, old = pair
        gone, kept = (old, new) if new in function.results else (new, old)
        function = _renamed(function, {gone: kept})
    return function


def _versions(function: Function) -> Iterator[tuple[str, str]]:
    """The variables that are others with a result of a call appended, each with that other one."""
    for block in function.blocks:
        for call, op in zip(block.ops, block.ops[1:], strict=False):
            if not isinstance(call, Call) or not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
                continue
            if len({*op.expr.ins}) < len(op.expr.ins) or not {*call.dsts} <= {*op.expr.ins}:
                continue
            found = [*_accumulated(op, op.expr.fn)]
            if any(kind == "scatter" for _, _, kind in found):
                yield from ((new, old) for new, old, _ in found if new != old)


def _accumulated(op: Prim, fn: JaxprFn) -> Iterator[tuple[str, str, str]]:
    """The results that are an input with a row stored, or with a number added; the input, and the operation."""
    jaxpr = fn.closed.jaxpr
    inputs: Mapping[Any, str] = dict(zip(jaxpr.invars, op.expr.ins, strict=True))
    makes = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    for dst, out in zip(op.dsts, jaxpr.outvars, strict=True):
        eqn = makes.get(out) if isinstance(out, jex.Var) else None
        if eqn is None or eqn.primitive.name not in ("scatter", "add"):
            continue
        others = [v for v in eqn.invars[:2] if isinstance(v, jex.Var) and v in inputs]
        if others and (eqn.primitive.name == "add" or eqn.invars[0] is others[0]):
            yield dst, inputs[others[0]], eqn.primitive.name


def _are_apart(function: Function, a: str, b: str) -> bool:
    """Whether two variables of one type never both have a value that is read."""
    if function.types.get(a) != function.types.get(b) or {a, b} & {*function.params}:
        return False
    if {a, b} <= {*function.results}:
        return False
    after = live_after(function)
    for block in function.blocks:
        for op, live in zip(block.ops, after[block.label], strict=True):
            written = {*writes(op)} & {a, b}
            if written and len((live & {a, b}) | written) > 1:
                return False
    return True


def _renamed(function: Function, names: Mapping[str, str]) -> Function:
    blocks = tuple(rename_block(block, lambda v: names.get(v, v)) for block in function.blocks)
    return replace(function, blocks=blocks, types={v: t for v, t in function.types.items() if v not in names})
