"""Unroll loops over Python objects, one copy of the body for each element, and drop branches with known conditions.

before:  i = { 0 }                      after:  i = { 0 }
         bb1: t = { i < n }                     bb1: jump bb2
              branch t, bb2, bb3                bb2: x = { xs[i] }; i = { i + 1 }; jump bb4
         bb2: x = { xs[i] }                     bb4: jump bb5
              i = { i + 1 }                     bb5: x = { xs[i] }; i = { i + 1 }; jump bb6
              jump bb1                          bb6: jump bb3               (xs has two elements)
         bb3: ...                               bb3: ...

Only types tell whether a loop goes over an array, and stays a loop, or over a tuple: type inference asks for unrolling
(`NeedsUnrolling`) when the index of an element is not known while compiling. In the copies it is known, so elements may
have types of their own, and static ones (strings, functions) stay static. Blocks after which a trip leaves the loop in
the middle (`return`, or statements before a `break`) are no part of the cycle, but read elements, too: they are copied
with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import jax

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.errors import CompileError, NeedsUnrolling
from pcbatch.ir.analysis.def_use import retarget
from pcbatch.ir.analysis.loops import Dominators, Loop, loops
from pcbatch.ir.cfg import Block, CfgProgram, Function, Op, Terminator
from pcbatch.ir.ops import ERROR, RETURN, Branch, Fail, Prim
from pcbatch.ir.roles import writes
from pcbatch.lowering.analysis.copied_loops import CopiedLoop
from pcbatch.lowering.cfg_passes.simplify_cfg import drop_unreachable
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.inferred import Inferred, OpKey, branch_targets

IMPOSSIBLE = Fail(ERROR, "impossible")  # the block of the arms that `prune` cuts
OTHERWISE = "another number of trips"  # the failure of the arms of the tests in copies, which types rule out
MOST_BLOCKS = 5000  # of one function; beyond it, compiling would take minutes


def run(source: CfgProgram, split: CfgProgram, inferred: Inferred) -> CfgProgram:
    """Return `source` with the loops unrolled that `inferred` asks for; if there are none, without impossible branches.

    `split` is the same program with live ranges split, for which types were inferred. Raises CompileError for a
    program that would become too large.
    """
    asked: dict[str, list[OpKey]] = {}
    for key, error in sorted(inferred.errors.items()):
        if isinstance(error, NeedsUnrolling):
            asked.setdefault(key[0], []).append(key)
    split_functions = {f.name: f for f in split.functions}
    new = {
        name: _Unrolling(source.function(name), split_functions[name], inferred).run(keys)
        for name, keys in asked.items()
    }
    unrolled = replace(source, functions=tuple(new.get(f.name, f) for f in source.functions))
    if unrolled != source or not (inferred.errors or inferred.conflicts):
        return unrolled
    return prune(source, split, inferred)


def copied_loops(source: CfgProgram, split: CfgProgram, inferred: Inferred) -> dict[Loc, CopiedLoop]:
    """Return the loops over numbers, or tuples of them, that `run` unrolls, by the places of what they go over."""
    found = dict[Loc, CopiedLoop]()
    for key in sorted(key for key, error in inferred.errors.items() if isinstance(error, NeedsUnrolling)):
        name, label, place = key
        op = split.function(name).block(label).ops[place]
        if op.loc is None or not _goes_over_numbers(name, op, inferred):
            continue
        unrolling = _Unrolling(source.function(name), split.function(name), inferred)
        for wanted in unrolling.outermost([key]):
            inside = (op.loc for label in wanted.copied for op in unrolling.by_label[label].ops)
            found[op.loc] = CopiedLoop(wanted.trips or 0, frozenset(loc for loc in inside if loc is not None))
    return found


def _goes_over_numbers(function: str, op: Op, inferred: Inferred) -> bool:
    """Return whether an operation takes an element of numbers, or of tuples of them, that are known and alike."""
    rows = inferred.types.get((function, op.expr.ins[0])) if isinstance(op, Prim) and op.expr.ins else None
    if rows is None or not rows.known:
        return False
    value = rows.value()
    if not isinstance(value, list | tuple):
        return False
    kinds = {(jax.tree.structure(one), *map(type, jax.tree.leaves(one))) for one in value}
    return len(kinds) == 1 and set(next(iter(kinds))[1:]) <= {bool, int, float}


def prune(source: CfgProgram, split: CfgProgram, inferred: Inferred) -> CfgProgram:
    """Return `source` without the arms of branches that are impossible by the types inferred for `split`.

    Those types may be wrong where definitions of a variable conflict: whether an arm was impossible is known when types
    of the new program are (`holds`), which tests the conditions still.
    """
    split_functions = {f.name: f for f in split.functions}
    return replace(source, functions=tuple(_prune(f, split_functions[f.name], inferred) for f in source.functions))


def cuts(program: CfgProgram) -> bool:
    """Whether `prune` has cut an arm of a branch."""
    return any(block.terminator == IMPOSSIBLE for f in program.functions for block in f.blocks)


def miscounted(program: CfgProgram, inferred: Inferred) -> frozenset[Loc]:
    """Return the loops that have been copied a number of times which is not sure any more: a copy of the body has
    changed what an outer loop comes back with."""
    return frozenset(
        block.terminator.loc
        for f in program.functions
        for block in f.blocks
        if isinstance(block.terminator, Fail) and block.terminator.name == OTHERWISE
        if block.label in inferred.reachable.get(f.name, ()) and block.terminator.loc is not None
    )


def holds(program: CfgProgram, inferred: Inferred) -> bool:
    """Whether no arm that `prune` has cut is possible by the types of the program that it gave."""
    return not any(
        block.terminator == IMPOSSIBLE and block.label in inferred.reachable.get(f.name, ())
        for f in program.functions
        for block in f.blocks
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A loop to unroll: the blocks to copy, how often (None if that is not known), and the operation that asked.

    `tests` are the blocks from the head to the one that tests whether there is another element.
    """

    loop: Loop
    tests: tuple[str, ...]
    copied: frozenset[str]
    trips: int | None
    key: OpKey


