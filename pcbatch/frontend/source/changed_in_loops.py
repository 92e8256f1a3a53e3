"""The variables whose objects the body of a loop may change, which an iterator of Python sees."""

from __future__ import annotations

from collections.abc import Iterator

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import mutation, place_of
from pcbatch.frontend.source.tree import Node

VIEWS = ("keys", "values", "items")
KINDS = ("removes", "stores")
REMOVING = frozenset({"pop", "popitem", "clear", "remove", "discard", "difference_update", "intersection_update"})
STORING = frozenset({"setdefault", "update", "add"})
LAZY = ("enumerate", "zip", "reversed")


def changed_in(unit: Unit, loop: Node) -> frozenset[str]:
    """Return the variables whose objects the body of a `for` loop may change, itself or in a call that gets them."""
    parts = _with_nested(unit, _parts(loop))
    names = {name for part in parts for name in _changed_by(unit, part)}
    if names and unit.decisions.linked:  # what is changed may be another name of what the loop goes over
        names |= {name.id for name in sources(loop.iter)}
    return frozenset(names)


def assigned_in(loop: Node) -> frozenset[str]:
    """Return the variables that the body of a `for` loop assigns: they may stand for another object then."""
    parts = _parts(loop)
    return frozenset(part.id for part in parts if isinstance(part, gast.Name) and isinstance(part.ctx, gast.Store))


def refilled_in(unit: Unit, loop: Node) -> frozenset[str]:
    """Return the variables of a dict or set from which the body of a `for` loop may remove keys and store others: then
    its size does not tell that its keys have changed."""
    parts = _with_nested(unit, _parts(loop))
    kinds = {kind: {name for part in parts for name in _taken_or_stored(unit, part, kind)} for kind in KINDS}
    if all(kinds.values()) and unit.decisions.linked:
        return frozenset(name.id for name in sources(loop.iter))
    return frozenset(kinds["stores"] & kinds["removes"])


def _parts(loop: Node) -> list[Node]:
    return [part for statement in loop.body for part in gast.walk(statement)]


def _taken_or_stored(unit: Unit, part: Node, kind: str) -> Iterator[str]:
    """Yield the variables from which a part of a loop's body takes keys, or in which it stores some."""
    if isinstance(part, gast.Call):
        found = mutation(unit, part, statement=True)
        if found is None:
            yield from _changed_by(unit, part)
        elif found.method not in (REMOVING if kind == "stores" else STORING):
            yield found.place.name
    elif isinstance(part, gast.Subscript):
        reads = isinstance(part.ctx, gast.Load)
        found = mutation(unit, part) if reads else None  # reading a `defaultdict` stores what is missing
        place = place_of(unit, part.value)
        if place is not None and not place.keys and (found is not None or not reads):
            if (kind == "removes") is isinstance(part.ctx, gast.Del):
                yield place.name
    elif isinstance(part, gast.AugAssign) and isinstance(part.target, gast.Name):
        yield part.target.id


def _with_nested(unit: Unit, parts: list[Node]) -> list[Node]:
    """The parts, and those of the nested functions that they name."""
    found, named = list(parts), set[str]()
    for part in found:
        if isinstance(part, gast.Name) and part.id in unit.definitions and part.id not in named:
            named.add(part.id)
            found += gast.walk(unit.definitions[part.id])
    return found


def _changed_by(unit: Unit, part: Node) -> Iterator[str]:
    if isinstance(part, gast.Call):
        found = mutation(unit, part, statement=True)
        if found is not None and not found.place.keys:
            yield found.place.name
        yield from (arg.id for arg in part.args if isinstance(arg, gast.Name))
        yield from (keyword.value.id for keyword in part.keywords if isinstance(keyword.value, gast.Name))
    elif isinstance(part, gast.Subscript) and not isinstance(part.ctx, gast.Load):
        place = place_of(unit, part.value)
        if place is not None and not place.keys:
            yield place.name


def viewed(node: Node) -> tuple[str, str] | None:
    """The variable and the method of `d.values()` or `d.items()`; None for other expressions."""
    match node:
        case gast.Call(func=gast.Attribute(value=gast.Name(id=name), attr=attr), args=[], keywords=[]) if attr in VIEWS:
            return name, attr
    return None


def sources(node: Node) -> list[Node]:
    """The variables that a loop goes over, also by views and inside of `enumerate`, `zip` and `reversed`."""
    match node:
        case gast.Name():
            return [node]
        case gast.Call(func=gast.Attribute(value=gast.Name() as name)) if viewed(node) is not None:
            return [name]
        case gast.Call(func=gast.Name(id=function), args=args) if function in LAZY:
            return [name for arg in args for name in sources(arg)]
    return []
