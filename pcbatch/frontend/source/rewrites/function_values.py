"""Functions that are values of a lane, written as records that are called by their classes (defunctionalisation).

    return lambda x: x - a       ==>     return closed(C, a)          class C: def __call__(c, x): a = c.a; return x - a
    self.later.append(self.go)   ==>     self.later.append(closed(M, self))    class M: def __call__(c): return c.a.go()

Calls of such values are calls of methods `__call__`, which `method_calls` writes out. A function is written so where it
is returned, assigned or becomes a part of something, as soon as the program turns out to need it; where it is known to
whoever calls it, it stays what it is. A variable that changes after the function has captured it has a cell
(`rewrites/cells.py`). Reynolds, "Definitional Interpreters for Higher-Order Programming Languages", 1972.
"""

from __future__ import annotations

from functools import partial
from inspect import getattr_static, isgeneratorfunction
from types import BuiltinFunctionType, FunctionType
from typing import Any

import gast

from pcbatch.data.catalogue import FUNCTIONS as CHANGING
from pcbatch.errors import CompileError
from pcbatch.frontend.source.callable_objects import CACHE
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.captured import CELL, changed_in_place
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.locate import locate
from pcbatch.frontend.source.own_classes import own_methods, stores
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.attribute_tables import is_table
from pcbatch.frontend.source.rewrites.function_classes import Maker, is_own
from pcbatch.frontend.source.rewrites.nested import ask_called, function_of, known_definitions, nonlocals, uses
from pcbatch.frontend.source.scope import free_names, hidden_inside
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    Node,
    constant,
    display,
    rebuild,
    subscript,
)
from pcbatch.ir.analysis.dataflow import reachable

MOST = 64  # elements of a table that is written out


def write_function_values(unit: Unit) -> Node:
    """Return the tree of a function with such functions written as records; the tree itself where there are none."""
    return FunctionWriter(unit).rewritten(unit.node) if unit.decisions.functions else unit.node


