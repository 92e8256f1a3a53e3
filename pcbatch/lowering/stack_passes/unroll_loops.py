"""Unroll loops of one small block: one visit computes several rounds.

before:  bb1: x = { f(x) }; t = { x > 0 }             after:  bb1: x = { f(x) }; t = { x > 0 }
              branch t, bb1, return                                x.t0 = x; x = { f(x) }; t.t0 = { x > 0 }
                                                                   x = select t, x, x.t0; both = { t and t.t0 }
                                                                   branch both, bb1, return

A visit costs its number of kernels; for some hundred lanes of cheap rounds that is many times what the kernels compute.
So a few more rounds in a visit cost next to nothing, and save visits. A lane that has left the loop computes the rounds
after that on values which nobody reads (`speculation.py`). So the block must be pure and harmless on such values, and
its variables few enough to be selected.

By cost, a visit gets as many rounds as are cheaper together than a visit is, and at most `MOST_ROUNDS`: most loops are
short, and the rounds after the last one are lost. This runs between the two rounds of `superblocks.py`. Before the
first, a loop is two blocks; after the second, it computes what follows the loop in each round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pcbatch.ir.analysis.def_use import pushes
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail, Jump, Prim
from pcbatch.ir.roles import writes
from pcbatch.ir.stack import Edge, Leaf, StackBlock, StackOp, StackProgram, Var
from pcbatch.ir.types import BOOL
from pcbatch.lowering.cfg_passes.if_conversion import MAX_SELECT, both
from pcbatch.lowering.left_out import runs
from pcbatch.lowering.stack_passes.speculation import speculate
from pcbatch.lowering.stack_passes.superblock_facts import Path, ProgramFacts, tree_leaves

MOST_COST = 32.0  # per lane, of the rounds that a visit makes besides the first
MOST_ROUNDS = 4
MOST_SELECTED = 16  # elements per lane of the variables that are selected after a round


def run(program: StackProgram, rounds: int | None = None) -> StackProgram:
    """Unroll every loop that qualifies; `rounds`: so often, whatever they cost. None: by cost."""
    if rounds == 1 or not runs("unroll_loops"):
        return program
    facts = ProgramFacts.of(program)
    blocks = tuple(_unrolled(facts, block, rounds) for block in program.blocks)
    return program if blocks == program.blocks else replace(program, vars=facts.vars, blocks=blocks)


def rounds_by_cost(cost: float) -> int:
    """Return the rounds that a visit gets of a loop whose round costs so much per lane."""
    return int(min(MOST_ROUNDS, 1 + MOST_COST // max(cost, 1.0)))


@dataclass(frozen=True, slots=True)
class _Rounds:
    """Rounds of a loop, one after the other; `back` is the path to the leaf behind which the next one follows."""

    ops: list[StackOp]
    end: Edge
    back: Path


def _unrolled(facts: ProgramFacts, block: StackBlock, rounds: int | None) -> StackBlock:
    cost = facts.cost(block)
    if isinstance(block.terminator, Fail) or pushes(block) or math.isinf(cost):  # it must not run for no lane
        return block
    back = [path for path, leaf in tree_leaves(block.terminator) if leaf == Jump(block.label)]
    if len(back) != 1 or not back[0]:  # without a test, the loop never ends
        return block
    wanted, selected = (rounds, MAX_SELECT) if rounds else (rounds_by_cost(cost), MOST_SELECTED)
    unrolled, made = _Rounds(list(block.ops), block.terminator, back[0]), 1
    while made < wanted and (more := _one_more(facts, block, unrolled, selected)) is not None:
        unrolled, made = more, made + 1
    return replace(block, ops=tuple(unrolled.ops), terminator=unrolled.end, rounds=made)


def _one_more(facts: ProgramFacts, block: StackBlock, before: _Rounds, most_selected: int) -> _Rounds | None:
    """Append a round; None if a lane that has left the loop would lose a value."""
    assert not isinstance(block.terminator, Fail)
    speculated = speculate(
        facts,
        before.ops,
        before.end,
        before.back,
        block,
        block.terminator,
        returned=facts.returned.get(block.label, frozenset()),
        written=facts.written.get(block.label, frozenset()).union(*map(writes, before.ops)),
        most_selected=most_selected,
    )
    if speculated is None:
        return None
    ops, end = _merged(facts, *speculated, Jump(block.label))
    return _Rounds(ops, end, next(path for path, leaf in tree_leaves(end) if leaf == Jump(block.label)))


def _merged(facts: ProgramFacts, ops: list[StackOp], end: Edge, back: Leaf) -> tuple[list[StackOp], Edge]:
    """Give the tree one leaf for each successor, `back` first; leaves of several rounds get a test together."""
    tests: list[StackOp] = []
    taken: dict[Leaf, _Test | None] = {back: None}

    def both_of(first: _Test, then: _Test) -> _Test:
        name = facts.fresh("both")
        facts.vars[name] = Var(BOOL)
        tests.append(Prim((name,), both(first.name, first.sign, then.name, then.sign)))
        return _Test(name, True)

    def visit(edge: Edge, reached: _Test | None) -> None:
        if isinstance(edge, Fork):
            for arm, sign in ((edge.on_true, True), (edge.on_false, False)):
                test = _Test(edge.cond, sign)
                visit(arm, test if reached is None else both_of(reached, test))
        else:
            assert reached is not None, "a loop that never ends is not unrolled"
            before = taken.get(edge)
            taken[edge] = reached if before is None else both_of(before.negated, reached.negated).negated

    visit(end, None)
    *tested, last = taken
    tree: Edge = last
    for leaf in reversed(tested):
        test = taken[leaf]
        assert test is not None
        tree = Fork(test.name, leaf, tree) if test.sign else Fork(test.name, tree, leaf)
    return [*ops, *tests], tree


@dataclass(frozen=True, slots=True)
class _Test:
    """A variable, and its value where the test holds."""

    name: str
    sign: bool

    @property
    def negated(self) -> _Test:
        """The test that holds where this one does not."""
        return _Test(self.name, not self.sign)
