"""Copy small blocks into those that go there, so that they cost no trip of their own.

before:  body: x = { f(x) }; jump head                after:  body: x = { f(x) }; t = { x > 0 }; branch t, body, return
         head: t = { x > 0 }; branch t, body, return

before:  rest: push n; n = { n - 2 }                  after:  rest: push n; n = { n - 2 }; t = { n <= 1 }; r = { 1 }
               pushjump fib, ret=next                               branch t, next, call rest ret=next
         fib:  t = { n <= 1 }; branch t, base, rest
         base: r = { 1 }; return

Every trip runs whole blocks, and a lane runs one at a time: fewer, longer blocks are fewer trips. The first example is
loop rotation: with its test at its end a loop is one block. In the second the caller makes the first test of its
callee; where that returns at once, no frame is opened. Two rounds, each on its own copy of the program:

- after the only way out of a block (tail duplication): all its lanes would go there, nothing is wasted;
- after one way of several (speculation): all lanes run it, so it must be cheap and harmless, and what it writes is
  kept from the lanes that go elsewhere where they need the old value.

Left alone: prints and failures, loops (a copy would be one iteration, peeled), blocks dearer than a trip.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from pcbatch.ir.def_use import block_writes, conditions, edges, pops, pushes, targets, writes
from pcbatch.ir.liveness import doubtful, live_at_return, slots_live_in, stack_live_in
from pcbatch.ir.must_assign import stack_written
from pcbatch.ir.ops import Fail, Jump, Move, Prim, Print, Return, Select
from pcbatch.ir.rename import rename_reads, rename_terminator, rename_writes
from pcbatch.ir.stack import Edge, Fork, Leaf, Push, PushJump, StackBlock, StackOp, StackProgram, StackTerminator, Var
from pcbatch.ir.types import BOOL, ArrayType
from pcbatch.lowering.analysis.block_frequency import cycles, loop_levels
from pcbatch.lowering.analysis.cost import op_cost
from pcbatch.lowering.passes import simplify_stack
from pcbatch.lowering.passes.concat_blocks import joined
from pcbatch.lowering.passes.if_conversion import both, harmless
from pcbatch.lowering.passes.parallel_moves import Fresh
from pcbatch.lowering.passes.simplify_stack import fits, in_frame, located

COPIED = 64.0  # what a copy may cost per lane, about one arithmetic operation each
SPECULATED = 24.0  # what a block may compute for lanes that go elsewhere
LEFT = 8.0  # the same on the way out of a loop, which every round of it would pay
MOST_SELECTED = 4  # elements per lane that a copy may keep from them
MOVED = 1 / 16  # what it costs to bring an element into a frame or out of it
PUSHED = 4.0  # what every push costs besides: it writes lane by lane
ROOM = 16  # operations that may be copied in any program; beyond that as many as it has

Names = frozenset[str]
Path = tuple[bool, ...]  # the outcomes of conditions on the way to a leaf


def run(program: StackProgram) -> StackProgram:
    """Copy after sole ways first: loops are then single blocks, which are left alone."""
    most = ROOM + 2 * _operations(program)
    for speculative in (False, True):
        program = simplify_stack.run(_round(program, speculative, most - _operations(program)))
    return program


def _operations(program: StackProgram) -> int:
    return sum(len(block.ops) for block in program.blocks)


def _round(program: StackProgram, speculative: bool, budget: int) -> StackProgram:
    facts = _Facts.of(program)
    grown: dict[str, StackBlock] = {}
    for block in sorted(program.blocks, key=lambda b: -facts.inner[b.label]):  # what runs most goes first
        returned = facts.returned.get(block.label, frozenset())
        growing = _Growing(facts, block.label, list(block.ops), block.terminator, budget, [], returned)
        growing.run(speculative)
        budget = growing.budget
        grown[block.label] = replace(block, ops=tuple(growing.ops), terminator=growing.end)
    if all(grown[block.label] == block for block in program.blocks):
        return program
    return replace(program, vars=facts.vars, blocks=tuple(grown[block.label] for block in program.blocks))


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of the program before a round. Copies only make less live, so it stays true during the round."""

    blocks: Mapping[str, StackBlock]
    live: Mapping[str, Names]
    returned: Mapping[str, Names]  # what is live after the return of a block
    slots: Mapping[str, Names]
    doubtful: Names
    known: Mapping[str, Names]  # what of that is written on all paths to a block
    inner: Mapping[str, int]
    levels: Mapping[str, int]
    named: Mapping[str, int]
    entered: Names  # blocks that a call goes or comes back to
    vars: dict[str, Var]
    fresh: Fresh
    costs: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, program: StackProgram) -> _Facts:
        leaves = [leaf for block in program.blocks for leaf in edges(block.terminator)]
        jumps = [leaf for leaf in leaves if isinstance(leaf, Jump | PushJump)]
        returns = [leaf.ret for leaf in leaves if isinstance(leaf, PushJump)]
        unsure = doubtful(program)
        return cls(
            blocks={block.label: block for block in program.blocks},
            live=stack_live_in(program),
            returned=live_at_return(program),
            slots=slots_live_in(program),
            doubtful=unsure,
            known=stack_written(program, unsure)[0] if unsure else {},
            inner=cycles(program),
            levels=loop_levels(program),
            named=Counter([*(leaf.target for leaf in jumps), *returns]),
            entered=frozenset(returns),
            vars=dict(program.vars),
            fresh=Fresh(set(program.vars)),
        )

    def new(self, name: str) -> str:
        """A variable like another one."""
        made = self.fresh(name)
        self.vars[made] = Var(self.vars[name].type)
        return made

    def cost(self, block: StackBlock) -> float:
        """What one more copy of a block costs per lane; infinite where there must be none."""
        if block.label not in self.costs:
            self.costs[block.label] = sum(self._cost(op) for op in block.ops)
        return self.costs[block.label]

    def _cost(self, op: StackOp) -> float:
        match op:
            case Prim():
                return op_cost(op) if harmless(op) else math.inf
            case Print():
                return math.inf
            case Push(dst=dst):
                return PUSHED + MOVED * self.size((dst,))
            case _:
                return MOVED * self.size((op.dst,))

    def size(self, names: Iterable[str]) -> float:
        """Elements per lane of some variables together."""
        types = [self.vars[v].type for v in names]
        return sum(float(t.size) if isinstance(t, ArrayType) else math.inf for t in types)

    def needed(self, leaf: Leaf, returned: Names) -> Names:
        """The variables live after one way out of a block."""
        return returned if isinstance(leaf, Return) else self.live[leaf.target]

    def kept(self, leaf: Leaf) -> Names:
        """The slots of the frame that may be popped after one way out of a block."""
        match leaf:
            case Jump(target=label) | PushJump(ret=label):
                return self.slots[label]
            case Return():
                return frozenset()
            case _:
                assert_never(leaf)


