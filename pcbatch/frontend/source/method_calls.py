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
from pcbatch.frontend.source.own_classes import own_methods
from pcbatch.frontend.source.places import place_of
from pcbatch.frontend.source.resolve import MISSING, is_builtin, resolve
from pcbatch.frontend.source.streams import takes_elements
from pcbatch.frontend.source.tree import Node, call, constant, display, load, rebuild, subscript, supported, target_of

BINARY = {
    gast.Add: "add", gast.Sub: "sub", gast.Mult: "mul", gast.Div: "truediv", gast.FloorDiv: "floordiv", gast.Mod: "mod",
    gast.MatMult: "matmul", gast.BitAnd: "and", gast.BitOr: "or", gast.BitXor: "xor",
    gast.Pow: "pow", gast.LShift: "lshift", gast.RShift: "rshift",
}  # fmt: skip
COMPARED = {
    gast.Lt: "lt", gast.LtE: "le", gast.Gt: "gt", gast.GtE: "ge", gast.Eq: "eq", gast.NotEq: "ne",
}  # fmt: skip
UNARY = {gast.USub: "__neg__", gast.UAdd: "__pos__", gast.Invert: "__invert__"}
TRUTH = "__bool__ __len__"
BUILTINS = {len: "__len__", abs: "__abs__", next: "__next__"}
ASKED = (gast.Name, gast.Attribute, gast.Subscript, gast.Call)
"""Expressions whose truth may be that of an object of the user's."""


def write_out_methods(unit: Unit) -> Node:
    """Return the tree of a function with such calls written out; the tree itself where there are none."""
    return _Writer(unit).rewritten(unit.node)


class _Writer:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.temps = 0

    def rewritten(self, node: Node) -> Node:
        """Rewrite a node, inner parts first."""
        new = rebuild(self.elements(node), self.rewritten)
        written = self.written(new)
        return new if written is None else written

    def written(self, node: Node) -> Node | None:
        """The expression that takes the place of a node; None if it stays."""
        match node:
            case gast.Call(func=gast.Attribute()):
                return self.method(node) or self.made(node)
            case gast.Call(func=gast.Name() as func, args=[value], keywords=[]) if name := self.special(func):
                return self.dispatched(node, value, name, [])
            case gast.Call(func=gast.Name() as func, args=[value], keywords=[]) if is_builtin(self.unit, func, "bool"):
                return self.truth(value, node)
            case gast.Call(func=gast.Name(id=name) as func) if name in self.unit.variables:
                return self.dispatched(node, func, "__call__", node.args, node.keywords)
            case gast.Call():
                return self.made(node)
            case gast.If(test=test) | gast.While(test=test) | gast.IfExp(test=test) | gast.Assert(test=test):
                return rebuild(node, lambda child: self.condition(child) if child is test else child)
            case gast.UnaryOp(op=gast.Not(), operand=value):
                return rebuild(node, lambda child: self.condition(child) if child is value else child)
            case gast.UnaryOp(op=op, operand=value) if type(op) in UNARY:
                return self.dispatched(node, value, UNARY[type(op)], [])
            case gast.AugAssign(target=target, op=op, value=value) if type(op) in BINARY:
                return self.augmented(node, target, BINARY[type(op)], value)
            case gast.Assign(targets=[gast.Subscript(value=owner, slice=index)], value=value):
                return self.stored(node, owner, "__setitem__", [index, value])
            case gast.Delete(targets=[gast.Subscript(value=owner, slice=index)]):
                return self.stored(node, owner, "__delitem__", [index])
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

    def special(self, func: Node) -> str:
        """The special method of its only argument that a builtin calls; empty for other functions."""
        target = resolve(self.unit, func)
        return next((name for builtin, name in BUILTINS.items() if target is builtin), "")

    def elements(self, node: Node) -> Node:
        """The node with what a method `__iter__` yields in place of the objects whose elements it takes."""
        match node:
            case gast.For(iter=taken) | gast.comprehension(iter=taken) | gast.YieldFrom(value=taken):
                taken = [taken]
            case gast.Starred(value=taken, ctx=gast.Load()):
                taken = [taken]
            case gast.Compare(ops=[gast.In() | gast.NotIn()], comparators=taken):
                pass
            case gast.Call() if takes_elements(self.unit, node.func, resolve(self.unit, node.func)):
                taken = node.args
            case _:
                return node
        found = {id(part): values for part in taken if (values := _iterated(self.unit, part, node)) is not None}
        if isinstance(node, gast.Starred | gast.Compare):
            found = {key: call(load("list", node), [values], node) for key, values in found.items()}
        return rebuild(node, lambda child: found.get(id(child), child))

    def condition(self, node: Node) -> Node:
        """A condition in which objects are asked for their truth by their methods."""
        if isinstance(node, gast.BoolOp):
            return rebuild(node, self.condition)
        return (self.truth(node, node) if isinstance(node, ASKED) else None) or node

    def truth(self, value: Node, node: Node) -> Node | None:
        given = supported("bool_", [value], node)
        asked = self.dispatched(given, value, TRUTH, []) if _is_simple(self.unit, value) else None
        if asked is None:
            return None
        there = gast.Compare(left=value, ops=[gast.IsNot()], comparators=[constant(None, node)])
        return gast.copy_location(gast.BoolOp(op=gast.And(), values=[gast.copy_location(there, node), asked]), node)

    def augmented(self, node: Node, target: Node, operator: str, value: Node) -> Node | None:
        """The statements of `x += value`, by the method that adds in place if a class has one."""
        owner = target.value if isinstance(target, gast.Subscript) else None
        if owner is not None and any(_candidates(self.unit, "__setitem__")) and _is_simple(self.unit, target):
            temp = self.temp("item", node)
            read = subscript(owner, target.slice, node)
            first = gast.Assign(targets=[target_of(temp, node)], value=self.written(read) or read)
            added = gast.AugAssign(target=target_of(temp, node), op=node.op, value=value)
            before = [gast.copy_location(part, node) for part in (first, added)]
            return self.stored(node, owner, "__setitem__", [target.slice, load(temp, node)], before=before)
        read = rebuild(target, lambda child: gast.Load() if isinstance(child, gast.Store) else child)
        return self.stored(node, read, f"__i{operator}__ __{operator}__", [value], target)

    def stored(
        self, node: Node, value: Node, name: str, args: list[Node], target: Node = None, before: Any = ()
    ) -> Node | None:
        """The statement that calls the method of an object, and assigns the result to a target; as `dispatched`."""
        functions = list(_candidates(self.unit, *name.split()))
        if not functions or not _is_simple(self.unit, value) or isinstance(args[0], gast.Slice):
            return None
        out = node
        for k in reversed(range(len(functions))):
            holds, called = self.choice(functions, k, node, value, args)
            last = gast.Expr(value=called) if target is None else gast.Assign(targets=[target], value=called)
            out = gast.If(test=holds, body=[*before, gast.copy_location(last, node)], orelse=[out])
            out = gast.copy_location(out, node)
        return out

    def dispatched(self, node: Node, value: Node, name: str, args: list[Node], keywords: Any = ()) -> Node | None:
        """The call of the method that an object has, by tests of which it has; None if none is compiled along."""
        functions = list(_candidates(self.unit, *name.split()))
        if not functions:
            return None
        first: list[Node] = []
        if isinstance(value, gast.Constant | gast.List | gast.Tuple | gast.Dict):
            return None
        if not _is_simple(self.unit, value):
            temp = self.temp("receiver", node)
            first = [gast.copy_location(gast.NamedExpr(target=target_of(temp, node), value=value), node)]
            value = load(temp, node)
            node = _with_receiver(node, value)
        out = node
        for k in reversed(range(len(functions))):
            holds, body = self.choice(functions, k, node, value, args, keywords)
            if name in ("__contains__", TRUTH):  # Python makes a bool of what the method returns
                body = supported("bool_", [body], node)
            out = gast.copy_location(gast.IfExp(test=holds, body=body, orelse=out), node)
        if first:
            out = subscript(display([*first, out], node), constant(1, node), node)
        out.written_out = True
        return out

    def choice(
        self, functions: list[Node], k: int, node: Node, value: Node, args: list[Node], keywords: Any = ()
    ) -> tuple[Node, Node]:
        """The test whether an object has the method that stands at `k` among the candidates, and its call."""
        function = functions[k]
        holds = supported("runs", [value, constant(function.attr, node), function, display(functions[:k], node)], node)
        body = gast.Call(func=function, args=[value, *args], keywords=list(keywords))
        return holds, gast.copy_location(body, node)

    def temp(self, name: str, node: Node) -> str:
        self.temps += 1
        return f"{name}_{self.temps}_{getattr(node, 'lineno', 0)}_{getattr(node, 'col_offset', 0)}"

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
        temp = self.temp("made", node)
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
        case gast.UnaryOp():
            return gast.copy_location(gast.UnaryOp(op=node.op, operand=value), node)
        case gast.BinOp():
            return gast.copy_location(gast.BinOp(left=value, op=node.op, right=node.right), node)
        case gast.Compare(ops=[gast.In()]):
            return gast.copy_location(gast.Compare(left=node.left, ops=node.ops, comparators=[value]), node)
        case gast.Compare():
            return gast.copy_location(gast.Compare(left=value, ops=node.ops, comparators=node.comparators), node)
    return subscript(value, node.slice, node)


