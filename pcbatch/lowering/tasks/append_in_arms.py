"""Append to a list in the arms of a branch, where one of them makes a call, instead of behind them.

before:  bb5: r = call @f(x); jump bb7             after:  bb5: r = call @f(x); xs, n = { append } reads (xs, n, r)
         bb6: r = { 0.0 }; jump bb7                             jump bb7
         bb7: xs, n = { append } reads (xs, n, r)          bb6: r = { 0.0 }; xs, n = { append } reads (xs, n, r)
              ...                                               jump bb7
                                                           bb7: ...

So the call in `[f(x) if x > 0 else 0.0 for x in xs]` need not be waited for (`stored_results.py`).
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.analysis.def_use import predecessors
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.ops import Jump, Prim
from pcbatch.ir.roles import reads
from pcbatch.lowering.typing.trace import JaxprFn


def run(program: CfgProgram) -> CfgProgram:
    """Return the program in which appends behind arms stand in them."""
    return replace(program, functions=tuple(map(_function, program.functions)))


def _function(function: Function) -> Function:
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
