"""Functions in which lists, dicts and sets that have several names are boxed: a record of the lane holds each.

    rows = [[0], [1]]               rows = [boxed(C, [0]), boxed(C, [1])]
    row = rows[k]           ==>     row = rows[k]
    row += [2]                      row.value += [2]

An expression is written in one of three ways: as the box that it is, as what is in the box, and as a test. What cannot
be written so, such as a comparison of lists of boxes, ends the attempt.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import gast

from pcbatch.data.objects.boxes.classes import BoxValue, field_of
from pcbatch.data.objects.boxes.values import boxed, boxed_by_name, items_by_name
from pcbatch.data.objects.tuples.classes import name_of_class
from pcbatch.frontend.source.rewrites.boxes import late_keys, written_calls, written_statements
from pcbatch.frontend.source.rewrites.boxes.box_facts import BoxFacts, CannotBox, NeedsWhole, is_simple
from pcbatch.frontend.source.rewrites.boxes.flow import Flow
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.tree import (
    Node,
    attribute,
    call,
    compare,
    constant,
    is_none,
    load,
    rebuild,
    subscript,
    supported,
    target_of,
    with_fields,
)

VALUE = "value"  # the field of a box
IDENTITY = (gast.Is, gast.IsNot)
MEMBERSHIP = (gast.In, gast.NotIn)


class Writer(BoxFacts):
    """Writes the functions of a program."""

    def __init__(self, flow: Flow, classes: Mapping[Object, type[BoxValue]]) -> None:
        super().__init__(flow, classes)
        self._numbers = itertools.count()

    def new_name(self, kind: str) -> str:
        """Return a name that nothing else has."""
        return f"{kind}_{next(self._numbers)}_boxed"

    def function(self, tree: Node) -> Node:
        """Write a function."""
        if isinstance(tree, gast.Lambda):
            return with_fields(tree, body=self.value(tree.body))
        return with_fields(tree, body=written_statements.statements(self, tree.body))

    # Expressions.

    def read(self, node: Node) -> Node:
        """Write an expression of which the elements are asked, the length, or whatever is not its identity."""
        return self.held(node, self.value(node))

    def looked_at(self, node: Node) -> Node:
        """Write an expression of which all is asked at once, but no change: a dict by name as one of Python's."""
        value = self.box_of(node)
        if value in self.late:
            raise NeedsWhole(value)
        by_name = value in self.names and not value.absent
        return supported(items_by_name, [self.value(node)], node) if by_name else self.read(node)

    def held(self, node: Node, written: Node) -> Node:
        """Write what is in the box that an expression is, which has been written already."""
        value = self.box_of(node)
        if value in self.names:
            raise NeedsWhole(value)
        if value is not None and value.absent and self.flow.catches_absent:  # None has other errors than a box
            raise CannotBox(node)
        return written if value is None else attribute(written, VALUE, node)

    def test(self, node: Node) -> Node:
        """Write an expression of which is asked whether it is true."""
        if isinstance(node, gast.BoolOp):
            return with_fields(node, values=[self.test(one) for one in node.values])
        if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
            return with_fields(node, operand=self.test(node.operand))
        value = self.box_of(node)
        if value is None or not value.absent:
            return self.read(node)
        if not isinstance(node, gast.Name | gast.NamedExpr):
            raise CannotBox(node)
        there = compare(self.value(node), gast.IsNot(), constant(None, node), node)
        if value in self.names:  # a dict with keys is true
            return there
        name = node if isinstance(node, gast.Name) else load(node.target.id, node)
        held = self.held(node, name)
        return gast.copy_location(gast.BoolOp(op=gast.And(), values=[there, held]), node)

    def method_of(self, node: Node, func: Node) -> Node:
        """Write a call of a method of a container of Python's, as the method `func`."""
        return written_calls.method(self, node, func)

    def value(self, node: Node) -> Node:
        """Write an expression as what it is: the box, if it is one."""
        written, value = self._value(node), self.box_of(node)
        if value is not None and any(node is site for site in value.sites):
            return self.boxed(value, written, node)
        return written

    def boxed(self, value: Object, held: Node, at: Node) -> Node:
        """Write what makes a box of an object."""
        cls = load(name_of_class(self.classes[value]), at)
        if value not in self.names:
            return supported(boxed, [cls, held], at)
        if not isinstance(held, gast.Dict) or None in held.keys:
            return supported(boxed_by_name, [cls, held], at)
        values = {key.value: item for key, item in zip(held.keys, held.values, strict=True)}
        items = (values.get(key) or constant(None, at) for key in self.names[value])
        return supported(boxed, [cls, *items], at)

    def _value(self, node: Node) -> Node:
        match node:
            case gast.Call():
                return written_calls.call(self, node)
            case gast.Subscript():
                return self.subscript(node, node)
            case gast.ListComp() | gast.SetComp() | gast.GeneratorExp() | gast.DictComp():
                return self._comprehension(node)
            case gast.Set():
                for one in node.elts:
                    self.refuse_boxes(one)
                return rebuild(node, self.value)
            case gast.Dict() if None in node.keys:
                spread = [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
                looked = {id(one): self.looked_at(one) for one in spread}
                return rebuild(node, lambda one: looked[id(one)] if id(one) in looked else self.value(one))
            case gast.Tuple() | gast.List() | gast.Dict() | gast.NamedExpr() | gast.Slice() | gast.Yield():
                return rebuild(node, self.value)
            case gast.Starred() | gast.YieldFrom() | gast.JoinedStr() | gast.UnaryOp():
                return self.test(node) if _is_not(node) else rebuild(node, self.read)
            case gast.IfExp():
                return rebuild(node, lambda one: self.test(one) if one is node.test else self.value(one))
            case gast.BoolOp():
                return self._choice(node) if self.is_boxed(node) else self.test(node)
            case gast.BinOp():
                if isinstance(node.op, gast.Mod):
                    self.refuse_boxes(node.right)
                return rebuild(node, self.read)
            case gast.Compare():
                return self._compare(node)
            case gast.Lambda():
                return self.function(node)
            case gast.FormattedValue():
                return rebuild(node, lambda one: written_calls.plain(self, one))
            case gast.Attribute():
                self.refuse_box(node.value)
                return rebuild(node, self.value)
        if self.mentions(node) and not isinstance(node, gast.Name | gast.Constant):
            raise CannotBox(node)
        return node

    def _choice(self, node: Node) -> Node:
        """Write `x or y` of boxes."""
        *before, first, last = node.values
        name, value = self.new_name("first"), self.box_of(first)
        if before or value is None or value in self.names:
            raise CannotBox(node)
        given = gast.copy_location(gast.NamedExpr(target=target_of(name, first), value=self.value(first)), first)
        arms = [load(name, first), self.value(last)]
        body, orelse = arms if isinstance(node.op, gast.Or) else arms[::-1]
        test = attribute(given, VALUE, first)
        if value.absent:
            there = compare(given, gast.IsNot(), constant(None, first), first)
            held = attribute(load(name, first), VALUE, first)
            test = gast.copy_location(gast.BoolOp(op=gast.And(), values=[there, held]), first)
        return gast.copy_location(gast.IfExp(test=test, body=body, orelse=orelse), node)

    def _comprehension(self, node: Node) -> Node:
        if isinstance(node, gast.SetComp):
            self.refuse_boxes(node.elt)
        generators = []
        for one in node.generators:
            target, tests = written_statements.written_target(self, one.target), list(map(self.test, one.ifs))
            generators.append(with_fields(one, target=target, iter=self.read(one.iter), ifs=tests))
        if isinstance(node, gast.DictComp):
            self.refuse_boxes(node.key)
            return with_fields(node, key=self.value(node.key), value=self.value(node.value), generators=generators)
        return with_fields(node, elt=self.value(node.elt), generators=generators)

    def _compare(self, node: Node) -> Node:
        operands = [node.left, *node.comparators]
        written = [self.value(node.left)]
        for op, left, right in zip(node.ops, operands, node.comparators, strict=False):
            if isinstance(op, IDENTITY):
                written.append(self.value(right))
                continue
            if isinstance(op, MEMBERSHIP):
                written[-1] = written_calls.plain(self, left)
                if (row := late_keys.row_of(self, right)) is not None:
                    if len(node.ops) > 1:
                        raise CannotBox(node)
                    return late_keys.contains(self, row, node)
                held = self.holds(self.given_by(right))
                written.append(written_calls.plain(self, right, members=True) if held else self.looked_at(right))
                continue
            both = [each for each in (left, right) if not is_none(each)]
            if len(node.ops) > 1 and any(map(self.is_boxed, both)):
                raise CannotBox(node)
            written[-1] = written_calls.plain(self, left)
            written.append(written_calls.plain(self, right))
        return with_fields(node, left=written[0], comparators=written[1:])

    def subscript(self, node: Node, at: Node) -> Node:
        """Write a subscript, whose object is that of `at`; that of a `defaultdict` of boxes makes what is not there."""
        whole = self.object_of(node.value)
        if whole in self.names:
            keys = self.names[whole]
            if not isinstance(node.slice, gast.Constant) or node.slice.value not in keys or _is_del(node):
                raise NeedsWhole(whole)
            field = attribute(self.value(node.value), field_of(keys, node.slice.value), node)
            return (
                late_keys.read(self, node, field)
                if isinstance(node.ctx, gast.Load)
                else with_fields(field, ctx=node.ctx)
            )
        if not isinstance(node.slice, gast.Slice):
            self.refuse_boxes(node.slice)
        value, index = self.read(node.value), self.value(node.slice)
        default = None if whole is None else whole.default
        if default is None or not self.holds(self.object_of(at)) or not isinstance(node.ctx, gast.Load):
            return with_fields(node, value=value, slice=index)
        return self.or_stored(value, index, self._made_default(default, node), node)

    def _made_default(self, default: Node, at: Node) -> Node:
        """The expression of what a `defaultdict` makes."""
        if isinstance(default, gast.Lambda):
            return self.value(default.body)
        empty = {
            "list": gast.List(elts=[], ctx=gast.Load()),
            "dict": gast.Dict(keys=[], values=[]),
            "set": gast.Call(func=default, args=[], keywords=[]),
        }.get(getattr(default, "id", ""))
        if empty is None:
            raise CannotBox(at)
        empty = gast.copy_location(empty, at)
        held = next((each for each in self.classes if any(default is site for site in each.sites)), None)
        return empty if held is None else self.boxed(held, empty, at)

    def or_stored(self, whole: Node, key: Node, made: Node, at: Node) -> Node:
        """Write the element at a key, which is made and stored where there is none."""
        if not is_simple(whole) or not is_simple(key):
            raise CannotBox(at)
        name = target_of(self.new_name("made"), at)  # a primitive of its own: one reads no box that it makes
        made = gast.copy_location(gast.NamedExpr(target=name, value=made), at)
        stored = call(attribute(whole, "setdefault", at), [key, made], at)
        chosen = gast.IfExp(test=compare(key, gast.In(), whole, at), body=subscript(whole, key, at), orelse=stored)
        return gast.copy_location(chosen, at)


def _is_not(node: Node) -> bool:
    return isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not)


def _is_del(node: Node) -> bool:
    return isinstance(node.ctx, gast.Del)
