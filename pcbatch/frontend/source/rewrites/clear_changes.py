"""Statements that change objects or raise, written so that it is clear which: choices, and a swap by a third name.

(a if c else b).append(x)        ==>      if c: a.append(x)
                                          else: b.append(x)

xs and xs.pop()                  ==>      if xs: xs.pop()

t = x[i]; x[i] = x[j]; x[j] = t  ==>      t = x[i]; x[i], x[j] = x[j], x[i]

bank.get(name).log.append(5)     ==>      t = bank.get(name); t.log.append(5)

add = xs.append; add(5)          ==>      pass; xs.append(5)

In the body of a `try` statement an expression may stand alone for what it raises: it is marked as one to evaluate.
"""

from __future__ import annotations

from collections import Counter, deque
from functools import partial

import gast

from pcbatch.data.functions.operators import replacement
from pcbatch.frontend.source.captured import assigned_once
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.places import is_mutating_method
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.scope import catches
from pcbatch.frontend.source.tree import (
    FUNCTIONS,
    Node,
    attribute,
    load,
    one_line,
    rebuild,
    rebuild_bodies,
    target_of,
    with_fields,
)

METHODS = frozenset[str]().union(*map(vars, (list, dict, set, deque)))


def write_changes(unit: Unit) -> Node:
    """Return the tree of a function with such statements rewritten; the tree itself where there are none."""
    return rebuild_bodies(unit.node, partial(_statements, unit))


def call_methods(unit: Unit) -> Node:
    """Return the tree of a function in which methods of containers that have a name, and are only called, are called as
    methods of the variables that have the containers; the tree itself where there are none."""
    parts, methods = list(gast.walk(unit.node)), dict[str, Node]()
    names = Counter((part.id, isinstance(part.ctx, gast.Load)) for part in parts if isinstance(part, gast.Name))
    called = Counter(part.func.id for part in parts if isinstance(part, gast.Call) and isinstance(part.func, gast.Name))

    def is_method(target: Node, value: Node) -> bool:
        match target, value:
            case gast.Name(id=name), gast.Attribute(value=gast.Name(id=owner), attr=attr) if owner in unit.variables:
                once = all(names[one, False] == 1 and assigned_once(unit, one) for one in (name, owner))
                before = owner not in unit.statics and all(one.lineno < value.lineno for one in unit.bound[owner])
                own = attr not in METHODS or any(own_methods(unit.classes.values(), attr))
                return once and before and not own and names[name, True] == called[name]
        return False

    def written(node: Node) -> Node:
        match new := rebuild(node, written):
            case gast.Call(func=gast.Name(id=name) as func) if name in methods:
                return with_fields(new, func=attribute(load(methods[name].value.id, func), methods[name].attr, func))
            case gast.Assign(targets=[gast.Name(id=name) | gast.Tuple(elts=[gast.Name(id=name), *_])]) if (
                name in methods
            ):
                return gast.copy_location(gast.Pass(), node)
        return new

    for node in unit.node.body if not isinstance(unit.node, gast.Lambda) else ():
        if isinstance(node, gast.Assign):
            both = [node.targets[0], node.value]
            several = all(isinstance(one, gast.Tuple) for one in both)
            pairs = list(zip(*(one.elts for one in both), strict=False)) if several else [both]
            methods |= {target.id: value for target, value in pairs} if all(is_method(*pair) for pair in pairs) else {}
    return written(unit.node) if methods else unit.node


def name_receivers(unit: Unit) -> Node:
    """Return the tree of a function in which the object that a call gives has a name where a statement calls a method
    of it; the tree itself where there is none."""
    return rebuild_bodies(unit.node, lambda body: [part for node in body for part in _named(unit, node)])


def _named(unit: Unit, node: Node) -> tuple[Node, ...]:
    match node:
        case gast.Expr(value=gast.Call(func=gast.Attribute(value=place)) as called):
            owner, path = place, list[Node]()
            while isinstance(owner, gast.Attribute):
                path.append(owner)
                owner = owner.value
            if not isinstance(owner, gast.Call) or resolve(unit, owner.func) is super:
                return (node,)
            if resolve(unit, called.func) is not MISSING:
                return (node,)
            name = f"receiver_{owner.lineno}_{owner.col_offset}"
            given = gast.Assign(targets=[target_of(name, owner)], value=owner, type_comment=None)
            held = load(name, owner)
            for part in reversed(path):
                held = with_fields(part, value=held)
            method = with_fields(called.func, value=held)
            return gast.copy_location(given, node), with_fields(node, value=with_fields(called, func=method))
    return (node,)


def _statements(unit: Unit, body: list[Node]) -> list[Node]:
    new: list[Node] = []
    for statement in body:
        new.append(_evaluated(unit, _chosen(statement)))
        if len(new) >= 3 and (swap := _swap(*new[-3:])) is not None:
            new[-2:] = [swap]
    return new


def _chosen(node: Node) -> Node:
    """A choice that is a statement, or of the object whose method one calls, as a branch; others as they are."""
    call = node.value if isinstance(node, gast.Expr) and not getattr(node.value, "written_out", False) else None

    def arm(value: Node) -> Node:
        return _chosen(gast.copy_location(gast.Expr(value=value), value))

    match call:
        case gast.IfExp(test=test, body=body, orelse=orelse):
            return gast.copy_location(gast.If(test=test, body=[arm(body)], orelse=[arm(orelse)]), node)
        case gast.BoolOp(op=op, values=[*tests, last]):
            test = tests[0] if len(tests) == 1 else gast.copy_location(gast.BoolOp(op=op, values=tests), call)
            if isinstance(op, gast.Or):
                test = gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=test), test)
            return gast.copy_location(gast.If(test=test, body=[arm(last)], orelse=[]), node)
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


def _evaluated(unit: Unit, node: Node) -> Node:
    """A `try` statement that evaluates the expressions that stand alone in its body; other statements as they are."""

    def marked(part: Node) -> Node:
        if isinstance(part, gast.Expr) and only_raises(unit, part.value):
            value = with_fields(part.value)
            value.written_out = True
            return with_fields(part, value=value)
        inner = isinstance(part, gast.stmt | gast.ExceptHandler | gast.match_case)
        return rebuild(part, marked) if inner and not isinstance(part, (*FUNCTIONS, gast.ClassDef)) else part

    is_try = isinstance(node, gast.Try) and bool(node.handlers)
    if not is_try and not (isinstance(node, gast.With) and catches([node], lambda handler: False)):
        return node
    return rebuild(node, lambda part: marked(part) if any(part is one for one in node.body) else part)


def only_raises(unit: Unit, value: Node) -> bool:
    """Whether an expression has no other effect than that it may raise."""
    if isinstance(value, gast.Constant | gast.NamedExpr | gast.Yield | gast.YieldFrom | gast.Await):
        return False
    if not isinstance(value, gast.Call):
        return True
    function = resolve(unit, value.func)
    if function is MISSING and isinstance(value.func, gast.Attribute):
        return bool(value.func.attr == "index")
    return function is not print and replacement(function) is not None


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
