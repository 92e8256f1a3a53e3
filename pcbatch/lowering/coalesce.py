"""Let an operation write its final destination instead of a temporary that is then moved.

before:  t1 = { n - 2 }; n = t1            after:  n = { n - 2 }
         t = call @f(x); r = t                     r = call @f(x)

Only inside a block, when the temporary has no other use and its destination is not touched in between. It makes calls
in tail position visible and dumps short. Works on both program types.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pcbatch.ir import liveness
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.ops import Move, Prim, Select
from pcbatch.ir.rename import AnyOp, rename_writes
from pcbatch.ir.stack import StackBlock, StackProgram
from pcbatch.ir.walk import reads, terminator_reads, writes

BlockT = TypeVar("BlockT", Block, StackBlock)


def run(program: CfgProgram) -> CfgProgram:
    """Coalesce inside every function."""
    return replace(program, functions=tuple(_function(function) for function in program.functions))


def run_stack(program: StackProgram) -> StackProgram:
    """Coalesce in the merged program."""
    while True:
        live = liveness.stack_live_after(program)
        blocks = tuple(_one(block, live[block.label]) for block in program.blocks)
        if blocks == program.blocks:
            return program
        program = replace(program, blocks=blocks)


def _function(function: Function) -> Function:
    while True:
        live = liveness.live_after(function)
        blocks = tuple(_one(block, live[block.label]) for block in function.blocks)
        if blocks == function.blocks:
            return function
        function = replace(function, blocks=blocks)


def _one(block: BlockT, live: tuple[frozenset[str], ...]) -> BlockT:
    """Apply the first chance in the block; liveness is then computed anew."""
    for k, op in enumerate(block.ops):
        if not isinstance(op, Move) or op.src in live[k] or op.src in terminator_reads(block.terminator):
            continue
        at = _definition(block.ops[:k], op)
        if at is not None:
            return _rewrite(block, at, k, op)
    return block


def _rewrite(block: BlockT, at: int, k: int, move: Move) -> BlockT:
    """Operation `at` writes the destination of the move at `k`, which goes."""
    written = rename_writes(block.ops[at], lambda v: move.dst if v == move.src else v)
    ops = (*block.ops[:at], written, *block.ops[at + 1 : k], *block.ops[k + 1 :])
    return replace(block, ops=ops)


def _definition(before: tuple[AnyOp, ...], move: Move) -> int | None:
    """Where `move.src` is computed, if nothing in between reads it or touches `move.dst`."""
    for at in range(len(before) - 1, -1, -1):
        op = before[at]
        if move.src in writes(op):
            others = [v for v in writes(op) if v != move.src]
            fits = isinstance(op, Prim | Call | Select) and move.dst not in others
            return at if fits else None
        if move.src in reads(op) or move.dst in reads(op) or move.dst in writes(op):
            return None
        if getattr(op, "dst", None) == move.dst:  # a push to the slot of the destination
            return None
    return None