def _iterated(unit: Unit, node: Node, taker: Node) -> Node | None:
    """The call of the generator `__iter__` of the object that an expression gives, if its class is known."""
    owner = _class_of(unit, node.id, node) if isinstance(node, gast.Name) else _constructed(unit, node)
    function = None if owner is None else inspect.getattr_static(owner[0], "__iter__", None)
    if owner is None or not isinstance(function, FunctionType) or not inspect.isgeneratorfunction(function):
        return None
    if isinstance(taker, gast.Compare) and any(own_methods([owner[0]], "__contains__")):
        return None
    method = gast.copy_location(gast.Attribute(value=owner[1], attr="__iter__", ctx=gast.Load()), node)
    return call(method, [node], node)


def _is_simple(unit: Unit, node: Node) -> bool:
    """Whether an expression may be written several times: a variable, or a part of one at simple keys."""
    place = place_of(unit, node)
    return place is not None and all(isinstance(part, gast.Name | gast.Constant) for part in place.operands)


def _is_super(node: Node) -> bool:
    return isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id == "super"


def _candidates(unit: Unit, *names: str) -> Iterator[Node]:
    """The methods that are compiled along and that classes of the user's have under a name; where there are several
    names, Python asks for the first that the class has."""
    if unit.along is None:
        return
    found: list[FunctionType] = []
    for k, name in enumerate(names):
        if not any(key[2] == name for key in unit.along.reasons):
            continue
        for cls in unit.classes.values():
            found += own_methods([cls] if any(any(own_methods([cls], before)) for before in names[:k]) else [], name)
        for key, cls in unit.classes.items():
            for function in own_methods([cls], name):
                if unit.batched(function) is not None and not any(function is one for one in found):
                    found.append(function)
                    yield gast.copy_location(gast.Attribute(load(key, unit.node), name, gast.Load()), unit.node)


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
