"""Keys that dicts by name get later: a field of the box is None until then.

    row["total"] = x                row.item_2 = item_to_store(x)
    row["total"] += 1       ==>     row.item_2 = item_to_store(item_there(row.item_2, "total") + 1)
    "total" in row                  row.item_2 is not None
    row.get("total", 0)             row.item_2 if row.item_2 is not None else 0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gast

from pcbatch.data.objects.boxes.classes import field_of
from pcbatch.data.objects.boxes.late_items import item_there, item_to_store
from pcbatch.frontend.source.rewrites.boxes.box_facts import NeedsWhole, is_display, is_simple
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.tree import Node, attribute, compare, constant, read_of, supported, with_fields

if TYPE_CHECKING:
    from pcbatch.frontend.source.rewrites.boxes.writer import Writer


def whole_of(w: Writer, node: Node) -> Object | None:
    """Return the dict by name that an expression is, where it may lack keys."""
    value = w.box_of(node)
    return value if value in w.late else None


def is_late(w: Writer, node: Node) -> bool:
    """Return whether an expression is the value of a key that a dict by name may lack."""
    if not isinstance(node, gast.Subscript) or not isinstance(node.slice, gast.Constant):
        return False
    whole = whole_of(w, node.value)
    return whole is not None and node.slice.value in w.late[whole]


def read(w: Writer, node: Node, field: Node) -> Node:
    """Write the value of a key, which is a field of a box."""
    return supported(item_there, [field, node.slice], node) if is_late(w, node) else field


def refuse(w: Writer, target: Node) -> None:
    """Raise NeedsWhole for the value of a key as one of several targets, or as that of a loop."""
    if is_late(w, target):
        raise NeedsWhole(w.object_of(target.value))


def assigned(w: Writer, node: Node, value: Node) -> Node:
    """Write `row["key"] = value`, of a value that has been written."""
    target = node.targets[0] if isinstance(node, gast.Assign) else node.target
    field = w.subscript(target, target)
    given = supported(item_to_store, [value], node)
    return gast.copy_location(gast.Assign(targets=[field], value=given, type_comment=None), node)


def augmented(w: Writer, node: Node) -> Node:
    """Write `row["key"] += value` as an assignment."""
    if not is_simple(node.target.value):
        raise NeedsWhole(whole_of(w, node.target.value))
    now = w.subscript(read_of(node.target), node.target)
    new = gast.copy_location(gast.BinOp(left=now, op=node.op, right=w.read(node.value)), node)
    return assigned(w, node, new)


def contains(w: Writer, key: Node, op: Node, row: Node) -> Node:
    """Write `key in row` of a dict that may lack keys."""
    whole = whole_of(w, row)
    if not isinstance(key, gast.Constant) or not is_simple(row):
        raise NeedsWhole(whole)
    is_in = isinstance(op, gast.In)
    if key.value not in w.late[whole]:
        return constant((key.value in w.names[whole]) is is_in, row)
    field = attribute(w.value(row), field_of(w.names[whole], key.value), row)
    return compare(field, gast.IsNot() if is_in else gast.Is(), constant(None, row), row)


def got(w: Writer, node: Node) -> Node:
    """Write `row.get(key)` or `row.get(key, default)` of a dict that may lack keys."""
    row, whole = node.func.value, whole_of(w, node.func.value)
    key, *default = node.args
    if not isinstance(key, gast.Constant) or not is_simple(row) or not all(map(is_display, default)) or node.keywords:
        raise NeedsWhole(whole)
    otherwise = w.value(default[0]) if default else constant(None, node)
    if key.value not in w.names[whole]:
        return otherwise
    field = attribute(w.value(row), field_of(w.names[whole], key.value), node)
    if key.value not in w.late[whole]:
        return field
    there = compare(field, gast.IsNot(), constant(None, node), node)
    held = supported(item_there, [field, key], node)
    return gast.copy_location(gast.IfExp(test=there, body=held, orelse=otherwise), node)
