"""Generator expressions with a name that only the next statement reads stand there themselves.

    ends = (match(branch, i) for branch in branches)    ==>    return next(match(branch, i) for branch in branches)
    return next(ends)

Of such an expression Python evaluates only what its first loop goes over where it stands, and the rest where elements
are taken. So both are the same if nothing is evaluated between the two but names, constants and attributes.
"""

from __future__ import annotations

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.tree import COMPREHENSIONS, LEAVES, Node, children, rebuild, rebuild_bodies, with_fields

HEADS: dict[type, str] = {**dict.fromkeys((gast.Return, gast.Expr, gast.Assign), "value")}
HEADS |= {gast.For: "iter", gast.If: "test"}
"""The expressions that statements evaluate before all else."""
WHOLE = (gast.Call, gast.keyword, gast.Compare, gast.BinOp, gast.UnaryOp, gast.Tuple, gast.List, gast.Starred)
"""Expressions that evaluate all of their parts, one after the other."""


def write_named_generators(unit: Unit) -> Node:
    """Return the tree of a function without such names; the tree itself where there are none."""
    return rebuild_bodies(unit.node, lambda body: _statements(unit, body), inner=False)


def _statements(unit: Unit, body: list[Node]) -> list[Node]:
    new: list[Node] = []
    for node in body:
        named = _named(unit, new[-1]) if new else None
        field = HEADS.get(type(node), "")
        head = getattr(node, field, None)
        if named is not None and head is not None and _reads_first(head, named.id):
            put = _put(head, named.id, new.pop().value)
            node = with_fields(node, **{field: put})
        new.append(node)
    return new


def _named(unit: Unit, node: Node) -> Node | None:
    """The variable of `name = (... for ...)` that the function assigns only there, and reads only once."""
    match node:
        case gast.Assign(targets=[gast.Name(id=name) as target], value=gast.GeneratorExp() as value):
            places = [part for part in gast.walk(unit.node) if isinstance(part, gast.Name) and part.id == name]
            assigns = any(isinstance(part, gast.NamedExpr) for part in gast.walk(value))
            once = len(unit.bound.get(name, ())) == 1 and name not in unit.params and len(places) == 2
            return target if once and not assigns and _is_simple(value.generators[0].iter) else None
    return None


def _is_simple(node: Node) -> bool:
    """Whether nothing happens where an expression is evaluated: a name, a constant, or a part of one."""
    if isinstance(node, gast.Attribute | gast.Subscript | gast.Slice):
        return all(map(_is_simple, (part for part in children(node) if not isinstance(part, LEAVES))))
    return isinstance(node, gast.Name | gast.Constant)


def _reads_first(node: Node, name: str) -> bool:
    """Whether an expression certainly reads a variable, and evaluates only what is simple before."""
    if isinstance(node, gast.Name):
        return bool(node.id == name)
    if isinstance(node, COMPREHENSIONS):
        return _reads_first(node.generators[0].iter, name)
    if isinstance(node, WHOLE) and len(getattr(node, "ops", "1")) == 1:
        for part in children(node):
            if isinstance(part, LEAVES) or (_is_simple(part) and not _reads_first(part, name)):
                continue
            return _reads_first(part, name)
    return False


def _put(node: Node, name: str, value: Node) -> Node:
    return value if isinstance(node, gast.Name) and node.id == name else rebuild(node, lambda p: _put(p, name, value))
