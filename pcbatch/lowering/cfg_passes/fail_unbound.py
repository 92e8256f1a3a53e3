"""Let a lane fail where it reads a variable that it has not assigned, as Python does.

before:  bb1: branch c, bb2, bb3            after:  bb0: y = { unset }; y_is_set = { False }; jump bb1
         bb2: y = { 1 }; jump bb3                   bb1: branch c, bb2, bb3
         bb3: z = { y + 1 }                         bb2: y = { 1 }; y_is_set = { True }; jump bb3
                                                    bb3: branch y_is_set, bb5, bb4
                                                    bb4: fail UnboundLocalError ...
                                                    bb5: z = { y + 1 }

Only variables that some path may read without a value, and some other with one, get such a flag; a read that no path
gives a value is refused (PCB201).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.analysis.def_use import block_writes, may_return, predecessors, terminator_reads
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.analysis.must_assign import on_all_paths
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.message import unbound_message
from pcbatch.ir.names import unused
from pcbatch.ir.ops import ERROR, UNSET, Branch, Expr, Fail, Jump, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name
from pcbatch.lowering.typing.inferred import Inferred, branch_targets


def run(program: CfgProgram, inferred: Inferred) -> CfgProgram:
    """Return `program`, for which types were inferred, with such flags and tests."""
    return replace(program, functions=tuple(_flagged(function, inferred) for function in program.functions))


def _flagged(function: Function, inferred: Inferred) -> Function:
    if not inferred.reachable.get(function.name):
        return function
    tests = [
        read for read in unbound_reads(function, inferred) if read.assigned_before and read.name not in function.results
    ]
    if not tests:
        return function
    flags = _flags(function, tests)
    fresh = count(function.last_label + 1)
    entry = f"bb{next(fresh)}"
    start: list[Op] = []
    for name, flag in flags.items():
        start += [Prim((name,), UNSET, function.loc), _store(flag, False)]
    blocks = [Block(entry, tuple(start), Jump(function.blocks[0].label))]
    for block in function.blocks:
        asked = [read for read in tests if read.label == block.label]
        blocks += _tested(block, asked, flags, fresh)
    return replace(function, blocks=tuple(blocks), types={**function.types, **dict.fromkeys(flags.values())})


def _flags(function: Function, tests: Sequence[UnboundRead]) -> Mapping[str, str]:
    """A variable for each that may lack a value: whether it has one."""
    flags: dict[str, str] = {}
    for read in tests:
        if read.name not in flags:
            flag = f"{read.name.replace('.', '_')}_is_set"
            flags[read.name] = unused(flag, "_", function.types, flags.values())
    return flags


def _tested(block: Block, asked: Sequence[UnboundRead], flags: Mapping[str, str], fresh: count[int]) -> list[Block]:
    """The blocks that take the place of one: it is cut before each read that has to be tested."""
    done: list[Block] = []
    label, ops = block.label, list[Op]()
    bound = set[str]()
    for k, op in enumerate([*block.ops, None]):
        for read in asked:
            if read.index == k and read.name not in bound:
                bound.add(read.name)
                failing, going = f"bb{next(fresh)}", f"bb{next(fresh)}"
                done.append(Block(label, tuple(ops), Branch(flags[read.name], going, failing, read.loc)))
                done.append(Block(failing, (), _failure(read)))
                label, ops = going, []
        if op is not None:
            ops.append(op)
            ops += [_store(flags[name], True) for name in writes(op) if name in flags]
    return [*done, Block(label, tuple(ops), block.terminator)]


def _failure(read: UnboundRead) -> Fail:
    return Fail(ERROR, "UnboundLocalError", unbound_message(original_name(read.name)), read.loc)


def _store(flag: str, value: bool) -> Prim:
    return Prim((flag,), Expr(repr(value), (), lambda: value))


@dataclass(frozen=True, slots=True)
class UnboundRead:
    """A read of a variable without a value on some path, by operation `index` of a block (or its terminator).

    `assigned_before`: whether some other path to the block assigns it.
    """

    label: str
    index: int
    name: str
    loc: Loc | None
    assigned_before: bool


def unbound_reads(function: Function, inferred: Inferred) -> list[UnboundRead]:
    """Return the reads of a function that may find no value, by definite assignment, a forward intersection.

    An empty `Inferred` counts all edges as possible.
    """
    if live_in(function)[function.blocks[0].label].issubset(function.params):
        return []  # not even on paths that are never taken
    labels = inferred.reachable[function.name]
    blocks = [block for block in function.blocks if block.label in labels]
    edges = _reachable_edges(function, inferred)
    written = {block.label: frozenset(block_writes(block)) for block in blocks}
    start = {function.blocks[0].label: frozenset(function.params)}
    jumps = ((source, label, frozenset[str]()) for label, sources in edges.items() for source in sources)
    assigned = on_all_paths(start, jumps, written)
    found = []

    def unbound(label: str, index: int, v: str, loc: Loc | None) -> UnboundRead:
        before = reachable(edges[label], edges)
        return UnboundRead(label, index, v, loc, any(v in written[b] for b in before))

    for block in (block for block in blocks if block.label in assigned):
        bound = set(assigned[block.label])
        for k, op in enumerate(block.ops):
            found += [unbound(block.label, k, v, op.loc) for v in reads(op) if v not in bound]
            bound.update(writes(op))
        loc = block.terminator.loc if isinstance(block.terminator, Branch | Fail) else function.loc
        end = terminator_reads(block.terminator)
        end += function.results if may_return(block.terminator) else ()
        found += [unbound(block.label, len(block.ops), v, loc) for v in end if v not in bound]
    return found


def _reachable_edges(function: Function, inferred: Inferred) -> Mapping[str, tuple[str, ...]]:
    """The predecessors of each reachable block, along edges that inference found possible."""
    labels = inferred.reachable[function.name]
    preds = predecessors(function.blocks)
    blocks = {block.label: block for block in function.blocks}

    def possible(source: str, target: str) -> bool:
        if inferred.types and any(isinstance(op, Call) and not inferred.returns(op) for op in blocks[source].ops):
            return False
        terminator = blocks[source].terminator
        if isinstance(terminator, Branch) and inferred.types:
            return target in branch_targets(terminator, inferred.types.get((function.name, terminator.cond)))
        return True

    return {
        label: tuple(p for p in preds[label] if p in labels and possible(p, label))
        for label in blocks
        if label in labels
    }
