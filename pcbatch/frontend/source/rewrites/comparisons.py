"""Orders that are told by a function or a method of the user's, one comparison after the other.

    sorted(xs, key=cmp_to_key(f))     ==>      support.in_order(xs, lambda a, b: f(a, b) < 0, None)
    nodes.sort(key=f)                 ==>      nodes[:] = support.in_order(nodes, lambda a, b: a < b, f)
    max(cards)                        ==>      support.first_of(cards, lambda a, b: b < a, None, "max")

Where a comparison branches on values of the lane no primitive can make it: the loop over the elements is written out
(`build/iteration/consumers.py`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import gast

from pcbatch.data.object_parts import is_generated
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.resolve import builtin_name, resolve
from pcbatch.frontend.source.rewrites.nested import function_of, nonlocals
from pcbatch.frontend.source.scope import renamed
from pcbatch.frontend.source.streams import first_of, in_order
from pcbatch.frontend.source.tree import (
    Node,
    call,
    compare,
    constant,
    load,
    no_parameters,
    supported,
    with_fields,
)

Temp = Callable[[str, Node], str]
Written = Callable[[Node], Node | None]
EXTREMES = frozenset({"min", "max"})
ORDERED = EXTREMES | {"sorted"}
COMPARED = {
    gast.Lt: "lt", gast.LtE: "le", gast.Gt: "gt", gast.GtE: "ge", gast.Eq: "eq", gast.NotEq: "ne",
}  # fmt: skip
REFLECTED: dict[type, type] = {gast.Lt: gast.Gt, gast.LtE: gast.GtE, gast.Gt: gast.Lt, gast.GtE: gast.LtE}
OPERATORS = {"__lt__": gast.Lt(), "__le__": gast.LtE(), "__gt__": gast.Gt(), "__ge__": gast.GtE()}


def compared(unit: Unit, node: Node, temp: Temp, written: Written) -> Node | None:
    """Return what takes the place of a call that puts elements in an order, or of a statement `xs.sort()`; None if it
    stays.

    Args:
        unit: the function.
        node: the call or the statement.
        temp: gives a new variable.
        written: gives the expression in whose place a comparison of objects is written.
    """
    match node:
        case gast.Expr(value=gast.Call(func=gast.Attribute(value=owner, attr="sort"), args=[]) as sort):
            made = _made(unit, sort, owner, "sorted", temp, written)
            whole = gast.Slice(lower=None, upper=None, step=None)
            target = gast.Subscript(value=owner, slice=gast.copy_location(whole, node), ctx=gast.Store())
            place = gast.copy_location(target, node)
            assigned = gast.Assign(targets=[place], value=made, type_comment=None)
            return None if made is None else gast.copy_location(assigned, node)
        case gast.Call(func=func, args=[values]) if (name := builtin_name(unit, func, ORDERED)) is not None:
            return _made(unit, node, values, name, temp, written)
        case gast.Call(func=func, args=[_, _, *_]) if (name := builtin_name(unit, func, EXTREMES)) is not None:
            if any(isinstance(arg, gast.Starred) for arg in node.args):
                return None
            values = gast.copy_location(gast.List(elts=list(node.args), ctx=gast.Load()), node)
            return _made(unit, node, values, name, temp, written)
    return None


def _made(unit: Unit, node: Node, values: Node, name: str, temp: Temp, written: Written) -> Node | None:
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    key, reverse = given.pop("key", constant(None, node)), given.pop("reverse", constant(False, node))
    of_functions = isinstance(key, gast.Call) and resolve(unit, key.func) is functools.cmp_to_key
    if given or isinstance(values, gast.Starred) or not isinstance(reverse, gast.Constant):
        return None
    if not of_functions and unit.source.loc(node) not in unit.decisions.compared:
        return None
    if of_functions and _has_effects(unit, key.args[0]):
        return None
    names = temp("one", node), temp("other", node)
    one, other = (load(each, node) for each in names)
    first, second = (other, one) if bool(reverse.value) != (of_functions and name == "max") else (one, other)
    if of_functions:
        sign = _called(key.args[0], first, second, node)
        key, body = constant(None, node), compare(sign, gast.Lt(), constant(0, node), node)
    else:
        asked = compare(one, gast.Gt(), other, node) if name == "max" else compare(first, gast.Lt(), second, node)
        body = written(asked) or asked
    params = [gast.Name(id=each, ctx=gast.Param(), annotation=None, type_comment=None) for each in names]
    args = with_fields(no_parameters(), args=[gast.copy_location(param, node) for param in params])
    before = gast.copy_location(gast.Lambda(args=args, body=body), node)
    if name == "sorted":
        return supported(in_order, [values, before, key], node)
    return supported(first_of, [values, before, key, constant(name, node)], node)


def _called(function: Node, one: Node, other: Node, at: Node) -> Node:
    """The call of a function with two variables; a lambda is written out."""
    match function:
        case gast.Lambda(args=gast.arguments(args=[a, b], vararg=None, kwarg=None, kwonlyargs=[])):
            return renamed(function.body, {a.id: one.id, b.id: other.id})
    return call(function, [one, other], at)


def _has_effects(unit: Unit, function: Node) -> bool:
    """Whether comparisons by a function change something: Python makes others, in another order."""
    if not isinstance(function, gast.Name):
        return False
    target, definition = unit.lifted.get(function.id), unit.definitions.get(function.id)
    changed = definition is not None and bool(nonlocals(function_of(definition)))
    return changed or (target is not None and bool(target.returned))


def has_method(cls: type, name: str) -> bool:
    """Return whether a class of the user's has a method of this name, and not from `dataclass` or `functools`."""
    return any(not is_generated(method.__code__) for method in own_methods([cls], name))


def root_of_order(cls: type, name: str) -> str | None:
    """Return the method from which `functools.total_ordering` has made another one; None if it has not."""
    if getattr(inspect.getattr_static(cls, name, None), "__module__", "") != "functools":
        return None
    own = (one for one in OPERATORS if getattr(inspect.getattr_static(cls, one, None), "__module__", "") != "functools")
    return next((one for one in own if getattr(cls, one) is not getattr(object, one)), None)


def by_root(name: str, root: str, holds: Node, equal: Node) -> Node:
    """Return the comparison that `functools.total_ordering` makes of another one and of `a == b`."""
    turned = (name in ("__gt__", "__ge__")) != (root in ("__gt__", "__ge__"))
    strict = (name in ("__lt__", "__gt__"), root in ("__lt__", "__gt__"))
    first = gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=holds), holds) if turned else holds
    match strict, turned:
        case ((True, True), True) | ((True, False), False):  # `a > b` of `<`, `a < b` of `<=`: and not equal
            op, other = gast.And(), gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=equal), equal)
        case ((False, False), True) | ((False, True), False):  # `a >= b` of `<=`, `a <= b` of `<`: or equal
            op, other = gast.Or(), equal
        case _:
            return first
    return gast.copy_location(gast.BoolOp(op=op, values=[first, other]), holds)
