"""Points-to analysis of a function and of those of the user's that it calls: which object each expression may be.

It knows nothing of the order of statements, nor of which call of a function it is. What it does not know of leaves: the
objects that go there, and come from there, are *outside*.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import TypeGuard

import gast

from pcbatch.data.object_parts import is_user_code
from pcbatch.errors import CompileError
from pcbatch.frontend.source.locate import locate
from pcbatch.frontend.source.rewrites.boxes import known_calls as known
from pcbatch.frontend.source.rewrites.boxes.objects import Attribute, Object
from pcbatch.frontend.source.scope import bindings, parameters
from pcbatch.frontend.source.tree import SCOPES, Node

MOST_LOOKS = 8
SCALARS = (int, float, bool, str, complex, type(None))
FACTORIES: dict[object, Callable[[], Node]] = {
    list: lambda: gast.List(elts=[], ctx=gast.Load()),
    dict: lambda: gast.Dict(keys=[], values=[]),
}
Found = Callable[[object], FunctionType | None]  # the function of the user's behind an object that is called
MISSING = object()


@dataclass(slots=True)
class Scope:
    """The variables of a function or a comprehension, with those around it."""

    fn: FunctionType
    names: frozenset[str]
    around: Scope | None
    variables: dict[str, Object] = field(default_factory=dict)

    def find(self, name: str) -> Object | None:
        """Return a variable of the program; None for a global, and for one that a cell holds."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.around
        return None if scope is None else scope.variables.setdefault(name, Object())