class FunctionWriter(Maker):
    """Writes the functions that are values in one function."""

    def rewritten(self, node: Node) -> Node:
        """Rewrite a node that is no function itself, or is called."""
        if isinstance(node, (*FUNCTIONS, gast.Lambda, gast.ClassDef)) and node is not self.unit.node:
            return node  # a function of its own
        around, self.hidden = self.hidden, self.hidden | (hidden_inside(node) if _is_scope(node) else frozenset())
        try:
            return self._rewritten(node)
        finally:
            self.hidden = around

    def _rewritten(self, node: Node) -> Node:
        match node:
            case gast.Assign(targets=[gast.Name(id=name)], value=gast.Lambda()) if name in self.unit.definitions:
                return node
            case gast.Assign() if is_table(self.unit, node):
                return gast.copy_location(gast.Pass(), node)
            case gast.Assign() | gast.AnnAssign() | gast.AugAssign() | gast.Return() | gast.NamedExpr():
                parts = [node.value]
            case gast.Lambda():
                parts = [node.body]
            case gast.List() | gast.Tuple() | gast.Set():
                parts = node.elts
            case gast.Dict():
                parts = node.values
            case gast.ListComp() | gast.SetComp() | gast.GeneratorExp():
                parts = [node.elt]
            case gast.DictComp():
                parts = [node.value]
            case gast.Compare(ops=ops) if all(
                isinstance(op, gast.Is | gast.IsNot | gast.Eq | gast.NotEq) for op in ops
            ):
                parts = [node.left, *node.comparators]
            case gast.Subscript():
                parts = [node.value]
            case gast.For(iter=gast.List() | gast.Tuple()):
                return rebuild(node, lambda child: child if child is node.iter else self.rewritten(child))
            case gast.Call():
                return self.call(node)
            case _:
                parts = []
        return rebuild(
            node, lambda child: self.value(child) if any(child is one for one in parts) else self.rewritten(child)
        )

    def value(self, node: Node) -> Node:
        """Rewrite an expression whose value is kept: a function, or what gives one."""
        if (made := self.function(node)) is not None:
            return made
        match node:
            case gast.IfExp(test=test):
                return rebuild(node, lambda child: self.rewritten(child) if child is test else self.value(child))
            case gast.BoolOp():
                return rebuild(node, self.value)
        return self.rewritten(node)

    def function(self, node: Node) -> Node | None:
        """The record of a function that an expression means, or the table of them; None for other expressions."""
        match node:
            case gast.Lambda():
                return self.local(node, node)
            case gast.Name(id=name) if name in self.hidden:
                return None
            case gast.Name(id=name) if isinstance(target := self.unit.statics.get(name), Target):
                return self.passed(target.passed_as(name), node)
            case gast.Name(id=name) if name in self.unit.definitions:
                return self.local(self.unit.definitions[name], node)
            case gast.Name(id=name) if name in self.unit.nested:
                return self.local(self.unit.nested[name], node)
            case gast.Name(id=name) if name in self.unit.lifted:
                return self.passed(self.unit.lifted[name], node)
            case gast.Call(func=func, args=[_, *_]) if resolve(self.unit, func, self.hidden) is partial:
                return self.partial(node)
            case gast.Name() | gast.Attribute():
                known = resolve(self.unit, node, self.hidden)
                if known is MISSING and isinstance(node, gast.Attribute):
                    return self.bound(node)
                return self.kept(known, node)
        return None

    def kept(self, value: object, node: Node) -> Node | None:
        """The record of a function that exists before anything runs, or the display of a table of such."""
        if is_function(self.unit, value):
            return self.known(value, node)
        if type(value) in (dict, list, tuple) and _holds_functions(self.unit, value):
            return self.table(value, node)
        return None

    def table(self, value: Any, node: Node) -> Node | None:
        """The display of a table, with records of the functions in it."""

        def element(part: object, key: object) -> Node:
            here = subscript(node, constant(key, node), node)
            if isinstance(part, bool | int | float | str | None):
                return constant(part, node)
            return self.kept(part, here) or here

        if len(value) > MOST or (type(value) is dict and any(type(key) not in (int, str, bool) for key in value)):
            return None
        if type(value) is dict:
            keys = [constant(key, node) for key in value]
            made = gast.Dict(keys=keys, values=[element(part, key) for key, part in value.items()])
            return gast.copy_location(made, node)
        parts = [element(part, k) for k, part in enumerate(value)]
        return display(parts, node) if type(value) is tuple else gast.copy_location(gast.List(parts, gast.Load()), node)

    def bound(self, node: Node) -> Node | None:
        """The record of a method of an object of the lane."""
        methods = list(own_methods(self.unit.classes.values(), node.attr))
        if not methods or node.attr.startswith("__") or any(map(isgeneratorfunction, methods)):
            return None
        return self.method(methods, node.value, node)

    def call(self, node: Node) -> Node:
        """A call with the functions among its arguments that it keeps."""
        known = resolve(self.unit, node.func, self.hidden)
        method = isinstance(node.func, gast.Attribute) and known is MISSING
        if known is MISSING:
            handed_on = method and any(own_methods(self.unit.classes.values(), node.func.attr))
        else:
            target = self.unit.batched(known)
            handed_on = isinstance(known, Target | FunctionType) or target is not None
            handed_on = handed_on and (target is None or target.fn is not self.unit.fn)  # a recursion: no end of forms
        ours = known is MISSING or handed_on or (isinstance(known, FunctionType | type) and is_own(known))
        ours = ours or self.unit.batched(known) is not None or any(known is one for one, _ in CHANGING.values())

        def argument(child: Node) -> Node:
            if child is node.func:
                table = isinstance(child, gast.Attribute) and isinstance(child.value, gast.Name | gast.Attribute)
                if not table or resolve(self.unit, child.value, self.hidden) is MISSING:
                    return rebuild(child, self.value) if isinstance(child, gast.Attribute) else self.rewritten(child)
                return rebuild(child, lambda part: self.value(part) if part is child.value and not known_type else part)
            if isinstance(child, gast.keyword):
                kept = child.arg != "key"
                return rebuild(child, argument if kept else self.rewritten)
            if isinstance(child, gast.Starred):
                return self.rewritten(child)
            if not ours or (handed_on and self.is_handed_on(child)):
                return self.rewritten(child) if not self.is_handed_on(child) else child
            return self.value(child)

        if self._makes_functions(node.func, known):
            ask_called(self.unit, node.func, node, "it makes functions that are values of the lane")
        known_type = known is not MISSING and not isinstance(known, BuiltinFunctionType)
        return rebuild(node, argument)

    def _makes_functions(self, func: Node, known: object) -> bool:
        """Whether a call is of a function of the user's that returns a function which it makes."""
        if isinstance(func, gast.Name) and func.id in self.unit.definitions:
            made = function_of(self.unit.definitions[func.id])
        elif isinstance(known, FunctionType) and is_own(known):
            try:
                made = locate(known).node
            except CompileError:
                return False
        else:
            return False
        inner = {one.name for one in made.body if isinstance(one, FUNCTIONS)} if isinstance(made, FUNCTIONS) else set()
        returned = [part.value for part in gast.walk(made) if isinstance(part, gast.Return)]
        returned += [made.body] if isinstance(made, gast.Lambda) else []
        returned += [part for one in returned if isinstance(one, gast.Tuple | gast.List) for part in one.elts]
        return any(isinstance(one, gast.Lambda) or (isinstance(one, gast.Name) and one.id in inner) for one in returned)

    def is_handed_on(self, node: Node) -> bool:
        """Whether an argument is a function that the function called knows while compiling."""
        definitions = known_definitions(self.unit)
        match node:
            case gast.Lambda():
                used = reachable([name for name in free_names(node) if name in definitions], uses(definitions))
                return self._may_be_handed_on([node, *(function_of(definitions[one]) for one in used)])
            case gast.Name(id=name) if name in self.hidden:
                return False
            case gast.Name(id=name) if name in definitions:
                used = reachable([name], uses(definitions))
                return self._may_be_handed_on([function_of(definitions[one]) for one in used])
            case gast.Name() | gast.Attribute():
                value = resolve(self.unit, node, self.hidden)
                if (
                    isinstance(value, Target)
                    and value.nested is not None
                    and getattr(node, "id", "") not in self.unit.statics
                ):
                    return self._may_be_handed_on([value.nested.node])
                return isinstance(value, Target) or is_function(self.unit, value)
        return False

    def _may_be_handed_on(self, functions: list[Node]) -> bool:
        """Whether functions capture none that this one is given, of which a recursion had no end, and change nothing
        that others may change as well."""
        for node in functions:
            free = free_names(node)
            if any(isinstance(self.unit.statics.get(name), Target) or name.startswith(CELL) for name in free):
                return False
            if nonlocals(node) or any(
                changed_in_place(self.unit, node, [name for name in free if name in self.unit.variables])
            ):
                return False
        return True


