"""Calls of methods, of operators and of classes, written out as calls of functions that are compiled along.

    p.move(3)            ==>      Point.move(p, 3)                                   `p` is known to be a `Point`
    shape.area()         ==>      Disc.area(shape) if runs(shape, Disc.area) else Box.area(shape) if ...
    Tree(n)              ==>      a draft of an object, which `Tree.__init__` fills, and the object made of it

A method that branches on values of the lane is compiled along, like any helper, and for that its function must be known
before anything runs. Where the class of the object is not known, type inference decides the conditions, or each lane
does.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.places import place_of
from pcbatch.frontend.source.resolve import MISSING, is_builtin, resolve
from pcbatch.frontend.source.tree import Node, call, constant, display, load, rebuild, subscript, supported, target_of

BINARY = {
    gast.Add: "add", gast.Sub: "sub", gast.Mult: "mul", gast.Div: "truediv", gast.FloorDiv: "floordiv", gast.Mod: "mod",
    gast.MatMult: "matmul", gast.BitAnd: "and", gast.BitOr: "or", gast.BitXor: "xor",
}  # fmt: skip
COMPARED = {
    gast.Lt: "lt", gast.LtE: "le", gast.Gt: "gt", gast.GtE: "ge", gast.Eq: "eq", gast.NotEq: "ne",
}  # fmt: skip


def write_out_methods(unit: Unit) -> Node:
    """Return the tree of a function with such calls written out; the tree itself where there are none."""
    return _Writer(unit).rewritten(unit.node)


class _Writer:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.temps = 0

    def rewritten(self, node: Node) -> Node:
        """Rewrite a node, inner parts first."""
        new = rebuild(node, self.rewritten)
        written = self.written(new)
        return new if written is None else written

    def written(self, node: Node) -> Node | None:
        """The expression that takes the place of a node; None if it stays."""
        match node:
            case gast.Call(func=gast.Attribute()):
                return self.method(node) or self.made(node)
            case gast.Call(func=gast.Name(), args=[value], keywords=[]) if is_builtin(self.unit, node.func, "len"):
                return self.dispatched(node, value, "__len__", [])
            case gast.Call():
                return self.made(node)
            case gast.For(iter=gast.Name(id=name)) if (owner := _class_of(self.unit, name, node)) is not None:
                return self.loop(node, *owner)
            case gast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return self.dispatched(node, left, f"__{BINARY[type(op)]}__", [right])
            case gast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
                return self.dispatched(node, left, f"__{COMPARED[type(op)]}__", [right])
            case gast.Compare(left=left, ops=[gast.In()], comparators=[right]):
                return self.dispatched(node, right, "__contains__", [left])
            case gast.Compare(left=left, ops=[gast.NotIn()], comparators=[right]):
                inside = self.dispatched(
                    gast.copy_location(gast.Compare(left=left, ops=[gast.In()], comparators=[right]), node),
                    right,
                    "__contains__",
                    [left],
                )
                negated = None if inside is None else gast.UnaryOp(op=gast.Not(), operand=inside)
                return None if negated is None else gast.copy_location(negated, node)
            case gast.Subscript(value=value, slice=index, ctx=gast.Load()) if not isinstance(index, gast.Slice):
                return self.dispatched(node, value, "__getitem__", [index])
        return None

    def method(self, node: Node) -> Node | None:
        """The call of a function of the class that takes the place of a call of a method."""
        name, value = node.func.attr, node.func.value
        if isinstance(value, gast.Name) and (owner := _class_of(self.unit, value.id, node)) is not None:
            found = _function(self.unit, owner, node)
            if found is not None:
                function, static = found
                method = gast.copy_location(gast.Attribute(value=function, attr=name, ctx=gast.Load()), node.func)
                args = [*([] if static else [value]), *node.args]
                return gast.copy_location(gast.Call(func=method, args=args, keywords=node.keywords), node)
        if resolve(self.unit, value) is not MISSING or _is_super(value):
            return None
        return self.dispatched(node, value, name, node.args, node.keywords)

    def loop(self, node: Node, cls: type, expression: Node) -> Node | None:
        """The loop over what a method `__iter__` yields, in place of one over the object."""
        function = inspect.getattr_static(cls, "__iter__", None)
        if not isinstance(function, FunctionType) or not inspect.isgeneratorfunction(function):
            return None
        method = gast.copy_location(gast.Attribute(value=expression, attr="__iter__", ctx=gast.Load()), node.iter)
        values = call(method, [node.iter], node.iter)
        return rebuild(node, lambda child: values if child is node.iter else child)

    def dispatched(self, node: Node, value: Node, name: str, args: list[Node], keywords: Any = ()) -> Node | None:
        """The call of the method that an object has, by tests of which it has; None if none is compiled along."""
        functions = list(_candidates(self.unit, name))
        if not functions:
            return None
        first: list[Node] = []
        if isinstance(value, gast.Constant | gast.List | gast.Tuple | gast.Dict):
            return None
        if not _is_simple(self.unit, value):
            self.temps += 1
            temp = f"receiver_{self.temps}_{getattr(node, 'lineno', 0)}_{getattr(node, 'col_offset', 0)}"
            first = [gast.copy_location(gast.NamedExpr(target=target_of(temp, node), value=value), node)]
            value = load(temp, node)
            node = _with_receiver(node, value)
        out = node
        for k in reversed(range(len(functions))):
            cls, _ = functions[k]
            tests = [
                gast.copy_location(gast.Attribute(value=c, attr=name, ctx=gast.Load()), node) for c, _ in functions
            ]
            holds = supported("runs", [value, constant(name, node), tests[k], display(tests[:k], node)], node)
            method = gast.copy_location(gast.Attribute(value=cls, attr=name, ctx=gast.Load()), node)
            body = gast.copy_location(gast.Call(func=method, args=[value, *args], keywords=list(keywords)), node)
            if name == "__contains__":  # the operator `in` gives a bool, whatever the method returns
                body = supported("bool_", [body], node)
            out = gast.copy_location(gast.IfExp(test=holds, body=body, orelse=out), node)
        if first:
            out = subscript(display([*first, out], node), constant(1, node), node)
        out.written_out = True
        return out

    def made(self, node: Node) -> Node | None:
        """The expression that makes an object whose `__init__` is compiled along."""
        cls = resolve(self.unit, node.func)
        if not isinstance(cls, type) or type(cls).__call__ is not type.__call__:
            return None
        init = inspect.getattr_static(cls, "__init__", None)
        if not isinstance(init, FunctionType) or self.unit.batched(init) is None:
            return None
        if inspect.getattr_static(cls, "__new__", None) is not inspect.getattr_static(object, "__new__"):
            return None
        self.temps += 1
        temp = f"made_{self.temps}_{node.lineno}_{node.col_offset}"
        draft = gast.NamedExpr(target=target_of(temp, node), value=supported("draft", [node.func], node))
        method = gast.copy_location(gast.Attribute(value=node.func, attr="__init__", ctx=gast.Load()), node)
        filled = gast.Call(func=method, args=[load(temp, node), *node.args], keywords=node.keywords)
        made = supported("finished", [load(temp, node)], node)
        done = subscript(display([gast.copy_location(filled, node), made], node), constant(1, node), node)
        begun = supported("begun", [gast.copy_location(draft, node)], node)
        return gast.copy_location(gast.IfExp(test=begun, body=done, orelse=constant(None, node)), node)


def _with_receiver(node: Node, value: Node) -> Node:
    """The node with a variable in place of the object that it asks."""
    match node:
        case gast.Call(func=gast.Attribute()):
            func = gast.copy_location(gast.Attribute(value=value, attr=node.func.attr, ctx=gast.Load()), node.func)
            return gast.copy_location(gast.Call(func=func, args=node.args, keywords=node.keywords), node)
        case gast.Call():
            return call(node.func, [value], node)
        case gast.BinOp():
            return gast.copy_location(gast.BinOp(left=value, op=node.op, right=node.right), node)
        case gast.Compare(ops=[gast.In()]):
            return gast.copy_location(gast.Compare(left=node.left, ops=node.ops, comparators=[value]), node)
        case gast.Compare():
            return gast.copy_location(gast.Compare(left=value, ops=node.ops, comparators=node.comparators), node)
    return subscript(value, node.slice, node)


def _is_simple(unit: Unit, node: Node) -> bool:
    """Whether an expression may be written several times: a variable, or a part of one at simple keys."""
    place = place_of(unit, node)
    return place is not None and all(isinstance(part, gast.Name | gast.Constant) for part in place.operands)


def _is_super(node: Node) -> bool:
    return isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id == "super"


def _candidates(unit: Unit, name: str) -> Iterator[tuple[Node, FunctionType]]:
    """The functions that are compiled along and that classes of the user's have under a name."""
    if unit.along is None or not any(key[2] == name for key in unit.along.reasons):
        return
    seen: set[int] = set()
    at = unit.node
    for key, cls in unit.classes.items():
        function = inspect.getattr_static(cls, name, None)
        if isinstance(function, FunctionType) and id(function) not in seen and unit.batched(function) is not None:
            seen.add(id(function))
            yield load(key, at), function


