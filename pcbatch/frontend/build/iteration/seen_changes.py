"""What the loops around a place change while they go over a stream, and whether what makes its elements reads that.

A generator that goes over itself makes all its elements before the loop, and a list is made before it. Of values, the
analysis of ownership finds changes that these would show; attributes of objects are compared by their names.
"""

from __future__ import annotations

from types import FunctionType

import gast

from pcbatch.data.catalogue import facts
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.changed_in_loops import changes, may_show, with_nested
from pcbatch.frontend.source.changing_methods import attributes_changed, attributes_read
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import is_own, values_given
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.streams import CALLING, ELEMENTS, lazy
from pcbatch.frontend.source.tree import Node, display, is_none


def loop_of(unit: Unit, node: Node) -> list[tuple[Unit, Node]]:
    """The loop that a stream is for those whose elements it takes: its body is what it evaluates for each."""
    name = lazy(unit, node)
    if isinstance(node, ELEMENTS):
        first, *rest = node.generators
        source, body = first.iter, [*first.ifs, *rest, node.elt]
    elif name in CALLING:
        source, body = display(node.args[1:], node), [node.args[0]]
    elif name == "accumulate":
        source, body = node.args[0], [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    else:
        return []
    return [(unit, gast.For(target=display([], node), iter=source, body=body, orelse=[], type_comment=None))]


def changes_show(b: Builder) -> bool:
    """Whether the loops around this place may change what is read for the elements of a stream in their heads."""
    return any(may_show(unit, loop) for unit, loop in b.streams)


def attributes_of(unit: Unit, target: Target) -> frozenset[str]:
    """The names of the attributes that a generator may read."""
    if target.nested is not None:
        return attributes_in(target.nested.outer, target.nested.node)
    return attributes_read(unit, target.fn)


def attributes_in(unit: Unit, node: Node) -> frozenset[str]:
    """The names of the attributes that some code may read."""
    parts = with_nested(unit, list(gast.walk(node)))
    called = (fn for fn, _ in changes(unit, parts) if isinstance(fn, FunctionType))
    own = frozenset(part.attr for part in parts if isinstance(part, gast.Attribute))
    return own.union(*(attributes_read(unit, fn) for fn in called))


def called_sees_changes(b: Builder, function: Node) -> bool:
    """Whether what a stream calls for its elements may read what the loops around this place change."""
    if isinstance(function, gast.Lambda) or resolve(b.unit, function) is not MISSING:
        return reads_changed(b, attributes_in(b.unit, function))
    return not is_none(function) and changes_show(b)


def reads_changed(b: Builder, attributes: frozenset[str]) -> bool:
    """Whether the loops around this place change some attributes of objects, or containers in them."""
    read = frozenset(name for name in attributes if not facts(name).changes)
    return bool(read) and any(not read.isdisjoint(_changed(unit, loop)) for unit, loop in b.streams)


def _changed(unit: Unit, loop: Node) -> set[str]:
    """The names of the attributes that the body of a loop changes, or whose containers it changes."""
    names = set[str]()
    for changed, attribute in changes(unit, [part for each in loop.body for part in gast.walk(each)]):
        if isinstance(changed, FunctionType):
            names |= attributes_changed(unit, changed)
        else:
            names |= {attribute} if attribute else _held_by(unit, changed, set())
    return names


def _held_by(unit: Unit, node: Node, seen: set[str]) -> set[str]:
    """The names of the attributes that may hold the container which an expression gives."""
    while isinstance(node, gast.Subscript):
        node = node.value
    if isinstance(node, gast.Attribute):
        return {node.attr}
    if not isinstance(node, gast.Name):
        names = (part for part in gast.walk(node) if isinstance(part, gast.Name))
        return set(attributes_in(unit, node)).union(*(_held_by(unit, name, seen) for name in names))
    if node.id in seen or is_own(unit, node.id):
        return set()
    seen.add(node.id)
    given = [pair for part in gast.walk(unit.node) for pair in values_given(part)]
    values = [value for target, value in given if node.id in {getattr(one, "id", "") for one in gast.walk(target)}]
    return set[str]().union(*(_held_by(unit, value, seen) for value in values))
