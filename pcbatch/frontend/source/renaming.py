"""Renaming of the variables of a function, so that its body may stand in another one."""

from __future__ import annotations

from collections.abc import Mapping

import gast

from pcbatch.frontend.source.scope import bindings, outside, parameters
from pcbatch.frontend.source.tree import COMPREHENSIONS, FUNCTIONS, Node, rebuild

NAMED = (gast.MatchAs, gast.MatchStar, gast.ExceptHandler)


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """A tree in which variables have the names that `names` gives them, but for variables of inner scopes."""
    if not names:
        return node
    match node:
        case gast.Name(id=name) if name in names:
            new = gast.Name(id=names[name], ctx=node.ctx, annotation=node.annotation, type_comment=None)
            return gast.copy_location(new, node)
        case gast.Lambda() | gast.FunctionDef():
            return _function(node, names)
        case gast.ListComp() | gast.SetComp() | gast.GeneratorExp() | gast.DictComp():
            return _comprehension(node, names)
    new = rebuild(node, lambda child: renamed(child, names))
    for field in ("name", "rest"):
        name = getattr(new, field, None)
        if isinstance(new, (*NAMED, gast.MatchMapping)) and isinstance(name, str) and name in names:
            fields = {**dict(gast.iter_fields(new)), field: names[name]}
            new = gast.copy_location(type(new)(**fields), new)
    return new


def _function(node: Node, names: Mapping[str, str]) -> Node:
    body = [node.body] if isinstance(node, gast.Lambda) else node.body
    own = {*parameters(node.args), *(name for name, _ in bindings(body))}
    declared = {
        name for part in body for each in gast.walk(part) if isinstance(each, gast.Nonlocal) for name in each.names
    }
    inner = {old: new for old, new in names.items() if old not in own - declared}
    around = {id(part) for part in outside(node)}
    parts = {id(part) for part in body}

    def change(child: Node) -> Node:
        if id(child) in parts:
            return renamed(child, inner)
        if id(child) in around:
            return renamed(child, names)
        return rebuild(child, change) if child is node.args else child

    new = rebuild(node, change)
    if isinstance(node, FUNCTIONS) and node.name in names:
        fields = {**dict(gast.iter_fields(new)), "name": names[node.name]}
        new = gast.copy_location(type(new)(**fields), new)
        new.coded = getattr(node, "coded", node.name)  # the name that its code has
    return new


def _comprehension(node: Node, names: Mapping[str, str]) -> Node:
    assert isinstance(node, COMPREHENSIONS)
    bound = {name for generator in node.generators for name, _ in bindings([generator.target])}
    inner = {old: new for old, new in names.items() if old not in bound}
    first = node.generators[0]

    def change(child: Node) -> Node:
        if child is first:
            return rebuild(child, lambda part: renamed(part, names if part is first.iter else inner))
        return renamed(child, inner)

    return rebuild(node, change)
