"""Expressions in a points-to analysis: which objects they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gast

from pcbatch.frontend.source.rewrites.boxes import calls, user_objects
from pcbatch.frontend.source.rewrites.boxes import known_calls as known
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.rewrites.boxes.program import Scope
from pcbatch.frontend.source.scope import bindings
from pcbatch.frontend.source.tree import Node

if TYPE_CHECKING:
    from pcbatch.frontend.source.rewrites.boxes.flow import Flow


def value_of(flow: Flow, node: Node, scope: Scope) -> Object:
    """Return the object of an expression."""
    match node:
        case gast.Name():
            return scope.find(node.id) or Object(outside=True)
        case gast.Constant():
            return Object(absent=node.value is None)
        case gast.Tuple():
            if any(isinstance(one, gast.Starred) for one in node.elts):
                return _display(flow, node, scope)
            return known.tuple_of([flow.value(one, scope) for one in node.elts])
        case gast.List() | gast.Set():
            return _display(flow, node, scope)
        case gast.Dict():
            return _dict(flow, node, scope)
        case gast.ListComp() | gast.SetComp() | gast.GeneratorExp() | gast.DictComp():
            return _comprehension(flow, node, scope)
        case gast.Subscript(slice=gast.Slice()):
            flow.value(node.slice, scope)
            return flow.new(node, known.copied(flow.value(node.value, scope)))
        case gast.Subscript():
            return flow.part(flow.value(node.value, scope), node.slice, scope)
        case gast.IfExp():
            test(flow, node.test, scope)
            return flow.either([node.body, node.orelse], scope)
        case gast.BoolOp():
            return flow.either(node.values, scope)
        case gast.NamedExpr():
            value = flow.value(node.value, scope)
            flow.assign(node.target, value, scope)
            return value
        case gast.BinOp():
            left, right = flow.value(node.left, scope), flow.value(node.right, scope)
            made = flow.new(node, known.copied(left))
            made.unite(known.copied(right))
            return made.found()
        case gast.Lambda():
            made = Object()
            made.functions.append(flow.made(node, scope.fn, scope))
            return made
        case gast.Call():
            return calls.call(flow, node, scope)
        case gast.Attribute():
            return user_objects.attribute(flow, flow.value(node.value, scope), node.attr)
        case gast.Yield() | gast.YieldFrom():
            if node.value is not None:
                flow.value(node.value, scope)
            return Object(outside=True)
        case gast.Starred():
            return flow.elements(node.value, scope)
        case gast.UnaryOp(op=gast.Not()):
            test(flow, node.operand, scope)
            return Object()
        case gast.Compare():
            flow.value(node.left, scope)
            for op, right in zip(node.ops, node.comparators, strict=True):
                (flow.elements if isinstance(op, gast.In | gast.NotIn) else flow.value)(right, scope)
            return Object()
        case gast.UnaryOp() | gast.JoinedStr() | gast.FormattedValue() | gast.Slice():
            for part in gast.iter_child_nodes(node):
                if isinstance(part, gast.expr):
                    flow.value(part, scope)
            return Object()
    for part in gast.iter_child_nodes(node):
        if isinstance(part, gast.expr):
            flow.value(part, scope).leave()
    return Object(outside=True)


def test(flow: Flow, node: Node, scope: Scope) -> None:
    """Look at an expression of which is asked whether it is true: none of its operands becomes its value."""
    match node:
        case gast.BoolOp():
            flow.of[id(node)] = Object()
            for one in node.values:
                test(flow, one, scope)
        case gast.UnaryOp(op=gast.Not(), operand=operand):
            flow.of[id(node)] = Object()
            test(flow, operand, scope)
        case _:
            flow.value(node, scope)


def _display(flow: Flow, node: Node, scope: Scope) -> Object:
    made = flow.new(node, Object())
    made.elements()
    for one in node.elts:
        made.elements().unite(flow.value(one, scope))
    return made


def _dict(flow: Flow, node: Node, scope: Scope) -> Object:
    made = flow.new(node, Object())
    for key, item in zip(node.keys, node.values, strict=True):
        value = flow.value(item, scope)
        if key is None:
            made.elements().unite(value.elements())
            made.key().unite(value.key())
            continue
        made.key().unite(flow.value(key, scope))
        flow.part(made, key, scope).unite(value)
    return made


def _comprehension(flow: Flow, node: Node, scope: Scope) -> Object:
    names = [name for each in node.generators for name, _ in bindings([each.target])]
    inner = Scope(scope.fn, frozenset(names), scope)
    for k, each in enumerate(node.generators):
        flow.assign(each.target, flow.elements(each.iter, inner if k else scope), inner)
        for one in each.ifs:
            test(flow, one, inner)
    made = flow.new(node, Object())
    if isinstance(node, gast.DictComp):
        made.key().unite(flow.value(node.key, inner))
        made.elements().unite(flow.value(node.value, inner))
    else:
        made.elements().unite(flow.value(node.elt, inner))
    return made