class _Unrolling:
    def __init__(self, function: Function, split: Function, inferred: Inferred) -> None:
        self.function, self.inferred = function, inferred
        self.by_label = {block.label: block for block in function.blocks}
        self.typed = {block.label: block for block in split.blocks}
        self.order = list(self.by_label)
        self.position = {label: k for k, label in enumerate(self.order)}
        self.dominators = Dominators(function.blocks)
        self.size = len(function.blocks)
        self.fresh = count(function.last_label + 1)
        self.otherwise: list[Block] = []

    def run(self, asked: Sequence[OpKey]) -> Function:
        """Return the function with the innermost loops around some operations unrolled."""
        copies: dict[str, list[Block]] = {}
        gone: set[str] = set()
        for wanted in self.outermost(asked):
            if wanted.trips is not None:
                copies[wanted.loop.head] = self.copies(wanted, wanted.trips)
                gone |= wanted.copied
        blocks: list[Block] = []
        for block in self.function.blocks:  # the copies stand where the loop stood
            blocks += copies.get(block.label, () if block.label in gone else (block,))
        blocks += self.otherwise
        return replace(self.function, blocks=drop_unreachable(tuple(blocks))) if copies else self.function

    def outermost(self, asked: Sequence[OpKey]) -> list[_Wanted]:
        """The innermost loop around each operation; of nested loops the outer one, as others come in the next round."""
        innermost: dict[str, Loop] = {}
        for loop in loops(self.function):
            innermost |= dict.fromkeys(loop.body - innermost.keys(), loop)
        first: dict[Loop, OpKey] = {}
        for key in asked:
            if key[1] in innermost:
                first.setdefault(innermost[key[1]], key)
        wanted = [self.wanted(loop, key) for loop, key in first.items()]
        covered: set[str] = set()
        chosen = set()
        for one in sorted(wanted, key=lambda one: -len(one.copied)):
            if one.loop.head not in covered:
                chosen.add(one.loop.head)
                covered |= one.loop.body if one.trips is None else one.copied
        return [one for one in wanted if one.loop.head in chosen]

    def wanted(self, loop: Loop, key: OpKey) -> _Wanted:
        tests = self.tests(loop)
        branch = self.by_label[tests[-1]].terminator
        leaves = isinstance(branch, Branch) and branch.on_true in loop.body and branch.on_false not in loop.body
        trips = _trips(self.function.name, self.typed[tests[-1]], self.inferred) if leaves else None
        return _Wanted(loop, tests, self.copied(loop, tests[-1]), trips, key)

    def tests(self, loop: Loop) -> tuple[str, ...]:
        """The blocks from the head of a loop to its test.

        In a `try`, a check that what the loop goes over keeps its size stands before the test, with a branch to the
        handlers: one that is never taken by its type, as only dicts and sets have the check.
        """
        tests = [loop.head]
        while True:
            branch, typed = self.by_label[tests[-1]].terminator, self.typed[tests[-1]].terminator
            if not isinstance(branch, Branch) or not isinstance(typed, Branch) or branch.on_true in loop.body:
                return tuple(tests)
            cond = self.inferred.types.get((self.function.name, typed.cond))
            if branch_targets(branch, cond) != (branch.on_false,) or branch.on_false not in loop.body - set(tests):
                return tuple(tests)
            tests.append(branch.on_false)

    def copied(self, loop: Loop, test: str) -> frozenset[str]:
        """The blocks of a loop, and those after which a trip leaves it in the middle.

        The latter stand before the exit of the test, and the head dominates them.
        """
        last = self.by_label[test]
        exit_ = last.terminator.on_false if isinstance(last.terminator, Branch) else RETURN
        exit_ = RETURN if exit_ in self.by_label and self.by_label[exit_].terminator == IMPOSSIBLE else exit_
        between = self.order[self.position[loop.head] : self.position.get(exit_, 0)]
        return loop.body.union(label for label in between if self.dominators.over(loop.head, label))

    def copies(self, wanted: _Wanted, trips: int) -> list[Block]:
        """The blocks that take the place of a loop: `trips` copies, and one of its tests, which leaves it."""
        self.size += trips * len(wanted.copied)
        if self.size > MOST_BLOCKS:
            _too_large(self.by_label[wanted.key[1]].ops[wanted.key[2]].loc, trips)
        head = wanted.loop.head
        inside = [self.by_label[label] for label in sorted(wanted.copied, key=self.position.__getitem__)]
        # The first copy keeps the labels. The tests come once more, after the last trip, where the last of them leaves.
        names = [{block.label: block.label for block in inside}]
        names += [{block.label: f"bb{next(self.fresh)}" for block in inside} for _ in range(trips - 1)]
        names = [*names[:trips], {label: f"bb{next(self.fresh)}" if trips else label for label in wanted.tests}]
        loc = self.by_label[wanted.key[1]].ops[wanted.key[2]].loc
        end = Block(f"bb{next(self.fresh)}", (), Fail(ERROR, OTHERWISE, (), loc))
        self.otherwise.append(end)
        blocks: list[Block] = []
        for trip in range(trips):
            own = names[trip] | {head: names[trip + 1][head]}  # a jump to the head starts the next trip
            blocks += (self.copy(block, names[trip], own, wanted, True, end.label) for block in inside)
        tests = (self.by_label[label] for label in wanted.tests)
        return [*blocks, *(self.copy(block, names[-1], names[-1], wanted, False, end.label) for block in tests)]

    def copy(
        self,
        block: Block,
        names: Mapping[str, str],
        targets: Mapping[str, str],
        wanted: _Wanted,
        goes_on: bool,
        otherwise: str,
    ) -> Block:
        """A block by its name in a copy, with the targets of its jumps by theirs; the test of the loop is decided."""
        terminator = retarget(block.terminator, partial(_renamed, targets))
        if block.label == wanted.tests[-1]:
            terminator = _decided(terminator, goes_on, otherwise)
        return replace(block, label=names[block.label], terminator=terminator)


