"""Facts that `superblocks` and `speculation` decide by, and the tree of successors at the end of a block.

A block ends in a tree (`Edge`): forks inside, and leaves that jump, call or return. A leaf is named by its path, the
outcomes of the forks above it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from pcbatch.ir.analysis.dataflow import failing
from pcbatch.ir.analysis.def_use import edges, may_return
from pcbatch.ir.analysis.liveness import Liveness, doubtful, slots_live_in
from pcbatch.ir.analysis.must_assign import stack_written
from pcbatch.ir.forks import Fork
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import EffectOp, Jump, Prim, Return
from pcbatch.ir.roles import writes
from pcbatch.ir.stack import Edge, Leaf, Push, PushJump, StackBlock, StackOp, StackProgram, Var
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.block_frequency import cycles, loop_levels
from pcbatch.lowering.analysis.cost import op_cost
from pcbatch.lowering.cfg_passes.if_conversion import is_speculable

MOVED = 1 / 16  # cost of bringing one element into a frame or out of it
PUSHED = 4.0  # cost of every push besides: it writes lane by lane

Names = frozenset[str]
Path = tuple[bool, ...]  # the outcomes of the forks above a leaf


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """Facts about the program before a round of copies. Copies only make less live, so they stay true in the round."""

    blocks: Mapping[str, StackBlock]
    liveness: Liveness
    live: Mapping[str, Names]  # at the top of each block
    returned: Mapping[str, Names]  # variables live after the return of a block
    slots: Mapping[str, Names]  # slots that may still be popped from the top of each block on
    doubtful: Names  # variables that may be read before they are written
    written: Mapping[str, Names]  # the doubtful ones that are written on all paths to a block
    failing: Names  # the blocks from which every lane fails
    cycles: Mapping[str, int]  # by how many cycles, those through returns included, a block is enclosed
    levels: Mapping[str, int]  # by how many loops of its own function
    references: Mapping[str, int]  # how many leaves name a block, as target or as return point
    return_points: Names
    vars: dict[str, Var]  # grows with the fresh variables
    fresh: Fresh
    costs: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, program: StackProgram) -> ProgramFacts:
        """Analyse a program: the facts that its copies of blocks are decided by."""
        leaves = [leaf for block in program.blocks for leaf in edges(block.terminator)]
        jumps = [leaf for leaf in leaves if isinstance(leaf, Jump | PushJump)]
        return_points = [leaf.ret for leaf in leaves if isinstance(leaf, PushJump)]
        unsure, liveness = doubtful(program), Liveness.of(program)
        return cls(
            blocks={block.label: block for block in program.blocks},
            liveness=liveness,
            live=liveness.tops(),
            returned={b.label: liveness.returned(b.label) for b in program.blocks if may_return(b.terminator)},
            slots=slots_live_in(program),
            doubtful=unsure,
            written=stack_written(program, unsure)[0] if unsure else {},
            failing=failing(program.blocks),
            cycles=cycles(program),
            levels=loop_levels(program),
            references=Counter([*(leaf.target for leaf in jumps), *return_points]),
            return_points=frozenset(return_points),
            vars=dict(program.vars),
            fresh=Fresh(set(program.vars)),
        )

    def new(self, name: str) -> str:
        """Add a variable of the type of another one."""
        variable = self.fresh(name)
        self.vars[variable] = Var(self.vars[name].type)
        return variable

    def cost(self, block: StackBlock) -> float:
        """Return the cost per lane of one more copy of a block; infinite if it must not be copied."""
        if block.label not in self.costs:
            self.costs[block.label] = sum(self._cost(op) for op in block.ops)
        return self.costs[block.label]

    def _cost(self, op: StackOp) -> float:
        match op:
            case Prim():
                return op_cost(op) if is_speculable(op) else math.inf
            case _ if isinstance(op, EffectOp):
                return math.inf
            case Push(dst=dst):
                return PUSHED + MOVED * self.size((dst,))
            case _:
                return MOVED * self.size(writes(op))

    def size(self, names: Iterable[str]) -> float:
        """Count the elements per lane of some variables together."""
        types = [self.vars[v].type for v in names]
        return sum(float(t.size) if isinstance(t, ArrayType) else math.inf for t in types)

    def live_after(self, leaf: Leaf, returned: Names) -> Names:
        """The variables live once a leaf is taken; `returned` are those live after a return."""
        match leaf:
            case Jump(target=label):
                return self.live[label]
            case PushJump():
                return self.liveness.called(leaf)
            case Return():
                return returned
            case _:
                assert_never(leaf)

    def popped_after(self, leaf: Leaf) -> Names:
        """The slots of the current frame that may still be popped once a leaf is taken."""
        match leaf:
            case Jump(target=label) | PushJump(ret=label):
                return self.slots[label]
            case Return():
                return frozenset()
            case _:
                assert_never(leaf)


def tree_leaves(edge: Edge, path: Path = ()) -> Iterator[tuple[Path, Leaf]]:
    """The leaves of a tree, with their paths."""
    if isinstance(edge, Fork):
        yield from tree_leaves(edge.on_true, (*path, True))
        yield from tree_leaves(edge.on_false, (*path, False))
    else:
        yield path, edge


def replace_leaf(edge: Edge, path: Path, new: Edge) -> Edge:
    """Return the tree with another edge at the end of a path."""
    if not path:
        return new
    assert isinstance(edge, Fork)
    if path[0]:
        return replace(edge, on_true=replace_leaf(edge.on_true, path[1:], new))
    return replace(edge, on_false=replace_leaf(edge.on_false, path[1:], new))
