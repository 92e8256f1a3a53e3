"""Copy small blocks to where tasks jump to them, so that they cost no visit of their own.

before:  bb2: free = { ... }; jump bb3(free=free)      after:  bb2: free = { ... }; t = { free != 0 }
         bb3(free): t = { free != 0 }                               branch t, jump bb4(free=free), return zero
                    branch t, jump bb4(free=free), return zero

What a visit of a block costs besides its work is a pop of its records and a push of those that follow. A block that is
jumped to from one place only moves there; behind a fork it is computed for the records of both ways, so it must be
cheap, pure and harmless, as in `superblocks`. Copies have other names, by `renamed` and its like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.names import TypedFresh
from pcbatch.ir.ops import Fail, PureOp
from pcbatch.ir.roles import rename_reads, rename_writes, writes
from pcbatch.ir.tasks import Finish, Sync, TaskBlock, TaskEdge, TaskJump, TaskOp, TaskProgram, bindings
from pcbatch.lowering.analysis.cost import op_cost
from pcbatch.lowering.cfg_passes.if_conversion import is_speculable

COPIED = 64.0  # cost per record of a copy that all records need, in about one arithmetic operation each
SPECULATED = 24.0  # cost of what a block computes for records that take another way, in all
MOST = 64  # operations of a block that takes in others


def run(program: TaskProgram) -> TaskProgram:
    """Return the program with small blocks copied to the jumps that lead to them, and without those unused then."""
    return without_unreached(_Duplication(program).run())


def without_unreached(program: TaskProgram) -> TaskProgram:
    """Return the program without blocks that no task reaches."""
    reached = reachable([program.entry], {block.label: [*references(block)] for block in program.blocks})
    if len(reached) == len(program.blocks):
        return program
    return replace(program, blocks=tuple(block for block in program.blocks if block.label in reached))


def references(block: TaskBlock) -> Iterator[str]:
    """The labels that a block mentions, with repetitions."""
    return (label for label, _ in bindings(block))


def cost(block: TaskBlock) -> float:
    """The estimated cost per record of the pure operations of a block."""
    return sum(op_cost(op) for op in block.ops if isinstance(op, PureOp))


def is_cheap_test(block: TaskBlock, limit: float) -> bool:
    """Whether a block may be computed for records that do not need it: pure, harmless, and of a cost up to a limit."""
    pure = all(isinstance(op, PureOp) and is_speculable(op) for op in block.ops)
    return pure and not isinstance(block.terminator, Fail) and not block.joins and cost(block) <= limit


class _Duplication:
    def __init__(self, program: TaskProgram) -> None:
        self.program = program
        self.blocks = {block.label: block for block in program.blocks}
        self.new = TypedFresh(program.types)

    def run(self) -> TaskProgram:
        for label in [*self.blocks]:
            self.blocks[label] = self.grown(self.blocks[label])
        return replace(self.program, types=self.new.types, blocks=tuple(self.blocks.values()))

    def grown(self, block: TaskBlock) -> TaskBlock:
        """The block with copies of its successors."""
        if isinstance(block.terminator, Fail):
            return block
        ops = list(block.ops)
        counts = Counter(label for b in self.blocks.values() for label in references(b))
        end, steps = self.edge(block.terminator, ops, frozenset({block.label}), counts, True, [SPECULATED])
        return replace(block, ops=tuple(ops), terminator=end, steps=block.steps + steps)

    def edge(
        self,
        edge: TaskEdge,
        ops: list[TaskOp],
        passed: frozenset[str],
        counts: Counter[str],
        sole: bool,
        budget: list[float],
    ) -> tuple[TaskEdge, int]:
        """An edge after copies of the blocks that it leads to, whose operations are added to `ops`, and their steps.

        Args:
            edge: The edge.
            ops: The operations of the block so far.
            passed: The blocks on the way to the edge, which are not copied again.
            counts: How often each block is mentioned.
            sole: Whether all records come here.
            budget: The cost that may still be spent for records that take another way.
        """
        if isinstance(edge, Fork):
            on_true, more = self.edge(edge.on_true, ops, passed, counts, False, budget)
            on_false, others = self.edge(edge.on_false, ops, passed, counts, False, budget)
            return replace(edge, on_true=on_true, on_false=on_false), max(more, others)
        if not isinstance(edge, TaskJump) or edge.target in passed or edge.target == self.program.entry:
            return edge, 0
        block = self.blocks[edge.target]
        if isinstance(block.terminator, Fail) or self.jumps_to_itself(block):
            return edge, 0
        own = cost(block)
        if sole:
            allowed = counts[block.label] == 1 or (own <= COPIED and len(ops) + len(block.ops) <= MOST)
        else:
            allowed = is_cheap_test(block, budget[0]) and len(ops) + len(block.ops) <= MOST
            budget[0] -= own if allowed else 0.0
        if not allowed:
            return edge, 0
        copy, terminator = copied(block, dict(edge.args), self.new)
        ops += copy
        end, steps = self.edge(terminator, ops, passed | {block.label}, counts, sole, budget)
        return end, block.steps + steps

    def jumps_to_itself(self, block: TaskBlock) -> bool:
        return any(isinstance(leaf, TaskJump) and leaf.target == block.label for leaf in leaves(block.terminator))


Names = Callable[[str], str]


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
        op = rename_reads(op, new)
        if isinstance(op, PureOp):
            names |= {v: fresh(v) for v in writes(op)}
            op = rename_writes(op, new)
        ops.append(op)
    assert isinstance(block.terminator, Fork | TaskJump | Sync | Finish)
    return ops, rename_reads(block.terminator, new)
