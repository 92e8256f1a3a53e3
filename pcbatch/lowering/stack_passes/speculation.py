"""Speculation: run a copy of a successor for all lanes of a block, before the fork that decides who needs it.

before:  bb0: t = { x > 4 }                           after:  bb0: t = { x > 4 }
              branch t, bb1, bb2                                   y.t0 = y; y = { x + 1 }; y = select t, y, y.t0
         bb1: y = { x + 1 }; jump bb3                              branch t, bb3, bb2

Lanes of other paths compute on values that the program never meant for the operations, and must not see the results.
A variable that the copy writes and that others read is handled by one of two rules:

- nothing reads it after the copy: the copy writes a fresh variable instead (it is renamed);
- otherwise its old value is saved before the copy. Lanes of other paths get it back by a selection if they read the
  variable later; if only the fork itself reads it, the fork reads the saved value.

Superblocks make it possible (Hwu et al. 1993, see `superblocks.py`). An operation that may fail, loop or touch the
host is never speculated (`is_speculable`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pcbatch.ir.analysis.def_use import block_writes, conditions, edges, pops, pushes
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail, Move, Prim, Select
from pcbatch.ir.roles import rename_reads, rename_writes, writes
from pcbatch.ir.stack import Edge, Pop, Push, StackBlock, StackOp, Var
from pcbatch.ir.types import BOOL
from pcbatch.lowering.cfg_passes.if_conversion import both
from pcbatch.lowering.stack_passes.superblock_facts import Names, Path, ProgramFacts, replace_leaf, tree_leaves

MOST_SELECTED = 4  # elements per lane that a copy may select back for the lanes of other paths


def speculate(
    facts: ProgramFacts,
    ops: Sequence[StackOp],
    end: Edge,
    path: Path,
    block: StackBlock,
    successors: Edge,
    *,
    returned: Names,
    written: Names,
    most_selected: float = MOST_SELECTED,
) -> tuple[list[StackOp], Edge] | None:
    """Copy `block` behind `ops`, before the tree `end`, in place of its leaf at `path`.

    `successors` is how the copy ends; `returned` are the variables live after the returns of `end`; `written` holds
    the doubtful variables that certainly have a value after `ops`. Returns the operations and the new tree, or None if
    a lane of another path would lose a value.
    """
    other_leaves = [leaf for other, leaf in tree_leaves(end) if other != path]
    pushed, popped = ({op.dst for op in slot_ops} for slot_ops in (pushes(block), pops(block)))
    # A slot is memory of the lane: no selection brings back a value that a push has overwritten.
    if any(pushed & facts.popped_after(leaf) for leaf in other_leaves):
        return None
    live_on_others = _union(facts.live_after(leaf, returned) for leaf in other_leaves)
    returned_by_copy = facts.returned.get(block.label, frozenset())
    live_after_copy = _union(
        facts.live_after(leaf, returned_by_copy) for leaf in edges(successors) if not isinstance(leaf, Fail)
    )
    clobbered = [v for v in sorted(block_writes(block)) if v in live_on_others or v in conditions(end)]
    # A pop writes the variable that names its slot, so it cannot write another one.
    renamed = {v: facts.new(v) for v in clobbered if v not in live_after_copy and v not in popped}
    saved = {v: facts.new(v) for v in clobbered if v not in renamed}
    selected = [v for v in saved if v in live_on_others]
    # Saving reads the old value, which a variable that is not yet written does not have.
    if facts.size(selected) > most_selected or not written.issuperset(facts.doubtful & saved.keys()):
        return None

    def before_copy(v: str) -> str:
        return saved.get(v, v)

    copy, successors = _renamed(block.ops, successors, renamed)
    speculated = joined([*ops, *(Move(old, v) for v, old in saved.items())], copy, facts.new)
    end = rename_reads(end, before_copy)
    if selected:
        tests, test, outcome = _path_test(facts, end, path)
        speculated += tests
        speculated += [Select(v, test, v, saved[v]) if outcome else Select(v, test, saved[v], v) for v in selected]
    return speculated, replace_leaf(end, path, successors)


def _union(sets: Iterable[Names]) -> Names:
    return frozenset[str]().union(*sets)


def _path_test(facts: ProgramFacts, end: Edge, path: Path) -> tuple[list[StackOp], str, bool]:
    """Operations that compute a test of the lanes on a path; its variable, and its outcome for those lanes."""
    assert isinstance(end, Fork)
    tests: list[StackOp] = []
    test, outcome_of_test = end.cond, path[0]
    for taken, outcome in pairwise(path):
        end = end.on_true if taken else end.on_false
        assert isinstance(end, Fork)
        name = facts.fresh("both")
        facts.vars[name] = Var(BOOL)
        tests.append(Prim((name,), both(test, outcome_of_test, end.cond, outcome), end.loc))
        test, outcome_of_test = name, True
    return tests, test, outcome_of_test


def _renamed(ops: Iterable[StackOp], edge: Edge, renamed: Mapping[str, str]) -> tuple[list[StackOp], Edge]:
    """The operations of a block and its successors, with fresh variables written in place of some."""
    current: dict[str, str] = {}  # from where a variable is written on
    copy: list[StackOp] = []

    def name(v: str) -> str:
        return current.get(v, v)

    for op in ops:
        op = rename_reads(op, name)
        current |= {v: renamed[v] for v in writes(op) if v in renamed}
        copy.append(op if isinstance(op, Push) else rename_writes(op, name))  # a push writes a slot, no variable
    return copy, rename_reads(edge, name)


def joined(first: Sequence[StackOp], then: Sequence[StackOp], new: Callable[[str], str]) -> list[StackOp]:
    """Return `first` followed by `then`; `new(name)` makes a variable of the type of another one."""
    pushed = {op.dst for op in first if isinstance(op, Push)}
    pushed_again = {op.dst for op in then if isinstance(op, Push)}
    at_hand = pushed | {op.dst for op in first if isinstance(op, Pop)}
    # A fresh variable holds the value of each slot that `then` would pop: `first` may write the variable in between.
    held = {op.dst: new(op.dst) for op in then if isinstance(op, Pop) and op.dst in at_hand}
    out: list[StackOp] = []
    for op in first:
        if isinstance(op, Push):
            if op.dst in held:
                out.append(Move(held[op.dst], op.src, op.loc))
                op = replace(op, src=held[op.dst])
            if op.dst in pushed_again:
                continue
        out.append(op)
        if isinstance(op, Pop) and op.dst in held and op.dst not in pushed:
            out.append(Move(held[op.dst], op.dst, op.loc))
    for op in then:
        out.append(Move(op.dst, held[op.dst], op.loc) if isinstance(op, Pop) and op.dst in held else op)
    return out
