"""Hoist uniform values: compute them once, unbatched, before the loop of the machine.

before:  (params: x, w, where w is passed with in_axes=None)     after:  prologue: b = { w.T }
         b = { w.T }; ...; x = { b @ x }                                 x = { b @ x }        (b, w: shared)

A variable is shared when all its definitions give one value, the same for all lanes and at all times: it is a parameter
that all lanes share, moves of one, or one primitive of shared inputs. It then needs no storage per lane and no saving
across calls, and a product with it is one matrix product over lanes.

`analysis.constants` finds them. `analysis.divergence` asks for less: its results are equal for all lanes in the end,
but may change in between.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pcbatch.errors import InternalError
from pcbatch.ir.analysis.dataflow import postorder
from pcbatch.ir.ops import EffectOp, Prim, PureOp
from pcbatch.ir.roles import reads, rename_reads, writes
from pcbatch.ir.stack import Pop, Push, StackOp, StackProgram, Storage, Var
from pcbatch.lowering.analysis.constants import definition, roots
from pcbatch.lowering.analysis.cost import op_may_not_end


def run(program: StackProgram, shared: frozenset[str]) -> StackProgram:
    """Hoist what depends on `shared`, the parameters that are equal for all lanes, and on constants alone."""
    same = _roots(program, shared)
    if not same:
        return program

    def root(v: str) -> str:
        return same.get(v, v)

    prologue: list[PureOp] = []
    blocks = []
    for block in program.blocks:
        ops: list[StackOp] = []
        for op in block.ops:
            if not _is_shared(op, same):
                ops.append(rename_reads(op, root))
            elif isinstance(op, Prim) and any(same[v] == v for v in op.dsts):  # moves and pushes just disappear
                prologue.append(rename_reads(op, root))
        blocks.append(replace(block, ops=tuple(ops), terminator=rename_reads(block.terminator, root)))
    values = set(same.values())
    vars = {v: Var(var.type, Storage.SHARED) if v in values else var for v, var in program.vars.items()}
    return replace(program, vars=vars, blocks=tuple(blocks), prologue=_in_order(prologue))


def _is_shared(op: StackOp, same: Collection[str]) -> bool:
    if isinstance(op, EffectOp):
        return False
    if isinstance(op, Push):
        return op.dst in same
    return all(v in same for v in writes(op))


def _roots(program: StackProgram, shared: frozenset[str]) -> dict[str, str]:
    # Results are read after the loop, per lane.
    given = {p: p if p in shared else None for p in program.params} | dict.fromkeys(program.results)
    # Every lane visits the entry. An unsafe operation of another block may run for lanes that get there alone.
    return roots(
        (
            definition(op, isinstance(op, Prim) and (block.label == program.entry or not op_may_not_end(op)))
            for block in program.blocks
            for op in block.ops
            if not isinstance(op, Pop)
        ),
        given,
    )


def _in_order(prologue: list[PureOp]) -> tuple[PureOp, ...]:
    """Sort the prologue by dependence; it was collected in block order."""
    definitions = {v: k for k, op in enumerate(prologue) for v in writes(op)}
    operands = {k: [definitions[v] for v in reads(op) if v in definitions] for k, op in enumerate(prologue)}
    order = postorder(operands, operands)
    position = {k: at for at, k in enumerate(order)}
    if any(position[operand] >= position[k] for k in order for operand in operands[k]):
        raise InternalError(f"shared values depend on each other: {sorted(definitions)}")
    return tuple(prologue[k] for k in order)
