"""Calls that hand on the arguments of the function around them: `fn(*args, **kwargs)` in a wrapper.

A function is compiled once for each number of arguments in its `*args` and each set of names in its `**kwargs`, so that
both can be written out where they are handed on.

Calls that spread a list of the lane into the parameters of a function: `dist(*ends)` takes two elements, and no other
number.
"""

from __future__ import annotations

import inspect
from types import BuiltinFunctionType, FunctionType
from typing import Any

import gast

from pcbatch.data.functions.sequence_operators import star_items
from pcbatch.frontend.source.bind_call import ANY
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.tree import Node, constant, rebuild, subscript, supported, with_fields


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
    rest, count = unit.node.args.vararg, unit.shape.get("*", ANY)
    if count == ANY or not isinstance(node, gast.Starred) or not _is_unchanged(unit, node.value, rest):
        return [node]
    return [subscript(node.value, constant(k, node), node) for k in range(int(count))]


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


def with_known_stars(node: Node, target: Any) -> Node:
    """Return a call in which `*values` gives as many arguments as `target`, which it calls, needs beside the others."""
    starred = [arg for arg in node.args if isinstance(arg, gast.Starred)] if isinstance(node, gast.Call) else []
    if len(starred) != 1 or any(keyword.arg is None for keyword in node.keywords):
        return node
    count = _needed(target, len(node.args) - 1, {keyword.arg for keyword in node.keywords})
    if count is None:
        return node
    value = supported(star_items, [starred[0].value, constant(count, node)], starred[0].value)
    return rebuild(node, lambda part: with_fields(part, value=value) if part is starred[0] else part)


def _needed(target: Any, given: int, names: set[str]) -> int | None:
    """The number of arguments that a function needs beside some; None where it may be another one."""
    target = target.fn if isinstance(target, Target) else target
    if isinstance(target, type):
        target, given = inspect.getattr_static(target, "__init__", None), given + 1
    if not isinstance(target, FunctionType | BuiltinFunctionType):
        return None
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:
        return None
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    free = [one for one in places if one.name not in names]
    takes_more = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if takes_more or any(one.default is not one.empty for one in free) or len(free) < given:
        return None
    return len(free) - given
