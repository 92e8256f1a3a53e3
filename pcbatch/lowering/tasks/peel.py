"""Peel the first test of what is spawned: the task that spawns makes it.

before:  spawn left = fib.bb0(n=t1)            after:  t0 = { t1 <= 1 }; r = { 1 }
                                                       spawn left = branch t0, give (r), fib.bb2(n=t1)

Where a call would end at its first test its result is given at once, and no task is made. On the other ways the task
begins behind the test, so that blocks have lists of their own: the leaves of a tree gather in one, the inner nodes in
another. The first block must be cheap, as it is computed for all records that spawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pcbatch.ir.forks import Fork, leaves, map_leaves
from pcbatch.ir.names import TypedFresh
from pcbatch.ir.ops import Fail
from pcbatch.ir.tasks import (
    Finish,
    Give,
    Spawn,
    SpawnInto,
    Start,
    TaskBlock,
    TaskEdge,
    TaskJump,
    TaskLeaf,
    TaskOp,
    TaskProgram,
    Way,
    starts,
)
from pcbatch.lowering.tasks.tail_duplication import copied, is_cheap_test, without_unreached

PEELED = 32.0  # cost per record of a first test, in about one arithmetic operation each


def run(program: TaskProgram) -> TaskProgram:
    """Return the program in which tasks begin behind cheap first tests."""
    new = TypedFresh(program.types)
    first = {block.label: block for block in program.blocks if _is_peeled(block)}
    blocks = tuple(_peeled(block, first, new) for block in program.blocks)
    return without_unreached(replace(program, types=new.types, blocks=blocks))


def _is_peeled(block: TaskBlock) -> bool:
    """Whether a block is a cheap test, all of whose ways a `spawn` can have."""
    if not is_cheap_test(block, PEELED) or not isinstance(block.terminator, Fork | Finish):
        return False
    ends: tuple[TaskLeaf, ...] = leaves(block.terminator)
    return all(isinstance(leaf, TaskJump | Finish) for leaf in ends)


def _peeled(block: TaskBlock, first: dict[str, TaskBlock], new: Callable[[str], str]) -> TaskBlock:
    """A block in which what is spawned begins behind its first test."""
    ops: list[TaskOp] = []
    steps = block.steps

    def leaf(way: Start | Give) -> Way:
        if isinstance(way, Give) or way.label not in first:
            return way
        tests, terminator = copied(first[way.label], dict(way.args), new)
        ops.extend(tests)
        return _way(terminator)

    for op in block.ops:
        if isinstance(op, Spawn | SpawnInto):
            steps += max([0, *(first[label].steps for label in starts(op.way) if label in first)])
            op = replace(op, way=map_leaves(op.way, leaf))
        ops.append(op)
    return replace(block, ops=tuple(ops), steps=steps)


def _way(edge: TaskEdge | Fail) -> Way:
    match edge:
        case Fork():
            return Fork(edge.cond, _way(edge.on_true), _way(edge.on_false))
        case TaskJump():
            return Start(edge.target, edge.args)
        case Finish():
            return Give(edge.values)
        case _:
            raise AssertionError(edge)
