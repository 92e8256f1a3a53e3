"""The meaning of names and dotted names before anything runs, above all: which calls go to batched functions.

Only look-ups without side effects: locals hide cells, cells hide globals, globals hide builtins; attributes
are followed through modules and, without running properties, through other objects.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeVar

import gast

from pcbatch.frontend.source.callable_objects import bound_function
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.tree import Node

MISSING: Final = object()
T = TypeVar("T")


def resolve(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> Any:
    """The object that a name or dotted name refers to, or MISSING; `hidden` are names of inner scopes."""
    if isinstance(node, gast.Name):
        if node.id in unit.statics and node.id not in hidden:
            return unit.statics[node.id]
        if node.id in unit.lifted and node.id not in hidden:
            return unit.lifted[node.id]
        if node.id in unit.imports and node.id not in hidden:
            return unit.imports[node.id]
        if node.id in unit.bound or node.id in hidden:
            return MISSING
        return look_up(unit.fn, node.id)
    if isinstance(node, gast.Attribute):
        base = resolve(unit, node.value, hidden)
        return MISSING if base is MISSING else _attribute(unit, base, node.attr)
    if isinstance(node, gast.Subscript):
        return _item(resolve(unit, node.value, hidden), _index(unit, node.slice, hidden))
    return MISSING


def hiding(unit: Unit, names: frozenset[str]) -> Unit:
    """Return a unit as it looks from an inner scope with these names: they mean nothing that is known."""

    def others(known: Mapping[str, T]) -> dict[str, T]:
        return {name: value for name, value in known.items() if name not in names}

    bound = {**dict.fromkeys(names, (unit.node,)), **unit.bound}
    statics, lifted, imports = others(unit.statics), others(unit.lifted), others(unit.imports)
    return replace(unit, bound=bound, statics=statics, lifted=lifted, imports=imports)


def callee(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> Target | None:
    """The target of a call of a batched function; None for any other node."""
    if not isinstance(node, gast.Call):
        return None
    function = resolve(unit, node.func, hidden)
    return None if function is MISSING else unit.batched(function)


def is_builtin(unit: Unit, node: Node, name: str) -> bool:
    """Whether a node means the builtin `name`."""
    return resolve(unit, node) is getattr(builtins, name)


def builtin_name(unit: Unit, node: Node, names: frozenset[str]) -> str | None:
    """The name of the builtin that a node means, if it is one of `names`."""
    value = resolve(unit, node)
    return next((name for name in sorted(names) if value is getattr(builtins, name)), None)


def asked_type(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> Node | None:
    """The expression whose class `type(x)` or `x.__class__` asks for; None for other nodes."""
    match node:
        case gast.Call(func=func, args=[value], keywords=[]) if not isinstance(value, gast.Starred):
            return value if resolve(unit, func, hidden) is type else None
        case gast.Attribute(value=value, attr="__class__", ctx=gast.Load()):
            return value if resolve(unit, value, hidden) is MISSING else None
    return None


def is_batch_decorator(unit: Unit, node: Node) -> bool:
    """Whether an expression means `pcbatch.batch` or `pcbatch.batch(...)`."""
    function = resolve(unit, node.func if isinstance(node, gast.Call) else node)
    module = str(getattr(function, "__module__", None))
    return getattr(function, "__name__", None) == "batch" and module.split(".")[0] == "pcbatch"


def look_up(fn: FunctionType, name: str) -> Any:
    """Return what a name means that a function does not bind itself: a cell, a global or a builtin; else MISSING."""
    if name in fn.__code__.co_freevars:
        cell = (fn.__closure__ or ())[fn.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not bound yet
            return MISSING
    if name in fn.__globals__:
        return fn.__globals__[name]
    return getattr(builtins, name, MISSING)


def _attribute(unit: Unit, base: object, name: str) -> Any:
    if isinstance(base, ModuleType):
        try:
            return getattr(base, name, MISSING)
        except Exception:  # a module's own __getattr__ may do anything; the primitive will show its error
            return MISSING
    if isinstance(base, property) and name in ("fget", "fset"):
        return getattr(base, name)
    value = inspect.getattr_static(base, name, MISSING)
    if isinstance(value, staticmethod):
        return value.__func__
    # Only batched functions are bound: the `__get__` of another object may run code of the user.
    if isinstance(value, classmethod):
        owner = base if isinstance(base, type) else type(base)
        if isinstance(value.__func__, FunctionType) and unit.batched(value.__func__) is not None:
            return MethodType(value.__func__, owner)
        return value.__func__.__get__(owner, type) if _is_of_pcbatch(value.__func__) else value
    if (method := bound_function(base, name)) is not None and unit.batched(method) is not None:
        return method
    is_method = _is_of_pcbatch(value) and not isinstance(base, type) and name not in getattr(base, "__dict__", ())
    return value.__get__(base, type(base)) if is_method else value


def _is_of_pcbatch(value: object) -> bool:
    return type(value).__module__.split(".")[0] == "pcbatch"


def _index(unit: Unit, node: Node, hidden: frozenset[str]) -> Any:
    return node.value if isinstance(node, gast.Constant) else resolve(unit, node, hidden)


def _item(base: object, index: object) -> Any:
    """An element of a tuple, list or dict; MISSING for other types, whose look-up may run code of the user."""
    if type(base) not in (dict, tuple, list) or type(index) not in (int, str, bool):
        return MISSING
    try:
        return base[index]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        return MISSING
