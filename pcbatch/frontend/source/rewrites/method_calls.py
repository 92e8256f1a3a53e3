"""Calls of methods, of operators and of classes, written out as calls of functions that are compiled along.

    p.move(3)            ==>      Point.move(p, 3)                                   `p` is known to be a `Point`
    shape.area()         ==>      Disc.area(shape) if runs(shape, Disc.area) else Box.area(shape) if ...
    type(shape)(n)       ==>      Disc(n) if runs(shape, Disc.__class__) else Box(n) if ...
    Tree(n)              ==>      a draft of an object, which `Tree.__init__` fills, and the object made of it

A method that branches on values of the lane is compiled along, like any helper, and for that its function must be known
before anything runs. Where the class of the object is not known, type inference decides the conditions, or each lane
does. Static functions, classes and methods of the class that stand under the name are called likewise, without `shape`.
"""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from types import FunctionType

import gast

from pcbatch.data.functions import builtins, drafts
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import generator
from pcbatch.frontend.source.places import mutation
from pcbatch.frontend.source.resolve import MISSING, asked_type, is_builtin, resolve
from pcbatch.frontend.source.rewrites.comparisons import COMPARED, compared
from pcbatch.frontend.source.rewrites.dispatch import (
    ASKED,
    SHOWN,
    TRUTH,
    format_slots,
    percent_slots,
)
from pcbatch.frontend.source.rewrites.function_values import is_called_value
from pcbatch.frontend.source.rewrites.kept.gone_over import GoneOver
from pcbatch.frontend.source.rewrites.method_lookup import (
    call_of_base,
    candidates,
    class_of,
    classes,
    function_of,
    is_simple,
    is_super,
    properties,
    read_of_base,
    yielded,
)
from pcbatch.frontend.source.rewrites.taken_elements import (
    behind,
    is_among,
    taken_streams,
)
from pcbatch.frontend.source.rewrites.written_heaps import written_heap
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    Node,
    attribute,
    call,
    constant,
    display,
    index_value,
    load,
    read_of,
    rebuild,
    subscript,
    supported,
    target_of,
    with_fields,
)

BINARY = {
    gast.Add: "add", gast.Sub: "sub", gast.Mult: "mul", gast.Div: "truediv", gast.FloorDiv: "floordiv", gast.Mod: "mod",
    gast.MatMult: "matmul", gast.BitAnd: "and", gast.BitOr: "or", gast.BitXor: "xor",
    gast.Pow: "pow", gast.LShift: "lshift", gast.RShift: "rshift",
}  # fmt: skip
UNARY = {gast.USub: "__neg__", gast.UAdd: "__pos__", gast.Invert: "__invert__"}


def write_out_methods(unit: Unit) -> Node:
    """Return the tree of a function with such calls written out; the tree itself where there are none."""
    return _Writer(unit).rewritten(unit.node)


MADE = "made"
"""The beginning of the name of a variable with an object that an `__init__` fills; numbers of its place follow."""


