"""Replace parameters that always are the same integer, and drop terms that are zero.

before:  bb0(n): s = { 0 }; jump bb1(n=n, s=s)         after:  bb0(n): jump bb1(n=n)
         bb1(n, s): spawn return += f.bb0(n=n)                 bb1(n): spawn return += f.bb0(n=n)
                    t = { 0 }; s.t0 = { s + t }                        zero = { 0 }
                    return s.t0                                        return zero

Where the results of calls are added to the destination of their caller, what is left of its sum is often zero. The
lattice is that of constant propagation, over the parameters of blocks: unknown, an integer, varying.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.ops import Fail, Move, Prim, Select
from pcbatch.ir.roles import rename_reads
from pcbatch.ir.tasks import Sync, TaskBlock, TaskEdge, TaskOp, TaskProgram, bindings
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.cfg_passes.flatten import constant
from pcbatch.lowering.stack_passes.parallel_moves import Fresh
from pcbatch.lowering.tasks.linear_results import is_sum_of_two
from pcbatch.lowering.tasks.tail_duplication import without_unreached
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.trace import JaxprFn

Value = int | None  # an integer; None: it varies
Integers = dict[tuple[str, str], Value]  # (block, parameter) -> its value; left out where nothing is known yet


def run(program: TaskProgram) -> TaskProgram:
    """Return the program in which parameters that are the same integer everywhere are computed where they are read."""
    values = _solve(program)
    same = {place: value for place, value in values.items() if value is not None}
    fresh = Fresh(set(program.types))
    folded = tuple(_folded(block, program, same, fresh) for block in program.blocks)
    if folded == program.blocks:
        return program
    types = {**program.types, **{new: program.types[old] for new, old in fresh.origins.items()}}
    return without_unreached(replace(program, types=types, blocks=folded))


def _solve(program: TaskProgram) -> Integers:
    """The value of each parameter: the greatest solution over all ways on which a block is reached."""
    entry = program.block(program.entry)
    values: Integers = {(entry.label, p): None for p in entry.params}
    values |= {(b.label, p): None for b in program.blocks for p in _results(b, program)}
    changed = True
    while changed:
        changed = False
        for block in program.blocks:
            known = _values(block, program, values)
            for label, args in bindings(block):
                for param, v in args:
                    if v not in known:
                        continue  # nothing is known of the source yet
                    old = values.get((label, param), known[v])
                    new = old if old == known[v] else None
                    if (label, param) not in values or values[label, param] != new:
                        values[label, param], changed = new, True
    return values


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


def _values(block: TaskBlock, program: TaskProgram, values: Integers) -> dict[str, Value]:
    """The values of the variables of a block, given its parameters; of those that are left out nothing is known yet."""
    found: dict[str, Value] = dict.fromkeys(program.known_everywhere)
    found |= {p: values[block.label, p] for p in block.params if (block.label, p) in values}
    for op in block.ops:
        match op:
            case Move(dst=dst, src=src):
                if src in found:
                    found[dst] = found[src]
            case Prim(dsts=dsts) if all(v in found for v in op.expr.ins):  # else nothing is known of the results yet
                first = _value(op, found, program.types)
                found |= {v: 0 if k and _only_term(op, found) else None for k, v in enumerate(dsts)} | {dsts[0]: first}
            case Select(dst=dst):
                if {op.cond, op.on_true, op.on_false} <= found.keys():
                    found[dst] = found[op.on_true] if found[op.on_true] == found[op.on_false] else None
            case _:
                pass
    return found


def _value(op: Prim, found: Mapping[str, Value], types: Mapping[str, ArrayType | None]) -> Value:
    type_ = types.get(op.dsts[0])
    if type_ is None or type_.shape or not isinstance(op.expr.fn, JaxprFn):
        return None
    if type_.dtype == "bool":  # whether a sum does not fit, or another
        only_or = all(eqn.primitive.name == "or" for eqn in op.expr.fn.closed.jaxpr.eqns)
        return 0 if op.expr.ins and only_or and all(found[v] == 0 for v in op.expr.ins) else None
    if not type_.dtype.startswith("int"):
        return None
    if not op.expr.ins:
        return int(op.expr.text) if op.expr.text.lstrip("-").isdigit() else None
    return 0 if is_sum_of_two(op) and all(found[v] == 0 for v in op.expr.ins) else None


def _folded(block: TaskBlock, program: TaskProgram, same: Mapping[tuple[str, str], int], fresh: Fresh) -> TaskBlock:
    """The block with what is known computed in it; parameters that it does not read then are dropped by others."""
    if isinstance(block.terminator, Fail):
        return block
    given = {p: same[block.label, p] for p in block.params if (block.label, p) in same}
    values: Integers = {(block.label, p): given.get(p) for p in block.params}
    found = _values(block, program, values)
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


def _decided(edge: TaskEdge, found: Mapping[str, Value]) -> TaskEdge:
    """The tree of an edge without forks on what is known."""
    if not isinstance(edge, Fork):
        return edge
    value = found.get(edge.cond)
    if value is not None:
        return _decided(edge.on_true if value else edge.on_false, found)
    return replace(edge, on_true=_decided(edge.on_true, found), on_false=_decided(edge.on_false, found))


def _only_term(op: Prim, found: Mapping[str, Value]) -> str | None:
    """The term of a sum of two of which the other is zero."""
    if not is_sum_of_two(op):
        return None
    a, b = op.expr.ins
    return a if found.get(b) == 0 else b if found.get(a) == 0 else None


def _constant(name: str, value: int, type_: ArrayType | None) -> Prim:
    assert type_ is not None
    return constant(name, Known(bool(value) if type_.dtype == "bool" else value), type_, None)
