"""Comprehensions over sets where the order of the elements does not matter, such as those that make sets.

{x + 1 for x in s}       ==>      {x + 1 for x in any_order(s)}
"""

from __future__ import annotations

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import mutation
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import Node, rebuild, supported


def of_any_order(unit: Unit, node: Node) -> Node:
    """Return a comprehension that goes over sets in any order; any other node, or one with effects, as it is."""
    if not isinstance(node, gast.GeneratorExp | gast.ListComp | gast.SetComp) or _has_effects(unit, node):
        return node
    return rebuild(node, lambda part: _unordered(unit, part) if isinstance(part, gast.comprehension) else part)


def _unordered(unit: Unit, part: Node) -> Node:
    kept = unit.source.loc(part.iter) in unit.decisions.taken
    if kept or not isinstance(part.iter, gast.Name | gast.Attribute | gast.Subscript):
        return part
    iterable = supported("any_order", [part.iter], part.iter)
    return gast.comprehension(target=part.target, iter=iterable, ifs=part.ifs, is_async=part.is_async)


def _has_effects(unit: Unit, node: Node) -> bool:
    """Whether an element may change a variable: by `:=`, a method, or a function that is defined in this one."""
    for part in gast.walk(node):
        if isinstance(part, gast.NamedExpr) or (isinstance(part, gast.Call) and mutation(unit, part) is not None):
            return True
        if isinstance(part, gast.Name) and part.id in unit.definitions:
            return True
        if isinstance(part, gast.Call) and resolve(unit, part.func) is print:
            return True
    return False
