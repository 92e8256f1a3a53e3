"""Facts about the expressions of a program in which some objects are boxed."""

from __future__ import annotations

from collections.abc import Mapping

import gast

from pcbatch.data.objects.boxes.classes import BoxValue
from pcbatch.frontend.source.rewrites.boxes.flow import Flow
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.tree import Node

MOST_PARTS = 1000  # that are looked at
QUIET = frozenset(("abs", "bool", "float", "int", "len", "list", "max", "min", "range", "set", "str", "sum", "tuple"))
"""Functions of Python's that change nothing, unless they are given functions that do."""


class CannotBox(Exception):
    """A construct in which boxes cannot stand in place of what they hold."""


class NeedsWhole(Exception):
    """A dict by name is used as a whole, so that its box must hold the dict.

    Attributes:
        value: the dict.
    """

    def __init__(self, value: Object) -> None:
        super().__init__()
        self.value = value


class BoxFacts:
    """The objects of expressions, and those that are boxed.

    Attributes:
        flow: the objects of all expressions.
        classes: those that are boxed, with the classes of the boxes.
        names: the keys of those of them that are dicts by name, each of which is a field of the box.
        late: those of these keys that a dict may lack.
    """

    def __init__(self, flow: Flow, classes: Mapping[Object, type[BoxValue]]) -> None:
        self.flow, self.classes = flow, classes
        self.names = {one: cls.pcbatch_keys for one, cls in classes.items() if cls.pcbatch_keys}
        self.late = {one: cls.pcbatch_late for one, cls in classes.items() if cls.pcbatch_late}

    def object_of(self, node: Node) -> Object | None:
        """Return the object of an expression of the program; None for one that has been made here."""
        found = self.flow.of.get(id(node))
        return None if found is None else found.found()

    def given_by(self, node: Node) -> Object | None:
        """Return what an iteration over an expression gives; None where there is none."""
        found = self.flow.given.get(id(node))
        return None if found is None else found.found()

    def box_of(self, node: Node) -> Object | None:
        """Return the object of an expression if it is boxed."""
        value = self.object_of(node)
        return value if value in self.classes else None

    def is_boxed(self, node: Node) -> bool:
        """Return whether an expression gives a box."""
        return self.box_of(node) is not None

    def holds(self, value: Object | None, *, itself: bool = True) -> bool:
        """Return whether an object is a box, or has one inside."""
        pending = [] if value is None else [value] if itself else value.inside()
        seen = set[int]()
        while pending:
            one = pending.pop().found()
            if one in self.classes:
                return True
            if id(one) not in seen:
                seen.add(id(one))
                pending += one.inside()
        return False

    def refuse_late_keys(self, value: Object | None) -> None:
        """Raise NeedsWhole where an object is, or holds, a dict by name that may lack keys: it is no value then."""
        pending, seen = [] if value is None else [value], set[int]()
        while pending and self.late:
            one = pending.pop().found()
            if one in self.late:
                raise NeedsWhole(one)
            if id(one) not in seen:
                seen.add(id(one))
                pending += one.inside()

    def refuse_what_has_no_value(self, value: Object | None) -> None:
        """Raise CannotBox where an object holds itself, or objects of the user's classes: with all that is in its boxes
        in place of these it is no value."""
        pending, seen = [] if value is None else [(value.found(), frozenset[Object]())], 0
        while pending:
            one, around = pending.pop()
            seen += 1
            if one in around or one.classes or seen > MOST_PARTS:
                raise CannotBox
            pending += [(part.found(), around | {one}) for part in one.inside()]

    def mentions(self, tree: Node) -> bool:
        """Return whether a tree has an expression that is a box, or has one inside."""
        return any(self.holds(self.object_of(node)) for node in gast.walk(tree))

    def refuse_box(self, node: Node) -> None:
        """Raise CannotBox where an expression is a box."""
        if self.is_boxed(node):
            raise CannotBox(node)

    def refuse_boxes(self, node: Node) -> None:
        """Raise CannotBox where an expression is a box, or has one inside."""
        if self.holds(self.object_of(node)):
            raise CannotBox(node)

    def refuse_boxes_in(self, node: Node) -> None:
        """Raise CannotBox where an expression has a box inside: what is asked looks at what it holds."""
        if self.holds(self.object_of(node), itself=False):
            raise CannotBox(node)

    def refuse_boxes_on_way(self, node: Node) -> None:
        """Raise CannotBox where an expression is a part of a box, or is one: another may be there by then."""
        while node is not None:
            self.refuse_box(node)
            node = getattr(node, "value", None) if isinstance(node, gast.Attribute | gast.Subscript) else None

    def is_looked_at(self, function: Node) -> bool:
        """Return whether an expression gives functions of the program."""
        value = self.object_of(function)
        return value is not None and bool(value.functions)


def is_quiet(node: Node) -> bool:
    """Return whether the evaluation of an expression changes nothing for certain."""
    loud = gast.Call | gast.NamedExpr | gast.Yield | gast.YieldFrom
    return not any(isinstance(part, loud) and not _is_plain_call(part) for part in gast.walk(node))


def _is_plain_call(node: Node) -> bool:
    match node:
        case gast.Call(func=gast.Name(id=name)):
            return name in QUIET
    return False


def is_simple(node: Node) -> bool:
    """Return whether an expression may be evaluated more than once."""
    match node:
        case gast.Name() | gast.Constant():
            return True
        case gast.Attribute(value=value) | gast.UnaryOp(operand=value):
            return is_simple(value)
        case gast.Subscript(value=value, slice=index):
            return is_simple(value) and is_simple(index)
        case gast.Tuple(elts=items):
            return all(map(is_simple, items))
        case gast.BinOp(left=left, right=right):
            return is_simple(left) and is_simple(right)
    return False


def is_display(node: Node) -> bool:
    """Return whether an expression makes containers of variables and literals, so that it may be evaluated or not."""
    match node:
        case gast.Name() | gast.Constant() | gast.UnaryOp(operand=gast.Constant()):
            return True
        case gast.List(elts=items) | gast.Tuple(elts=items) | gast.Set(elts=items):
            return all(map(is_display, items))
        case gast.Dict(keys=keys, values=values):
            return all(map(is_display, (*keys, *values)))
        case gast.Call(func=gast.Name(id="list" | "dict" | "set" | "deque"), args=[], keywords=[]):
            return True
    return False