@dataclass(slots=True)
class _Growing:
    """One block, with what has been copied into it."""

    facts: _Facts
    label: str
    ops: list[StackOp]
    end: StackTerminator
    budget: int
    inside: list[tuple[Path, str]]  # copies that it holds, and where they stand in the tree
    returned: Names  # what is live after its returns
    spent: float = 0.0

    def run(self, speculative: bool) -> None:
        """Copy until nothing fits any more."""
        while not isinstance(self.end, Fail) and self._once(self.end, speculative):
            pass

    def _once(self, end: Edge, speculative: bool) -> bool:
        end, before = self._met(end), len(self.ops)
        self.end = end
        for path, leaf in _leaves(end):
            block = None if isinstance(leaf, Return) or (path and not speculative) else self.facts.blocks[leaf.target]
            edge = None if block is None else _instead(leaf, block)
            if block is None or edge is None or not self._worth(path, block):
                continue
            after = _replaced(end, path, edge)
            if fits(after) and (self._append(block, edge) if not path else self._speculate(end, path, block, edge)):
                self.budget -= 0 if self._alone(path, block) else len(self.ops) - before
                self.inside.append((path, block.label))
                self.returned |= self.facts.returned.get(block.label, frozenset())
                return True
        return False

    def _worth(self, path: Path, block: StackBlock) -> bool:
        """May the block be copied to the end of a path, for what it costs?"""
        facts, label = self.facts, block.label
        passed = {self.label} | {inside for at, inside in self.inside if path[: len(at)] == at}
        if label in passed or label in targets(block.terminator):  # another iteration
            return False
        if len(block.ops) > self.budget and not self._alone(path, block):
            return False
        if facts.levels[label] > facts.levels[self.label]:  # the way into a loop: only for the test at its head
            test = isinstance(block.terminator, Fork) and label not in facts.entered
            if path or not test:
                return False
        if path and facts.levels[label] < facts.levels[self.label]:  # the way out of a loop, taken once in many rounds
            return facts.cost(block) <= LEFT
        return facts.cost(block) <= (SPECULATED - self.spent if path else COPIED)

    def _alone(self, path: Path, block: StackBlock) -> bool:
        """Is this the only way to the block, so that it moves instead of being copied?"""
        return self.facts.named[block.label] == 1 and not any(path[: len(at)] == at for at, _ in self.inside)

    def _met(self, edge: Edge, path: Path = ()) -> Edge:
        """The tree without forks of which both ways go to the same place."""
        if not isinstance(edge, Fork):
            return edge
        on_true, on_false = self._met(edge.on_true, (*path, True)), self._met(edge.on_false, (*path, False))
        if on_true != on_false:
            return replace(edge, on_true=on_true, on_false=on_false)
        self.inside = [(path if at[: len(path)] == path else at, label) for at, label in self.inside]
        return on_true

    def _append(self, block: StackBlock, edge: Edge) -> bool:
        self.ops, self.end = joined(self.ops, block.ops, self.facts.new), edge
        return True

    def _speculate(self, end: Edge, path: Path, block: StackBlock, edge: Edge) -> bool:
        """Run the block for all lanes, and keep what it writes from those that go elsewhere."""
        facts = self.facts
        elsewhere = [leaf for other, leaf in _leaves(end) if other != path]
        if any({op.dst for op in pushes(block)} & facts.kept(leaf) for leaf in elsewhere):
            return False
        theirs = frozenset[str]().union(*(facts.needed(leaf, self.returned) for leaf in elsewhere))
        back = facts.returned.get(block.label, frozenset())
        ours = frozenset[str]().union(*(facts.needed(leaf, back) for leaf in edges(edge) if not isinstance(leaf, Fail)))
        clash = [v for v in sorted(block_writes(block)) if v in theirs or v in conditions(end)]
        scratch = {v: facts.new(v) for v in clash if v not in ours and v not in {op.dst for op in pops(block)}}
        old = {v: facts.new(v) for v in clash if v not in scratch}
        both_need = [v for v in old if v in theirs]
        written = facts.known.get(self.label, frozenset()).union(*map(writes, self.ops))
        if facts.size(both_need) > MOST_SELECTED or not written.issuperset(facts.doubtful & old.keys()):
            return False
        self.ops += [Move(copy, v) for v, copy in old.items()]
        ops, edge = _renamed(block.ops, edge, scratch)
        self.ops = joined(self.ops, ops, facts.new)
        self.end = _replaced(rename_terminator(end, lambda v: old.get(v, v)), path, edge)
        if both_need:
            test, sign = self._test(rename_terminator(end, lambda v: old.get(v, v)), path)
            self.ops += [Select(v, test, v, old[v]) if sign else Select(v, test, old[v], v) for v in both_need]
        self.spent += facts.cost(block)
        return True

    def _test(self, end: Edge, path: Path) -> tuple[str, bool]:
        """A variable that tells the lanes on a path, and its value there."""
        assert isinstance(end, Fork)
        test, sign = end.cond, path[0]
        for outcome in path[1:]:
            end = end.on_true if path[0] else end.on_false
            assert isinstance(end, Fork)
            name = self.facts.fresh("both")
            self.facts.vars[name] = Var(BOOL)
            self.ops.append(Prim((name,), both(test, sign, end.cond, outcome), end.loc))
            test, sign, path = name, True, path[1:]
        return test, sign


