"""Heaps of objects whose order is a method that branches, written as the steps of `heapq`.

heapq.heappush(self.events, e)    ==>    self.events.append(e)
                                         while place > 0:
                                             if not self.events[place] < self.events[parent]: break
                                             swap both; place = parent

The comparisons are those of Python, in its order, so that equal elements come out as they do there (`Lib/heapq.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.rewrites.method_lookup import is_simple
from pcbatch.frontend.source.tree import Node, compare, load, rebuild, target_of

RISE = """
    while place > 0:
        parent = (place - 1) >> 1
        one = HEAP[place]
        other = HEAP[parent]
        if not BEFORE:
            break
        HEAP[place], HEAP[parent] = HEAP[parent], HEAP[place]
        place = parent
"""
SINK = """
    while child < len(HEAP):
        if child + 1 < len(HEAP):
            one = HEAP[child]
            other = HEAP[child + 1]
            if not BEFORE:
                child = child + 1
        HEAP[place], HEAP[child] = HEAP[child], HEAP[place]
        place = child
        child = 2 * place + 1
"""
TEMPLATES: dict[Any, str] = {
    heapq.heappush: "if True:\n    HEAP.append(ITEM)\n    place = len(HEAP) - 1" + RISE,
    heapq.heappop: "if True:\n    if len(HEAP) == 0:\n        raise IndexError('index out of range')\n"
    "    result = HEAP.pop()\n    place = 0\n    child = 1\n    if len(HEAP) > 0:\n"
    "        last = result\n        result = HEAP[0]\n        HEAP[0] = last"
    + (SINK + RISE).replace("\n    ", "\n        ")
    + "    TARGET = result",
}
"""The steps of each function, with its arguments in capitals; `BEFORE` is the comparison of `one` and `other`."""

NAMES = frozenset("place parent one other child result last".split())


def written_heap(
    unit: Unit, node: Node, temp: Callable[[str, Node], str], written: Callable[[Node], Node | None]
) -> Node | None:
    """Return the statement that takes the place of one that calls such a function; None if it stays.

    Args:
        unit: the function.
        node: the statement.
        temp: gives a new variable.
        written: gives the expression in whose place a comparison of objects is written.
    """
    match node:
        case gast.Expr(value=gast.Call() as call):
            target: Node = None
        case gast.Assign(
            targets=[gast.Name() | gast.Attribute() as target],
            value=gast.Call() as call,
        ):
            pass
        case gast.Return(value=gast.Call() as call):
            target = node
        case _:
            return None
    if not call.args or call.keywords or unit.source.loc(call) not in unit.decisions.compared:
        return None
    function, (heap, *rest) = resolve(unit, call.func), call.args
    template = next((text for known, text in TEMPLATES.items() if known is function), None)
    items = 1 if function is heapq.heappush else 0
    if template is None or len(rest) != items:
        return None
    if not is_simple(unit, heap) or "len" in unit.names & unit.bound.keys() or (items and target is not None):
        return None
    names = {name: temp(name, node) for name in sorted(NAMES)}
    one, other = load(names["one"], node), load(names["other"], node)
    before = compare(one, gast.Lt(), other, node)
    inside = {"HEAP": heap, "BEFORE": written(before) or before}
    if rest:
        inside["ITEM"] = rest[0]

    def filled(part: Node) -> Node:
        if isinstance(part, gast.Name) and part.id == "TARGET":
            return target_of(names["last"], node) if target is None else target
        if isinstance(part, gast.Name) and part.id in inside:
            return inside[part.id]
        if isinstance(part, gast.Name):
            new = gast.Name(id=names.get(part.id, part.id), ctx=part.ctx, annotation=None, type_comment=None)
            return gast.copy_location(new, node)
        return rebuild(_at(part, node), filled)

    if target is node:
        template = template.replace("TARGET = result", "return result")
    (statement,) = gast.parse(template).body
    return filled(statement)


def _at(part: Node, node: Node) -> Node:
    """A node of a template with the location of another one."""
    new = type(part)(**dict(gast.iter_fields(part)))
    return gast.copy_location(new, node)
