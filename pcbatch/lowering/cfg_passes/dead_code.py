"""Remove operations whose results are never read.

before:  t = { x + 1 }; x = { 2 }; return          after:  return          (x is not a result)

Liveness is a fixpoint over loops and, in the merged program, over calls; primitives have no side effects (inference
refuses them), so a dead one can go. A call stays: it may fail, print or never return.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pcbatch.ir.analysis import liveness
from pcbatch.ir.analysis.def_use import AnyOp, BlockT, terminator_reads
from pcbatch.ir.cfg import CfgProgram, Function
from pcbatch.ir.ops import PureOp
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.stack import Pop, Push, StackProgram


def run(program: CfgProgram) -> CfgProgram:
    """Remove dead operations from every function, repeatedly."""
    return replace(program, functions=tuple(_function(function) for function in program.functions))


def run_stack(program: StackProgram) -> StackProgram:
    """Remove dead operations from the merged program, and pushes of slots that are not popped any more."""
    while True:  # a removed pop makes its pushes dead, and these what they read
        live = liveness.live_out(program)
        popped = liveness.slots_live_out(program)
        blocks = tuple(_sweep(block, live[block.label], popped[block.label]) for block in program.blocks)
        if blocks == program.blocks:
            return program
        program = replace(program, blocks=blocks)


def _function(function: Function) -> Function:
    while True:
        live = liveness.live_out(function)
        blocks = tuple(_sweep(block, live[block.label], frozenset()) for block in function.blocks)
        if blocks == function.blocks:
            return function
        function = replace(function, blocks=blocks)


def _sweep(block: BlockT, live_out: frozenset[str], popped: frozenset[str]) -> BlockT:
    """Backwards, so that what only dead operations read is dead at once."""
    live = live_out.union(terminator_reads(block.terminator))
    needed: list[Any] = []
    for op in reversed(block.ops):
        if _is_needed(op, live, popped):
            needed.append(op)
            live = live.difference(writes(op)).union(reads(op))
    return replace(block, ops=tuple(reversed(needed)))


def _is_needed(op: AnyOp, live: frozenset[str], popped: frozenset[str]) -> bool:
    if isinstance(op, Push):
        return op.dst in popped
    return not isinstance(op, PureOp | Pop) or any(v in live for v in writes(op))
