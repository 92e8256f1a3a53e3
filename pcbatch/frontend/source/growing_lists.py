"""Lists that grow by a stream which reads them: Python appends each element before it asks for the next one.

xs.extend(xs[-1] + k for k in ys)      ==>      for t in (xs[-1] + k for k in ys):
                                                    xs.append(t)
"""

from __future__ import annotations

from collections.abc import Callable

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import place_of
from pcbatch.frontend.source.streams import has_own, is_stream, read_for_each
from pcbatch.frontend.source.tree import Node, call, load, rebuild, target_of

ONE = {"extend": "append", "extendleft": "appendleft"}


def as_loop(unit: Unit, node: Node, new_name: Callable[[], str]) -> Node | None:
    """Return the loop that does what a statement does, with a new name for each element; None for other statements."""
    own: tuple[str, ...]
    match node:
        case gast.Expr(value=gast.Call(func=gast.Attribute(value=value, attr=method), args=[stream], keywords=[])):
            own = (method,)
        case gast.AugAssign(target=target, op=gast.Add(), value=stream):
            value, method, own = _read(target), "extend", ("__iadd__", "__add__")
        case _:
            return None
    place = place_of(unit, value) if method in ONE and not has_own(unit, *own) else None
    if place is None or isinstance(stream, gast.ListComp) or not is_stream(unit, stream):
        return None
    simple = all(isinstance(part, gast.Name | gast.Constant) for part in place.operands)
    if not simple or place.name not in read_for_each(unit, stream):
        return None
    name = new_name()
    append = gast.copy_location(gast.Attribute(value=value, attr=ONE[method], ctx=gast.Load()), node)
    body = gast.copy_location(gast.Expr(value=call(append, [load(name, node)], node)), node)
    loop = gast.For(target=target_of(name, node), iter=stream, body=[body], orelse=[], type_comment=None)
    return gast.copy_location(loop, node)


def _read(target: Node) -> Node:
    """The expression that reads what a target assigns."""
    return rebuild(target, lambda child: gast.Load() if isinstance(child, gast.Store) else child)
