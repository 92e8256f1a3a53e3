"""The check that nothing changes what a cached function has read: later calls get what Python has kept.

refused:  @cache
          def best(i): return xs[i] + limit
          a = best(0)
          limit = 5
          b = best(0)
"""

from __future__ import annotations

from collections.abc import Iterator

import gast

from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.places import is_mutating_method
from pcbatch.frontend.source.rewrites.nested import function_of, has_cache, read_around
from pcbatch.frontend.source.scope import bindings
from pcbatch.frontend.source.tree import COMPREHENSIONS, SCOPES, Node, children
from pcbatch.ir.names import MEMO

INNER = tuple(kind for kind in SCOPES if kind not in COMPREHENSIONS)


def check_caches(unit: Unit, faults: Faults) -> None:
    """Record the changes of variables that a cached function of this one reads, between two places that name it."""
    if not isinstance(unit.node, gast.FunctionDef):
        return
    for name, node in unit.definitions.items():
        if not has_cache(unit, node):
            continue
        around = read_around(name, unit.definitions).intersection(unit.variables)
        read = {variable for variable in around if not variable.startswith(MEMO)}
        for variable, place in _changed(unit):
            if variable in read and place.lineno > node.end_lineno and _is_between(unit, name, node, place):
                title = f"`{variable}` changes after `{name}`, which Python caches, has read it"
                label = f"calls of `{name}` behind this give what Python has kept"
                anew = f"define `{name}` anew behind the change"
                helps = (f"pass it: `{name}(..., {variable})`", anew) if isinstance(place, gast.Name) else (anew,)
                faults.add("PCB304", title, place, label, helps=helps, cause=(function_of(node), f"`{name}` reads it"))
                break


def _is_between(unit: Unit, name: str, definition: Node, place: Node) -> bool:
    """Whether a function may be called both before a place behind its definition and after it."""
    inside = set(map(id, gast.walk(definition)))
    nodes = [part for part in gast.walk(unit.node) if id(part) not in inside]
    uses = [part for part in nodes if isinstance(part, gast.Name) and part.id == name]
    if any(use.lineno <= place.lineno for use in uses if use.lineno > definition.end_lineno):
        if any(use.lineno > place.lineno for use in uses):
            return True
    loops = [part for part in nodes if isinstance(part, gast.For | gast.While) and part.lineno > definition.end_lineno]
    return any(_holds(loop, place) and any(_holds(loop, use) for use in uses) for loop in loops)


def _holds(loop: Node, node: Node) -> bool:
    return bool(loop.lineno <= node.lineno <= loop.end_lineno)


def _changed(unit: Unit) -> Iterator[tuple[str, Node]]:
    """The variables that the function assigns, or whose objects it changes in place, each with the place."""
    yield from bindings(unit.body)
    for part in _own(unit.body):
        match part:
            case gast.Subscript(ctx=gast.Store() | gast.Del()) | gast.Attribute(ctx=gast.Store() | gast.Del()):
                yield from _root(part)
            case gast.Call(func=gast.Attribute(value=value) as func) if is_mutating_method(func, statement=True):
                yield from _root(value)


def _own(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if not isinstance(node, INNER):
            yield from _own(list(children(node)))


def _root(node: Node) -> Iterator[tuple[str, Node]]:
    """The variable in whose object a part stands."""
    inner = node
    while isinstance(inner, gast.Subscript | gast.Attribute):
        inner = inner.value
    if isinstance(inner, gast.Name):
        yield inner.id, node
