"""Points-to analysis of a function and of those of the user's that it calls: which object each expression may be.

It knows nothing of the order of statements, nor of which call of a function it is. What it does not know of leaves: the
objects that go there, and come from there, are *outside*.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType

import gast

from pcbatch.frontend.source.locate import locate
from pcbatch.frontend.source.rewrites.boxes import expressions
from pcbatch.frontend.source.rewrites.boxes import known_calls as known
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.rewrites.boxes.program import Body, Found, Known, Scope, names_of_others
from pcbatch.frontend.source.scope import bindings, parameters
from pcbatch.frontend.source.tree import Node


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
        recursive: whether the entry is called.
        catches_absent: whether a handler tells the errors of None from those of other objects.
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
        self.recursive = self.catches_absent = False
        self.found, self.earlier = found, earlier
        self._pending: list[Body] = []
        body = self.body(entry)
        for name in parameters(body.tree.args):
            body.scope.variables[name].become_argument()
        while self._pending:
            self._run(self._pending.pop())

    # Functions.

    def body(self, fn: FunctionType, owner: type | None = None) -> Body:
        """Return a function of the user's, a method of the class `owner`."""
        if fn.__code__ not in self.bodies:
            self.bodies[fn.__code__] = self.made(locate(fn).node, fn, None)
            self.bodies[fn.__code__].owner = owner
        return self.bodies[fn.__code__]

    def made(self, tree: Node, fn: FunctionType, around: Scope | None) -> Body:
        """Return a function that is to be looked at, which stands in the scope `around`."""
        given = parameters(tree.args)
        inside = [tree.body] if isinstance(tree, gast.Lambda) else tree.body
        free = {name for part in inside for name in names_of_others(part)}
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
                    self.assign(target, value, scope)
            case gast.AnnAssign():
                if node.value is not None:
                    self.assign(node.target, self.value(node.value, scope), scope)
            case gast.AugAssign():
                target, value = self.value(node.target, scope), self.value(node.value, scope)
                target.elements().unite(value.elements())
            case gast.For():
                self.assign(node.target, self.elements(node.iter, scope), scope)
                self._all([*node.body, *node.orelse], scope, body)
            case gast.Return():
                if node.value is not None:
                    body.returned.unite(self.value(node.value, scope))
            case gast.FunctionDef():
                inner = self.made(node, scope.fn, scope)
                variable = (scope.find(node.name) or Object()).found()
                variable.functions.append(inner)
                if node.decorator_list:
                    variable.leave()
            case gast.ClassDef() | gast.With() | gast.Match() | gast.Raise():
                for part in gast.iter_child_nodes(node):
                    self._unknown(part, scope, body)
            case gast.If() | gast.While() | gast.Assert():
                expressions.test(self, node.test, scope)
                self._all([part for part in gast.iter_child_nodes(node) if part is not node.test], scope, body)
            case gast.ExceptHandler():
                caught = () if node.type is None else gast.walk(node.type)
                self.catches_absent |= any(
                    getattr(part, "id", "") in ("AttributeError", "TypeError") for part in caught
                )
                if node.name is not None:
                    (scope.find(node.name.id) or Object()).leave()
                self._all(node.body, scope, body)
            case gast.Try() | gast.Expr():
                self._all(list(gast.iter_child_nodes(node)), scope, body)
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
        if isinstance(node, gast.YieldFrom):
            body.returned.elements().unite(self.elements(node.value, scope))

    def _unknown(self, node: Node, scope: Scope, body: Body) -> None:
        """A construct whose meaning is not known here: its objects leave."""
        if isinstance(node, gast.stmt):
            self._statement(node, scope, body)
        elif isinstance(node, gast.expr):
            self.value(node, scope).leave()
        else:
            for part in gast.iter_child_nodes(node):
                self._unknown(part, scope, body)

    def assign(self, target: Node, value: Object, scope: Scope) -> None:
        """Have a target of an assignment hold an object."""
        match target:
            case gast.Name():
                variable = scope.find(target.id)
                self.of[id(target)] = variable or Object(outside=True)
                (variable or Object(outside=True)).unite(value)
            case gast.Tuple() | gast.List():
                self.of[id(target)] = value
                star = next((k for k, one in enumerate(target.elts) if isinstance(one, gast.Starred)), None)
                for k, one in enumerate(target.elts):
                    if isinstance(one, gast.Starred):
                        rest = known.listed(value.elements())
                        rest.found().fixed = True
                        self.assign(one.value, rest, scope)
                    else:
                        self.assign(one, value.part(k) if star is None else value.elements(), scope)
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
            self.of[id(node)] = expressions.value_of(self, node, scope)
        return self.of[id(node)].found()

    def new(self, node: Node, made: Object) -> Object:
        """Note that an expression makes an object; return it."""
        made.found().sites.append(node)
        return made.found()

    def part(self, value: Object, key: Node, scope: Scope) -> Object:
        """Return what the part of an object at a key may be."""
        self.value(key, scope)
        if isinstance(key, gast.Constant) and isinstance(key.value, str | int):
            return value.part(key.value)
        return value.elements()

    def either(self, nodes: Sequence[Node], scope: Scope) -> Object:
        """Return what is one of some expressions."""
        first = self.value(nodes[0], scope)
        for node in nodes[1:]:
            first.unite(self.value(node, scope))
        return first.found()

    def elements(self, node: Node, scope: Scope) -> Object:
        """Return what an iteration over an expression gives, of a dict its keys."""
        value = self.value(node, scope)
        self.iterated.append((id(node), value))
        self.given[id(node)] = value.key() if id(node) in self.earlier.mappings else value.elements()
        return self.given[id(node)].found()

    # Calls of functions that are looked at, and of others.

    def give(self, body: Body, args: Sequence[Object]) -> None:
        """Have the parameters of a function hold objects."""
        for name, value in zip(parameters(body.tree.args), args, strict=False):
            body.scope.variables[name].unite(value)

    def called(self, bodies: Sequence[Body], node: Node, scope: Scope, skipped: int = 0) -> Object:
        """Return what a call of functions gives that are looked at."""
        if not bodies:
            return self.leaving(node, scope)
        made = Object()
        for body in bodies:
            self.recursive |= body is next(iter(self.bodies.values()))
            names = parameters(body.tree.args)[skipped:]
            if any(isinstance(arg, gast.Starred) for arg in node.args) or any(one.arg is None for one in node.keywords):
                self.leaving(node, scope)
            for name, arg in zip(names, node.args, strict=False):
                body.scope.variables[name].unite(self.value(arg, scope))
            for one in node.keywords:
                body.scope.variables.setdefault(one.arg, Object()).unite(self.value(one.value, scope))
            if len(node.args) > len(names):
                self.leaving(node, scope)
            made.unite(body.returned)
        return made

    def leaving(self, node: Node, scope: Scope) -> Object:
        """Return what a call gives of which nothing is known: its arguments leave."""
        for arg in (*node.args, *(one.value for one in node.keywords)):
            self.value(arg, scope).leave()
        if isinstance(node.func, gast.Name):
            self.value(node.func, scope)
        return Object(outside=True)

    def looks_at(self, function: object) -> bool:
        """Return whether the function behind an object of Python's is looked at."""
        user = self.found(function)
        return user is not None and user.__code__ in self.bodies