@dataclass(slots=True, eq=False)
class Body:
    """A function that is looked at: its tree, its parameters and what it returns."""

    tree: Node
    scope: Scope
    owner: type | None = None
    returned: Object = field(default_factory=Object)


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier look at a program has found, by the identities of expressions.

    Attributes:
        mappings: those that are dicts, of which an iteration gives the keys.
        methods: calls of methods with the classes of the user's whose methods they may call.
    """

    mappings: frozenset[int] = frozenset()
    methods: Mapping[int, frozenset[type]] = field(default_factory=dict)


class Flow:
    """The objects of the expressions of a program.

    Attributes:
        of: the object of each expression, by the identity of its tree.
        given: what an iteration over an expression gives, likewise.
        scopes: the variables around each call, likewise.
        bodies: the functions that are looked at, by their code; the entry is the first.
        instances: the objects of each class of the user's.
        factories: what a constructor makes for fields that a call does not give, by the identity of the call.
        receivers: the objects whose methods are called, likewise.
    """

    def __init__(self, entry: FunctionType, found: Found, earlier: Known) -> None:
        self.of: dict[int, Object] = {}
        self.bodies: dict[object, Body] = {}
        self.given: dict[int, Object] = {}
        self.scopes: dict[int, Scope] = {}
        self.iterated: list[tuple[int, Object]] = []
        self.instances: dict[type, Object] = {}
        self.factories: dict[int, list[tuple[str, Object, Node]]] = {}
        self.receivers: dict[int, Object] = {}
        self._found, self.earlier = found, earlier
        self._pending: list[Body] = []
        body = self._body(entry)
        for name in parameters(body.tree.args):
            body.scope.variables[name].leave()
        while self._pending:
            self._run(self._pending.pop())

    # Functions.

    def _body(self, fn: FunctionType, owner: type | None = None) -> Body:
        if fn.__code__ not in self.bodies:
            self.bodies[fn.__code__] = self._made(locate(fn).node, fn, None)
            self.bodies[fn.__code__].owner = owner
        return self.bodies[fn.__code__]

    def _made(self, tree: Node, fn: FunctionType, around: Scope | None) -> Body:
        given = parameters(tree.args)
        inside = [tree.body] if isinstance(tree, gast.Lambda) else tree.body
        free = {name for part in inside for name in _not_own(part)}
        names = frozenset((*given, *(name for name, _ in bindings(inside) if name not in free)))
        body = Body(tree, Scope(fn, names, around, {name: Object() for name in given}))
        for argument in (tree.args.vararg, tree.args.kwarg):
            if argument is not None:
                body.scope.variables[argument.id].leave()
        self._pending.append(body)
        return body

    def _run(self, body: Body) -> None:
        args, scope = body.tree.args, body.scope
        plain = (*args.posonlyargs, *args.args)
        defaults = [*zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True)]
        defaults += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
        for argument, default in defaults:
            value = self.value(default, scope.around or scope)
            scope.variables[argument.id].unite(value)
            if not isinstance(default, gast.Constant):
                value.leave()
        if isinstance(body.tree, gast.Lambda):
            body.returned.unite(self.value(body.tree.body, scope))
            return
        for statement in body.tree.body:
            self._statement(statement, scope, body)

    # Statements.

    def _statement(self, node: Node, scope: Scope, body: Body) -> None:
        match node:
            case gast.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, scope)
            case gast.AnnAssign():
                if node.value is not None:
                    self._assign(node.target, self.value(node.value, scope), scope)
            case gast.AugAssign():
                target, value = self.value(node.target, scope), self.value(node.value, scope)
                target.elements().unite(value.elements())
            case gast.For():
                self._assign(node.target, self._elements(node.iter, scope), scope)
                self._all([*node.body, *node.orelse], scope, body)
            case gast.Return():
                if node.value is not None:
                    body.returned.unite(self.value(node.value, scope))
            case gast.FunctionDef():
                inner = self._made(node, scope.fn, scope)
                variable = (scope.find(node.name) or Object()).found()
                variable.functions.append(inner)
                if node.decorator_list:
                    variable.leave()
            case gast.ClassDef() | gast.With() | gast.Match() | gast.Raise():
                for part in gast.iter_child_nodes(node):
                    self._unknown(part, scope, body)
            case gast.If() | gast.While() | gast.Assert():
                self._test(node.test, scope)
                self._all([part for part in gast.iter_child_nodes(node) if part is not node.test], scope, body)
            case gast.ExceptHandler() | gast.Try() | gast.Expr():
                self._all(gast.iter_child_nodes(node), scope, body)
            case gast.Delete():
                for target in node.targets:
                    self.value(target, scope)
            case gast.Global() | gast.Nonlocal() | gast.Pass() | gast.Break() | gast.Continue():
                pass
            case _:
                self._unknown(node, scope, body)

    def _all(self, nodes: Sequence[Node], scope: Scope, body: Body) -> None:
        for node in nodes:
            if isinstance(node, gast.stmt | gast.ExceptHandler):
                self._statement(node, scope, body)
            elif isinstance(node, gast.expr):
                self._yields(node, self.value(node, scope), scope, body)

    def _yields(self, node: Node, value: Object, scope: Scope, body: Body) -> None:
        if isinstance(node, gast.Yield) and node.value is not None:
            body.returned.elements().unite(self.value(node.value, scope))

    def _unknown(self, node: Node, scope: Scope, body: Body) -> None:
        """What has a meaning that is not known here: its objects leave."""
        if isinstance(node, gast.stmt):
            self._statement(node, scope, body)
        elif isinstance(node, gast.expr):
            self.value(node, scope).leave()
        else:
            for part in gast.iter_child_nodes(node):
                self._unknown(part, scope, body)

    def _assign(self, target: Node, value: Object, scope: Scope) -> None:
        match target:
            case gast.Name():
                variable = scope.find(target.id)
                self.of[id(target)] = variable or Object(outside=True)
                (variable or Object(outside=True)).unite(value)
            case gast.Tuple() | gast.List():
                star = next((k for k, one in enumerate(target.elts) if isinstance(one, gast.Starred)), None)
                for k, one in enumerate(target.elts):
                    if isinstance(one, gast.Starred):
                        rest = known.listed(value.elements())
                        rest.found().fixed = True
                        self._assign(one.value, rest, scope)
                    else:
                        self._assign(one, value.part(k) if star is None else value.elements(), scope)
            case gast.Subscript(slice=gast.Slice()):
                self.value(target.value, scope).elements().unite(value.elements())
                self.value(target.slice, scope)
            case gast.Subscript():
                self.value(target, scope).unite(value)
                if not isinstance(target.slice, gast.Constant):
                    self.value(target.value, scope).key().unite(self.value(target.slice, scope))
            case gast.Attribute():
                self.value(target, scope).unite(value)
            case _:
                self.value(target, scope)
                value.leave()

    # Expressions.

    def value(self, node: Node, scope: Scope) -> Object:
        """Return the object of an expression."""
        if id(node) not in self.of:
            self.of[id(node)] = self._value(node, scope)
        return self.of[id(node)].found()

    def _value(self, node: Node, scope: Scope) -> Object:
        match node:
            case gast.Name():
                return scope.find(node.id) or Object(outside=True)
            case gast.Constant():
                return Object(absent=node.value is None)
            case gast.Tuple():
                if any(isinstance(one, gast.Starred) for one in node.elts):
                    return self._display(node, scope)
                return known.tuple_of([self.value(one, scope) for one in node.elts])
            case gast.List() | gast.Set():
                return self._display(node, scope)
            case gast.Dict():
                return self._dict(node, scope)
            case gast.ListComp() | gast.SetComp() | gast.GeneratorExp() | gast.DictComp():
                return self._comprehension(node, scope)
            case gast.Subscript(slice=gast.Slice()):
                self.value(node.slice, scope)
                return self._new(node, known.copied(self.value(node.value, scope)))
            case gast.Subscript():
                return self._part(self.value(node.value, scope), node.slice, scope)
            case gast.IfExp():
                self._test(node.test, scope)
                return self._either([node.body, node.orelse], scope)
            case gast.BoolOp():
                return self._either(node.values, scope)
            case gast.NamedExpr():
                value = self.value(node.value, scope)
                self._assign(node.target, value, scope)
                return value
            case gast.BinOp():
                both = [self.value(node.left, scope), self.value(node.right, scope)]
                made = self._new(node, known.listed(both[0].elements()))
                made.elements().unite(both[1].elements())
                return made
            case gast.Lambda():
                made = Object()
                made.functions.append(self._made(node, scope.fn, scope))
                return made
            case gast.Call():
                return self._call(node, scope)
            case gast.Attribute():
                return self._attribute(self.value(node.value, scope), node.attr)
            case gast.Yield():
                if node.value is not None:
                    self.value(node.value, scope)
                return Object(outside=True)
            case gast.Starred():
                return self._elements(node.value, scope)
            case gast.UnaryOp(op=gast.Not()):
                self._test(node.operand, scope)
                return Object()
            case gast.Compare() | gast.UnaryOp() | gast.JoinedStr() | gast.FormattedValue() | gast.Slice():
                for part in gast.iter_child_nodes(node):
                    if isinstance(part, gast.expr):
                        self.value(part, scope)
                return Object()
        for part in gast.iter_child_nodes(node):
            if isinstance(part, gast.expr):
                self.value(part, scope).leave()
        return Object(outside=True)

    def _test(self, node: Node, scope: Scope) -> None:
        """An expression of which is asked whether it is true: none of its operands becomes its value."""
        match node:
            case gast.BoolOp():
                self.of[id(node)] = Object()
                for one in node.values:
                    self._test(one, scope)
            case gast.UnaryOp(op=gast.Not(), operand=operand):
                self.of[id(node)] = Object()
                self._test(operand, scope)
            case _:
                self.value(node, scope)

    def _new(self, node: Node, made: Object) -> Object:
        made.found().sites.append(node)
        return made.found()

    def _display(self, node: Node, scope: Scope) -> Object:
        made = self._new(node, Object())
        made.elements()
        for one in node.elts:
            made.elements().unite(self.value(one, scope))
        return made

    def _dict(self, node: Node, scope: Scope) -> Object:
        made = self._new(node, Object())
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, scope)
            if key is None:
                made.elements().unite(value.elements())
                made.key().unite(value.key())
                continue
            made.key().unite(self.value(key, scope))
            self._part(made, key, scope).unite(value)
        return made

    def _part(self, value: Object, key: Node, scope: Scope) -> Object:
        self.value(key, scope)
        if isinstance(key, gast.Constant) and isinstance(key.value, str | int):
            return value.part(key.value)
        return value.elements()

    def _comprehension(self, node: Node, scope: Scope) -> Object:
        names = [name for each in node.generators for name, _ in bindings([each.target])]
        inner = Scope(scope.fn, frozenset(names), scope)
        for k, each in enumerate(node.generators):
            self._assign(each.target, self._elements(each.iter, inner if k else scope), inner)
            for test in each.ifs:
                self._test(test, inner)
        made = self._new(node, Object())
        if isinstance(node, gast.DictComp):
            made.key().unite(self.value(node.key, inner))
            made.elements().unite(self.value(node.value, inner))
        else:
            made.elements().unite(self.value(node.elt, inner))
        return made

    def _either(self, nodes: Sequence[Node], scope: Scope) -> Object:
        first = self.value(nodes[0], scope)
        for node in nodes[1:]:
            first.unite(self.value(node, scope))
        return first.found()

    def _elements(self, node: Node, scope: Scope) -> Object:
        """What an iteration over an expression gives: of a dict its keys."""
        value = self.value(node, scope)
        self.iterated.append((id(node), value))
        self.given[id(node)] = value.key() if id(node) in self.earlier.mappings else value.elements()
        return self.given[id(node)].found()

    # Calls.

    def _call(self, node: Node, scope: Scope) -> Object:
        self.scopes[id(node)] = scope
        if isinstance(node.func, gast.Attribute) and not isinstance(self.meaning(node.func.value, scope), ModuleType):
            return self._method(node, scope)
        function = self.meaning(node.func, scope)
        plain = [arg for arg in node.args if not isinstance(arg, gast.Starred)]
        named = {one.arg: self.value(one.value, scope) for one in node.keywords}
        if len(plain) < len(node.args) or None in named:
            return self._leaving(node, scope)
        if function is MISSING:
            return self._called(self.value(node.func, scope).functions, node, scope)
        try:
            return self._of_python(function, plain, named, node, scope)
        except TypeError:  # it cannot be hashed
            return self._leaving(node, scope)

    def _of_python(
        self, function: object, args: Sequence[Node], named: dict[str | None, Object], node: Node, scope: Scope
    ) -> Object:
        values = [self.value(arg, scope) for arg in args]
        if (user := self._found(function)) is not None:
            return self._called([self._body(user)], node, scope)
        if isinstance(function, type) and is_user_class(function):
            return self._constructed(function, node, scope)
        if function in known.READING or (function is builtins.sum and len(args) == 1) or known.is_numeric(function):
            return Object()
        if function in (min, max) and len(args) == 1:
            self._key(named, [element := self._elements(args[0], scope)])
            if "default" in named:
                element.unite(named["default"])
            return element
        if function in (min, max):
            self._key(named, [whole := self._either(args, scope)])
            return whole
        if function in known.COPYING and len(args) < 2:
            elements = [self._elements(arg, scope) for arg in args]
            self._key(named, elements)
            return self._new(node, known.listed(*elements) if elements else Object())
        if function in known.MAPPINGS:
            return self._mapping(function, args, named, node, scope)
        if function is enumerate:
            return known.listed(known.tuple_of([Object(), self._elements(args[0], scope)]))
        if function is zip:
            return known.listed(known.tuple_of([self._elements(arg, scope) for arg in args]))
        if function in (map, filter) and len(args) > 1:
            elements = [self._elements(arg, scope) for arg in args[1:]]
            given = self._applied(values[0], elements, args[0], scope)
            return known.listed(given if function is map else elements[0])
        if function is next:
            element = values[0].elements()
            for default in values[1:]:
                element.unite(default)
            return element
        if function in known.HEAPS:
            return known.of_heap(function, values)
        if function in known.SELECTED:
            self._key(named, [element := self._elements(args[1], scope)])
            return self._new(node, known.listed(element))
        if function in (copy.copy, copy.deepcopy):
            return self._new(node, known.of_copy(function, values[0]))
        return self._leaving(node, scope)

    def _mapping(
        self, function: object, args: Sequence[Node], named: dict[str | None, Object], node: Node, scope: Scope
    ) -> Object:
        made = self._new(node, Object())
        made.elements()
        if function.__name__ == "defaultdict" and args:  # type: ignore[attr-defined]
            made.default, args = args[0], args[1:]
            factory = self.value(made.default, scope)
            if isinstance(made.default, gast.Lambda):
                made.elements().unite(factory.functions[0].returned)
            elif self.meaning(made.default, scope) in (list, set, dict):
                self._new(made.default, made.elements())
        for value in named.values():
            made.elements().unite(value)
        for arg in args:
            whole = self.value(arg, scope)
            self.iterated.append((id(arg), whole))
            if function.__name__ == "Counter":  # type: ignore[attr-defined]
                made.key().unite(self._elements(arg, scope))
            elif id(arg) in self.earlier.mappings:
                made.unite(known.copied(whole))
            else:
                made.unite(known.paired(whole.elements()))
        return made

    def _method(self, node: Node, scope: Scope) -> Object:
        """A call of a method, of a container of Python's as far as its name tells."""
        if is_super(node.func.value):
            return self._of_super(node, scope)
        receiver, name = self.value(node.func.value, scope), node.func.attr
        self.receivers[id(node)] = receiver
        if classes := self.earlier.methods.get(id(node)):
            return self._of_user(receiver, classes, node, scope)
        named = {one.arg: self.value(one.value, scope) for one in node.keywords}
        args = [self.value(arg, scope) for arg in node.args]
        if any(isinstance(arg, gast.Starred) for arg in node.args) or not named.keys() <= {"key", "reverse", "default"}:
            receiver.leave()
            return self._leaving(node, scope)
        if name in known.STORING and len(args) > known.STORING[name]:
            receiver.elements().unite(args[known.STORING[name]])
        elif name in known.EXTENDING:
            for value in args:
                receiver.elements().unite(value.elements())
                receiver.key().unite(value.key())
        elif name in known.TAKING or name in ("get", "setdefault", "__getitem__"):
            return self._taken(receiver, name, node, args, scope)
        elif name == "popitem":
            return known.tuple_of([receiver.key(), receiver.elements()])
        elif name == "items":
            return known.listed(known.tuple_of([receiver.key(), receiver.elements()]))
        elif name == "values":
            return known.listed(receiver.elements())
        elif name == "keys":
            return known.listed(receiver.key())
        elif name == "copy":
            return self._new(node, known.copied(receiver))
        elif name in known.UNITED:
            made = self._new(node, known.copied(receiver))
            for value in args:
                made.elements().unite(value.elements())
            return made
        elif name == "sort":
            self.given[id(node.func.value)] = receiver.elements()
            self._key(named, [receiver.elements()])
        elif name in known.TEXTS:
            return self._new(node, Object())
        elif name not in known.PLAIN:
            receiver.leave()
            return self._leaving(node, scope)
        return Object()

    # Objects of the user's classes.

    def _attribute(self, value: Object, name: str) -> Object:
        """What an attribute may be."""
        part = value.part(Attribute(name))
        for cls in list(value.found().classes):
            static = inspect.getattr_static(cls, name, None)
            if isinstance(static, property) and isinstance(static.fget, FunctionType):
                part.unite(self._body(static.fget, cls).returned)
            elif static is not None and not isinstance(static, MemberDescriptorType) and type(static) not in SCALARS:
                part.leave()
        return part.found()

    def _instance(self, cls: type) -> Object:
        """The objects of a class; its methods are looked at."""
        if cls not in self.instances:
            made = self.instances[cls] = Object()
            made.classes.add(cls)
            for name, method in _methods(cls):
                body = self._body(method, cls)
                given = parameters(body.tree.args)
                if given:
                    body.scope.variables[given[0]].unite(made)
                if name.startswith("__") and name != "__init__" and name != "__post_init__":
                    for other in given[1:]:
                        body.scope.variables[other].leave()
                    body.returned.leave()
        return self.instances[cls].found()

    def _constructed(self, cls: type, node: Node, scope: Scope) -> Object:
        made = self._instance(cls)
        init = inspect.getattr_static(cls, "__init__", None)
        if _is_written(init):
            self._called([self._body(init, cls)], node, scope, skipped=1)
        elif dataclasses.is_dataclass(cls):
            self._fields(cls, made, node, scope)
        else:
            self._leaving(node, scope)
        return made.found()

    def _fields(self, cls: type, made: Object, node: Node, scope: Scope) -> None:
        """The fields of a dataclass, which a call of it gives, or a default."""
        fields = [one for one in dataclasses.fields(cls) if one.init]  # type: ignore[arg-type]
        given = {one.arg: one.value for one in node.keywords}
        given |= dict(zip((one.name for one in fields), node.args, strict=False))
        for name, value in given.items():
            made.part(Attribute(name)).unite(self.value(value, scope))
        for one in dataclasses.fields(cls):  # type: ignore[arg-type]
            part = made.part(Attribute(one.name))
            if one.init and one.name in given:
                continue
            if one.init and one.default_factory in FACTORIES:
                site = gast.copy_location(FACTORIES[one.default_factory](), node)
                self._new(site, part)
                self.factories.setdefault(id(node), []).append((one.name, part, site))
            elif one.default is None:
                part.found().absent = True
            elif type(one.default) not in SCALARS:
                part.leave()

    def _of_user(self, receiver: Object, classes: Iterable[type], node: Node, scope: Scope) -> Object:
        """A call of a method of the user's."""
        result = Object()
        for cls in sorted(classes, key=lambda one: one.__qualname__):
            static = inspect.getattr_static(cls, node.func.attr, None)
            if _is_written(static):
                result.unite(self._called([self._body(static, cls)], node, scope, skipped=1))
            elif isinstance(static, staticmethod) and _is_written(static.__func__):
                result.unite(self._called([self._body(static.__func__, cls)], node, scope))
            else:
                receiver.leave()
                result.unite(self._leaving(node, scope))
        return result.found()

    def _of_super(self, node: Node, scope: Scope) -> Object:
        """A call of a method of a base class."""
        owners = {body.owner for body in self.bodies.values() if body.scope is scope or body.scope is scope.around}
        (owner,) = owners if len(owners) == 1 else (None,)
        for base in () if owner is None else owner.__mro__[1:]:
            static = vars(base).get(node.func.attr)
            if _is_written(static):
                return self._called([self._body(static, base)], node, scope, skipped=1)
        return Object() if node.func.attr == "__init__" and not node.args else self._leaving(node, scope)

    def _taken(self, receiver: Object, name: str, node: Node, args: Sequence[Object], scope: Scope) -> Object:
        """What a method gives that looks an element up, or takes it out."""
        by_key = bool(node.args) and name != "popleft"
        found = self._part(receiver, node.args[0], scope) if by_key else receiver.elements()
        for default in args[1:2]:
            found.unite(default)
        if name == "get" and len(args) < 2:
            found.found().absent = True
        if name == "setdefault":
            receiver.key().unite(args[0])
        return found.found()

    def _key(self, named: dict[str | None, Object], elements: Sequence[Object]) -> None:
        if "key" in named:
            for function in named["key"].functions:
                self._give(function, elements)

    def _applied(self, function: Object, args: Sequence[Object], node: Node, scope: Scope) -> Object:
        """What a function gives that Python's own code calls."""
        made = Object()
        bodies = list(function.functions)
        if not bodies and isinstance(meaning := self.meaning(node, scope), FunctionType):
            user = self._found(meaning)
            bodies = [self._body(user)] if user is not None else []
        for body in bodies:
            self._give(body, args)
            made.unite(body.returned)
        return made

    def _give(self, body: Body, args: Sequence[Object]) -> None:
        for name, value in zip(parameters(body.tree.args), args, strict=False):
            body.scope.variables[name].unite(value)

    def _called(self, bodies: Sequence[Body], node: Node, scope: Scope, skipped: int = 0) -> Object:
        """What a call of functions gives that are looked at."""
        if not bodies:
            return self._leaving(node, scope)
        made = Object()
        for body in bodies:
            names = parameters(body.tree.args)[skipped:]
            if any(isinstance(arg, gast.Starred) for arg in node.args) or any(one.arg is None for one in node.keywords):
                self._leaving(node, scope)
            for name, arg in zip(names, node.args, strict=False):
                body.scope.variables[name].unite(self.value(arg, scope))
            for one in node.keywords:
                body.scope.variables.setdefault(one.arg, Object()).unite(self.value(one.value, scope))
            if len(node.args) > len(names):
                self._leaving(node, scope)
            made.unite(body.returned)
        return made

    def _leaving(self, node: Node, scope: Scope) -> Object:
        """What a call gives of which nothing is known: its arguments leave."""
        for arg in (*node.args, *(one.value for one in node.keywords)):
            self.value(arg, scope).leave()
        if isinstance(node.func, gast.Name):
            self.value(node.func, scope)
        return Object(outside=True)

    def looks_at(self, function: object) -> bool:
        """Return whether the function behind an object of Python's is looked at."""
        user = self._found(function)
        return user is not None and user.__code__ in self.bodies

    def meaning(self, node: Node, scope: Scope) -> object:
        """Return the object of Python's that a name or a dotted name means; MISSING for one of the program."""
        if isinstance(node, gast.Attribute):
            base = self.meaning(node.value, scope)
            return getattr(base, node.attr, MISSING) if isinstance(base, ModuleType) else MISSING
        if not isinstance(node, gast.Name) or scope.find(node.id) is not None:
            return MISSING
        return _global(scope.fn, node.id)


