"""Questions about a change in place: whether it stores an object inside of itself, or back in a field of a record.

The first holds of `cell.next = Cell(1, cell)`, and a value of a lane cannot hold itself. The second holds of
`row = node.rows[k]; row.append(9)` with a record that is made in a lane: `row` is stored back in `node.rows[k]` next.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from pcbatch.data.columns import Unset
from pcbatch.data.objects.made_fields import FieldKey, FieldLevel
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.optional import Optional
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.ir.cfg import Block, Call
from pcbatch.ir.effects import Change
from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.common_objects import INNER, NONE, OWN, Parts, State, level_of
from pcbatch.lowering.analysis.ownership import Ownership
from pcbatch.lowering.typing.pytree import is_dict

NO_OBJECTS = (tuple, LaneText, Optional, Unset, type(None), *RECORDS)  # nothing of them changes in place
LEAF: tuple[Any, Any] = (None, None)


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
    stored = {(one.source, level) for one in inside for level in ((OWN, INNER) if one.own_source else (INNER,))}
    others = [(j, name) for j, name in enumerate(op.expr.ins) if j != change.position]
    tied = [(name, level) for j, name in others for level in (OWN, INNER) if (j, level) in stored]
    if not state.get((root, OWN), NONE).isdisjoint(tied):
        return True
    within = state.get((root, INNER), NONE)
    if (root, INNER) not in ownership.objects.changed_parts(name, label, k, op, change):
        return False
    given = [(ownership.objects.type(name, part[0]), part[1]) for part in tied if part in within]
    return any(
        _may_hold(value.tree, found, itself=level == OWN)
        for value, level in given
        if value is not None
        for found in _changed_inside(traced.changed, change)
    )


def _changed_inside(changed: frozenset[Any], change: Change) -> Iterator[Any]:
    """Yield the structures of what a change may change: methods of the user's may change objects inside."""
    for tree in changed:
        yield from _subtrees(tree) if change.method else (tree,)


def _subtrees(tree: Any) -> Iterator[Any]:
    """Yield the structures inside of a structure, and that itself, those of objects and containers alone."""
    if tree.node_data() is not None and not issubclass(tree.node_data()[0], NO_OBJECTS):
        yield tree
    for child in tree.children():
        yield from _subtrees(child)


def _may_hold(tree: Any, found: Any, *, itself: bool) -> bool:
    """Return whether an object of a structure may be, or have inside, one of the structure `found`."""
    inside = _subtrees(tree) if itself else (one for child in tree.children() for one in _subtrees(child))
    return any(_may_be(one, found) for one in inside)


def _may_be(one: Any, other: Any) -> bool:
    """Return whether two structures may be those of one object; only what containers note of themselves may differ."""
    (kind, names), (other_kind, other_names) = _node(one), _node(other)
    if kind is Optional or other_kind is Optional:
        return _may_be(*(each.children()[0] if _node(each)[0] is Optional else each for each in (one, other)))
    if kind is not other_kind or (kind is dict and names != other_names):
        return False
    mine, theirs = one.children(), other.children()
    return len(mine) == len(theirs) and all(map(_may_be, mine, theirs))


def _node(tree: Any) -> tuple[Any, Any]:
    """Return the class of a node and what it notes of itself: of a dict its keys; None has the class of leaves."""
    kind, notes = tree.node_data() or LEAF
    if is_dict(kind):
        return dict, sorted(notes)
    return LEAF if kind is type(None) else (kind, notes)


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
