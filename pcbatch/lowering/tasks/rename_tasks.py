"""Copies of blocks of tasks: their operations and terminator with other names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Move, Prim, Select
from pcbatch.ir.roles import rename_reads, rename_writes, writes
from pcbatch.ir.tasks import (
    Finish,
    Sync,
    TaskBlock,
    TaskEdge,
    TaskJump,
    TaskOp,
)

Names = Callable[[str], str]


def copied(block: TaskBlock, args: Mapping[str, str], fresh: Callable[[str], str]) -> tuple[list[TaskOp], TaskEdge]:
    """The operations and the terminator of a copy of a block, whose parameters are bound to other variables.

    Args:
        block: The block, which does not end in a failure.
        args: The variable for each parameter.
        fresh: Gives a new name for a variable that the copy writes.
    """
    names = dict(args)

    def new(v: str) -> str:
        return names.get(v, v)

    ops: list[TaskOp] = []
    for op in block.ops:
        op = rename_reads(op, new)
        if isinstance(op, Prim | Move | Select):
            names |= {v: fresh(v) for v in writes(op)}
            op = rename_writes(op, new)
        ops.append(op)
    assert isinstance(block.terminator, Fork | TaskJump | Sync | Finish)
    return ops, rename_reads(block.terminator, new)
