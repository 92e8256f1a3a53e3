"""Simplify the control flow of the merged program, once moves are gone: jump past empty blocks, join blocks.

before:  bb2: pop d; branch ok, bb3, bb4          after:  bb2: pop d; branch ok, call bb7 ret=bb5, return
         bb3: pushjump bb7, ret=bb5
         bb4: return

This is `simplify_cfg` with calls: a block that a call enters or returns to has a predecessor that is no jump. A call
whose return point only returns is a jump to the callee (a tail call that `register_coalescing` made visible). A call of
an empty block becomes a call of its successor, and no call at all where the successor is to return.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pcbatch.ir.analysis.def_use import calls, conditions, edges, map_edges, pops, pushes
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.stack import Edge, Pop, Push, PushJump, StackBlock, StackProgram, StackTerminator
from pcbatch.lowering.cfg_passes.simplify_cfg import constant, drop_unreachable, merge

MOST_SUCCESSORS = 8  # of one block
MOST_PASSED = 64  # empty blocks on all paths from one block together, of which there may be exponentially many


def run(program: StackProgram) -> StackProgram:
    """Simplify until nothing changes."""
    while True:
        blocks = merge(drop_unreachable(_threaded(program.blocks), program.entry), program.entry, _in_order)
        if blocks == program.blocks:
            return program
        program = replace(program, blocks=blocks)


def in_frame(edge: Edge, ret: str) -> Edge | None:
    """Return the successors of a callee's first block for its caller, which has not opened the frame yet.

    A jump becomes a call that enters the callee there, a return a jump to `ret`; None if the block calls in turn.
    """
    if calls(edge):
        return None
    return map_edges(edge, lambda leaf: PushJump(leaf.target, ret) if isinstance(leaf, Jump) else Jump(ret))


def located(edge: Edge, call: PushJump) -> Edge:
    """Return an edge whose calls have the location of `call`, where the user sees them."""
    return map_edges(edge, lambda leaf: replace(leaf, loc=call.loc) if isinstance(leaf, PushJump) else leaf)


def fits(edge: Edge) -> bool:
    """Return whether one block may end in this tree.

    All its calls must have one location, which is the one reported for a lane that finds the stack full.
    """
    return len(edges(edge)) <= MOST_SUCCESSORS and len({call.loc for call in calls(edge)}) <= 1


def _threaded(blocks: tuple[StackBlock, ...]) -> tuple[StackBlock, ...]:
    """Jump past empty blocks, and past what the conditions on the way there decide."""
    thread = _Thread({block.label: block.terminator for block in blocks if not block.ops})
    return tuple(replace(block, terminator=thread.through(block)) for block in blocks)


@dataclass(slots=True)
class _Thread:
    """Threads jumps; `empty` maps blocks without operations to their terminators."""

    empty: Mapping[str, StackTerminator]
    passed: int = 0

    def through(self, block: StackBlock) -> StackTerminator:
        """Return the threaded terminator of a block."""
        old = block.terminator
        if isinstance(old, Fail):
            return old
        self.passed = 0
        # A condition is known if this block assigns it a constant, or below a fork that tests it.
        known = {c: value for c in conditions(old) if (value := constant(block.ops, c)) is not None}
        new = self.follow(old, known, frozenset())
        if isinstance(new, Jump) and isinstance(fail := self.empty.get(new.target), Fail):
            return fail
        return new if fits(new) else old

    def follow(self, edge: Edge, known: Mapping[str, bool], seen: frozenset[str]) -> Edge:
        """Return a tree threaded along one path, with `known` conditions on it and the empty blocks `seen` on it."""
        match edge:
            case Fork(cond=cond) if cond in known:
                return self.follow(edge.on_true if known[cond] else edge.on_false, known, seen)
            case Fork(cond=cond):
                on_true = self.follow(edge.on_true, {**known, cond: True}, seen)
                on_false = self.follow(edge.on_false, {**known, cond: False}, seen)
                return on_true if on_true == on_false else replace(edge, on_true=on_true, on_false=on_false)
            case Jump(target=target):
                after = self.after(target, seen)
                if after is None or isinstance(after, Fail):
                    return edge
                return self.follow(after, known, seen | {target})
            case PushJump():
                return self.call(edge, known, seen)
            case Return():
                return edge

    def call(self, call: PushJump, known: Mapping[str, bool], seen: frozenset[str]) -> Edge:
        """Return a threaded call: into the callee past empty blocks, and back past an empty return point."""
        back = self.follow(Jump(call.ret), {}, frozenset())  # nothing is known after the call: the callee writes, too
        if isinstance(back, Return):
            return self.follow(Jump(call.target), known, seen)
        call = replace(call, ret=back.target) if isinstance(back, Jump) else call
        after = self.after(call.target, seen)
        if after is None or isinstance(after, Fail) or (inner := in_frame(after, call.ret)) is None:
            return call
        return self.follow(located(inner, call), known, seen | {call.target})

    def after(self, target: str, seen: frozenset[str]) -> StackTerminator | None:
        """The terminator of an empty block that may be passed; None if it may not."""
        if target in seen or target not in self.empty or self.passed == MOST_PASSED:
            return None
        self.passed += 1
        return self.empty[target]


def _in_order(block: StackBlock, after: StackBlock) -> bool:
    """Whether the two together pop each slot at most once, push it at most once, and pop it first."""
    popped, pushed = slots(pops(block)), slots(pushes(block))
    return not (slots(pops(after)) & (popped | pushed) or slots(pushes(after)) & pushed)


def slots(ops: Iterable[Push | Pop]) -> set[str]:
    """Return the variables whose slots some pushes or pops use."""
    return {op.dst for op in ops}
