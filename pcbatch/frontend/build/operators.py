"""Python's operators and builtins that traced values lack, replaced by calls of the support module.

    not x, max(x, 0), f"{x}"      ==>      support.not_(x), support.max_(x, 0), f"{support.shown(x)}"

A name means a builtin only if nothing hides it. What is replaced means the same for plain values, so that nested
functions, lambdas and comprehensions are rewritten too.
"""

from __future__ import annotations

import builtins

import gast

from pcbatch.frontend.build.library_calls import is_numpy_call
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.impure import Impure, impure
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.scope import bindings, parameters
from pcbatch.frontend.source.tree import COMPREHENSIONS, FUNCTIONS, Node, call, constant, is_constant, load, rebuild

SUPPORT = "__pcbatch__"  # the name under which primitives find the support module; users may not use it

BUILTINS = {
    getattr(builtins, name): f"{name}_"
    for name in "max min int float bool complex any all sorted pow range str repr ascii format".split()
}
COMPARISONS = {gast.In: "contains", gast.NotIn: "lacks", gast.Is: "is_", gast.IsNot: "is_not"}

Names = frozenset[str]


def supported(name: str, args: list[Node], at: Node) -> Node:
    """A call of a support function."""
    return call(_function(name, at), args, at)


def rewritten(unit: Unit, node: Node, hidden: Names = frozenset()) -> Node:
    """`node` with support functions in place of what traced values lack; `hidden` are names of inner scopes."""
    if isinstance(node, gast.ClassDef):
        return node
    inner = hidden | _bound(node)
    found = _replaced(unit, node, hidden)
    if isinstance(found, Impure):
        return supported("refuse_impure", [constant(text, node) for text in (found.name, found.kind, found.draw)], node)
    numpy = found is None and is_numpy_call(unit, node, hidden)
    node = rebuild(node, lambda child: rewritten(unit, child, inner))
    if numpy:
        function = supported("from_numpy", [node.func], node.func)
        return gast.copy_location(gast.Call(func=function, args=node.args, keywords=node.keywords), node)
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
        return supported("not_", [node.operand], node)
    if isinstance(node, gast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        return supported(COMPARISONS[type(node.ops[0])], [node.left, node.comparators[0]], node)
    if found is not None:
        function = _function(found, node.func)
        return gast.copy_location(gast.Call(func=function, args=node.args, keywords=node.keywords), node)
    return _text(node)


def _function(name: str, at: Node) -> Node:
    return gast.copy_location(gast.Attribute(value=load(SUPPORT, at), attr=name, ctx=gast.Load()), at)


def _bound(node: Node) -> Names:
    """The names that a scope hides from what is inside it."""
    if isinstance(node, (*FUNCTIONS, gast.Lambda)):
        body = [node.body] if isinstance(node, gast.Lambda) else node.body
        return frozenset((*parameters(node.args), *(name for name, _ in bindings(body))))
    if isinstance(node, COMPREHENSIONS):
        return frozenset(name for generator in node.generators for name, _ in bindings([generator.target]))
    return Names()


def _replaced(unit: Unit, node: Node, hidden: Names) -> str | Impure | None:
    """The support function for a call of a builtin; why the call is refused where it leaves the lane."""
    if not isinstance(node, gast.Call):
        return None
    target = resolve(unit, node.func, hidden)
    outside = impure(unit, node, target, hidden)
    if outside is not None or target is MISSING or not callable(target):
        return outside
    return next((name for builtin, name in BUILTINS.items() if target is builtin), None)


def _text(node: Node) -> Node:
    """Text made of values: what goes into it must be known."""
    if isinstance(node, gast.FormattedValue):
        value = supported("shown", [node.value], node.value)
        made = gast.FormattedValue(value=value, conversion=node.conversion, format_spec=node.format_spec)
        return gast.copy_location(made, node)
    if isinstance(node, gast.BinOp) and isinstance(node.op, gast.Mod) and _is_text(node.left):
        made = gast.BinOp(left=node.left, op=node.op, right=supported("shown", [node.right], node.right))
        return gast.copy_location(made, node)
    if isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute) and node.func.attr == "format":
        if _is_text(node.func.value) and not any(isinstance(arg, gast.Starred) for arg in node.args):
            args = [supported("shown", [arg], arg) for arg in node.args]
            return gast.copy_location(gast.Call(func=node.func, args=args, keywords=node.keywords), node)
    return node


def _is_text(node: Node) -> bool:
    return is_constant(node) and isinstance(node.value, str)
