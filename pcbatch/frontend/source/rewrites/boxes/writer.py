"""Functions in which lists, dicts and sets that have several names are boxed: a record of the lane holds each.

    rows = [[0], [1]]               rows = [boxed(C, [0]), boxed(C, [1])]
    row = rows[k]           ==>     row = rows[k]
    row += [2]                      row.value += [2]

An expression is written in one of three ways: as the box that it is, as what is in the box, and as a test. What cannot
be written so, such as a comparison of lists of boxes, ends the attempt.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import gast

from pcbatch.data.objects.boxes import BoxValue, boxed, field_of
from pcbatch.data.objects.tuples.classes import name_of_class
from pcbatch.frontend.source.rewrites.boxes import known_calls as known
from pcbatch.frontend.source.rewrites.boxes.flow import MISSING, Flow, is_super
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.tree import (
    Node,
    attribute,
    call,
    compare,
    constant,
    is_none,
    load,
    no_parameters,
    rebuild,
    subscript,
    supported,
    target_of,
    with_fields,
)

VALUE = "value"  # the field of a box
IDENTITY = (gast.Is, gast.IsNot)
MEMBERSHIP = (gast.In, gast.NotIn)
SHALLOW: frozenset[object] = frozenset((len, range, enumerate, zip, map, filter, next, bool))
SHALLOW |= known.COPYING - {set, frozenset, sorted}
FACTORIES = {"list": lambda: gast.List(elts=[], ctx=gast.Load()), "dict": lambda: gast.Dict(keys=[], values=[])}


class CannotBox(Exception):
    """A construct in which boxes cannot stand in place of what they hold."""


class NeedsWhole(Exception):
    """A dict by name is used as a whole, so that its box must hold the dict."""

    def __init__(self, value: Object) -> None:
        super().__init__()
        self.value = value


class Writer:
    """Writes the functions of a program."""

    def __init__(self, flow: Flow, classes: Mapping[Object, type[BoxValue]]) -> None:
        self.flow, self.classes = flow, classes
        self.names = {one: cls.pcbatch_keys for one, cls in classes.items() if cls.pcbatch_keys}
        self._numbers = itertools.count()

    # Which expressions are boxes.

    def object(self, node: Node) -> Object | None:
        """The object of an expression of the program; None for one that has been made here."""
        found = self.flow.of.get(id(node))
        return None if found is None else found.found()

    def is_boxed(self, node: Node) -> bool:
        """Return whether an expression gives a box."""
        return self.object(node) in self.classes

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

    def mentions(self, tree: Node) -> bool:
        """Return whether a function has an expression that is a box, or has one inside."""
        return any(self.holds(self.object(node)) for node in gast.walk(tree))

    def _plain(self, node: Node, *, itself: bool = True) -> None:
        """Make sure that no box is in an expression, whatever is asked of it."""
        if self.holds(self.object(node), itself=itself):
            raise CannotBox(node)

    # Statements.

    def function(self, tree: Node) -> Node:
        """Write a function."""
        if isinstance(tree, gast.Lambda):
            return with_fields(tree, body=self.value(tree.body))
        return with_fields(tree, body=self.statements(tree.body))

    def statements(self, nodes: list[Node]) -> list[Node]:
        """Write some statements; what a receiver is made of comes first."""
        return [one for node in nodes for one in self._with_names(self.statement(node))]

    def _with_names(self, node: Node) -> list[Node]:
        """A statement in which the object that it changes has a name, where a choice or a call gives it."""
        match node:
            case gast.Expr(value=gast.Call(func=gast.Attribute() as place)):
                field = "value"
            case gast.Assign(value=gast.Call(func=gast.Attribute() as place)):
                field = "value"
            case gast.AugAssign(target=place) | gast.Assign(targets=[place]) | gast.Delete(targets=[place]):
                field = "target"
            case _:
                return [node]
        root, path = place, list[Node]()
        while isinstance(root, gast.Attribute | gast.Subscript):
            path.append(root)
            root = root.value
        if not isinstance(root, gast.IfExp | gast.Call):
            return [node]
        if isinstance(node, gast.Assign) and field == "target" and not _is_simple(node.value):
            raise CannotBox(node)
        name = f"held{next(self._numbers)}"
        given = gast.Assign(targets=[target_of(name, root)], value=root, type_comment=None)
        new = load(name, root)
        for part in reversed(path):
            new = with_fields(part, value=new)
        if field == "value":
            changed = with_fields(node, value=with_fields(node.value, func=new))
        elif isinstance(node, gast.AugAssign):
            changed = with_fields(node, target=new)
        else:
            changed = with_fields(node, targets=[new])
        return [gast.copy_location(given, node), changed]

    def statement(self, node: Node) -> Node:
        """Write a statement."""
        match node:
            case gast.Assign():
                several = any(isinstance(target, gast.Tuple | gast.List) for target in node.targets)
                sliced = any(isinstance(t, gast.Subscript) and isinstance(t.slice, gast.Slice) for t in node.targets)
                value = self.read(node.value) if several or sliced else self.value(node.value)
                return with_fields(node, targets=[self.target(one) for one in node.targets], value=value)
            case gast.AnnAssign() if node.value is not None:
                return with_fields(node, target=self.target(node.target), value=self.value(node.value))
            case gast.AugAssign():
                target = self.target(node.target)
                if self.is_boxed(node.target):
                    target = with_fields(attribute(self._place(node.target), VALUE, node.target), ctx=gast.Store())
                return with_fields(node, target=target, value=self.read(node.value))
            case gast.For():
                body, orelse = map(self.statements, (node.body, node.orelse))
                target, source = self.target(node.target), self.read(node.iter)
                return with_fields(node, target=target, iter=source, body=body, orelse=orelse)
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

    def _place(self, target: Node) -> Node:
        """The expression that reads what a target of `x += ...` assigns."""
        read = with_fields(target, ctx=gast.Load())
        match target:
            case gast.Subscript():
                return self._subscript(read, target)
            case gast.Attribute():
                return with_fields(read, value=self.value(target.value))
        return read

    def target(self, node: Node) -> Node:
        """Write what an assignment assigns to."""
        match node:
            case gast.Subscript():
                return self._subscript(node, node)
            case gast.Tuple() | gast.List():
                return with_fields(node, elts=[self.target(one) for one in node.elts])
            case gast.Starred():
                if self.is_boxed(node.value):
                    raise CannotBox(node)
                return with_fields(node, value=self.target(node.value))
            case gast.Attribute():
                if self.is_boxed(node.value):
                    raise CannotBox(node)
                return with_fields(node, value=self.value(node.value))
        return node

    # Expressions.

    def read(self, node: Node) -> Node:
        """Write an expression of which the elements are asked, the length, or whatever is not its identity."""
        written, value = self.value(node), self.object(node)
        if value in self.names:
            raise NeedsWhole(value)
        return attribute(written, VALUE, node) if value in self.classes else written

    def test(self, node: Node) -> Node:
        """Write an expression of which is asked whether it is true."""
        if isinstance(node, gast.BoolOp):
            return with_fields(node, values=[self.test(one) for one in node.values])
        if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
            return with_fields(node, operand=self.test(node.operand))
        value = self.object(node)
        if value in self.classes and value.absent:
            if not isinstance(node, gast.Name):
                raise CannotBox(node)
            there = compare(node, gast.IsNot(), constant(None, node), node)
            return gast.copy_location(gast.BoolOp(op=gast.And(), values=[there, self.read(node)]), node)
        return self.read(node)

    def value(self, node: Node) -> Node:
        """Write an expression as what it is: the box, if it is one."""
        written = self._value(node)
        value = self.object(node)
        if value in self.classes and any(node is site for site in value.sites):
            return self._boxed(value, written, node)
        return written

    def _boxed(self, value: Object, held: Node, at: Node) -> Node:
        cls = load(name_of_class(self.classes[value]), at)
        if value not in self.names:
            return supported(boxed, [cls, held], at)
        values = {key.value: item for key, item in zip(held.keys, held.values, strict=True)}
        return supported(boxed, [cls, *(values[key] for key in self.names[value])], at)

    def _value(self, node: Node) -> Node:
        match node:
            case gast.Call():
                return self._call(node)
            case gast.Subscript():
                return self._subscript(node, node)
            case gast.ListComp() | gast.SetComp() | gast.GeneratorExp() | gast.DictComp():
                return self._comprehension(node)
            case gast.Set():
                for one in node.elts:
                    self._plain(one)
                return rebuild(node, self.value)
            case gast.Tuple() | gast.List() | gast.Dict() | gast.NamedExpr() | gast.Slice():
                return rebuild(node, self.value)
            case gast.Starred():
                return rebuild(node, self.read)
            case gast.IfExp():
                return rebuild(node, lambda one: self.test(one) if one is node.test else self.value(one))
            case gast.BoolOp():
                if self.is_boxed(node):
                    raise CannotBox(node)
                return self.test(node)
            case gast.UnaryOp(op=gast.Not()):
                return self.test(node)
            case gast.BinOp():
                if isinstance(node.op, gast.Mod):
                    self._plain(node.right)
                return rebuild(node, self.read)
            case gast.Compare():
                return self._compare(node)
            case gast.Lambda():
                return self.function(node)
            case gast.FormattedValue():
                self._plain(node.value, itself=False)
                return rebuild(node, self.read)
            case gast.JoinedStr() | gast.UnaryOp():
                return rebuild(node, self.read)
            case gast.Attribute():
                if self.is_boxed(node.value):
                    raise CannotBox(node)
                return rebuild(node, self.value)
        if self.mentions(node) and not isinstance(node, gast.Name | gast.Constant):
            raise CannotBox(node)
        return node

    def _comprehension(self, node: Node) -> Node:
        if isinstance(node, gast.SetComp):
            self._plain(node.elt)
        generators = [
            with_fields(one, target=self.target(one.target), iter=self.read(one.iter), ifs=[*map(self.test, one.ifs)])
            for one in node.generators
        ]
        if isinstance(node, gast.DictComp):
            self._plain(node.key)
            return with_fields(node, key=self.value(node.key), value=self.value(node.value), generators=generators)
        return with_fields(node, elt=self.value(node.elt), generators=generators)

    def _compare(self, node: Node) -> Node:
        operands = [node.left, *node.comparators]
        written = [self.value(node.left)]
        for k, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if isinstance(op, IDENTITY):
                written.append(self.value(right))
                continue
            if isinstance(op, MEMBERSHIP):
                self._plain(operands[k])
                written.append(self.read(right))
                continue
            both = [each for each in (operands[k], right) if not is_none(each)]
            if len(node.ops) > 1 and any(self.is_boxed(each) for each in both):
                raise CannotBox(node)
            for each in both:
                self._plain(each, itself=False)
            written[-1] = self.read(operands[k])
            written.append(self.read(right))
        return with_fields(node, left=written[0], comparators=written[1:])

    def _subscript(self, node: Node, known_as: Node) -> Node:
        """A subscript; that of a `defaultdict` of boxes makes what is not there."""
        if not isinstance(node.slice, gast.Slice):
            self._plain(node.slice)
        whole = self.object(node.value)
        if whole in self.names:
            keys = self.names[whole]
            if not isinstance(node.slice, gast.Constant) or node.slice.value not in keys:
                raise NeedsWhole(whole)
            if isinstance(node.ctx, gast.Del):
                raise NeedsWhole(whole)
            return with_fields(attribute(self.value(node.value), field_of(keys, node.slice.value), node), ctx=node.ctx)
        default = None if whole is None else whole.default
        value, index = self.read(node.value), self.value(node.slice)
        plain = with_fields(node, value=value, slice=index)
        if default is None or not self.holds(self.object(known_as)) or not isinstance(node.ctx, gast.Load):
            return plain
        return self._or_stored(value, index, self._made_default(default, node), node)

    def _made_default(self, default: Node, at: Node) -> Node:
        """The expression of what a `defaultdict` makes."""
        if isinstance(default, gast.Lambda):
            return self.value(default.body)
        made = self.object(default)
        empty = call(default, [], at) if default.id == "set" else gast.copy_location(FACTORIES[default.id](), at)
        held = next((each for each in self.classes if any(default is site for site in each.sites)), None)
        return empty if made is None or held is None else self._boxed(held, empty, at)

    def _or_stored(self, whole: Node, key: Node, made: Node, at: Node) -> Node:
        """The element at a key, which is made and stored where there is none."""
        if not _is_simple(whole) or not _is_simple(key):
            raise CannotBox(at)
        stored = call(attribute(whole, "setdefault", at), [key, made], at)
        there = compare(key, gast.In(), whole, at)
        chosen = gast.IfExp(test=there, body=subscript(whole, key, at), orelse=stored)
        return gast.copy_location(chosen, at)

    # Calls.

    def _call(self, node: Node) -> Node:
        scope = self.flow.scopes.get(id(node))
        function = MISSING if scope is None else self.flow.meaning(node.func, scope)
        if isinstance(node.func, gast.Attribute) and function is MISSING:
            return self._method(node)
        try:
            return self._of_python(node, function)
        except TypeError:  # it cannot be hashed
            return self._rest(node, self._user)

    def _of_python(self, node: Node, function: object) -> Node:
        if function is MISSING or self.flow.looks_at(function):
            return self._rest(node, self._user)
        if function in self.flow.instances:
            written = self._rest(node, self._user)
            made = [
                gast.keyword(arg=name, value=self._boxed(part.found(), site, node))
                for name, part, site in self.flow.factories.get(id(node), ())
                if part.found() in self.classes
            ]
            return with_fields(written, keywords=[*written.keywords, *made])
        if function.__class__ is type and function.__name__ == "defaultdict" and node.args:  # type: ignore[attr-defined]
            if self.holds(self.object(node), itself=False):
                if len(node.args) > 1 or node.keywords:
                    raise CannotBox(node)
                return gast.copy_location(gast.Dict(keys=[], values=[]), node)
            return self._rest(node, self.value)
        if function in known.HEAPS:
            for arg in node.args[1:]:
                self._plain(arg)
            self._plain(node.args[0], itself=False)
            return self._rest(node, self.read)
        if function in (map, filter) and len(node.args) > 1:
            called = self._applied(node.args[0], [self._given(arg) for arg in node.args[1:]])
            return with_fields(node, args=[called, *map(self.read, node.args[1:])])
        keys = [one for one in node.keywords if one.arg == "key"]
        if function in (min, max) and len(node.args) > 1:
            return self._rest(node, self.value, self._applied(keys[0].value, [*map(self.object, node.args)]) if keys else None)
        if function in (sorted, min, max, *known.SELECTED) and keys and not is_none(keys[0].value):
            return self._rest(node, self.read, self._applied(keys[0].value, [self._given(node.args[-1])]))
        if function is sorted and self._pairs_with_boxes(node.args[0]):
            key = gast.keyword(arg="key", value=self._first_part(node))
            return with_fields(node, args=[self.read(node.args[0])], keywords=[*node.keywords, key])
        if function in (isinstance, type, id, issubclass, callable):
            if any(map(self.is_boxed, node.args)):
                raise CannotBox(node)
            return self._rest(node, self.value)
        if function not in SHALLOW and function is not dict:
            for arg in (*node.args, *(one.value for one in node.keywords)):
                self._plain(arg, itself=False)
        return self._rest(node, self.value if function in (next,) else self.read)

    def _pairs_with_boxes(self, node: Node) -> bool:
        """Whether an expression is `d.items()` of a dict of boxes: no two of its pairs have one key."""
        match node:
            case gast.Call(func=gast.Attribute(attr="items"), args=[]):
                return self.holds(self.object(node))
        return False

    def _first_part(self, at: Node) -> Node:
        name = f"pair{next(self._numbers)}"
        return self._function(name, subscript(load(name, at), constant(0, at), at), at)

    def _function(self, name: str, body: Node, at: Node) -> Node:
        parameter = gast.copy_location(gast.Name(id=name, ctx=gast.Param(), annotation=None, type_comment=None), at)
        arguments = with_fields(no_parameters(), args=[parameter])
        return gast.copy_location(gast.Lambda(args=arguments, body=body), at)

    def _given(self, node: Node) -> Object | None:
        found = self.flow.given.get(id(node))
        return None if found is None else found.found()

    def _applied(self, function: Node, elements: list[Object | None]) -> Node:
        """A function that Python's own code applies to elements: one that takes no boxes gets what is in them."""
        boxes = [one in self.classes for one in elements]
        if not any(boxes) or isinstance(function, gast.Lambda) or self._is_looked_at(function):
            return self.value(function)
        if not all(boxes) or any(self.holds(one, itself=False) for one in elements):
            raise CannotBox(function)
        name = f"item{next(self._numbers)}"
        inside = attribute(load(name, function), VALUE, function)
        return self._function(name, call(function, [inside], function), function)

    def _is_looked_at(self, function: Node) -> bool:
        value = self.object(function)
        return value is not None and bool(value.functions)  # TODO module

    def _rest(self, node: Node, write: Callable[[Node], Node], key: Node = None) -> Node:
        """A call whose arguments are written in one way, but for the one with the name `key`."""
        keywords = [
            with_fields(one, value=key if key is not None and one.arg == "key" else write(one.value))
            for one in node.keywords
        ]
        func = node.func if isinstance(node.func, gast.Name) else self.value(node.func)
        return with_fields(node, func=func, args=[write(arg) for arg in node.args], keywords=keywords)

    def _user(self, node: Node) -> Node:
        """An argument of a function of the program."""
        return self.read(node) if isinstance(node, gast.Starred) else self.value(node)

    def _method(self, node: Node) -> Node:
        name, receiver = node.func.attr, node.func.value
        if self.flow.earlier.methods.get(id(node)) or is_super(receiver):
            if self.is_boxed(receiver):
                raise CannotBox(node)
            return self._rest(node, self._user)
        holder = self.object(receiver)
        func = with_fields(node.func, value=self.read(receiver))
        inside = holder is not None and self.holds(holder, itself=False)
        if name in known.LOOKING and inside:
            raise CannotBox(node)
        if name == "sort":
            if not node.keywords and inside:
                raise CannotBox(node)
            keywords = [
                with_fields(one, value=self._applied(one.value, [self._given(receiver)])) if one.arg == "key" else one
                for one in node.keywords
            ]
            return with_fields(node, func=func, keywords=keywords)
        if name in ("get", "setdefault", "pop") and len(node.args) == 2:
            key, default = self.value(node.args[0]), self.value(node.args[1])
            if name == "setdefault" and self.is_boxed(node) and _is_simple(func.value) and _is_simple(key):
                return self._or_stored(func.value, key, default, node)
            return with_fields(node, func=func, args=[key, default])
        if name in known.STORING:
            return with_fields(node, func=func, args=[self.value(arg) for arg in node.args])
        for arg in node.args:
            if name not in known.EXTENDING:
                self._plain(arg, itself=False)
        return with_fields(node, func=func, args=[self.read(arg) for arg in node.args])


def _is_simple(node: Node) -> bool:
    """Whether an expression may be evaluated more than once."""
    match node:
        case gast.Name() | gast.Constant():
            return True
        case gast.Attribute(value=value):
            return _is_simple(value)
        case gast.Subscript(value=value, slice=index):
            return _is_simple(value) and _is_simple(index)
        case gast.Tuple(elts=items):
            return all(map(_is_simple, items))
        case gast.BinOp(left=left, right=right):
            return _is_simple(left) and _is_simple(right)
        case gast.UnaryOp(operand=operand):
            return _is_simple(operand)
    return False


