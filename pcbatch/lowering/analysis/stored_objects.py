"""Questions about a change in place: whether it stores an object inside of itself, or back in a field of a record.

The first holds of `cell.next = Cell(1, cell)`, and a value of a lane cannot hold itself. The second holds of
`row = node.rows[k]; row.append(9)` with a record that is made in a lane: `row` is stored back in `node.rows[k]` next.
"""

from __future__ import annotations

from itertools import takewhile

from pcbatch.data.objects.made_fields import FieldKey, FieldLevel
from pcbatch.ir.cfg import Block, Call
from pcbatch.ir.effects import Change
from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.common_objects import INNER, NONE, OWN, Parts, State, level_of
from pcbatch.lowering.analysis.ownership import Ownership


def closes_cycle(ownership: Ownership, name: str, label: str, k: int, op: Prim, change: Change, state: State) -> bool:
    """Return whether a change in place stores the object of a variable, or what holds it, inside of that object.

    Args:
        ownership: what variables have in common.
        name, label, k: the function, the block and the number of the operation `op` in it.
        change: the change.
        state: the state before the operation.
    """
    root, traced = op.expr.ins[change.position], ownership.inferred.traced.get((name, label, k))
    if traced is None or op.expr.effects.syncs or op.expr.effects.back:
        return False
    inside = [one for one in traced.aliases if one.result == len(op.dsts) - 1 and not one.own_result]
    if any(one.source == change.position and one.own_source for one in inside):
        return True
    holding = state.get((root, OWN), NONE)
    stored = {(one.source, level) for one in inside for level in ((OWN, INNER) if one.own_source else (INNER,))}
    others = [(j, name) for j, name in enumerate(op.expr.ins) if j != change.position]
    return any((name, level) in holding and (j, level) in stored for j, name in others for level in (OWN, INNER))


def stored_back(ownership: Ownership, name: str, block: Block, k: int, fields: Parts) -> bool:
    """Return whether operations that bring variables up to date store what operation k of a block of a function has
    changed in the fields of records, from which it was read, at the places where it still is.

    It is, if nothing else in the function stores an object in these fields, or moves one.
    """
    if not fields:
        return True
    objects = ownership.objects
    ops = enumerate(block.ops[k + 1 :], k + 1)
    after = [j for j, op in takewhile(lambda at: objects.brings_up_to_date(name, block.label, *at), ops)]
    back = {field for j in after for field, _ in _fields_at(ownership, name, block, j)}
    others: set[FieldKey] = {
        field
        for each in ownership.functions[name].blocks
        for j, op in enumerate(each.ops)
        if not objects.brings_up_to_date(name, each.label, j, op)
        for field, own in _fields_at(ownership, name, each, j)
        if own
    }
    read = {level_of(part)[0] for part in fields}
    return read <= back and read.isdisjoint(others)


def _fields_at(ownership: Ownership, name: str, block: Block, k: int) -> frozenset[FieldLevel]:
    """The fields of records, by level, that an operation changes or stores objects in."""
    op, traced = block.ops[k], ownership.inferred.traced.get((name, block.label, k))
    if isinstance(op, Call):
        return ownership.written_fields.get(op.func, frozenset())
    return frozenset() if traced is None else traced.fields.written
