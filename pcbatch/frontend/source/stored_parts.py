"""The parts of variables in which an expression may store other objects, by itself or in the functions that it calls.

    def renew(m): m[2] = []                ==>      renew(box.rows) may store in box.rows[2]

Paths of keys tell parts apart, as far as the text does: an index that is no literal may be any. Functions and methods
of the user's are followed by their names; what they store under another name of a parameter's part is found where the
other name is assigned once, or is what a loop goes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import CodeType, FunctionType, MethodType

import gast

from pcbatch.data.catalogue import FUNCTIONS, facts
from pcbatch.errors import CompileError
from pcbatch.frontend.source.callable_objects import callee_of
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.locate import locate
from pcbatch.frontend.source.own_classes import contents, own_methods
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.scope import bindings, parameters
from pcbatch.frontend.source.tree import FUNCTIONS as DEFINITIONS
from pcbatch.frontend.source.tree import Node, is_constant

ANY = "[]"
"""The key of an index that the text does not tell."""

MOST = 6
"""The length of paths that are followed; recursion over a tree makes them longer and longer."""


class Kind(Enum):
    """The way in which a container or an object changes."""

    STORES = "stores"  # one object takes the place of another
    MOVES = "moves"  # elements of a list take other places
    GROWS = "grows"  # elements come or go at the end; others keep their distance from the start


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a variable by its path: `.attribute`, `[literal]` or `[]` for each key. The root has no name if it is a
    variable of a function that is called, or no variable."""

    root: str
    keys: tuple[str, ...] = ()

    def within(self, outer: Part) -> Part:
        """The part of `outer` that this part is of what `outer` names."""
        return Part(outer.root, (*outer.keys, *self.keys))


@dataclass(frozen=True, slots=True)
class Stored:
    """A part that changes, and how; `sure`: no other method of the same name may be meant, which does not change it."""

    part: Part
    kind: Kind
    sure: bool = True


def stored_parts(unit: Unit, nodes: Iterable[Node]) -> frozenset[Stored]:
    """Return the parts in which the evaluation of expressions of a function may store other objects."""
    finder = _Finder(tuple(unit.classes.values()))
    scope = _Scope(_aliases(unit.body), lambda func: resolve(unit, func), dict(unit.definitions))
    return finder.settled(scope, list(nodes))


def part_of(node: Node) -> Part | None:
    """Return the part of a variable that an expression names; None for other expressions."""
    keys: list[str] = []
    while isinstance(node, gast.Subscript | gast.Attribute):
        if isinstance(node, gast.Attribute):
            keys.append(f".{node.attr}")
        else:
            keys.append(f"[{node.slice.value!r}]" if is_constant(node.slice) else ANY)
        node = node.value
    return Part(node.id, tuple(reversed(keys))) if isinstance(node, gast.Name) else None


@dataclass(frozen=True, slots=True)
class _Scope:
    """A function whose nodes are looked at: other names of parts, the meaning of what is called, nested functions."""

    aliases: Mapping[str, Part]
    meaning: Callable[[Node], object]
    definitions: Mapping[str, Node]

    def part(self, node: Node) -> Part | None:
        """The part that a node names, from the variable that has it."""
        found = part_of(node)
        for _ in range(MOST):
            if found is None or found.root not in self.aliases:
                break
            found = Part("", found.keys).within(self.aliases[found.root])
        return found