def _instead(leaf: Leaf, block: StackBlock) -> Edge | None:
    """Where the block goes when it stands in place of a leaf; None if it cannot."""
    if isinstance(block.terminator, Fail):
        return None
    if not isinstance(leaf, PushJump):
        return block.terminator
    if pushes(block) or pops(block):  # these are of the frame that is not open yet
        return None
    inner = in_frame(block.terminator, leaf.ret)
    return None if inner is None else located(inner, leaf)


def _renamed(ops: Iterable[StackOp], edge: Edge, scratch: Mapping[str, str]) -> tuple[list[StackOp], Edge]:
    """The operations writing other variables, and the jump after them."""
    now: dict[str, str] = {}
    out: list[StackOp] = []

    def name(v: str) -> str:
        return now.get(v, v)

    for op in ops:
        op = rename_reads(op, name)
        now |= {v: scratch[v] for v in writes(op) if v in scratch}
        out.append(op if isinstance(op, Push) else rename_writes(op, name))
    return out, rename_terminator(edge, name)


def _leaves(edge: Edge, path: Path = ()) -> Iterator[tuple[Path, Leaf]]:
    if isinstance(edge, Fork):
        yield from _leaves(edge.on_true, (*path, True))
        yield from _leaves(edge.on_false, (*path, False))
    else:
        yield path, edge


def _replaced(edge: Edge, path: Path, new: Edge) -> Edge:
    """The tree with another edge at the end of a path."""
    if not path:
        return new
    assert isinstance(edge, Fork)
    if path[0]:
        return replace(edge, on_true=_replaced(edge.on_true, path[1:], new))
    return replace(edge, on_false=_replaced(edge.on_false, path[1:], new))
