"""What a name or a dotted name means before anything runs: which calls go to batched functions.

Only look-ups without side effects: locals hide cells, cells hide globals, globals hide builtins; attributes
are followed through modules and, without running properties, through other objects.
"""

from __future__ import annotations

import builtins
import inspect
from types import FunctionType, ModuleType
from typing import Any, Final

import gast

from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.tree import Node

MISSING: Final = object()


def resolve(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> Any:
    """The object that a name or dotted name refers to, or MISSING; `hidden` are names of inner scopes."""
    if isinstance(node, gast.Name):
        if node.id in unit.statics and node.id not in hidden:
            return unit.statics[node.id]
        if node.id in unit.bound or node.id in hidden:
            return MISSING
        return _look_up(unit.fn, node.id)
    if isinstance(node, gast.Attribute):
        base = resolve(unit, node.value, hidden)
        return MISSING if base is MISSING else _attribute(base, node.attr)
    if isinstance(node, gast.Subscript):
        return _item(resolve(unit, node.value, hidden), _index(unit, node.slice, hidden))
    return MISSING


def callee(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> Target | None:
    """What a call of a batched function runs; None for any other node."""
    if not isinstance(node, gast.Call):
        return None
    found = resolve(unit, node.func, hidden)
    return None if found is MISSING else unit.batched(found)


def static_value(unit: Unit, node: Node) -> Any:
    """The object that an argument is while compiling; None if it is not known, and for numbers and arrays."""
    if isinstance(node, gast.Constant):
        return node.value if isinstance(node.value, str) else None
    found = resolve(unit, node)
    known = found is not MISSING and (unit.batched(found) is not None or _is_parameter(unit, node))
    return found if known else None


def _is_parameter(unit: Unit, node: Node) -> bool:
    return isinstance(node, gast.Name) and node.id in unit.statics


def is_builtin(unit: Unit, node: Node, name: str) -> bool:
    """Does this node mean the builtin `name`?"""
    found = resolve(unit, node)
    return found is not MISSING and found is getattr(builtins, name)


def builtin_name(unit: Unit, node: Node, names: frozenset[str]) -> str | None:
    """The name of the builtin that this node means, if it is one of `names`."""
    found = resolve(unit, node)
    return next((name for name in sorted(names) if found is getattr(builtins, name, MISSING)), None)


def is_batch_decorator(unit: Unit, node: Node) -> bool:
    """Does this expression mean `pcbatch.batch` or `pcbatch.batch(...)`?"""
    found = resolve(unit, node.func if isinstance(node, gast.Call) else node)
    module = getattr(found, "__module__", None)
    return getattr(found, "__name__", None) == "batch" and isinstance(module, str) and module.split(".")[0] == "pcbatch"


def _look_up(fn: FunctionType, name: str) -> Any:
    if name in fn.__code__.co_freevars:
        cell = (fn.__closure__ or ())[fn.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not bound yet
            return MISSING
    if name in fn.__globals__:
        return fn.__globals__[name]
    return getattr(builtins, name, MISSING)


def _attribute(base: object, name: str) -> Any:
    if isinstance(base, ModuleType):
        try:
            return getattr(base, name, MISSING)
        except Exception:  # a module's own __getattr__ may do anything; the primitive will show its error
            return MISSING
    found = inspect.getattr_static(base, name, MISSING)
    if isinstance(found, staticmethod):
        return found.__func__
    # Only methods that are ours are bound: the `__get__` of others may run code.
    if isinstance(found, classmethod):
        owner = base if isinstance(base, type) else type(base)
        return found.__func__.__get__(owner, type) if _is_ours(found.__func__) else found
    own = _is_ours(found) and not isinstance(base, type)
    return found.__get__(base, type(base)) if own and name not in getattr(base, "__dict__", ()) else found


def _is_ours(found: object) -> bool:
    return type(found).__module__.split(".")[0] == "pcbatch"


def _index(unit: Unit, node: Node, hidden: frozenset[str]) -> Any:
    return node.value if isinstance(node, gast.Constant) else resolve(unit, node, hidden)


def _item(base: object, index: object) -> Any:
    """An element of a table of functions; only of types whose look-up runs no code of the user."""
    if type(base) not in (dict, tuple, list) or type(index) not in (int, str, bool):
        return MISSING
    try:
        return base[index]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        return MISSING