def analysed(entry: FunctionType, found: Found) -> Flow | None:
    """Return the objects of the expressions of a program; None where the source of a function is not at hand."""
    known_now = Known()
    try:
        for _ in range(MOST_LOOKS):
            flow = Flow(entry, found, known_now)
            mappings = {place for place, value in flow.iterated if any(map(_makes_dict, value.found().sites))}
            methods = {place: frozenset(value.found().classes) for place, value in flow.receivers.items()}
            methods |= {place: classes | known_now.methods.get(place, frozenset()) for place, classes in methods.items()}
            methods = {**known_now.methods, **{place: classes for place, classes in methods.items() if classes}}
            found_now = Known(known_now.mappings | mappings, methods)
            if found_now == known_now:
                return flow
            known_now = found_now
    except (CompileError, RecursionError):
        return None
    return None


def is_super(node: Node) -> bool:
    """Return whether an expression is `super()`."""
    match node:
        case gast.Call(func=gast.Name(id="super")):
            return True
    return False


def is_user_class(cls: type) -> bool:
    """Return whether a class is one of the user's, of which objects are looked at."""
    own = all(base is object or any(map(_is_written, vars(base).values())) for base in cls.__mro__)
    made = dataclasses.is_dataclass(cls) and cls.__module__ not in sys.stdlib_module_names
    return (own or made) and not issubclass(cls, tuple | BaseException | Enum | dict | list | set | str | int | float)


