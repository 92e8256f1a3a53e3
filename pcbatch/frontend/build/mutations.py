"""Changes in place become assignments to the variable at the root of a place.

    grid[i][j] = v        ==>      grid = support.set_item(grid, (i, j), v)
    t = stack.pop()       ==>      t, stack = support.call_method(stack, (), "pop", (), ())

All operands are variables or literals, so that an analysis sees which variables share an object afterwards
(`lowering/diagnose/check_ownership.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.operators import operator_name
from pcbatch.frontend.source.places import Mutation, Place
from pcbatch.frontend.source.tree import Node, call, constant, display, load, supported
from pcbatch.ir.ops import Change

GROWING = frozenset({"append", "extend"})
REMOVING = frozenset({"pop", "popleft", "popitem", "heapq.heappop"})


def set_place(b: Builder, place: Place, operands: Sequence[Node], value: Node, at: Node) -> None:
    """Build `place = value` for a part of a variable; `operands` are those of the place, evaluated."""
    _change(b, "set_item", place, [load(place.name, at), path(place, operands, at), value], at)


def put_back(b: Builder, place: Place, operands: Sequence[Node], value: Node, at: Node) -> None:
    """Build the change of a variable of which a part, a place, has been changed in place by another name."""
    sliced = any(isinstance(key, gast.Subscript) and isinstance(key.slice, gast.Slice) for key in place.keys)
    name = "put_part" if sliced else "set_item"
    _change(b, name, place, [load(place.name, at), path(place, operands, at), value], at)


def augment_place(
    b: Builder, place: Place, operands: Sequence[Node], op: Node, value: Node, at: Node, old: Node = None
) -> None:
    """Build `place += value`, or another operator, for a part of a variable; `old` is what it was before the value was
    evaluated, where that may differ from what it is now."""
    args = [load(place.name, at), path(place, operands, at), constant(operator_name(op), at), value]
    args += [] if old is None else [old]
    count, plain = len(place.keys), isinstance(value, gast.Constant | gast.Name) and not isinstance(op, gast.Mult)
    change = Change(0, count > 1, depth=count, augments=True, unclear=not plain)
    _change(b, "augment_item", place, args, at, change)


def swap_places(
    b: Builder, first: Place, second: Place, operands: Sequence[Node], more: Sequence[Node], at: Node
) -> None:
    """Build `first, second = second, first` for two parts of one variable, with the operands of each."""
    paths = [path(first, operands, at), path(second, more, at)]
    lengths = len(first.keys), len(second.keys)
    change = Change(0, max(lengths) > 1, depth=min(lengths))
    _change(b, "swap_items", first, [load(first.name, at), *paths], at, change)


def delete_place(b: Builder, place: Place, operands: Sequence[Node], at: Node) -> None:
    """Build `del place` for a part of a variable."""
    _change(b, "delete_item", place, [load(place.name, at), path(place, operands, at)], at)


def call_mutation(b: Builder, found: Mutation, operands: Sequence[Node], node: Node) -> str:
    """Build a call that changes a place, with its operands evaluated; return the variable that holds its value."""
    place, count = found.place, len(found.place.operands)
    args = [
        load(place.name, node),
        path(place, operands[:count], node),
        constant(found.method, node),
        display(list(operands[count:]), node),
        display([constant(name, node) for name in found.names], node),
    ]
    result = b.temp()
    changed = supported("call_method", args, node)
    removes, depth = found.method in REMOVING, len(place.keys) + 1
    change = Change(0, bool(place.keys), removes=removes, depth=depth, grows=found.method in GROWING, method=True)
    b.prim((result, place.name), changed, shown=node, at=node, changes=(place.name, change))
    for flag in () if place.keys else b.flags.get(place.name, ()):
        moved = supported("moved", [load(flag, node), load(place.name, node), constant(found.method, node)], node)
        b.plain_prim((flag,), moved, shown=load(place.name, node), at=node)
    return result


def path(place: Place, operands: Sequence[Node], at: Node) -> Node:
    """The keys of a place as a tuple, for the support functions; `operands` are its expressions, evaluated."""
    values = iter(operands)
    keys = [
        _index(key.slice, values)
        if isinstance(key, gast.Subscript)
        else supported("field", [constant(key.attr, key)], key)
        for key in place.keys
    ]
    return display(keys, at)


def _index(index: Node, values: Iterator[Node]) -> Node:
    match index:
        case gast.Slice():
            parts = (index.lower, index.upper, index.step)
            bounds = [constant(None, index) if part is None else next(values) for part in parts]
            return supported("slice_", bounds, index)
        case gast.Tuple():
            return display([_index(element, values) for element in index.elts], index)
        case _:
            return next(values)


def _change(b: Builder, name: str, place: Place, args: list[Node], at: Node, change: Change | None = None) -> None:
    shown = call(load(name, at), args, at)
    change = change or Change(0, len(place.keys) > 1, depth=len(place.keys))
    b.prim((place.name,), supported(name, args, at), shown=shown, at=at, changes=(place.name, change))
