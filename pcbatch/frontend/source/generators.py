"""Generator functions of the user's own code.

One that a `for` loop goes over is written out in the loop. Any other, the entry or one that goes over itself, makes the
list of what it yields.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import gast

from pcbatch.data.object_parts import is_user_code
from pcbatch.frontend.source.callable_objects import callee_of
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import is_kept
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.nested import function_of, lift, nonlocals
from pcbatch.frontend.source.tree import (
    SCOPES,
    Node,
    attribute,
    call,
    children,
    constant,
    display,
    load,
    rebuild,
    subscript,
    target_of,
    with_fields,
)
from pcbatch.ir.names import unused

STOPPING = frozenset({"next", "StopIteration"})
YIELDS = (gast.Yield, gast.YieldFrom)


def generator(unit: Unit, node: Node) -> Target | None:
    """The generator function that a node calls; None for any other node."""
    if not isinstance(node, gast.Call):
        return None
    name = node.func.id if isinstance(node.func, gast.Name) else ""
    if name in unit.definitions:
        definition = unit.definitions[name]
        if not is_generator(function_of(definition)):
            return None
        return lift(unit, frozenset({name}), unit.definitions).get(name)
    function = resolve(unit, node.func)
    if function is MISSING or isinstance(function, Target):
        return function if isinstance(function, Target) and inspect.isgeneratorfunction(function.fn) else None
    fn, args, keywords = callee_of(function)
    if fn is None or not inspect.isgeneratorfunction(fn) or not is_user_code(fn.__code__) or is_kept(fn.__code__):
        return None
    return Target(fn, args, keywords, helper=True)


def assigns_around(unit: Unit, node: Node) -> bool:
    """Whether a node calls a generator function that assigns variables of the function around it."""
    target = generator(unit, node)
    return target is not None and target.nested is not None and bool(nonlocals(target.nested.node))


def is_generator(node: Node) -> bool:
    """Whether the body of a function has a `yield` of its own."""
    return not isinstance(node, gast.Lambda) and any(own_yields(node.body))


def own_yields(nodes: list[Node]) -> Iterator[Node]:
    """Yield each `yield` among nodes, functions inside left out."""
    for node in nodes:
        if isinstance(node, YIELDS):
            yield node
        elif not isinstance(node, SCOPES):
            yield from own_yields(list(children(node)))


def may_stop(unit: Unit, body: list[Node]) -> bool:
    """Whether a generator, or a function that it calls, may raise StopIteration, as far as their names tell."""
    nodes, names = list(body), set[str]()
    for node in nodes:
        new = {part.id for part in gast.walk(node) if isinstance(part, gast.Name)} - names
        names |= new
        nodes += [unit.definitions[name] for name in sorted(new) if name in unit.definitions]
    called = (callee_of(value)[0] for name in names if (value := resolve(unit, load(name, body[0]))) is not MISSING)
    codes = [fn.__code__.co_names for fn in called if fn is not None]
    return any(not STOPPING.isdisjoint(each) for each in (names, *codes))


def collect_yields(unit: Unit) -> Node:
    """Return the tree of a function; that of a generator makes the list of what it yields.

    before:  def below(n):            after:  def below(n):
                 k = 0                            yielded = []
                 while k < n:                     k = 0
                     yield k                      while k < n:
                     k += 1                           yielded.append(k)
                                                      k += 1
                                                  return yielded

    What is left of `yield` then is an expression.
    """
    if isinstance(unit.node, gast.Lambda) or not is_generator(unit.node):
        return unit.node
    name = unused("yielded", "_", unit.names, unit.bound)
    item = unused("item", "_", unit.names, unit.bound)

    def appended(value: Node, at: Node) -> Node:
        return gast.copy_location(gast.Expr(value=call(attribute(load(name, at), "append", at), [value], at)), at)

    def change(node: Node) -> Node:
        match node:
            case gast.Expr(value=gast.Yield(value=value)):
                return appended(constant(None, node) if value is None else value, node)
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
    empty = gast.copy_location(gast.List(elts=[], ctx=gast.Load()), first)
    start = gast.copy_location(gast.Assign(targets=[target_of(name, first)], value=empty, type_comment=None), first)
    last = unit.node.body[-1]
    end = gast.copy_location(gast.Return(value=load(name, last)), last)
    return with_fields(unit.node, body=[start, *map(change, unit.node.body), end])
