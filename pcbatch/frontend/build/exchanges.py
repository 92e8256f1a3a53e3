"""Assignments that exchange parts of variables, `x[i], x[j], sign = x[j], x[i], -sign`, as one change of each variable.

Stored one after the other, an object would be at two places of the variable in between.
"""

from __future__ import annotations

from collections import defaultdict

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import copied, may_raise
from pcbatch.frontend.build.expressions import has_control, operands
from pcbatch.frontend.build.mutations import exchange_places
from pcbatch.frontend.source.places import Place, place_of
from pcbatch.frontend.source.streams import has_own
from pcbatch.frontend.source.tree import Node, one_line
from pcbatch.ir.ops import Move

PARTS = (gast.Subscript, gast.Attribute)
ARITHMETIC = (gast.Name, gast.Constant, gast.UnaryOp, gast.BinOp, gast.unaryop, gast.operator, gast.expr_context)


def exchange(b: Builder, target: Node, value: Node) -> bool:
    """Build `target = value` if it certainly exchanges parts of variables, and assigns other variables at most; else
    build nothing."""
    if not all(isinstance(node, gast.Tuple) for node in (target, value)) or len(target.elts) != len(value.elts):
        return False
    if any(has_control(b, node) for node in (*target.elts, *value.elts)):
        return False
    new, others = dict[str, str](), dict[str, Node]()
    places = defaultdict[str, dict[str, Place]](dict)
    for node, given in zip(target.elts, value.elts, strict=True):
        text, place = one_line(node), place_of(b.unit, node)
        if isinstance(node, gast.Name) and not may_raise(b, given):
            others[text] = given
        elif isinstance(node, PARTS) and place is not None:
            places[place.name][text], new[text] = place, one_line(given)
    if not new or len(new) + len(others) < len(target.elts) or not places.keys().isdisjoint(others):
        return False
    if any(len(of) == 1 or of.keys() != {new[text] for text in of} for of in places.values()):
        return False
    indices = [node for of in places.values() for place in of.values() for node in place.operands]
    objects = {name for node in indices if not _is_arithmetic(node) for name in _names(node)}
    if {*places, *others} & {name for node in indices for name in _names(node)}:
        return False  # the second index is read after the first assignment
    if objects and b.unit.decisions.linked:
        return False  # likewise, and which of them is what changes is not known
    if len(new) > 2 and not _is_certain(b, places):
        return False
    values = {name: copied(b, given) for name, given in others.items()}
    for of in places.values():
        keys = [operands(b, place.operands) for place in of.values()]
        exchange_places(b, list(of.values()), keys, [list(of).index(new[text]) for text in of], target)
    for name in sorted(objects & b.variables):  # which the check of ownership has to see behind the change
        b.emit(Move(b.temp(), name, b.loc(target)))
    for name, given in values.items():
        b.emit(Move(name, given.id, b.loc(target)))
    return True


def _is_certain(b: Builder, places: dict[str, dict[str, Place]]) -> bool:
    """Whether each place of several variables, or of more than two places, is another one: no other name leads to it,
    and no index may equal another one."""
    keys = [key for of in places.values() for place in of.values() for key in place.keys]
    if has_own(b.unit, "__getitem__", "__setitem__") or not all(isinstance(key, gast.Subscript) for key in keys):
        return False
    if len(places) > 1 and (b.handlers or b.unit.decisions.linked):
        return False
    return all(len(of) == 2 or _are_apart(list(of.values())) for of in places.values())


def _are_apart(places: list[Place]) -> bool:
    """Whether places that differ are elements `x[0]`, `x[1]`, `x[2]` of one object."""
    last = [place.keys[-1] for place in places]
    same = len({one_line(key.value) for key in last}) == 1
    return same and all(isinstance(key.slice, gast.Constant) and type(key.slice.value) is int for key in last)


def _is_arithmetic(node: Node) -> bool:
    return all(isinstance(part, ARITHMETIC) for part in gast.walk(node))


def _names(node: Node) -> set[str]:
    return {part.id for part in gast.walk(node) if isinstance(part, gast.Name)}
