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
from dataclasses import replace
from itertools import count

from pcbatch.ir.cfg import Block, CfgProgram, Function, Op
from pcbatch.ir.names import unused
from pcbatch.ir.ops import ERROR, UNSET, Branch, Expr, Fail, Jump, Prim
from pcbatch.ir.roles import writes
from pcbatch.lowering.analysis.unbound_reads import UnboundRead, unbound_reads
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name
from pcbatch.lowering.typing.inferred import Inferred


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
    text = f"cannot access local variable '{original_name(read.name)}' where it is not associated with a value"
    return Fail(ERROR, "UnboundLocalError", (text,), read.loc)


def _store(flag: str, value: bool) -> Prim:
    return Prim((flag,), Expr(repr(value), (), lambda: value))
