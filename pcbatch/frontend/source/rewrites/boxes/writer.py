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
from pcbatch.data.objects.boxes.values import boxed
from pcbatch.data.objects.tuples.classes import name_of_class
from pcbatch.frontend.source.rewrites.boxes import written_calls
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
    read_of,
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

    # Statements.

    def function(self, tree: Node) -> Node:
        """Write a function."""
        if isinstance(tree, gast.Lambda):
            return with_fields(tree, body=self.value(tree.body))
        return with_fields(tree, body=self.statements(tree.body))

    def statements(self, nodes: list[Node]) -> list[Node]:
        """Write some statements; where a choice or a call gives the object that one changes, that has a name first."""
        return [one for node in nodes for one in self._with_name(self._statement(node))]

    def _statement(self, node: Node) -> Node:
        match node:
            case gast.Assign():
                unpacked = [isinstance(target, gast.Tuple | gast.List) for target in node.targets]
                if any(unpacked) and not all(unpacked):
                    self.refuse_box(node.value)
                sliced = any(isinstance(t, gast.Subscript) and isinstance(t.slice, gast.Slice) for t in node.targets)
                value = self.read(node.value) if any(unpacked) or sliced else self.value(node.value)
                return with_fields(node, targets=[self.target(one, unpacks=True) for one in node.targets], value=value)
            case gast.AnnAssign() if node.value is not None:
                return with_fields(node, target=self.target(node.target), value=self.value(node.value))
            case gast.AugAssign():
                target = self.target(node.target)
                if self.is_boxed(node.target):
                    target = with_fields(self._held(node.target, self._place(node.target)), ctx=gast.Store())
                return with_fields(node, target=target, value=self.read(node.value))
            case gast.For():
                return self._for(node)
            case gast.While() | gast.If():
                body, orelse = map(self.statements, (node.body, node.orelse))
                return with_fields(node, test=self.test(node.test), body=body, orelse=orelse)
            case gast.Assert():
                return with_fields(node, test=self.test(node.test))
            case gast.Return() | gast.Expr() if node.value is not None:
                return with_fields(node, value=self.value(node.value))
            case gast.FunctionDef():
                return self.function(node)
            case gast.Delete():
                return with_fields(node, targets=[self.target(one) for one in node.targets])
            case gast.Try():
                parts = {name: self.statements(getattr(node, name)) for name in ("body", "orelse", "finalbody")}
                handlers = [with_fields(one, body=self.statements(one.body)) for one in node.handlers]
                return with_fields(node, handlers=handlers, **parts)
        if self.mentions(node):
            raise CannotBox(node)
        return node

    def _for(self, node: Node) -> Node:
        body, orelse = map(self.statements, (node.body, node.orelse))
        source = self.read(node.iter)
        if not self.is_boxed(node.target) or not isinstance(node.target, gast.Tuple | gast.List):
            return with_fields(node, target=self.target(node.target), iter=source, body=body, orelse=orelse)
        name, at = self.new_name("element"), node.target  # it is a box, which is unpacked
        held, parts = self._held(at, load(name, at)), self.target(at, unpacks=True)
        unpacked = gast.copy_location(gast.Assign(targets=[parts], value=held, type_comment=None), at)
        return with_fields(node, target=target_of(name, at), iter=source, body=[unpacked, *body], orelse=orelse)

    def _with_name(self, node: Node) -> list[Node]:
        match node:
            case gast.Expr(value=gast.Call(func=gast.Attribute() as place)):
                method = True
            case gast.Assign(value=gast.Call(func=gast.Attribute() as place)):
                method = True
            case gast.AugAssign(target=place) | gast.Assign(targets=[place]) | gast.Delete(targets=[place]):
                method = False
            case _:
                return [node]
        root, path = place, list[Node]()
        while isinstance(root, gast.Attribute | gast.Subscript):
            path.append(root)
            root = root.value
        named = gast.Call in map(type, path) or any(isinstance(one, gast.Attribute) for one in path[1:])
        if not isinstance(root, gast.IfExp | gast.Call) or not path or not (named or isinstance(root, gast.IfExp)):
            return [node]
        if isinstance(node, gast.Assign) and not method and not is_simple(node.value):
            raise CannotBox(node)
        name = self.new_name("held")
        new = load(name, root)
        for part in reversed(path):
            new = with_fields(part, value=new)
        given = gast.Assign(targets=[target_of(name, root)], value=root, type_comment=None)
        if method:
            changed = with_fields(node, value=with_fields(node.value, func=new))
        else:
            changed = with_fields(node, **({"target": new} if isinstance(node, gast.AugAssign) else {"targets": [new]}))
        return [gast.copy_location(given, node), changed]

    def _place(self, target: Node) -> Node:
        """The expression that reads what a target of `x += ...` assigns."""
        match target:
            case gast.Subscript():
                return self.subscript(read_of(target), target)
            case gast.Attribute():
                return with_fields(read_of(target), value=self.value(target.value))
        return read_of(target)

    def target(self, node: Node, *, unpacks: bool = False) -> Node:
        """Write what an assignment assigns to; with `unpacks` it is given what is in a box."""
        match node:
            case gast.Subscript():
                return self.subscript(node, node)
            case gast.Tuple() | gast.List():
                if not unpacks:
                    self.refuse_box(node)
                return with_fields(node, elts=[self.target(one) for one in node.elts])
            case gast.Starred():
                self.refuse_box(node.value)
                return with_fields(node, value=self.target(node.value))
            case gast.Attribute():
                self.refuse_box(node.value)
                return with_fields(node, value=self.value(node.value))
        return node

    # Expressions.

    def read(self, node: Node) -> Node:
        """Write an expression of which the elements are asked, the length, or whatever is not its identity."""
        return self._held(node, self.value(node))

    def _held(self, node: Node, written: Node) -> Node:
        value = self.box_of(node)
        if value in self.names:
            raise NeedsWhole(value)
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
        if not isinstance(node, gast.Name):
            raise CannotBox(node)
        there = compare(node, gast.IsNot(), constant(None, node), node)
        if value in self.names:  # a dict with keys is true
            return there
        return gast.copy_location(gast.BoolOp(op=gast.And(), values=[there, self.read(node)]), node)

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
        values = {key.value: item for key, item in zip(held.keys, held.values, strict=True)}
        return supported(boxed, [cls, *(values[key] for key in self.names[value])], at)

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
            case gast.Tuple() | gast.List() | gast.Dict() | gast.NamedExpr() | gast.Slice():
                return rebuild(node, self.value)
            case gast.Starred() | gast.JoinedStr() | gast.UnaryOp():
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
                self.refuse_boxes_in(node.value)
                return rebuild(node, self.read)
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
        test = attribute(arms[0], VALUE, first)
        if value.absent:
            there = compare(given, gast.IsNot(), constant(None, first), first)
            test = gast.copy_location(gast.BoolOp(op=gast.And(), values=[there, test]), first)
        else:
            test = attribute(given, VALUE, first)
        return gast.copy_location(gast.IfExp(test=test, body=body, orelse=orelse), node)

    def _comprehension(self, node: Node) -> Node:
        if isinstance(node, gast.SetComp):
            self.refuse_boxes(node.elt)
        generators = [
            with_fields(one, target=self.target(one.target), iter=self.read(one.iter), ifs=[*map(self.test, one.ifs)])
            for one in node.generators
        ]
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
                self.refuse_boxes(left)
                written.append(self.read(right))
                continue
            both = [each for each in (left, right) if not is_none(each)]
            if len(node.ops) > 1 and any(map(self.is_boxed, both)):
                raise CannotBox(node)
            for each in both:
                self.refuse_boxes_in(each)
            written[-1] = self.read(left)
            written.append(self.read(right))
        return with_fields(node, left=written[0], comparators=written[1:])

    def subscript(self, node: Node, at: Node) -> Node:
        """Write a subscript, whose object is that of `at`; that of a `defaultdict` of boxes makes what is not there."""
        whole = self.object_of(node.value)
        if whole in self.names:
            keys = self.names[whole]
            if not isinstance(node.slice, gast.Constant) or node.slice.value not in keys or _is_del(node):
                raise NeedsWhole(whole)
            return with_fields(attribute(self.value(node.value), field_of(keys, node.slice.value), node), ctx=node.ctx)
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
        stored = call(attribute(whole, "setdefault", at), [key, made], at)
        chosen = gast.IfExp(test=compare(key, gast.In(), whole, at), body=subscript(whole, key, at), orelse=stored)
        return gast.copy_location(chosen, at)


def _is_not(node: Node) -> bool:
    return isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not)


def _is_del(node: Node) -> bool:
    return isinstance(node.ctx, gast.Del)
