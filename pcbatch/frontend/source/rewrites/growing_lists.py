"""Lists that grow by a stream which reads them: Python appends each element before it asks for the next one.

xs.extend(xs[-1] + k for k in ys)      ==>      for t in (xs[-1] + k for k in ys):
                                                    xs.append(t)
"""

from __future__ import annotations

from collections.abc import Callable

import gast

from pcbatch.data.catalogue import facts
from pcbatch.frontend.source.changed_in_loops import read_for_each
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import place_of
from pcbatch.frontend.source.streams import has_own, is_stream
from pcbatch.frontend.source.tree import Node, attribute, call, load, read_of, rebuild, target_of


def as_loop(unit: Unit, node: Node, new_name: Callable[[], str]) -> list[Node]:
    """Return the statements, with a loop, that do what one does, with new names; none for other statements."""
    own: tuple[str, ...]
    match node:
        case gast.Expr(value=gast.Call(func=gast.Attribute(value=value, attr=method), args=[stream], keywords=[])):
            own = (method,)
        case gast.AugAssign(target=target, op=gast.Add(), value=stream):
            value, method, own = read_of(target), "extend", ("__iadd__", "__add__")
        case _:
            return []
    place = place_of(unit, value) if facts(method).one and not has_own(unit, *own) else None
    if place is None or isinstance(stream, gast.ListComp) or not is_stream(unit, stream):
        return []
    if place.name not in read_for_each(unit, stream):
        return []
    before: list[Node] = []

    def evaluated(part: Node) -> Node:
        """The place, whose indices are evaluated once."""
        if not any(part is operand for operand in place.operands):
            return rebuild(part, evaluated)
        name = new_name()
        before.append(gast.copy_location(gast.Assign([target_of(name, part)], part, None), part))
        return load(name, part)

    name, value = new_name(), evaluated(value)
    append = attribute(value, facts(method).one, node)
    body = gast.copy_location(gast.Expr(value=call(append, [load(name, node)], node)), node)
    loop = gast.For(target=target_of(name, node), iter=stream, body=[body], orelse=[], type_comment=None)
    return [*before, gast.copy_location(loop, node)]


def reads_what_it_changes(unit: Unit, node: Node) -> Node | None:
    """Return the stream among the arguments of a method that changes a set or a dict of which it reads; None if there
    is none. Of parts of objects nobody knows what a stream reads."""
    match node:
        case gast.Call(func=gast.Attribute(value=gast.Name() as value, attr=method)):
            one_by_one = facts(method).stepwise and not facts(method).one  # what has one for each becomes a loop
            place = place_of(unit, value) if one_by_one and not has_own(unit, method) else None
        case _:
            return None
    for arg in node.args if place is not None else ():
        if not isinstance(arg, gast.ListComp) and is_stream(unit, arg) and value.id in read_for_each(unit, arg):
            return arg
    return None
