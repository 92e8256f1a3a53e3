"""Iterables whose elements are all taken where they stand: iterators by `reversed` may be lists of the lane there.

Python's iterator gives each element once. A list gives them to everyone who asks: one that is kept would be wrong.
Objects of the user's that give elements by index alone become lists in the same places, and where a dict may lack
what is gone over (`d.get(key, ())`), an empty tuple is as good as an empty list or set.
"""

from __future__ import annotations

from collections.abc import Callable

import gast

from pcbatch.data.functions import mappings, sequence_builtins
from pcbatch.data.functions.users_code import elements_of, iterable
from pcbatch.frontend.build.iteration.streams_as_lists import as_list, whole
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.streams import (
    IN_PLACE,
    becomes_list,
    has_own,
    iterables_of,
    of_container,
    takes_elements,
)
from pcbatch.frontend.source.tree import Node, constant, display, is_supported, rebuild, supported


def taken_at_once(unit: Unit, node: Node, target: object) -> Node:
    """Return a node in which iterators whose elements it takes may be lists; `target` is the callee of a call."""
    taken = _taken_whole(unit, node, target)
    if not taken:
        return node
    asked = [part for part in taken if not isinstance(part, gast.Starred)]
    if asked and not _gives_by_index(unit, target):
        asked = []
    gone_over = has_own(unit, "__iter__") and not isinstance(node, gast.Compare)
    method = constant("__contains__" if isinstance(node, gast.Compare) else "__iter__", node)

    def change(child: Node) -> Node:
        if not any(child is part for part in taken):
            return child
        new = at_once(child)
        if gone_over and not isinstance(child, gast.Starred):
            new = supported(elements_of, [new], child)
        return supported(iterable, [new, method], child) if any(child is part for part in asked) else new

    return rebuild(node, change)


def _gives_by_index(unit: Unit, target: object) -> bool:
    """Whether what a node takes elements of may be an object of the user's that has `__getitem__` and no `__iter__`."""
    classes = [cls for cls in unit.classes.values() if not hasattr(cls, "__iter__")]
    return target is not reversed and any(own_methods(classes, "__getitem__"))


def write_elements(unit: Unit) -> Node:
    """Return the tree of a function with `d.get(key, ())` as calls of their own where only elements are taken."""
    if all(_at_key(node) is node for node in gast.walk(unit.node)):
        return unit.node

    def rewritten(node: Node) -> Node:
        target = resolve(unit, node.func) if isinstance(node, gast.Call) else None
        taken = _taken_whole(unit, node, target)
        return rebuild(node, lambda child: rewritten(_at_key(child) if any(child is one for one in taken) else child))

    return rewritten(unit.node)


def _at_key(node: Node) -> Node:
    match node:
        case gast.Call(func=gast.Attribute(value=value, attr="get"), args=[key, gast.Tuple(elts=[])], keywords=[]):
            return supported(mappings.elements_at, [value, key], node)
        case gast.IfExp():  # a choice among methods of the user's, and the plain call
            return rebuild(node, lambda child: child if child is node.test else _at_key(child))
    return node


def with_lists(unit: Unit, node: Node) -> Node:
    """Return a node in which choices whose elements it takes choose lists, and a stream behind a star is a list where
    it becomes a loop."""
    if isinstance(node, gast.Starred) and becomes_list(unit, node.value):
        return rebuild(node, lambda child: whole(unit, child, becomes_list))
    target = resolve(unit, node.func) if isinstance(node, gast.Call) else None
    chosen = [part for part in _taken_whole(unit, node, target) if isinstance(part, gast.IfExp)]
    return rebuild(node, lambda child: whole(unit, child) if any(child is part for part in chosen) else child)


def _taken_whole(unit: Unit, node: Node, target: object) -> list[Node]:
    """The parts of a node whose elements are all taken where they stand; `target`: what a call calls."""
    match node:
        case gast.For() | gast.comprehension():
            return [node.iter]
        case gast.AugAssign() if has_own(unit, *IN_PLACE):
            return []
        case gast.Starred() | gast.AugAssign() | gast.YieldFrom():
            return [node.value]
        case gast.Assign(targets=[gast.Tuple() | gast.List() | gast.Subscript(slice=gast.Slice())]):
            return [node.value]
        case gast.Compare(ops=[gast.In() | gast.NotIn()]):
            return list(node.comparators)
        case gast.Call() if takes_elements(unit, node, target):
            return iterables_of(unit, node)
    return []


def at_once(node: Node) -> Node:
    """An iterator by `reversed` whose elements are all taken where it stands, which may be a list of the lane."""
    if isinstance(node, gast.IfExp):
        return rebuild(node, lambda child: child if child is node.test else at_once(child))
    made = is_supported(node, sequence_builtins.reversed_)
    return supported(sequence_builtins.reversed_once, node.args, node) if made else node


def given_lists(unit: Unit, node: Node, listed: Callable[[Node], bool]) -> Node:
    """Return a call that gets lists in place of streams."""
    node = rebuild(node, lambda child: as_list(child) if listed(child) else child)
    if not isinstance(node.func, gast.Attribute):
        return node
    owner = of_container(unit, node.func.value, display([], node), node.func.attr, node)
    func = rebuild(node.func, lambda child: owner if child is node.func.value else child)
    return rebuild(node, lambda child: func if child is node.func else child)
