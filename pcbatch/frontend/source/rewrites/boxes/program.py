"""Functions that a points-to analysis looks at, their variables, and the meaning of names that are none of these."""

from __future__ import annotations

import dataclasses
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType, ModuleType
from typing import TypeGuard

import gast

from pcbatch.data.object_parts import is_user_code
from pcbatch.frontend.source.resolve import MISSING, look_up
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.tree import SCOPES, Node

Found = Callable[[object], FunctionType | None]  # the function of the user's behind an object that is called


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
    """Facts that an earlier look at a program has found, by the identities of expressions.

    Attributes:
        mappings: those that are dicts, of which an iteration gives the keys.
        methods: calls of methods with the classes of the user's whose methods they may call.
    """

    mappings: frozenset[int] = frozenset()
    methods: Mapping[int, frozenset[type]] = field(default_factory=dict)


def meaning(node: Node, scope: Scope) -> object:
    """Return the object of Python's that a name or a dotted name means; MISSING for one of the program."""
    if isinstance(node, gast.Attribute):
        base = meaning(node.value, scope)
        if isinstance(base, ModuleType):
            try:
                return getattr(base, node.attr, MISSING)
            except Exception:  # a `__getattr__` of the module
                return MISSING
        static = inspect.getattr_static(base, node.attr, None) if isinstance(base, type) else None
        return static.__func__ if isinstance(static, staticmethod) else MISSING
    if not isinstance(node, gast.Name) or scope.find(node.id) is not None:
        return MISSING
    return look_up(scope.fn, node.id)


def is_super(node: Node) -> bool:
    """Return whether an expression is `super()`."""
    match node:
        case gast.Call(func=gast.Name(id="super")):
            return True
    return False


def is_user_class(cls: type) -> bool:
    """Return whether a class is one of the user's, of which objects are looked at."""
    own = all(base is object or any(map(is_written, vars(base).values())) for base in cls.__mro__)
    made = dataclasses.is_dataclass(cls) and cls.__module__ not in sys.stdlib_module_names
    return (own or made) and not issubclass(cls, tuple | BaseException | Enum | dict | list | set | str | int | float)


def is_written(function: object) -> TypeGuard[FunctionType]:
    """Return whether an object is a function of the user's whose text is at hand."""
    if not isinstance(function, FunctionType) or not is_user_code(function.__code__):
        return False
    return bool(linecache.getlines(function.__code__.co_filename))


def methods_of(cls: type) -> Iterator[tuple[str, FunctionType]]:
    """Yield the methods of a class, those of its bases among them, that are the user's."""
    for base in cls.__mro__:
        for name, value in vars(base).items():
            function = value.fget if isinstance(value, property) else value
            if is_written(function):
                yield name, function


def names_of_others(node: Node) -> Iterator[str]:
    """Yield the names that a statement takes from the scopes around, nested functions left out."""
    if isinstance(node, gast.Nonlocal | gast.Global):
        yield from node.names
    elif not isinstance(node, SCOPES):
        for part in gast.iter_child_nodes(node):
            yield from names_of_others(part)
