"""Hoist uniform values: compute them once, unbatched, before the loop of the machine.

before:  (params: x, w, where w is passed with in_axes=None)     after:  prologue: b = { w.T }
         b = { w.T }; ...; x = { b @ x }                                 x = { b @ x }        (b, w: shared)

A variable is shared when all its definitions give one value, the same for all lanes and at all times: it is a parameter
that all lanes share, moves of one, or one primitive of shared inputs. It then needs no storage per lane and no saving
across calls, and a product with it is one matrix product over lanes.

The lattice is that of constant propagation, with names in place of numbers: a variable climbs from undefined to the
name of the variable whose value it has (its root), and from there to varying. `analysis/divergence.py` asks for less:
its results are equal for all lanes in the end, but may change in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pcbatch.errors import InternalError
from pcbatch.ir.dataflow import Worklist, postorder
from pcbatch.ir.ops import Move, Prim, Print, PureOp, Select
from pcbatch.ir.roles import reads, rename_reads, writes
from pcbatch.ir.stack import Pop, Push, StackOp, StackProgram, Storage, Var
from pcbatch.lowering.analysis.cost import unsafe_when_inactive
from pcbatch.lowering.typing.trace import JaxprFn

VARYING = ""  # top of the lattice; a variable without a root is at the bottom


def run(program: StackProgram, shared: frozenset[str]) -> StackProgram:
    """Hoist what depends on `shared`, the parameters that are equal for all lanes, and on constants alone."""
    roots = {v: root for v, root in _solve(program, shared).items() if root != VARYING}
    if not roots:
        return program

    def root(v: str) -> str:
        return roots.get(v, v)

    prologue: list[PureOp] = []
    blocks = []
    for block in program.blocks:
        ops: list[StackOp] = []
        for op in block.ops:
            if not _is_shared(op, roots):
                ops.append(rename_reads(op, root))
            elif isinstance(op, Prim) and any(roots[v] == v for v in op.dsts):  # moves and pushes just disappear
                prologue.append(rename_reads(op, root))
        blocks.append(replace(block, ops=tuple(ops), terminator=rename_reads(block.terminator, root)))
    values = set(roots.values())
    vars = {v: Var(var.type, Storage.SHARED) if v in values else var for v, var in program.vars.items()}
    return replace(program, vars=vars, blocks=tuple(blocks), prologue=_in_order(prologue))


def _is_shared(op: StackOp, roots: dict[str, str]) -> bool:
    if isinstance(op, Print):
        return False
    if isinstance(op, Push):
        return op.dst in roots
    return all(v in roots for v in writes(op))


def _solve(program: StackProgram, shared: frozenset[str]) -> dict[str, str]:
    """The root of every variable, `VARYING` included: the least solution of the equations of all operations."""
    # Results are read after the loop, per lane; two computed definitions count as two values.
    computed = Counter(v for b in program.blocks for op in b.ops if isinstance(op, Prim | Select) for v in writes(op))
    roots = dict.fromkeys((*program.results, *(v for v, n in computed.items() if n > 1)), VARYING)
    roots |= {p: p if p in shared and p not in computed else VARYING for p in program.params}
    # Every lane visits the entry. An unsafe operation of another block may run for lanes that get there alone.
    ops = [(op, block.label != program.entry and _is_unsafe(op)) for block in program.blocks for op in block.ops]
    worklist = Worklist(range(len(ops)))
    users = _users([op for op, _ in ops])

    def join(v: str, root: str | None) -> None:
        if root is None:
            return
        old = roots.get(v)
        new = root if old is None or old == root else VARYING
        if new != old:
            roots[v] = new
            for k in users.get(v, ()):
                worklist.add(k)

    for k in worklist:
        match ops[k]:
            case Move(dst=dst, src=src), _:
                join(dst, roots.get(src))
            case Push(dst=dst, src=src), _:
                # The slot belongs to dst: a pop gives dst this value, so it must have the same root.
                join(dst, roots.get(src))
            case Pop(), _:
                pass
            case op, unsafe:
                operands = [roots.get(v) for v in _inputs(op)]
                # One varying result makes all of them vary: a primitive is hoisted whole or not at all.
                stays = unsafe or any(roots.get(dst) == VARYING for dst in writes(op))
                for dst in writes(op):
                    join(dst, VARYING if stays else _prim_root(dst, operands, op))
    return roots


def _users(ops: Sequence[StackOp]) -> dict[str, list[int]]:
    """The operations that depend on the root of each variable: those that read it, or write it among others."""
    users: dict[str, list[int]] = {}
    for k, op in enumerate(ops):
        for v in dict.fromkeys((*reads(op), *writes(op))):
            users.setdefault(v, []).append(k)
    return users


def _inputs(op: StackOp) -> tuple[str, ...]:
    return op.expr.ins if isinstance(op, Prim) else ()


def _is_unsafe(op: StackOp) -> bool:
    return isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn) and unsafe_when_inactive(op.expr.fn.closed.jaxpr)


def _prim_root(dst: str, operands: list[str | None], op: StackOp) -> str | None:
    if not isinstance(op, Prim) or VARYING in operands:
        return VARYING
    if None in operands:
        return None
    return dst  # its only definition stands for itself


def _in_order(prologue: list[PureOp]) -> tuple[PureOp, ...]:
    """Sort the prologue by dependence; it was collected in block order."""
    definitions = {v: k for k, op in enumerate(prologue) for v in writes(op)}
    operands = {k: [definitions[v] for v in _inputs(op) if v in definitions] for k, op in enumerate(prologue)}
    order = postorder(operands, operands)
    position = {k: at for at, k in enumerate(order)}
    if any(position[operand] >= position[k] for k in order for operand in operands[k]):
        raise InternalError(f"shared values depend on each other: {sorted(definitions)}")
    return tuple(prologue[k] for k in order)
