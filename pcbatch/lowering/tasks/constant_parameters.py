"""Replace parameters that always are the same integer, and drop terms that are zero.

before:  bb0(n): s = { 0 }; jump bb1(n=n, s=s)         after:  bb0(n): jump bb1(n=n)
         bb1(n, s): spawn return += f.bb0(n=n)                 bb1(n): spawn return += f.bb0(n=n)
                    t = { 0 }; s.t0 = { s + t }                        zero = { 0 }
                    return s.t0                                        return zero

Where the results of calls are added to the destination of their caller, what is left of its sum is often zero. The
lattice is that of constant propagation, over the parameters of blocks: unknown, an integer, varying.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import Fail, Move, Prim, PureOp, Select
from pcbatch.ir.roles import reads, rename_reads, writes
from pcbatch.ir.tasks import Sync, TaskBlock, TaskEdge, TaskOp, TaskProgram, bindings
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.constants import Definition, propagate
from pcbatch.lowering.tasks.linear_results import is_sum_of_two
from pcbatch.lowering.tasks.tail_duplication import without_unreached
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.leaves import constant
from pcbatch.lowering.typing.trace import JaxprFn

ParameterKey = tuple[str, str]  # (block, variable)
Integers = Mapping[str, int | None]  # of the variables of a block, None for those that vary


def run(program: TaskProgram) -> TaskProgram:
    """Return the program in which parameters that are the same integer everywhere are computed where they are read."""
    found: dict[str, dict[str, int | None]] = {block.label: {} for block in program.blocks}
    evaluate = partial(_evaluated, program.types)
    for (label, v), value in propagate(_definitions(program), _varying(program), evaluate).items():
        found[label][v] = value
    fresh = Fresh(set(program.types))
    folded = tuple(_folded(block, program, found[block.label], fresh) for block in program.blocks)
    if folded == program.blocks:
        return program
    types = {**program.types, **{new: program.types[old] for new, old in fresh.origins.items()}}
    return without_unreached(replace(program, types=types, blocks=folded))


def _varying(program: TaskProgram) -> dict[ParameterKey, None]:
    entry = program.block(program.entry)
    places = [(entry.label, p) for p in entry.params]
    places += [(b.label, v) for b in program.blocks for v in (*_results(b, program), *program.known_everywhere)]
    return dict.fromkeys(places)


def _definitions(program: TaskProgram) -> list[Definition[ParameterKey]]:
    """The definitions of variables by operations, and of parameters on all ways on which a block is reached."""
    found: list[Definition[ParameterKey]] = []
    for block in program.blocks:
        for op in block.ops:
            if isinstance(op, PureOp):
                targets, operands = ([(block.label, v) for v in names] for names in (writes(op), reads(op)))
                found.append(Definition(tuple(targets), tuple(operands), op))
        for label, args in bindings(block):
            found += [Definition(((label, param),), ((block.label, v),)) for param, v in args]
    return found


def _results(block: TaskBlock, program: TaskProgram) -> set[str]:
    """The parameters of a block after a `sync` that are results of calls."""
    saved = {
        param
        for b in program.blocks
        for leaf in leaves(b.terminator)
        if isinstance(leaf, Sync) and leaf.target == block.label
        for param, _ in leaf.args
    }
    return set(block.params) - saved if block.joins else set()


def _evaluated(
    types: Mapping[str, ArrayType | None], one: Definition[ParameterKey], values: Mapping[ParameterKey, int | None]
) -> Sequence[int | None]:
    """The values of what a definition computes, given those of its operands."""
    assert one.operands is not None
    operands = [values[v] for v in one.operands]
    match one.op:
        case Prim():
            rest = 0 if _only_term(one.op, dict(zip(one.op.expr.ins, operands, strict=True))) else None
            return [_value(one.op, operands, types), *(rest for _ in one.targets[1:])]
        case Select():
            return [values[one.operands[1]] if values[one.operands[1]] == values[one.operands[2]] else None]
        case None | Move():
            return operands
        case _:
            return [None for _ in one.targets]


def _value(op: Prim, operands: Sequence[int | None], types: Mapping[str, ArrayType | None]) -> int | None:
    type_ = types.get(op.dsts[0])
    if type_ is None or type_.shape or not isinstance(op.expr.fn, JaxprFn):
        return None
    zeros = bool(operands) and all(value == 0 for value in operands)
    if type_.dtype == "bool":  # whether a sum does not fit, or another
        return 0 if zeros and all(eqn.primitive.name == "or" for eqn in op.expr.fn.closed.jaxpr.eqns) else None
    if not type_.dtype.startswith("int"):
        return None
    if not operands:
        return int(op.expr.text) if op.expr.text.lstrip("-").isdigit() else None
    return 0 if zeros and is_sum_of_two(op) else None


def _folded(block: TaskBlock, program: TaskProgram, found: Integers, fresh: Fresh) -> TaskBlock:
    """The block with what is known computed in it; parameters that it does not read then are dropped by others."""
    if isinstance(block.terminator, Fail) or any(p not in found for p in block.params):
        return block  # it only fails, or nothing leads to it
    given = {p: value for p in block.params if (value := found[p]) is not None}
    names = {p: fresh(p) for p in given}
    ops: list[TaskOp] = [_constant(names[p], value, program.types[p]) for p, value in given.items()]
    for op in block.ops:
        term = _only_term(op, found) if isinstance(op, Prim) else None
        if isinstance(op, Prim) and op.expr.ins and (term or found.get(op.dsts[0]) is not None):
            for v in op.dsts:
                value = found.get(v)
                if value is None:
                    assert term is not None
                    ops.append(Move(v, names.get(term, term), op.loc))
                else:
                    ops.append(_constant(v, value, program.types[v]))
        else:
            ops.append(rename_reads(op, lambda v: names.get(v, v)))
    end = rename_reads(_decided(block.terminator, found), lambda v: names.get(v, v))
    return replace(block, ops=tuple(ops), terminator=end)


def _decided(edge: TaskEdge, found: Integers) -> TaskEdge:
    """The tree of an edge without forks on what is known."""
    if not isinstance(edge, Fork):
        return edge
    value = found.get(edge.cond)
    if value is not None:
        return _decided(edge.on_true if value else edge.on_false, found)
    return replace(edge, on_true=_decided(edge.on_true, found), on_false=_decided(edge.on_false, found))


def _only_term(op: Prim, found: Integers) -> str | None:
    """The term of a sum of two of which the other is zero."""
    if not is_sum_of_two(op):
        return None
    a, b = op.expr.ins
    return a if found.get(b) == 0 else b if found.get(a) == 0 else None


def _constant(name: str, value: int, type_: ArrayType | None) -> Prim:
    assert type_ is not None
    return constant(name, Known(bool(value) if type_.dtype == "bool" else value), type_, None)