class _Finder:
    """The search through functions that call one another: it goes on until nothing new is found."""

    def __init__(self, classes: tuple[type, ...]) -> None:
        self.classes = classes
        self.known: dict[CodeType, frozenset[Stored]] = {}
        self.entered: set[CodeType] = set()

    def settled(self, scope: _Scope, nodes: list[Node]) -> frozenset[Stored]:
        """Return what nodes store, once what is known of functions that call themselves is complete."""
        while True:
            before = dict(self.known)
            self.entered.clear()
            found = frozenset(self._in_nodes(scope, nodes))
            if self.known == before:
                return found

    def _in_nodes(self, scope: _Scope, nodes: Iterable[Node]) -> Iterator[Stored]:
        parts = [part for node in nodes for part in gast.walk(node)]
        # `xs += ys` changes the object that is there: what has methods that change it has that operator, too.
        in_place = {id(part.target) for part in parts if isinstance(part, gast.AugAssign)}
        for part in parts:
            if id(part) in in_place:
                continue
            if isinstance(part, gast.Call):
                yield from self._in_call(scope, part)
            elif isinstance(part, gast.Subscript | gast.Attribute) and not isinstance(part.ctx, gast.Load):
                place = scope.part(part)
                if place is not None:
                    yield Stored(place, Kind.MOVES if isinstance(part.ctx, gast.Del) else Kind.STORES)

    def _in_call(self, scope: _Scope, node: Node) -> Iterator[Stored]:
        meaning = scope.meaning(node.func)
        if isinstance(node.func, gast.Name) and node.func.id in scope.definitions:
            definition = scope.definitions[node.func.id]
            inner = replace(scope, definitions={})  # a nested function that calls itself is looked at once
            body = [definition.body] if isinstance(definition, gast.Lambda) else definition.body
            yield from _mapped(frozenset(self._in_nodes(inner, body)), scope, definition.args, node.args, node.keywords)
        elif any(meaning is plain for plain, _ in FUNCTIONS.values()):
            place = scope.part(node.args[0]) if node.args else None
            if place is not None:
                yield Stored(Part("", (ANY,)).within(place), Kind.MOVES)
        elif isinstance(meaning, type):
            for method in own_methods([meaning], "__init__"):
                yield from self._mapped(scope, method, [None, *node.args], node.keywords)
        elif (fn := _function(meaning)) is not None:
            bound = [None] if isinstance(meaning, MethodType) else []
            yield from self._mapped(scope, fn, [*bound, *node.args], node.keywords)
        elif isinstance(node.func, gast.Attribute):
            place = scope.part(node.func.value)
            if place is not None and facts(node.func.attr).changes:
                yield Stored(Part("", (ANY,)).within(place), _kind(node))
            methods = list(own_methods(self.classes, node.func.attr))
            for method in methods:
                for one in self._mapped(scope, method, [node.func.value, *node.args], node.keywords):
                    yield replace(one, sure=one.sure and len(methods) == 1)

    def _mapped(
        self, scope: _Scope, fn: FunctionType, args: list[Node | None], keywords: list[Node]
    ) -> Iterator[Stored]:
        """Yield what a call of a function stores in the arguments."""
        try:
            node = locate(fn).node
        except CompileError:
            return
        yield from _mapped(self._in_function(fn, node), scope, node.args, args, keywords)

    def _in_function(self, fn: FunctionType, node: Node) -> frozenset[Stored]:
        code = fn.__code__
        if code in self.entered:
            return self.known.get(code, frozenset())
        self.entered.add(code)
        body = [node.body] if isinstance(node, gast.Lambda) else node.body
        own = {name for name, _ in bindings(body)} | set(parameters(node.args))
        nested = (part for part in gast.walk(node) if isinstance(part, DEFINITIONS) and part is not node)
        definitions = {part.name: part for part in nested}
        scope = _Scope(_aliases(body), lambda func: _meaning(fn, func, own), definitions)
        new, inside = _made(body, scope), own.difference(parameters(node.args))
        kept = [(one, one.part) for one in self._in_nodes(scope, body) if len(one.part.keys) <= MOST]
        kept = [(one, part) for one, part in kept if part.root not in new or len(part.keys) > 1]
        found = frozenset(replace(one, part=Part("", part.keys)) if part.root in inside else one for one, part in kept)
        self.known[code] = self.known.get(code, frozenset()) | found
        return self.known[code]


def _mapped(
    found: frozenset[Stored], scope: _Scope, parameters_: Node, args: Iterable[Node | None], keywords: Iterable[Node]
) -> Iterator[Stored]:
    """Yield what is stored in parameters as parts of the arguments; other variables are those of the scope."""
    names = parameters(parameters_)
    given: dict[str, Part | None] = dict.fromkeys(names)
    for name, arg in zip(names, args, strict=False):
        given[name] = None if arg is None else scope.part(arg) or Part("")
    for keyword in keywords:
        given[keyword.arg] = scope.part(keyword.value) or Part("")
    for one in found:
        outer = given.get(one.part.root, Part(one.part.root))
        if outer is not None:
            yield replace(one, part=Part("", one.part.keys).within(outer))


def _made(body: list[Node], scope: _Scope) -> set[str]:
    """The variables of a function that are assigned once, an object that it makes, which nothing has had before."""
    names = [name for name, _ in bindings(body)]
    assigns = (part for node in body for part in gast.walk(node) if isinstance(part, gast.Assign))
    calls = (one for one in assigns if isinstance(one.value, gast.Call) and isinstance(one.targets[0], gast.Name))
    made = (one.targets[0].id for one in calls if isinstance(scope.meaning(one.value.func), type))
    return {name for name in made if names.count(name) == 1}


def _kind(node: Node) -> Kind:
    """The kind of the change that a method makes of the elements of its object."""
    name = node.func.attr
    if facts(name).grows or name == "setdefault" or (name == "pop" and not node.args):
        return Kind.GROWS
    return Kind.STORES if name in ("update", "__setitem__") else Kind.MOVES


def _function(meaning: object) -> FunctionType | None:
    """The function of the user's that a call of an object runs."""
    return callee_of(meaning)[0] if not isinstance(meaning, type) else None


def _meaning(fn: FunctionType, node: Node, own: set[str]) -> object:
    """The object that a function calls by a name which it does not bind itself; None for others."""
    if not isinstance(node, gast.Name) or node.id in own:
        return None
    cells = dict(zip(fn.__code__.co_freevars, contents(fn.__closure__ or ()), strict=True))
    return cells.get(node.id, fn.__globals__.get(node.id))


def _aliases(body: list[Node]) -> dict[str, Part]:
    """The variables of a function that are assigned once, as another name of a part, or go over the elements of one."""
    found: dict[str, Part] = {}
    names = [name for name, _ in bindings(body)]
    for node in (part for statement in body for part in gast.walk(statement)):
        match node:
            case gast.Assign(targets=[gast.Name(id=name)], value=value):
                part = part_of(value)
            case gast.For(target=gast.Name(id=name), iter=value):
                part = part_of(value)
                part = None if part is None else Part(part.root, (*part.keys, ANY))
            case _:
                continue
        if part is not None and part.root != name and names.count(name) == 1:
            found[name] = part
    return found
