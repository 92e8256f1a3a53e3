"""The merged program with fewer blocks, once moves have gone: jumps past empty blocks, joined blocks.

before:  bb2: pop d; branch ok, bb3, bb4          after:  bb2: pop d; branch ok, call bb7 ret=bb5, return
         bb3: pushjump bb7, ret=bb5
         bb4: return

As `simplify_cfg`, but calls count: a block that a call enters or returns to has a predecessor that is no jump. A call
whose return point only returns is a jump to the callee (a tail call that register merging made visible); one whose
callee does nothing but jump on is a call of what comes next, or none if that is to return.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pcbatch.ir.dataflow import reachable
from pcbatch.ir.def_use import calls, conditions, edges, map_edges, pops, pushes, targets
from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.stack import Edge, Fork, Pop, Push, PushJump, StackBlock, StackProgram, StackTerminator
from pcbatch.lowering.passes.simplify_cfg import constant

MOST_WAYS = 8  # of one block
MOST_PASSED = 64  # empty blocks on all ways from one block together, of which there may be exponentially many


def run(program: StackProgram) -> StackProgram:
    """Repeat until nothing changes."""
    while True:
        blocks = _merge(drop_unreachable(_threaded(program.blocks), program.entry), program.entry)
        if blocks == program.blocks:
            return program
        program = replace(program, blocks=blocks)


def in_frame(edge: Edge, ret: str) -> Edge | None:
    """What a callee's first jump is for its caller before a frame is open; None if the callee calls in turn."""
    if calls(edge):
        return None
    return map_edges(edge, lambda leaf: PushJump(leaf.target, ret) if isinstance(leaf, Jump) else Jump(ret))


def located(edge: Edge, call: PushJump) -> Edge:
    """The calls of an edge made where `call` is, as the user sees it."""
    return map_edges(edge, lambda leaf: replace(leaf, loc=call.loc) if isinstance(leaf, PushJump) else leaf)


def fits(edge: Edge) -> bool:
    """May one block end so? Its calls stand at one place of the source: a lane that finds the stack full shows it."""
    return len(edges(edge)) <= MOST_WAYS and len({call.loc for call in calls(edge)}) <= 1


def _threaded(blocks: tuple[StackBlock, ...]) -> tuple[StackBlock, ...]:
    """Jump past empty blocks, and past what the conditions on the way there decide."""
    thread = _Thread({block.label: block.terminator for block in blocks if not block.ops})
    return tuple(replace(block, terminator=thread.through(block)) for block in blocks)


@dataclass(slots=True)
class _Thread:
    """Follows jumps; `empty` holds how blocks without operations end."""

    empty: Mapping[str, StackTerminator]
    passed: int = 0

    def through(self, block: StackBlock) -> StackTerminator:
        """The jump of a block."""
        old = block.terminator
        if isinstance(old, Fail):
            return old
        self.passed = 0
        known = {c: value for c in conditions(old) if (value := constant(block.ops, c)) is not None}
        new = self.follow(old, known, frozenset())
        if isinstance(new, Jump) and isinstance(fail := self.empty.get(new.target), Fail):
            return fail
        return new if fits(new) else old

    def follow(self, edge: Edge, known: Mapping[str, bool], seen: frozenset[str]) -> Edge:
        """`known`: what conditions are on this way; `seen`: empty blocks that it has passed."""
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
        """A call of an empty block, or back to one."""
        back = self.follow(Jump(call.ret), {}, frozenset())
        if isinstance(back, Return):
            return self.follow(Jump(call.target), known, seen)
        call = replace(call, ret=back.target) if isinstance(back, Jump) else call
        after = self.after(call.target, seen)
        if after is None or isinstance(after, Fail) or (inner := in_frame(after, call.ret)) is None:
            return call
        return self.follow(located(inner, call), known, seen | {call.target})

    def after(self, target: str, seen: frozenset[str]) -> StackTerminator | None:
        """How a block ends that may be passed."""
        if target in seen or target not in self.empty or self.passed == MOST_PASSED:
            return None
        self.passed += 1
        return self.empty[target]


def drop_unreachable(blocks: tuple[StackBlock, ...], entry: str) -> tuple[StackBlock, ...]:
    """The blocks that jumps and calls from the entry lead to."""
    alive = reachable([entry], {block.label: targets(block.terminator) for block in blocks})
    return tuple(block for block in blocks if block.label in alive)


def _merge(blocks: tuple[StackBlock, ...], entry: str) -> tuple[StackBlock, ...]:
    named = Counter(target for block in blocks for target in targets(block.terminator))
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
            if not _in_order(current, after):
                break
            gone.add(target)
            current = replace(current, ops=current.ops + after.ops, terminator=after.terminator)
        by_label[block.label] = current
    return tuple(by_label[block.label] for block in blocks if block.label not in gone)


def _in_order(block: StackBlock, after: StackBlock) -> bool:
    """Do the two together pop each slot once, push it once, and pop it first?"""
    popped, pushed = slots(pops(block)), slots(pushes(block))
    return not (slots(pops(after)) & (popped | pushed) or slots(pushes(after)) & pushed)


def slots(ops: Iterable[Push | Pop]) -> set[str]:
    """The variables whose slots pushes or pops use."""
    return {op.dst for op in ops}
