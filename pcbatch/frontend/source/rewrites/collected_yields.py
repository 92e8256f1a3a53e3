"""A generator function that is no loop's: the entry, or one that goes over itself. It makes the list of what it yields.

before:  def below(n):            after:  def below(n):
             k = 0                            yielded = []
             while k < n:                     k = 0
                 yield k                      while k < n:
                 k += 1                           yielded.append(k)
                                                  k += 1
                                              return yielded
"""

from __future__ import annotations

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import is_generator
from pcbatch.frontend.source.tree import SCOPES, Node, call, constant, display, load, rebuild, subscript, target_of
from pcbatch.ir.names import unused


def collect_yields(unit: Unit) -> Node:
    """Return the tree of a function, rewritten if it is a generator; what is left of `yield` then is an expression."""
    if isinstance(unit.node, gast.Lambda) or not is_generator(unit.node):
        return unit.node
    name = unused("yielded", "_", unit.names, unit.bound)
    item = unused("item", "_", unit.names, unit.bound)

    def appended(value: Node, at: Node) -> Node:
        method = gast.copy_location(gast.Attribute(value=load(name, at), attr="append", ctx=gast.Load()), at)
        return gast.copy_location(gast.Expr(value=call(method, [value], at)), at)

    def change(node: Node) -> Node:
        match node:
            case gast.Expr(value=gast.Yield(value=value)):
                none = gast.copy_location(gast.Constant(value=None, kind=None), node)
                return appended(none if value is None else value, node)
            case gast.Expr(value=gast.YieldFrom(value=value)):
                body = [appended(load(item, node), node)]
                loop = gast.For(target=target_of(item, node), iter=value, body=body, orelse=[], type_comment=None)
                return gast.copy_location(loop, node)
            case gast.Return(value=value):
                # A value goes to whoever asks the generator for it, which nobody can here: it is only evaluated.
                kept = load(name, node)
                if value is not None and not isinstance(value, gast.Constant):
                    kept = subscript(display([value, kept], node), constant(1, node), node)
                return gast.copy_location(gast.Return(value=kept), node)
            case _ if isinstance(node, SCOPES):
                return node
        return rebuild(node, change)

    first = unit.node.body[0]
    start = gast.Assign(
        targets=[target_of(name, first)],
        value=gast.copy_location(gast.List(elts=[], ctx=gast.Load()), first),
        type_comment=None,
    )
    end = gast.Return(value=load(name, unit.node.body[-1]))
    body = [gast.copy_location(start, first), *map(change, unit.node.body)]
    body.append(gast.copy_location(end, unit.node.body[-1]))
    fields = {field: value for field, value in gast.iter_fields(unit.node) if field != "body"}
    return gast.copy_location(type(unit.node)(**fields, body=body), unit.node)
