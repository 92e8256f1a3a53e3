"""The variables of comprehensions and lambdas that are written out: they become temporaries of the function.

    [x * k for x in xs]   with x -> t3     ==>      t3 * k

Messages show them as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.expressions import lower_into
from pcbatch.frontend.source.scope import bindings, outside, parameters
from pcbatch.frontend.source.tree import Node, call, load, rebuild

Names = Mapping[str, Node]


def own_name(b: Builder, name: str, at: Node) -> Node:
    """A new variable that is shown as `name`."""
    return b.held(b.temp(), load(name, at))


def renamed(node: Node, names: Names) -> Node:
    """A tree in which variables of a comprehension are what `names` says, but for names of inner scopes."""
    if not names:
        return node
    match node:
        case gast.Name():
            new = names.get(node.id)
            if new is None:
                return node
            named = gast.Name(id=new.id, ctx=node.ctx, annotation=None, type_comment=None)
            return gast.copy_location(named, node)
        case gast.Lambda():
            inner = {name: new for name, new in names.items() if name not in parameters(node.args)}
            defaults = {id(part) for part in outside(node)}
            args = rebuild(node.args, lambda child: renamed(child, names) if id(child) in defaults else child)
            return gast.copy_location(gast.Lambda(args=args, body=renamed(node.body, inner)), node)
        case gast.ListComp() | gast.SetComp() | gast.GeneratorExp() | gast.DictComp():
            return _renamed_comprehension(node, names)
        case gast.NamedExpr():
            return rebuild(node, lambda child: child if child is node.target else renamed(child, names))
    return rebuild(node, lambda child: renamed(child, names))


def _renamed_comprehension(node: Node, names: Names) -> Node:
    bound = {name for generator in node.generators for name, _ in bindings([generator.target])}
    inner = {name: new for name, new in names.items() if name not in bound}
    first = node.generators[0]

    def change(child: Node) -> Node:
        if child is first:
            return rebuild(child, lambda part: renamed(part, names if part is first.iter else inner))
        return renamed(child, inner)

    return rebuild(node, change)


def applied(b: Builder, function: Node, args: list[Node], at: Node) -> Node:
    """The call `function(*args)`; a lambda is written out, with its parameters as variables of their own."""
    if not isinstance(function, gast.Lambda) or not _simple(function.args, len(args)):
        return call(function, args, at)
    names = {}
    for parameter, value in zip((*function.args.posonlyargs, *function.args.args), args, strict=True):
        names[parameter.id] = own_name(b, parameter.id, parameter)
        lower_into(b, names[parameter.id].id, value)
    return renamed(function.body, names)


def _simple(args: Node, count: int) -> bool:
    more = args.vararg or args.kwarg or args.kwonlyargs or args.defaults
    return not more and len(args.posonlyargs) + len(args.args) == count
