"""Comprehensions over sets where the order of the elements does not matter, such as those that make sets.

sum(x for x in s)        ==>      sum(x for x in any_order(s))
{x + 1 for x in s}       ==>      {x + 1 for x in any_order(s)}, whose own order is not known
"""

from __future__ import annotations

from collections.abc import Mapping

import gast

from pcbatch.data.functions import mappings
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import mutation
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import (
    Function,
    Node,
    display,
    is_supported,
    no_parameters,
    rebuild,
    supported,
    with_fields,
)


def forgets_order(name: str, node: Node, keywords: Mapping[str, Node]) -> bool:
    """Whether what a consumer gives, which is no set, does not depend on the order of the elements."""
    if name in ("any", "all"):
        return True
    return name in ("sum", "max", "min", "sorted") and len(node.args) == 1 and not {"key", "start"} & set(keywords)


def of_any_order(unit: Unit, node: Node) -> Node:
    """Return a comprehension that goes over sets in any order, or a place of a set so; any other node as it is."""
    return _place(unit, node, mappings.any_order) or _taking(unit, node, mappings.any_order)


def with_sets(unit: Unit, node: Node) -> Node:
    """Return a comprehension that goes over sets in any order, with elements that bring a function along, which gives
    what is gone over.

    Where the order of sets is asked for, the elements come in Python's order if it is known.
    """
    node = _taking(unit, node, mappings.own_order if unit.decisions.ordered else mappings.any_order)
    sets = [_taken_set(part.iter) for part in getattr(node, "generators", ())]
    taken = [one for one in sets if one is not None]
    if not taken:
        return node
    given = gast.copy_location(gast.Lambda(args=no_parameters(), body=display(taken, node)), node)
    return with_fields(node, elt=display([node.elt, given], node.elt))


def _taken_set(iterable: Node) -> Node | None:
    """Return what a set made of an iterable has no order of its own by, if it is a set; of a call its place says so."""
    if is_supported(iterable, mappings.own_order):
        return supported(mappings.without_order, iterable.args, iterable)
    is_place = is_supported(iterable, mappings.any_order) and not isinstance(iterable.args[0], gast.Call)
    return iterable.args[0] if is_place else None


def _taking(unit: Unit, node: Node, function: Function) -> Node:
    if not isinstance(node, gast.GeneratorExp | gast.ListComp) or _has_effects(unit, node):
        return node
    return rebuild(node, lambda part: _taken(unit, part, function) if isinstance(part, gast.comprehension) else part)


def _taken(unit: Unit, part: Node, function: Function) -> Node:
    place = _place(unit, part.iter, function)
    return part if place is None else with_fields(part, iter=place)


def _place(unit: Unit, node: Node, function: Function) -> Node | None:
    kept = unit.source.loc(node) in unit.decisions.taken
    is_place = not kept and isinstance(node, gast.Name | gast.Attribute | gast.Subscript)
    return supported(function, [node], node) if is_place else None


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
