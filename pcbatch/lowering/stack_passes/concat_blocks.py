"""Join the operations of two blocks: each slot is popped at most once, pushed at most once, and popped first.

before:  push t = r       and then  pop t; r = { t + r }      after:  t.t0 = r; push t = t.t0; t = t.t0; r = { t + r }

A value that the first block has pushed, the second need not pop: it is at hand. Of two pushes of one slot the second
stays. The moves that this leaves are for `copy_propagation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pcbatch.ir.ops import Move
from pcbatch.ir.stack import Pop, Push, StackOp


def joined(first: Sequence[StackOp], then: Sequence[StackOp], new: Callable[[str], str]) -> list[StackOp]:
    """Return `first` followed by `then`; `new(name)` makes a variable of the type of another one."""
    pushed = {op.dst for op in first if isinstance(op, Push)}
    pushed_again = {op.dst for op in then if isinstance(op, Push)}
    at_hand = pushed | {op.dst for op in first if isinstance(op, Pop)}
    # A fresh variable holds the value of each slot that `then` would pop: `first` may write the variable in between.
    held = {op.dst: new(op.dst) for op in then if isinstance(op, Pop) and op.dst in at_hand}
    out: list[StackOp] = []
    for op in first:
        if isinstance(op, Push):
            if op.dst in held:
                out.append(Move(held[op.dst], op.src, op.loc))
                op = replace(op, src=held[op.dst])
            if op.dst in pushed_again:
                continue
        out.append(op)
        if isinstance(op, Pop) and op.dst in held and op.dst not in pushed:
            out.append(Move(held[op.dst], op.dst, op.loc))
    for op in then:
        out.append(Move(op.dst, held[op.dst], op.loc) if isinstance(op, Pop) and op.dst in held else op)
    return out
