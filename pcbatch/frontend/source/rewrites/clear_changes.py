"""Statements that change objects, written so that it is clear which: a choice of two, and a swap by a third name.

(a if c else b).append(x)        ==>      if c: a.append(x)
                                          else: b.append(x)

t = x[i]; x[i] = x[j]; x[j] = t  ==>      t = x[i]; x[i], x[j] = x[j], x[i]
"""

from __future__ import annotations

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import is_mutating_method
from pcbatch.frontend.source.tree import Node, attribute, one_line, rebuild_bodies


def write_changes(unit: Unit) -> Node:
    """Return the tree of a function with such statements rewritten; the tree itself where there are none."""
    return rebuild_bodies(unit.node, _statements)


def _statements(body: list[Node]) -> list[Node]:
    new: list[Node] = []
    for statement in body:
        new.append(_chosen(statement))
        if len(new) >= 3 and (swap := _swap(*new[-3:])) is not None:
            new[-2:] = [swap]
    return new


def _chosen(node: Node) -> Node:
    """A call of a method of a conditional expression as a branch; other statements as they are."""
    call = node.value if isinstance(node, gast.Expr) else None
    if not isinstance(call, gast.Call) or not is_mutating_method(call.func, statement=True):
        return node
    choice = call.func.value
    if not isinstance(choice, gast.IfExp):
        return node

    def of(chosen: Node) -> Node:
        method = attribute(chosen, call.func.attr, call.func)
        made = gast.copy_location(gast.Call(func=method, args=call.args, keywords=call.keywords), call)
        return _chosen(gast.copy_location(gast.Expr(value=made), node))

    return gast.copy_location(gast.If(test=choice.test, body=[of(choice.body)], orelse=[of(choice.orelse)]), node)


def _swap(first: Node, second: Node, third: Node) -> Node | None:
    """The second and third of three statements that swap two parts of a variable, as one assignment."""
    assigns = (first, second, third)
    if not all(isinstance(node, gast.Assign) and len(node.targets) == 1 for node in assigns):
        return None
    name, one, other = first.targets[0], first.value, second.value
    if not (isinstance(name, gast.Name) and isinstance(third.value, gast.Name) and third.value.id == name.id):
        return None
    root = _root(one)
    if root is None or root != _root(other) or root == name.id or name.id in _names(one) | _names(other):
        return None
    if (one_line(second.targets[0]), one_line(third.targets[0])) != (one_line(one), one_line(other)):
        return None
    if any(
        isinstance(part, gast.Call | gast.NamedExpr | gast.Slice) for node in (one, other) for part in gast.walk(node)
    ):
        return None
    targets = gast.Tuple(elts=[second.targets[0], third.targets[0]], ctx=gast.Store())
    values = gast.Tuple(elts=[other, one], ctx=gast.Load())
    target, value = gast.copy_location(targets, second.targets[0]), gast.copy_location(values, other)
    return gast.copy_location(gast.Assign(targets=[target], value=value, type_comment=None), second)


def _root(node: Node) -> str | None:
    """The variable whose part a subscription is, where no index mentions it."""
    inside: set[str] = set()
    if not isinstance(node, gast.Subscript):
        return None
    while isinstance(node, gast.Subscript):
        inside |= _names(node.slice)
        node = node.value
    return node.id if isinstance(node, gast.Name) and node.id not in inside else None


def _names(node: Node) -> set[str]:
    return {part.id for part in gast.walk(node) if isinstance(part, gast.Name)}
