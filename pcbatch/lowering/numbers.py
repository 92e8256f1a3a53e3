"""Refuse Python integers that the dtype of their variable cannot hold: they would wrap without a word.

`k = 3_000_000_000` in a variable that lanes hold as int32, or `found = -1` in one that is uint32 elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pcbatch.diagnostics import Diagnostic, Label, Loc
from pcbatch.ir.cfg import Call, CfgProgram, Function, Op
from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.abstract import Abstract, Known, fits
from pcbatch.lowering.infer_types import Inferred

Flow = tuple[Abstract | None, Abstract | None, Loc | None]  # what a value is, what it becomes, where


def check(program: CfgProgram, found: Inferred, args: Mapping[str, Abstract]) -> list[Diagnostic]:
    """All places where a known integer becomes an array that cannot hold it."""
    entry = program.function(program.entry)
    flows: list[Flow] = [(value, found.types.get((entry.name, name)), entry.loc) for name, value in args.items()]
    for function in program.functions:
        for block in function.blocks:
            if block.label in found.reachable.get(function.name, ()):
                for k, op in enumerate(block.ops):
                    flows += _flows(program, function, op, (function.name, block.label, k), found)
    return [fault for have, want, loc in flows for fault in _faults(have, want, loc)]


def _flows(program: CfgProgram, function: Function, op: Op, key: tuple[str, str, int], found: Inferred) -> list[Flow]:
    types = found.types
    match op:
        case Prim() if key in found.traced:
            outs = found.traced[key].outs
            return [(have, types.get((function.name, d)), op.loc) for d, have in zip(op.dsts, outs, strict=True)]
        case Move():
            return [(types.get((function.name, op.src)), types.get((function.name, op.dst)), op.loc)]
        case Call():
            callee = program.function(op.func)
            pairs = [((function.name, a), (op.func, p)) for a, p in zip(op.args, callee.params, strict=True)]
            pairs += [((op.func, r), (function.name, d)) for r, d in zip(callee.results, op.dsts, strict=True)]
            return [(types.get(a), types.get(b), op.loc) for a, b in pairs]
        case _:
            return []


def _faults(have: Abstract | None, want: Abstract | None, loc: Loc | None) -> Iterator[Diagnostic]:
    if have is None or want is None:
        return
    for old, new in zip(have.leaves, want.leaves, strict=True):
        if isinstance(old, Known) and isinstance(new, ArrayType) and not fits(old, new):
            yield Diagnostic(
                "PCB312",
                f"{old.value} does not fit {new.dtype}",
                None if loc is None else Label(loc, f"becomes {new} here"),
                notes=("a variable keeps one dtype, that of the arrays it is joined with",),
                helps=("use a number in the range of that dtype, or convert the arrays with `.astype`",),
            )
