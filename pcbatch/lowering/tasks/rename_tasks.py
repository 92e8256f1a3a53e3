"""Copies of blocks of tasks: their operations and terminator with other names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from pcbatch.ir.def_use import writes
from pcbatch.ir.ops import Move, Prim, Select
from pcbatch.ir.rename import rename_reads, rename_writes
from pcbatch.ir.tasks import (
    Finish,
    Give,
    OpenFrame,
    Spawn,
    SpawnInto,
    Start,
    Sync,
    TaskBlock,
    TaskEdge,
    TaskFork,
    TaskJump,
    TaskLeaf,
    TaskOp,
    Way,
    WayFork,
)

Names = Callable[[str], str]


def rename_op(op: TaskOp, new: Names) -> TaskOp:
    """Replace every variable that an operation reads; the names of results in frames stay."""
    match op:
        case Prim() | Move() | Select():
            return rename_reads(op, new)
        case Spawn(row=str(row)):
            return replace(op, way=rename_way(op.way, new), row=new(row))
        case Spawn() | SpawnInto():
            return replace(op, way=rename_way(op.way, new))
        case OpenFrame():
            return op
        case _:
            assert_never(op)


def rename_way(way: Way, new: Names) -> Way:
    """Replace every variable that a way reads."""
    match way:
        case WayFork():
            return WayFork(new(way.cond), rename_way(way.on_true, new), rename_way(way.on_false, new))
        case Start():
            return replace(way, args=_bound(way.args, new))
        case Give():
            return Give(tuple(map(new, way.values)))
        case _:
            assert_never(way)


def rename_edge(edge: TaskEdge, new: Names) -> TaskEdge:
    """Replace every variable that a terminator reads."""
    if isinstance(edge, TaskFork):
        return TaskFork(new(edge.cond), rename_edge(edge.on_true, new), rename_edge(edge.on_false, new), edge.loc)
    return rename_leaf(edge, new)


def rename_leaf(leaf: TaskLeaf, new: Names) -> TaskLeaf:
    """Replace every variable that a leaf of a terminator reads."""
    match leaf:
        case TaskJump() | Sync():
            return replace(leaf, args=_bound(leaf.args, new))
        case Finish():
            return Finish(tuple(map(new, leaf.values)))
        case _:
            assert_never(leaf)


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
        op = rename_op(op, new)
        if isinstance(op, Prim | Move | Select):
            names |= {v: fresh(v) for v in writes(op)}
            op = rename_writes(op, new)
        ops.append(op)
    assert isinstance(block.terminator, TaskFork | TaskJump | Sync | Finish)
    return ops, rename_edge(block.terminator, new)


def _bound(args: tuple[tuple[str, str], ...], new: Names) -> tuple[tuple[str, str], ...]:
    return tuple((param, new(v)) for param, v in args)
