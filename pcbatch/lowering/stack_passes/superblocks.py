"""Copy small blocks into their predecessors, so that they cost no trip of their own.

before:  body: x = { f(x) }; jump head                after:  body: x = { f(x) }; t = { x > 0 }; branch t, body, return
         head: t = { x > 0 }; branch t, body, return

before:  rest: push n; n = { n - 2 }                  after:  rest: push n; n = { n - 2 }; t = { n <= 1 }; r = { 1 }
               pushjump fib, ret=next                               branch t, next, call rest ret=next
         fib:  t = { n <= 1 }; branch t, base, rest
         base: r = { 1 }; return

Every trip runs whole blocks, and a lane runs one at a time: fewer, longer blocks are fewer trips. A block with the
copies of its successors is a superblock (Hwu et al., "The superblock: an effective technique for VLIW and superscalar
compilation", J. Supercomputing 7, 1993). Four transformations make them:

- tail duplication (`_duplicate_tail`): all lanes go to the only successor, but for those that fail, so nothing of the
  copy is wasted;
- loop rotation (`_rotates`): the same with the test at the head of a loop, as in the first example. With its test at
  its end, a simple loop is one block;
- peeling of base cases (`_peel`): the caller makes the first test of its callee, as in the second example; where that
  returns at once, no frame is opened;
- speculation (`speculation.py`): all lanes run a copy of one of several successors, so it must be cheap and must not
  harm the others.

Two rounds, each with facts of its own: the first copies after sole successors alone, the second speculates too.

Never copied: prints and failures, loops (a copy would be one iteration, peeled), blocks that cost more than a trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pcbatch.ir.analysis.def_use import pops, pushes, targets
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.roles import writes
from pcbatch.ir.stack import Edge, Leaf, PushJump, StackBlock, StackOp, StackProgram, StackTerminator
from pcbatch.lowering.stack_passes import simplify_stack, unroll_loops
from pcbatch.lowering.stack_passes.simplify_stack import fits, in_frame, located
from pcbatch.lowering.stack_passes.speculation import joined, speculate
from pcbatch.lowering.stack_passes.superblock_facts import Names, Path, ProgramFacts, replace_leaf, tree_leaves

COPIED = 64.0  # cost per lane of a copy, in about one arithmetic operation each
SPECULATED = 24.0  # the same of all that a block computes for lanes of other paths
SPECULATED_ON_EXIT = 8.0  # cost of one copy on the path out of a loop, which each iteration would pay
ROOM = 16  # operations that may be copied in any program, besides as many as it has


def run(program: StackProgram, rounds: int | None = None) -> StackProgram:
    """Copy after sole successors first: simple loops are then single blocks, which are unrolled and else left alone.

    `rounds`: of a loop, in one visit; None: by cost.
    """
    budget = ROOM + _operations(program)
    tails = simplify_stack.run(_round(program, False, budget))
    budget -= _operations(tails) - _operations(program)
    return simplify_stack.run(_round(unroll_loops.run(tails, rounds), True, budget))


def _operations(program: StackProgram) -> int:
    return sum(len(block.ops) for block in program.blocks)


def _round(program: StackProgram, speculative: bool, budget: int) -> StackProgram:
    facts = ProgramFacts.of(program)
    grown: dict[str, StackBlock] = {}
    for block in sorted(program.blocks, key=lambda b: -facts.cycles[b.label]):  # those that run most come first
        returned = facts.returned.get(block.label, frozenset())
        superblock = _Superblock(facts, block.label, list(block.ops), block.terminator, budget, returned)
        superblock.grow(speculative)
        budget = superblock.budget
        grown[block.label] = replace(block, ops=tuple(superblock.ops), terminator=superblock.end)
    if all(grown[block.label] == block for block in program.blocks):
        return program
    return replace(program, vars=facts.vars, blocks=tuple(grown[block.label] for block in program.blocks))


@dataclass(slots=True)
class _Superblock:
    """One block, with the copies of successors that it has taken in."""

    facts: ProgramFacts
    label: str
    ops: list[StackOp]
    end: StackTerminator
    budget: int  # operations that may still be copied
    returned: Names  # variables live after its returns
    copies: list[tuple[Path, str]] = field(default_factory=list)  # blocks copied into it, and at which path
    speculated: float = 0.0  # cost of what it computes for lanes of other paths

    def grow(self, speculative: bool) -> None:
        """Copy successors until none fits; those behind a fork only if `speculative`."""
        while not isinstance(self.end, Fail):
            self.end = self._without_equal_arms(self.end)
            if not any(
                self._take_in(self.end, path, block, edge) for path, block, edge in self._candidates(speculative)
            ):
                return

    def _candidates(self, speculative: bool) -> Iterator[tuple[Path, StackBlock, Edge]]:
        """The successors that may be copied: the path to each, the block, and how its copy would end."""
        assert not isinstance(self.end, Fail)
        for path, leaf in tree_leaves(self.end):
            if isinstance(leaf, Return) or not (speculative or self._is_sole(path)):
                continue
            block = self.facts.blocks[leaf.target]
            edge = _end_of_copy(leaf, block)
            if edge is not None and self._pays(path, block):
                yield path, block, edge

    def _take_in(self, end: Edge, path: Path, block: StackBlock, edge: Edge) -> bool:
        """Put a copy of `block`, which ends in `edge`, in place of the leaf at `path`, if that keeps all values."""
        if not fits(replace_leaf(end, path, edge)):
            return False
        size = len(self.ops)
        if not path:
            self._duplicate_tail(block, edge)
        elif not self._speculate(end, path, block, edge):
            return False
        if not self._moves(path, block):
            self.budget -= len(self.ops) - size
        self.copies.append((path, block.label))
        self.returned |= self.facts.returned.get(block.label, frozenset())
        return True

    def _duplicate_tail(self, block: StackBlock, edge: Edge) -> None:
        """Tail duplication: continue with a copy of the only successor, to which all lanes would go."""
        self.ops, self.end = joined(self.ops, block.ops, self.facts.new), edge

    def _speculate(self, end: Edge, path: Path, block: StackBlock, edge: Edge) -> bool:
        """Speculation: run a copy of one of several successors for all lanes."""
        written = self.facts.written.get(self.label, frozenset()).union(*map(writes, self.ops))
        result = speculate(self.facts, self.ops, end, path, block, edge, returned=self.returned, written=written)
        if result is None:
            return False
        self.ops, self.end = result
        if not self._is_sole(path):
            self.speculated += self.facts.cost(block)
        return True

    def _is_sole(self, path: Path) -> bool:
        """Whether all lanes go this path but those that fail."""
        assert not isinstance(self.end, Fail)
        others = [leaf for other, leaf in tree_leaves(self.end) if other != path]
        return all(isinstance(leaf, Jump) and leaf.target in self.facts.failing for leaf in others)

    def _pays(self, path: Path, block: StackBlock) -> bool:
        """Whether a copy of the block at the end of a path is allowed, and costs less than the trip that it saves."""
        own_level, level = self.facts.levels[self.label], self.facts.levels[block.label]
        if self._would_unroll(path, block):
            return False
        if len(block.ops) > self.budget and not self._moves(path, block):
            return False
        if level > own_level and not self._rotates(path, block):
            return False
        if self._is_sole(path):
            limit = COPIED
        elif level < own_level:
            limit = SPECULATED_ON_EXIT
        else:
            limit = SPECULATED - self.speculated
        return self.facts.cost(block) <= limit

    def _would_unroll(self, path: Path, block: StackBlock) -> bool:
        """Whether the copy would be another iteration of a loop, which is not unrolled here."""
        passed = {self.label} | {label for copied_at, label in self.copies if path[: len(copied_at)] == copied_at}
        return block.label in passed or block.label in targets(block.terminator)

    def _rotates(self, path: Path, block: StackBlock) -> bool:
        """Loop rotation: on the way into a loop, only the test at its head is copied, and only where all lanes enter.

        The other half of a rotation, a copy of the test at the end of the body, is an ordinary tail duplication.
        """
        return (
            self._is_sole(path) and isinstance(block.terminator, Fork) and block.label not in self.facts.return_points
        )

    def _moves(self, path: Path, block: StackBlock) -> bool:
        """Whether this leaf is the only reference to the block, so that it moves instead of being copied."""
        # A leaf that came with an earlier copy stands in the original of that copy, too.
        within_copy = any(path[: len(copied_at)] == copied_at for copied_at, _ in self.copies)
        return self.facts.references[block.label] == 1 and not within_copy

    def _without_equal_arms(self, edge: Edge, path: Path = ()) -> Edge:
        """The tree without forks whose arms are equal; copies below such a fork now stand at its own path."""
        if not isinstance(edge, Fork):
            return edge
        on_true = self._without_equal_arms(edge.on_true, (*path, True))
        on_false = self._without_equal_arms(edge.on_false, (*path, False))
        if on_true != on_false:
            return replace(edge, on_true=on_true, on_false=on_false)
        self.copies = [(path if at[: len(path)] == path else at, label) for at, label in self.copies]
        return on_true


def _end_of_copy(leaf: Leaf, block: StackBlock) -> Edge | None:
    """The successors of a copy of the block in place of a leaf that goes there; None if it cannot be copied."""
    if isinstance(block.terminator, Fail):
        return None
    return _peel(leaf, block) if isinstance(leaf, PushJump) else block.terminator


def _peel(call: PushJump, callee: StackBlock) -> Edge | None:
    """Peeling of base cases: the successors of a callee's first block, run by the caller before a frame is open.

    A path on which the callee returns at once goes to the return point of the call, without a frame; on the others
    the call enters the callee behind its first block. None if the first block uses slots of the frame.
    """
    if isinstance(callee.terminator, Fail) or pushes(callee) or pops(callee):
        return None
    edge = in_frame(callee.terminator, call.ret)
    return None if edge is None else located(edge, call)
