"""Comprehensions whose elements are all made by one expression that does not depend on the loop: one primitive.

    [[0] * m for _ in range(n)]      ==>      repeated_element([0] * m, 1, range_size(0, n, 1))

The expression is evaluated once, also where the range is empty. So it is one that has no effect, cannot fail in a lane,
and makes new lists each time: displays, repeated a number of times, also one in the other; the support function is told
how many levels of lists that are. A variable in a display is one object in all elements.
"""

from __future__ import annotations

import gast

from pcbatch.data.functions import iteration
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import is_builtin
from pcbatch.frontend.source.tree import Node, constant, supported

NUMBERS = (bool, int, float, complex)
CONSTANTS = ("inf", "nan", "pi")  # of modules, as in `math.inf`


def alike(unit: Unit, node: Node) -> Node | None:
    """Return a comprehension as an expression that makes all elements at once; None if it may be none."""
    if not isinstance(node, gast.ListComp) or len(node.generators) != 1:
        return None
    part = node.generators[0]
    target, source = part.target, part.iter
    if part.ifs or part.is_async or not isinstance(target, gast.Name) or not isinstance(source, gast.Call):
        return None
    if source.keywords or not 1 <= len(source.args) <= 2 or not is_builtin(unit, source.func, "range"):
        return None
    if not all(_is_size(unit, arg) for arg in source.args) or _reads(node.elt, target.id):
        return None
    element = _element(unit, node.elt)
    if element is None:
        return None
    bounds = [constant(0, source), *source.args][-2:]
    size = supported(iteration.range_size, [*bounds, constant(1, source)], source)
    return supported(iteration.repeated_element, [element, constant(_depth(node.elt), node), size], node)


def _reads(node: Node, name: str) -> bool:
    return any(isinstance(part, gast.Name) and part.id == name for part in gast.walk(node))


def _depth(element: Node) -> int:
    """The levels of lists that an expression for an element makes anew."""
    if isinstance(element, gast.ListComp):
        return 1 + _depth(element.elt)
    return 0 if _is_number(element) else 1


def _element(unit: Unit, node: Node) -> Node | None:
    """An expression that makes a new element each time that it is evaluated; None if it may not."""
    if _is_number(node):
        return node
    if isinstance(node, gast.ListComp):
        return alike(unit, node)
    if isinstance(node, gast.List):
        return node if all(_is_number(part) for part in node.elts) else None
    if isinstance(node, gast.BinOp) and isinstance(node.op, gast.Mult):
        sides = (node.left, node.right)
        lists = [side for side in sides if isinstance(side, gast.List)]
        sizes = [side for side in sides if not isinstance(side, gast.List) and _is_size(unit, side)]
        if len(lists) == len(sizes) == 1 and all(_is_value(part) for part in lists[0].elts):
            return node
    return None


def _is_number(node: Node) -> bool:
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub):
        node = node.operand
    return isinstance(node, gast.Constant) and isinstance(node.value, NUMBERS)


def _is_value(node: Node) -> bool:
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub):
        node = node.operand
    if isinstance(node, gast.Attribute):
        return isinstance(node.value, gast.Name) and node.attr in CONSTANTS
    return isinstance(node, gast.Name) or _is_number(node)


def _is_size(unit: Unit, node: Node) -> bool:
    """Whether an expression is a sum or product of names, lengths and constants."""
    match node:
        case gast.Name():
            return True
        case gast.Constant():
            return type(node.value) is int
        case gast.BinOp():
            whole = isinstance(node.op, gast.Add | gast.Sub | gast.Mult)
            return whole and _is_size(unit, node.left) and _is_size(unit, node.right)
        case gast.Call():
            single = len(node.args) == 1 and not node.keywords and isinstance(node.args[0], gast.Name)
            return single and is_builtin(unit, node.func, "len")
    return False
