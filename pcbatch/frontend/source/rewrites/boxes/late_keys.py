"""Keys that dicts by name get later: a field of the box is None until then.

    row["total"] = x                row.item_2 = item_to_store(x)
    row["total"] += 1       ==>     row.item_2 = item_to_store(item_there(row.item_2, "total") + 1)
    "total" in row                  row.item_2 is not None
    row.get("total", 0)             item_there(row.item_2, "total") if row.item_2 is not None else 0

What asks for all of such a dict needs it as a whole (`NeedsWhole`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gast

from pcbatch.data.objects.boxes.classes import field_of
from pcbatch.data.objects.boxes.late_items import item_there, item_to_store
from pcbatch.frontend.source.rewrites.boxes.box_facts import NeedsWhole, is_display, is_simple
from pcbatch.frontend.source.rewrites.boxes.known_calls import updates
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.tree import Node, attribute, compare, constant, load, read_of, supported, target_of

if TYPE_CHECKING:
    from pcbatch.frontend.source.rewrites.boxes.writer import Writer


def row_of(w: Writer, node: Node) -> Object | None:
    """Return the dict by name that an expression is, where it may lack keys."""
    value = w.box_of(node)
    return value if value in w.late else None


def is_late(w: Writer, node: Node) -> bool:
    """Return whether an expression is the value of a key that a dict by name may lack."""
    if not isinstance(node, gast.Subscript) or not isinstance(node.slice, gast.Constant):
        return False
    row = row_of(w, node.value)
    return row is not None and node.slice.value in w.late[row]


def read(w: Writer, node: Node, field: Node) -> Node:
    """Write the value of a key, which is a field of a box."""
    return supported(item_there, [field, node.slice], node) if is_late(w, node) else field


def refuse(w: Writer, target: Node) -> None:
    """Raise NeedsWhole for the value of a key as one of several targets, or as that of a loop."""
    if is_late(w, target) and (row := row_of(w, target.value)) is not None:
        raise NeedsWhole(row)


def assigned(w: Writer, node: Node, target: Node, value: Node) -> Node:
    """Write `row["key"] = value`, of a value that has been written."""
    given = supported(item_to_store, [value], node)
    return gast.copy_location(gast.Assign(targets=[w.subscript(target, target)], value=given, type_comment=None), node)


def augmented(w: Writer, node: Node) -> Node:
    """Write `row["key"] += value` as an assignment."""
    target = node.target
    if not is_simple(target.value):
        refuse(w, target)
    now = w.subscript(read_of(target), target)
    new = gast.copy_location(gast.BinOp(left=now, op=node.op, right=w.read(node.value)), node)
    return assigned(w, node, target, new)


def stores_of(w: Writer, node: Node) -> list[Node]:
    """Return the stores that `row.update(a=x, b=y)` makes in a dict by name, to be written; none for others."""
    if not isinstance(node, gast.Expr) or not (pairs := updates(node.value)):
        return []
    row = node.value.func.value
    if w.box_of(row) not in w.names or not is_simple(row):
        return []
    values, stores = list[Node](), list[Node]()  # all values are evaluated before the first is stored
    for key, value in pairs.items():
        name = w.new_name("value")
        values.append(gast.Assign(targets=[target_of(name, value)], value=value, type_comment=None))
        place = gast.copy_location(gast.Subscript(value=row, slice=constant(key, node), ctx=gast.Store()), node)
        stores.append(gast.Assign(targets=[place], value=load(name, value), type_comment=None))
    return [gast.copy_location(one, node) for one in (*values, *stores)]


def contains(w: Writer, row: Object, node: Node) -> Node:
    """Write `key in row` of a dict that may lack keys."""
    (right,), is_in = node.comparators, isinstance(node.ops[0], gast.In)
    if not isinstance(node.left, gast.Constant) or not is_simple(right):
        raise NeedsWhole(row)
    key = node.left.value
    if key not in w.late[row]:
        return constant((key in w.names[row]) is is_in, node)
    field = attribute(w.value(right), field_of(w.names[row], key), node)
    return compare(field, gast.IsNot() if is_in else gast.Is(), constant(None, node), node)


def got(w: Writer, row: Object, node: Node) -> Node:
    """Write `row.get(key)` or `row.get(key, default)` of a dict that may lack keys."""
    receiver, (key, *default) = node.func.value, node.args
    if not (isinstance(key, gast.Constant) and is_simple(receiver) and all(map(is_display, default))):
        raise NeedsWhole(row)
    otherwise = w.value(default[0]) if default else constant(None, node)
    if key.value not in w.names[row]:
        return otherwise
    field = attribute(w.value(receiver), field_of(w.names[row], key.value), node)
    if key.value not in w.late[row]:
        return field
    there = compare(field, gast.IsNot(), constant(None, node), node)
    held = supported(item_there, [field, key], node)
    return gast.copy_location(gast.IfExp(test=there, body=held, orelse=otherwise), node)
