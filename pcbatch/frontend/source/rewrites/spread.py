"""Calls that hand on the arguments of the function around them: `fn(*args, **kwargs)` in a wrapper.

A function is compiled once for each number of arguments in its `*args` and each set of names in its `**kwargs`, so that
both can be written out where they are handed on.
"""

from __future__ import annotations

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.tree import Node, constant, subscript


def spread(unit: Unit, node: Node) -> Node:
    """Return a call with `*args` and `**kwargs` written out, as far as they are those of the function around it."""
    args = [new for arg in node.args for new in _positional(unit, arg)]
    keywords = [new for keyword in node.keywords for new in _named(unit, keyword)]
    if len(args) == len(node.args) and len(keywords) == len(node.keywords):
        same = all(a is b for a, b in zip((*args, *keywords), (*node.args, *node.keywords), strict=True))
        if same:
            return node
    return gast.copy_location(gast.Call(func=node.func, args=args, keywords=keywords), node)


def _positional(unit: Unit, node: Node) -> list[Node]:
    rest = unit.node.args.vararg
    if not isinstance(node, gast.Starred) or not _is_unchanged(unit, node.value, rest) or "*" not in unit.shape:
        return [node]
    return [subscript(node.value, constant(k, node), node) for k in range(int(unit.shape["*"]))]


def _named(unit: Unit, keyword: Node) -> list[Node]:
    more = unit.node.args.kwarg
    if keyword.arg is not None or not _is_unchanged(unit, keyword.value, more) or "**" not in unit.shape:
        return [keyword]
    names = [name for name in unit.shape["**"].split(",") if name]
    values = [subscript(keyword.value, constant(name, keyword.value), keyword.value) for name in names]
    pairs = zip(names, values, strict=True)
    return [gast.copy_location(gast.keyword(arg=name, value=value), keyword) for name, value in pairs]


def _is_unchanged(unit: Unit, node: Node, parameter: Node) -> bool:
    """Whether a node reads this parameter, which the function never assigns."""
    is_name = parameter is not None and isinstance(node, gast.Name) and node.id == parameter.id
    return is_name and not unit.bound[node.id]
