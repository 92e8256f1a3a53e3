"""Streams whose elements are all taken where they stand, as lists of the lane."""

from __future__ import annotations

from collections.abc import Callable

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.streams import ELEMENT, lazy
from pcbatch.frontend.source.tree import Node, call, load, rebuild, target_of


def is_reversed(unit: Unit, node: Node) -> bool:
    """Whether a node is an iterator by `reversed`."""
    return lazy(unit, node) == "reversed"


def whole(unit: Unit, node: Node, test: Callable[[Unit, Node], bool] = is_reversed) -> Node:
    """A list in place of an iterator that passes a test and whose elements are all taken; in a choice, too."""
    if isinstance(node, gast.IfExp):
        return rebuild(node, lambda arm: arm if arm is node.test else whole(unit, arm, test))
    is_iterator = test(unit, node) and resolve(unit, load("list", node)) is list
    return call(load("list", node), [node], node) if is_iterator else node


def as_list(node: Node) -> Node:
    """A comprehension that makes a list of the elements of a stream."""
    if isinstance(node, gast.GeneratorExp):
        return gast.copy_location(gast.ListComp(elt=node.elt, generators=node.generators), node)
    generator = gast.comprehension(target=target_of(ELEMENT, node), iter=node, ifs=[], is_async=0)
    return gast.copy_location(gast.ListComp(elt=load(ELEMENT, node), generators=[generator]), node)
