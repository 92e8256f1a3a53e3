"""Bodies of task blocks as functions of a window: each is made a block of the stack IR, for `BlockCode`.

What the record holds is popped, what is sent on is pushed; constants of the examples are registers, which records read
through the numbers of their examples. So a part of a constant is gathered where it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pcbatch.ir.ops import Prim, PureOp, Return
from pcbatch.ir.stack import Pop, Push, StackBlock, StackProgram, Storage, Var
from pcbatch.ir.tasks import TaskBlock, TaskProgram
from pcbatch.lowering.stack_passes.block_layout import DOMINANT, EXPENSIVE, block_cost
from pcbatch.runtime.vm import indexed_access
from pcbatch.runtime.vm.block_body import BlockCode, compile_blocks


def stack_program(program: TaskProgram, sent: Mapping[str, Sequence[str]], single: bool) -> StackProgram:
    """Return a program of the stack IR whose blocks have the bodies of a task program; it does not run.

    Args:
        program: The task program.
        sent: Of each block, by label, the variables that its end uses.
        single: Whether there is one example, whose constants are then shared values.
    """
    storage = dict.fromkeys(program.types, Storage.TEMP)
    storage |= dict.fromkeys(program.constants, Storage.SHARED if single else Storage.REG)
    storage |= dict.fromkeys(program.shared, Storage.SHARED)
    return StackProgram(
        entry=program.entry,
        params=program.params,
        results=(),
        vars={v: Var(type_, storage[v]) for v, type_ in program.types.items()},
        blocks=tuple(_stack_block(block, sent[block.label]) for block in program.blocks),
        prologue=program.prologue,
    )


def _stack_block(block: TaskBlock, sent: Sequence[str]) -> StackBlock:
    pure = [op for op in block.ops if isinstance(op, PureOp)]
    ops = (*map(Pop, block.params), *pure, *(Push(v, v) for v in sent))
    return StackBlock(block.label, ops, Return(), block.function)


def compile_bodies(program: StackProgram) -> tuple[BlockCode, ...]:
    """Return the bodies of all blocks; constants have the examples along their first axis.

    A constant is read in part even where the same operation reads a part of a shared value: a visit would gather all of
    it otherwise.
    """
    constants = {v for v, var in program.vars.items() if var.storage is Storage.REG}
    return tuple(_in_part(code, constants) for code in compile_blocks(program))


def _in_part(code: BlockCode, constants: Collection[str]) -> BlockCode:
    prims = [(k, op) for k, op in enumerate(code.block.ops) if isinstance(op, Prim)]
    cuts = {k: cut for k, op in prims if (cut := indexed_access.cut(op, constants)) is not None}
    parted = {op.expr.ins[j] for k, op in prims if k in cuts for j in cuts[k].registers}
    return replace(
        code, cuts=cuts, parted=frozenset(parted & set(code.reads)), lanes_last=frozenset(), by_lanes_last=frozenset()
    )


def costs(program: StackProgram) -> dict[str, float]:
    """Return the cost of each block per record, by label, in about one arithmetic operation each."""
    types = {v: var.type for v, var in program.vars.items()}
    return {block.label: block_cost(block, types) for block in program.blocks}


def expensive(costs: Mapping[str, float]) -> frozenset[str]:
    """Return the labels of the blocks whose records should gather until a visit is full."""
    enough = max(EXPENSIVE, DOMINANT * sum(costs.values()))
    return frozenset(label for label, cost in costs.items() if cost >= enough)