def _trips(function: str, block: Block, inferred: Inferred) -> int | None:
    """The number of iterations, from the types of the operands that a test compares; None if it is not known."""
    branch = block.terminator
    test = next((op for op in block.ops if isinstance(branch, Branch) and branch.cond in writes(op)), None)
    for name in getattr(getattr(test, "expr", None), "ins", ()):
        type_ = inferred.types.get((function, name))
        if type_ is not None and len(type_.leaves) == 1 and isinstance(type_.leaves[0], Known):
            return int(type_.leaves[0].value)  # type: ignore[call-overload, no-any-return]
    return None


def _renamed(own: Mapping[str, str], label: str) -> str:
    return own.get(label, label)


def _decided(terminator: Terminator, outcome: bool, otherwise: str) -> Terminator:
    assert isinstance(terminator, Branch)
    return replace(terminator, on_false=otherwise) if outcome else replace(terminator, on_true=otherwise)


def _prune(function: Function, split: Function, inferred: Inferred) -> Function:
    """Cut the arms that known conditions never take. Two live ranges that only met there are then split."""
    cut = next((block.label for block in function.blocks if block.terminator == IMPOSSIBLE), None)
    impossible = cut or f"bb{function.last_label + 1}"
    blocks = []
    for block, typed in zip(function.blocks, split.blocks, strict=True):
        branch = block.terminator
        if isinstance(branch, Branch) and isinstance(typed.terminator, Branch):
            cond = inferred.types.get((function.name, typed.terminator.cond))
            targets = branch_targets(branch, cond)
            if len(targets) == 1 and impossible not in (branch.on_true, branch.on_false):
                taken = targets[0]
                block = replace(block, terminator=retarget(branch, partial(_either, taken, impossible)))
        blocks.append(block)
    end = () if cut else (Block(impossible, (), IMPOSSIBLE),)
    return replace(function, blocks=drop_unreachable((*blocks, *end)))


def _either(taken: str, otherwise: str, label: str) -> str:
    return label if label == taken else otherwise


def refused(loc: Loc) -> Diagnostic:
    """Return the diagnostic for a loop whose number of trips differs, and that has to be copied for each of them."""
    title = "a loop over a Python object needs a length that is the same for all lanes, and each time"
    note = "there is one copy of its body for each element, as these have no common type"
    return Diagnostic("PCB315", title, Label(loc), notes=(note,), helps=NeedsUnrolling.HELPS)


def _too_large(loc: Loc | None, trips: int) -> None:
    raise CompileError(
        Diagnostic(
            "PCB316",
            f"this loop would be copied {trips} times",
            None if loc is None else Label(loc, "its elements are told apart while compiling"),
            notes=(f"a function may have at most {MOST_BLOCKS} blocks",),
            helps=("make it an array, `for x in jnp.array(xs)`, so that the loop stays a loop",),
        )
    )