def _function(unit: Unit, owner: tuple[type, Node], node: Node) -> tuple[Node, bool] | None:
    """An expression for the class whose function a method call means, and whether that is static; None if it is none of
    the program."""
    cls, expression = owner
    function = inspect.getattr_static(cls, node.func.attr, None)
    overridden = any(inspect.getattr_static(sub, node.func.attr, None) is not function for sub in _subclasses(cls))
    exact = node.func.value.id not in unit.params  # an object that was made here is of no subclass
    static = isinstance(function, staticmethod)
    inner = function.__func__ if isinstance(function, staticmethod) else function
    if not isinstance(inner, FunctionType) or (overridden and not exact) or unit.batched(inner) is None:
        return None
    return expression, static


def _class_of(unit: Unit, name: str, at: Node) -> tuple[type, Node] | None:
    """The class of the objects that a variable holds, and an expression for it."""
    if name in unit.statics or name not in unit.variables:
        return None
    if name in unit.params:
        cls = owner_of(unit.fn)
        first = unit.params[:1] == (name,) and len(unit.bound[name]) <= 0
        known = cls is not None and first and resolve(unit, load(cls.__name__, at)) is cls
        return (cls, load(cls.__name__, at)) if cls is not None and known else None
    made = [_constructed(unit, part) for part in _assigned(unit, name)]
    if not made or len(made) != len(unit.bound[name]) or any(one is None for one in made):
        return None
    classes = {id(one[0]) for one in made if one is not None}
    return made[0] if len(classes) == 1 else None


def _assigned(unit: Unit, name: str) -> list[Node]:
    """The values of the assignments `name = value`."""
    found = [part for part in gast.walk(unit.node) if isinstance(part, gast.Assign) and len(part.targets) == 1]
    return [part.value for part in found if isinstance(part.targets[0], gast.Name) and part.targets[0].id == name]


def _constructed(unit: Unit, value: Node) -> tuple[type, Node] | None:
    cls: Any = resolve(unit, value.func) if isinstance(value, gast.Call) else None
    plain = isinstance(cls, type) and type(cls).__call__ is type.__call__
    return (cls, value.func) if plain else None


def owner_of(fn: FunctionType) -> type | None:
    """Return the class that a function is a method of, if its module has it by its name."""
    qualified, _, name = fn.__qualname__.rpartition(".")
    cls: Any = getattr(sys.modules.get(fn.__module__), qualified, None) if qualified.isidentifier() else None
    if cls is None:
        cls = fn.__globals__.get(qualified)
    return cls if isinstance(cls, type) and vars(cls).get(name) is fn else None


def _subclasses(cls: type) -> list[type]:
    found: list[type] = []
    below: list[type] = cls.__subclasses__()
    for subclass in below:
        found += [subclass, *_subclasses(subclass)]
    return found
