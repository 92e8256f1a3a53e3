"""The merged program with fewer blocks, once moves have gone: jumps past empty blocks, joined blocks.

before:  bb2: pop d; branch ok, bb3, bb4          after:  bb2: pop d; branch ok, bb3, return
         bb4: return

As `simplify_cfg`, but calls count: a block that a call enters or returns to has a predecessor that is no jump. A call
whose return point only returns is a jump to the callee (a tail call that register merging made visible).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pcbatch.ir.dataflow import reachable
from pcbatch.ir.ops import Branch, Jump
from pcbatch.ir.stack import PushJump, StackBlock, StackProgram
from pcbatch.lowering.simplify_cfg import thread_jumps


def run(program: StackProgram) -> StackProgram:
    """Repeat until nothing changes."""
    while True:
        blocks = _merge(_drop_unreachable(thread_jumps(program.blocks), program.entry), program.entry)
        if blocks == program.blocks:
            return program
        program = replace(program, blocks=blocks)


def _targets(block: StackBlock) -> tuple[str, ...]:
    """Every label that the block's jump names."""
    match block.terminator:
        case Jump(target=target):
            return (target,)
        case Branch() as branch:
            return (branch.on_true, branch.on_false)
        case PushJump() as call:
            return (call.target, call.ret)
        case _:
            return ()


def _drop_unreachable(blocks: tuple[StackBlock, ...], entry: str) -> tuple[StackBlock, ...]:
    labels = {block.label for block in blocks}
    edges = {block.label: tuple(t for t in _targets(block) if t in labels) for block in blocks}
    alive = reachable([entry], edges)
    return tuple(block for block in blocks if block.label in alive)


def _merge(blocks: tuple[StackBlock, ...], entry: str) -> tuple[StackBlock, ...]:
    named = Counter(target for block in blocks for target in _targets(block))
    by_label = {block.label: block for block in blocks}
    gone: set[str] = set()
    for block in blocks:
        if block.label in gone:
            continue
        current = block
        while isinstance(current.terminator, Jump):
            target = current.terminator.target
            if target in (entry, current.label) or named[target] != 1 or target in gone:
                break
            after = by_label[target]
            gone.add(target)
            current = replace(current, ops=current.ops + after.ops, terminator=after.terminator)
        by_label[block.label] = current
    return tuple(by_label[block.label] for block in blocks if block.label not in gone)