def _is_written(function: object) -> TypeGuard[FunctionType]:
    """Whether an object is a function of the user's whose text is at hand."""
    if not isinstance(function, FunctionType) or not is_user_code(function.__code__):
        return False
    return bool(linecache.getlines(function.__code__.co_filename))


def _methods(cls: type) -> Iterator[tuple[str, FunctionType]]:
    """The methods of a class, those of its bases among them, that are the user's."""
    for base in cls.__mro__:
        for name, value in vars(base).items():
            function = value.fget if isinstance(value, property) else value
            if _is_written(function):
                yield name, function


def _makes_dict(site: Node) -> bool:
    match site:
        case gast.Dict() | gast.DictComp():
            return True
        case gast.Call(func=gast.Name(id=name)) | gast.Call(func=gast.Attribute(attr=name)):
            return name in ("dict", "defaultdict", "Counter", "OrderedDict")
        case gast.Name(id="dict"):  # what a `defaultdict` makes
            return True
    return False


def _not_own(node: Node) -> Iterator[str]:
    """The names that a statement takes from the scopes around, nested functions left out."""
    if isinstance(node, gast.Nonlocal | gast.Global):
        yield from node.names
    elif not isinstance(node, SCOPES):
        for part in gast.iter_child_nodes(node):
            yield from _not_own(part)


@functools.cache
def _builtin(name: str) -> object:
    return getattr(builtins, name, MISSING)


def _global(fn: FunctionType, name: str) -> object:
    if name in fn.__code__.co_freevars:
        cell = (fn.__closure__ or ())[fn.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING
    return fn.__globals__.get(name, _builtin(name))
