"""Join the arms of a branch that both give the same result: one spawn with two ways instead of two blocks.

before:  branch t0, jump bb1(node=node), jump bb2()    after:  t1 = { tree.left[node] }
         bb1(node): t1 = { tree.left[node] }                   l = { 0.5 }
                    frame                                      frame
                    spawn l = f.bb0(node=t1)                   spawn l = branch t0, f.bb0(node=t1), give (l)
                    jump bb3(node=node)                        jump bb3(node=node)
         bb2(): l = { 0.5 }; frame; spawn l = give (l); ...

So `l = f(left) if left is not None else 0.5` costs no visit of its own. What an arm computes besides must be cheap and
harmless, as it is computed for the records of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pcbatch.ir.forks import Fork
from pcbatch.ir.names import TypedFresh
from pcbatch.ir.ops import Fail, PureOp, Select
from pcbatch.ir.tasks import OpenFrame, Spawn, SpawnInto, TaskBlock, TaskEdge, TaskJump, TaskOp, TaskProgram
from pcbatch.lowering.analysis.cost import op_cost
from pcbatch.lowering.cfg_passes.if_conversion import is_speculable
from pcbatch.lowering.tasks.tail_duplication import copied, references, without_unreached

COMPUTED = 32.0  # cost per record of the operations of both arms


@dataclass(frozen=True, slots=True)
class _Arm:
    """One side of a branch: pure operations, spawns into an open frame, and a jump."""

    pure: tuple[PureOp, ...]
    opens: bool
    spawns: tuple[Spawn, ...]
    jump: TaskJump
    steps: int


def run(program: TaskProgram) -> TaskProgram:
    """Return the program in which branches whose arms spawn the same results are one block."""
    joining = _Joining(program)
    return without_unreached(joining.run())


class _Joining:
    def __init__(self, program: TaskProgram) -> None:
        self.program = program
        self.blocks = {block.label: block for block in program.blocks}
        self.counts = Counter(label for block in program.blocks for label in references(block))
        self.new = TypedFresh(program.types)

    def run(self) -> TaskProgram:
        blocks = tuple(self.joined(block) for block in self.program.blocks)
        return replace(self.program, types=self.new.types, blocks=blocks)

    def joined(self, block: TaskBlock) -> TaskBlock:
        end = block.terminator
        if not isinstance(end, Fork):
            return block
        arms = [self.arm(edge) for edge in (end.on_true, end.on_false)]
        if arms[0] is None or arms[1] is None or not self.match(arms[0], arms[1]):
            return block
        return self.merge(block, end.cond, arms[0], arms[1])

    def arm(self, edge: TaskEdge) -> _Arm | None:
        """The arm behind an edge, in terms of the variables of the block that it leaves."""
        if not isinstance(edge, TaskJump) or self.counts[edge.target] != 1:
            return None
        block = self.blocks[edge.target]
        if isinstance(block.terminator, Fail) or any(isinstance(op, SpawnInto) for op in block.ops):
            return None
        ops, terminator = copied(block, dict(edge.args), self.new)
        if not isinstance(terminator, TaskJump):
            return None
        pure = tuple(op for op in ops if isinstance(op, PureOp))
        spawns = tuple(op for op in ops if isinstance(op, Spawn))
        opens = any(isinstance(op, OpenFrame) for op in ops)
        return _Arm(pure, opens, spawns, terminator, block.steps) if spawns else None

    def match(self, a: _Arm, b: _Arm) -> bool:
        same = (a.opens, a.jump.target, _places(a.spawns)) == (b.opens, b.jump.target, _places(b.spawns))
        pure = [*a.pure, *b.pure]
        return same and all(map(is_speculable, pure)) and sum(map(op_cost, pure)) <= COMPUTED

    def merge(self, block: TaskBlock, cond: str, a: _Arm, b: _Arm) -> TaskBlock:
        ops: list[TaskOp] = [*block.ops, *a.pure, *b.pure]
        args = []
        other = dict(b.jump.args)
        for param, v in a.jump.args:
            if v != other[param]:
                both = self.new(param)
                ops.append(Select(both, cond, v, other[param]))
                v = both
            args.append((param, v))
        if a.opens:
            ops.append(OpenFrame())
        for one, two in zip(a.spawns, b.spawns, strict=True):
            ops.append(replace(one, way=Fork(cond, one.way, two.way)))
        steps = block.steps + max(a.steps, b.steps)
        return replace(block, ops=tuple(ops), terminator=TaskJump(a.jump.target, tuple(args)), steps=steps)


def _places(spawns: Sequence[Spawn]) -> list[tuple[tuple[str, ...], bool, str | None]]:
    return [(op.dsts, op.adds, op.row) for op in spawns]
