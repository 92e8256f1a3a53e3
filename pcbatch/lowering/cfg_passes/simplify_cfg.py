"""Simplify the control flow to fewer, bigger blocks: merge, thread jumps, drop unreachable blocks.

before:  bb0: t = { c }; branch t, bb1, bb2      after:  bb0: t = { c }; branch t, return, bb3
         bb1: return                                     bb3: ...
         bb2: jump bb3
         bb3: ...

Every trip runs whole blocks, so a block without work is a defect. Rules, repeated until none applies: a jump to an
empty block goes where that block goes (also through a branch on the same condition); a block with one predecessor
that always jumps to it joins it; a short block of moves that returns is copied into those that jump to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.ir.analysis.callgraph import without_uncalled
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.analysis.def_use import AnyOp, BlockT, jump_to, retarget, targets
from pcbatch.ir.cfg import Block, CfgProgram, Function, Terminator
from pcbatch.ir.ops import RETURN, Branch, Fail, Jump, Move, Prim, Return
from pcbatch.ir.roles import writes

TAIL_MOVES = 8  # moves that cost less than a trip, so that a block of them may be copied


def run(program: CfgProgram) -> CfgProgram:
    """Simplify every function, and leave out those that nothing calls any more."""
    return _run(program, tails=False)


def run_tails(program: CfgProgram) -> CfgProgram:
    """Simplify like `run`, and copy short blocks that return into their predecessors.

    Not before `if_conversion`, which looks for arms that meet again.
    """
    return _run(program, tails=True)


def _run(program: CfgProgram, tails: bool) -> CfgProgram:
    functions = tuple(_simplify(function, tails) for function in program.functions)
    return without_uncalled(replace(program, functions=functions))


def _simplify(function: Function, tails: bool) -> Function:
    blocks = function.blocks
    while True:
        new = thread_jumps(drop_unreachable(blocks))
        new = merge(_copy_tails(new) if tails else new, blocks[0].label)
        if new == blocks:
            return replace(function, blocks=blocks)
        blocks = new


def drop_unreachable(blocks: tuple[BlockT, ...], entry: str | None = None) -> tuple[BlockT, ...]:
    """Return the blocks that are reachable from the entry, the first one if not given, by jumps and by calls."""
    alive = reachable([entry or blocks[0].label], {block.label: targets(block.terminator) for block in blocks})
    return tuple(block for block in blocks if block.label in alive)


def thread_jumps(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks with jumps to empty blocks replaced by jumps to where those go."""
    empty = {block.label: block.terminator for block in blocks if not block.ops}

    def follow(label: str) -> str:
        """The end of a chain of empty blocks that only jump."""
        seen: set[str] = set()
        while label in empty and label not in seen:
            seen.add(label)
            terminator = empty[label]
            if isinstance(terminator, Jump):
                label = terminator.target
            elif isinstance(terminator, Return):
                return RETURN
            else:
                break
        return label

    def through_branch(label: str, cond: str, taken: bool) -> str:
        """The end of a chain of empty blocks that jump, or test the same condition again."""
        for _ in empty:  # as often as a chain may be long: it may be a cycle
            label = follow(label)
            terminator = empty.get(label)
            if not isinstance(terminator, Branch) or terminator.cond != cond:
                break
            label = terminator.on_true if taken else terminator.on_false
        return label

    out = []
    for block in blocks:
        terminator = retarget(_decided(block), follow)
        if isinstance(terminator, Branch):
            terminator = replace(
                terminator,
                on_true=through_branch(terminator.on_true, terminator.cond, True),
                on_false=through_branch(terminator.on_false, terminator.cond, False),
            )
            terminator = retarget(terminator, follow)
        if isinstance(terminator, Jump) and isinstance(empty.get(terminator.target), Branch | Fail):
            terminator = empty[terminator.target]
            terminator = _decided(_ending(block, terminator))
        out.append(_ending(block, terminator))
    return tuple(out)


def _ending(block: Block, terminator: Any) -> Block:
    """The block with another jump."""
    return replace(block, terminator=terminator)


def _decided(block: Block) -> Terminator:
    """The terminator of a block; a branch on a constant that the block itself assigns is a plain jump."""
    branch = block.terminator
    known = constant(block.ops, branch.cond) if isinstance(branch, Branch) else None
    if not isinstance(branch, Branch) or known is None:
        return branch
    target = branch.on_true if known else branch.on_false
    return jump_to(target)


def constant(ops: Sequence[AnyOp], cond: str) -> bool | None:
    """Return the value of a condition, if the last operation that writes it assigns a constant; None if not."""
    last = next((op for op in reversed(ops) if cond in writes(op)), None)
    if isinstance(last, Prim) and last.expr.text in ("True", "False") and len(last.dsts) == 1:
        return last.expr.text == "True"
    return None


def _copy_tails(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    tails = {
        block.label: block
        for block in blocks
        if isinstance(block.terminator, Return)
        and len(block.ops) <= TAIL_MOVES
        and all(isinstance(op, Move) for op in block.ops)
    }
    return tuple(
        replace(block, ops=block.ops + tail.ops, terminator=Return())
        if isinstance(block.terminator, Jump) and (tail := tails.get(block.terminator.target))
        else block
        for block in blocks
    )


def merge(
    blocks: tuple[BlockT, ...], entry: str, may_join: Callable[[BlockT, BlockT], bool] = lambda block, after: True
) -> tuple[BlockT, ...]:
    """Join blocks with their only predecessors where `may_join` allows it; the caller repeats."""
    named = Counter(target for block in blocks for target in targets(block.terminator))
    by_label = {block.label: block for block in blocks}
    gone: set[str] = set()
    for label in list(by_label):
        if label in gone:
            continue
        current = by_label[label]
        while isinstance(current.terminator, Jump):
            target = current.terminator.target
            if target in (entry, label, *gone) or named[target] != 1 or not may_join(current, by_label[target]):
                break
            after = by_label[target]
            gone.add(target)
            current = replace(current, ops=current.ops + after.ops, terminator=after.terminator)
        by_label[label] = current
    return tuple(by_label[block.label] for block in blocks if block.label not in gone)
