"""Let an operation write its final destination instead of a temporary that is then moved.

before:  t1 = { n - 2 }; n = t1            after:  n = { n - 2 }
         t = call @f(x); r = t                     r = call @f(x)

Only inside a block, when the temporary has no other use and its destination is not touched in between. The pass makes
calls in tail position visible and dumps short. It works on both program types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pcbatch.ir.analysis import liveness
from pcbatch.ir.analysis.def_use import AnyOp, BlockT, terminator_reads
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.ops import Move, Prim, Select
from pcbatch.ir.roles import reads, rename_writes, writes
from pcbatch.ir.stack import Push, StackProgram


def run(program: CfgProgram) -> CfgProgram:
    """Forward destinations inside every function."""
    return replace(program, functions=tuple(_function(function) for function in program.functions))


def run_stack(program: StackProgram) -> StackProgram:
    """Forward destinations in the merged program."""
    live = liveness.live_after(program)
    return replace(program, blocks=tuple(_block(block, live[block.label]) for block in program.blocks))


def _function(function: Function) -> Function:
    live = liveness.live_after(function)
    return replace(function, blocks=tuple(_block(block, live[block.label]) for block in function.blocks))


def _block(block: BlockT, live: tuple[frozenset[str], ...]) -> BlockT:
    """Forward wherever it is possible, in order.

    A change leaves alone the liveness at both ends and after later operations, and enables none before it, so one pass
    over the operations is enough.
    """
    ops: list[Any] = list(block.ops)  # None: gone
    last = _Last()
    read_at_end = terminator_reads(block.terminator)
    for k, op in enumerate(block.ops):
        if isinstance(op, Move) and op.src not in live[k] and op.src not in read_at_end:
            at = _definition(ops, last, op)
            if at is not None:
                ops[at], ops[k] = rename_writes(ops[at], _renaming(op)), None
                last.written[op.src].pop()
                last.written.setdefault(op.dst, []).append(at)
                continue
        last.note(k, op)
    return replace(block, ops=tuple(op for op in ops if op is not None))


@dataclass(frozen=True, slots=True)
class _Last:
    """Indices of the operations so far that wrote a variable (all of them), read it last, and pushed its slot last."""

    written: dict[str, list[int]] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    pushed: dict[str, int] = field(default_factory=dict)

    def note(self, k: int, op: AnyOp) -> None:
        """Record operation `k`, which stays as it is."""
        self.read.update(dict.fromkeys(reads(op), k))
        for v in writes(op):
            self.written.setdefault(v, []).append(k)
        if isinstance(op, Push):
            self.pushed[op.dst] = k

    def touched(self, v: str) -> int:
        """The index of the last operation on a variable or its slot; -1 if there is none."""
        return max(self.read.get(v, -1), self.pushed.get(v, -1), *self.written.get(v, ())[-1:], -1)


def _renaming(move: Move) -> Callable[[str], str]:
    return lambda v: move.dst if v == move.src else v


def _definition(ops: Sequence[Any], last: _Last, move: Move) -> int | None:
    """The index of the operation that computes `move.src`, if nothing in between reads it or touches `move.dst`."""
    if not last.written.get(move.src):
        return None
    at = last.written[move.src][-1]
    op = ops[at]
    if not isinstance(op, Prim | Call | Select) or last.read.get(move.src, -1) > at or last.touched(move.dst) > at:
        return None
    return None if move.dst != move.src and move.dst in writes(op) else at