def is_function(unit: Unit, value: object) -> bool:
    """Return whether a known object is a function, and no class."""
    if value is MISSING or isinstance(value, type | Target):
        return False
    plain = isinstance(value, FunctionType | BuiltinFunctionType | partial | CACHE)
    return plain or unit.batched(value) is not None or type(value).__name__ in ("ufunc", "PjitFunction")


def _holds_functions(unit: Unit, value: Any) -> bool:
    parts = value.values() if type(value) is dict else value
    return any(
        is_function(unit, part) or (type(part) in (dict, list, tuple) and _holds_functions(unit, part))
        for part in parts
    )


def _is_scope(node: Node) -> bool:
    return isinstance(node, COMPREHENSIONS)


def is_called_value(unit: Unit, func: Node) -> bool:
    """Return whether what a call calls may be a function that is a value, by its expression."""
    if not unit.decisions.functions:
        return False
    if isinstance(func, gast.Name):
        inner = (hidden_inside(part) for part in gast.walk(unit.node) if isinstance(part, COMPREHENSIONS))
        return (func.id in unit.variables and func.id not in unit.statics) or any(func.id in names for names in inner)
    if resolve(unit, func) is not MISSING:
        return False
    match func:
        case gast.Attribute(attr=name):
            classes = unit.classes.values()
            if any(callable(getattr_static(cls, name, None)) for cls in classes):
                return False
            return any(name in getattr(cls, "__annotations__", ()) for cls in classes) or stores(unit.fn, classes, name)
        case gast.Call(func=gast.Attribute(attr=name) as inner) if resolve(unit, inner) is MISSING:
            return name in ("get", "pop", "popleft", "setdefault") or any(own_methods(unit.classes.values(), name))
        case gast.Call(func=inner):
            made = resolve(unit, inner)
            return unit.batched(made) is not None or is_own(made)
    return isinstance(func, gast.Subscript | gast.IfExp | gast.BoolOp)


def needs_function_values(helpers: Helpers) -> bool:
    """Return whether a function of a program that is refused makes functions that are values, or calls one."""
    for unit in [] if helpers.decisions.functions else helpers.units:
        writer = FunctionWriter(unit, only_looks=True)
        writer.rewritten(unit.node)
        calls = [part.func for part in gast.walk(unit.node) if isinstance(part, gast.Call)]
        named = any(isinstance(func, gast.Name) and func.id in unit.variables for func in calls)
        if writer.found or named or any(isinstance(func, gast.Subscript) for func in calls):
            return True
    return False
