"""The parts of a node of which it takes elements, and choices among copies of it for objects that give them."""

from __future__ import annotations

import gast

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.rewrites.method_lookup import generator_methods, may_be_listed, methods_named
from pcbatch.frontend.source.streams import COUNTED, STEPS, consumer, lazy, source, steps, takes_elements
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    Node,
    call,
    compare,
    constant,
    display,
    is_supported,
    load,
    rebuild,
    subscript,
    target_of,
)


def asked_part(unit: Unit, node: Node, done: frozenset[Loc]) -> Node | None:
    """Return the part of a node of which it takes elements, where methods of the user's may give them: a call of a
    generator, or what type inference has found to be an object; `done` are parts that are written out."""
    match node:
        case gast.For(iter=taken) | gast.Expr(value=gast.YieldFrom(value=taken)):
            sources = [taken]
        case gast.Compare(ops=[gast.In() | gast.NotIn()], comparators=[taken]):
            sources = [taken]
        case gast.List(elts=elements) | gast.Tuple(elts=elements) | gast.Set(elts=elements):
            sources = [part.value for part in elements if isinstance(part, gast.Starred)]
        case gast.ListComp() | gast.SetComp() | gast.DictComp() | gast.GeneratorExp():
            sources = [part.iter for part in node.generators]
        case gast.Call() if takes_elements(unit, node, resolve(unit, node.func)) and _takes_whole(unit, node):
            given = [source(unit, node)] if consumer(unit, node) else node.args
            sources = [part for part in given if not isinstance(part, gast.Starred)]
        case gast.Call():
            sources = []
        case _:
            return None
    if isinstance(node, gast.Call):
        sources += [part.value for part in node.args if isinstance(part, gast.Starred)]
    locs, asked = unit.source.loc, unit.decisions.asked
    for taken in sources:
        while lazy(unit, taken) not in (None, STEPS, *COUNTED) and taken.args and locs(taken) not in done:
            left = [arg for arg in taken.args if locs(arg) not in done and not is_supported(arg, steps)]
            named = [arg for arg in left if locs(arg) in asked or generator_methods(unit, arg)]
            taken = [*named, *left[-1:], taken.args[-1]][0]
        if is_supported(taken, steps):  # written out, with the function around this one
            continue
        if isinstance(taken, COMPREHENSIONS):  # no object of the user's
            if (inside := _asked_inside(unit, taken, done)) is not None:
                return inside
            continue
        wanted = not {locs(taken), locs(node)}.isdisjoint(asked) or bool(generator_methods(unit, taken))
        if wanted and locs(taken) not in done:
            return taken
    return None


def _asked_inside(unit: Unit, node: Node, done: frozenset[Loc] = frozenset()) -> Node | None:
    """Return the part of which a generator expression takes elements, where an object shows how many those are."""
    if not isinstance(node, gast.GeneratorExp):
        return None
    part = asked_part(unit, node, done)
    if part is None or not (methods_named(unit, "__next__") or not may_be_listed(unit, made_of(unit, part))):
        return None
    return part if any(one is part for one in gast.walk(node.generators[0].iter)) else None


def made_of(unit: Unit, part: Node) -> list[Node]:
    """Return the functions that may make the elements of a part."""
    return generator_methods(unit, part) or methods_named(unit, "__iter__")


def taken_streams(unit: Unit, node: Node) -> list[Node]:
    """Return the generator expressions of which a node takes elements of iterators, as many as it needs."""
    match node:
        case gast.For(iter=taken):
            sources = [taken]
        case gast.Call() if takes_elements(unit, node, resolve(unit, node.func)) and _takes_whole(unit, node):
            sources = [source(unit, node)] if consumer(unit, node) else node.args
        case _:
            return []
    return [taken for taken in sources if _asked_inside(unit, taken) is not None]


def _takes_whole(unit: Unit, node: Node) -> bool:
    """Whether a call takes elements by itself: it makes no stream of them, and does not go on with an iterator."""
    is_next = consumer(unit, node) == "next" and not isinstance(source(unit, node), gast.GeneratorExp)
    return lazy(unit, node) is None and not is_next


def is_among(name: str, node: Node, elements: Node) -> Node:
    """The comparison `x in elements`, which takes elements up to the first that is equal."""
    equal = compare(load(name, node), gast.Eq(), node.left, node)
    part = gast.comprehension(target=target_of(name, node), iter=elements, ifs=[], is_async=0)
    found = call(load("any", node), [gast.copy_location(gast.GeneratorExp(elt=equal, generators=[part]), node)], node)
    if isinstance(node.ops[0], gast.In):
        return found
    return gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=found), node)


def replaced(node: Node, part: Node, new: Node) -> Node:
    return rebuild(node, lambda child: new if child is part else replaced(child, part, new))


def either(holds: Node, before: list[Node], body: Node, out: Node) -> Node:
    """The choice between two statements or expressions; `before` are expressions in front of the first one."""
    if not isinstance(out, gast.stmt):
        return gast.copy_location(gast.IfExp(test=holds, body=behind(body, before), orelse=out), out)
    first = [gast.copy_location(gast.Expr(value=part), out) for part in before]
    return gast.copy_location(gast.If(test=holds, body=[*first, body], orelse=[out]), out)


def begun(before: list[Node], body: Node) -> Node:
    """A statement or an expression with expressions in front of it."""
    if not isinstance(body, gast.stmt):
        return behind(body, before)
    return either(constant(True, body), before, body, gast.copy_location(gast.Pass(), body))


def behind(node: Node, before: list[Node]) -> Node:
    """A choice behind an expression that is evaluated first."""
    if not before:
        return node
    if isinstance(node, gast.stmt):
        return rebuild(node, lambda child: behind(child, before) if child is node.test else child)
    return subscript(display([*before, node], node), constant(1, node), node)