class _Writer(GoneOver):
    """Writes out the calls in a function."""

    def rewritten(self, node: Node, taken_here: bool = False) -> Node:
        """Rewrite a node, inner parts first; `taken_here`: what is around it asks for its elements."""
        with self.inside(node) if isinstance(node, (*COMPREHENSIONS, gast.Lambda)) else nullcontext():
            taken = taken_streams(self.unit, node)

            def change(child: Node) -> Node:
                is_taken = any(child is part for part in taken)
                return self.called(child) if child is _func(node) else self.rewritten(child, is_taken)

            new = rebuild(node, change)
            return (None if taken_here else self.gone_over(new)) or self.written(new) or new

    def called(self, func: Node) -> Node:
        """The callee of a call, rewritten: the name of a method in it is not that of a property."""
        return rebuild(func, self.rewritten) if isinstance(func, gast.Attribute) else self.rewritten(func)

    def written(self, node: Node) -> Node | None:
        """The expression that takes the place of a node; None if it stays."""
        if (ordered := compared(self.unit, node, self.temp, self.written)) is not None:
            return ordered
        if (heap := written_heap(self.unit, node, self.temp, self.written)) is not None:
            return heap
        match node:
            case gast.Call(func=gast.Attribute(value=gast.Constant(value=str(template)), attr="format"), args=args):
                return self.filled(node, args, format_slots(template))
            case gast.BinOp(left=gast.Constant(value=str(template)), op=gast.Mod(), right=right):
                operands = right.elts if isinstance(right, gast.Tuple) else [right]
                return self.filled(node, operands, percent_slots(template, len(operands)))
            case gast.Call(func=func) if (value := asked_type(self.unit, func)) is not None:
                found = classes(self.unit, value)
                return self.dispatched(node, value, "", node.args, node.keywords, found) if found else None
            case gast.Call(func=func) if not isinstance(func, gast.Name) and is_called_value(self.unit, func):
                named = gast.Call(func=attribute(func, "__call__", func), args=node.args, keywords=node.keywords)
                return self.dispatched(gast.copy_location(named, node), func, "__call__", node.args, node.keywords)
            case gast.Call(func=gast.Attribute()):
                return self.method(node) or self.made(node)
            case gast.Call(func=func, args=[gast.Name() as function, values]) if is_builtin(self.unit, func, "map"):
                if not any(candidates(self.unit, *self.special(function).split())):
                    return self.made(node)
                temp = self.temp("shown", node)
                part = gast.comprehension(target=target_of(temp, node), iter=values, ifs=[], is_async=0)
                elt = self.written(called := call(function, [load(temp, node)], node)) or called
                return gast.copy_location(gast.GeneratorExp(elt=elt, generators=[part]), node)
            case gast.Call(func=func, args=args) if args and is_builtin(self.unit, func, "print"):
                return rebuild(node, lambda child: child if child is func else self.text(child) or child)
            case gast.Call(func=gast.Name() as func, args=[value], keywords=[]) if name := self.special(func):
                return self.dispatched(node, value, name, [])
            case gast.Call(func=gast.Name() as func, args=[value, _]) if self.special(func) == "__next__":
                return self.dispatched(node, value, "__next__", [])
            case gast.Call(func=gast.Name() as func, args=[value], keywords=[]) if is_builtin(self.unit, func, "bool"):
                return self.truth(value, node)
            case gast.Call(func=gast.Name(id=name) as func) if (
                name in self.unit.variables or is_called_value(self.unit, func)
            ) and not isinstance(resolve(self.unit, func), FunctionType | Target):
                method = attribute(func, "__call__", func)
                named = gast.copy_location(gast.Call(func=method, args=node.args, keywords=node.keywords), node)
                if mutation(self.unit, named) is not None:
                    return self.method(named) or named
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
            case gast.Assign(targets=[gast.Attribute(value=owner, attr=name)], value=value):
                return self.stored(node, owner, name, [value])
            case gast.Assign(targets=[gast.Subscript(value=owner, slice=index)], value=value):
                return self.stored(node, owner, "__setitem__", [index_value(index), value])
            case gast.Delete(targets=[gast.Subscript(value=owner, slice=index)]):
                return self.stored(node, owner, "__delitem__", [index_value(index)])
            case gast.Compare(ops=[gast.In() | gast.NotIn()], comparators=[right]) if generator(self.unit, right):
                before, left = ([], node.left) if self.is_fixed(node.left) else self.kept("member", node.left)
                whole = gast.copy_location(gast.Compare(left=left, ops=node.ops, comparators=[right]), node)
                return behind(is_among(self.temp("element", node), whole, right), before)
            case gast.Starred(value=value, ctx=gast.Load()) if (elements := yielded(self.unit, value)) is not None:
                listed = call(load("list", node), [elements], node)
                return gast.copy_location(gast.Starred(value=listed, ctx=gast.Load()), node)
            case gast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return self.dispatched(node, left, f"__{BINARY[type(op)]}__", [right])
            case gast.Compare(ops=[gast.Eq() | gast.NotEq()]) if (whole := self.equality(node)) is not None:
                return whole
            case gast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
                name = f"__{COMPARED[type(op)]}__"
                return self.dispatched(node, left, name, [right]) or self.by_root(node, name)
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
            case gast.FormattedValue(value=value, conversion=int(code), format_spec=spec) if code in SHOWN:
                made = self.text(value, SHOWN[code]) if spec is None or code != -1 else None
                return None if made is None else with_fields(node, value=made, conversion=-1)
            case gast.Attribute(value=value, ctx=gast.Load()) if is_super(value):
                return read_of_base(self.unit, node)
            case gast.Attribute(value=value, attr=name, ctx=gast.Load()):
                getters = list(properties(self.unit, name))
                asked = bool(getters) and resolve(self.unit, value) is MISSING
                return self.dispatched(node, value, name, [], getters=getters) if asked else None
            case gast.Subscript(value=value, slice=index, ctx=gast.Load()):
                return self.dispatched(node, value, "__getitem__", [index_value(index)])
        return None

    def method(self, node: Node) -> Node | None:
        """The call of a function of the class that takes the place of a call of a method."""
        name, value = node.func.attr, node.func.value
        if is_super(value):
            return call_of_base(self.unit, node)
        if isinstance(value, gast.Name) and (owner := class_of(self.unit, value.id, node)) is not None:
            found = function_of(self.unit, owner, node)
            if found is not None:
                function, static = found
                method = attribute(function, name, node.func)
                args = [*([] if static else [value]), *node.args]
                return gast.copy_location(gast.Call(func=method, args=args, keywords=node.keywords), node)
        if resolve(self.unit, value) is not MISSING:
            return None
        return self.dispatched(node, value, name, node.args, node.keywords)

    def condition(self, node: Node) -> Node:
        """A condition in which objects are asked for their truth by their methods."""
        if isinstance(node, gast.BoolOp):
            return rebuild(node, self.condition)
        return (self.truth(node, node) if isinstance(node, ASKED) else None) or node

    def truth(self, value: Node, node: Node) -> Node | None:
        given = supported(builtins.bool_, [value], node)
        asked = self.dispatched(given, value, TRUTH, []) if is_simple(self.unit, value) else None
        if asked is None:
            return None
        there = gast.Compare(left=value, ops=[gast.IsNot()], comparators=[constant(None, node)])
        return gast.copy_location(gast.BoolOp(op=gast.And(), values=[gast.copy_location(there, node), asked]), node)

    def augmented(self, node: Node, target: Node, operator: str, value: Node) -> Node | None:
        """The statements of `x += value`, by the method that adds in place if a class has one."""
        if isinstance(target, gast.Attribute) and any(properties(self.unit, target.attr, True)):
            read = read_of(target)
            added = gast.copy_location(gast.BinOp(left=read, op=node.op, right=value), node)
            whole = gast.Assign(targets=[target], value=self.rewritten(added), type_comment=None)
            return self.written(gast.copy_location(whole, node)) if is_simple(self.unit, target) else None
        owner = target.value if isinstance(target, gast.Subscript) else None
        if owner is not None and any(candidates(self.unit, "__setitem__")) and is_simple(self.unit, target):
            temp = self.temp("item", node)
            read = subscript(owner, target.slice, node)
            first = gast.Assign(targets=[target_of(temp, node)], value=self.written(read) or read)
            added = gast.AugAssign(target=target_of(temp, node), op=node.op, value=value)
            before = [gast.copy_location(part, node) for part in (first, added)]
            return self.stored(node, owner, "__setitem__", [index_value(target.slice), load(temp, node)], before=before)
        read = read_of(target)
        return self.stored(node, read, f"__i{operator}__ __{operator}__", [value], target)

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
        temp = self.temp(MADE, node)
        draft = gast.NamedExpr(target=target_of(temp, node), value=supported(drafts.draft, [node.func], node))
        method = attribute(node.func, "__init__", node)
        filled = gast.Call(func=method, args=[load(temp, node), *node.args], keywords=node.keywords)
        made = supported(drafts.finished, [load(temp, node)], node)
        done = subscript(display([gast.copy_location(filled, node), made], node), constant(1, node), node)
        begun = supported(drafts.begun, [gast.copy_location(draft, node)], node)
        return gast.copy_location(gast.IfExp(test=begun, body=done, orelse=constant(None, node)), node)


def _func(node: Node) -> Node | None:
    return node.func if isinstance(node, gast.Call) else None
