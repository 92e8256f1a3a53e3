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

from pcbatch.frontend.tree import Node
from pcbatch.frontend.unit import Unit

MISSING: Final = object()


def resolve(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> Any:
    """The object that a name or dotted name refers to, or MISSING; `hidden` are names of inner scopes."""
    if isinstance(node, gast.Name):
        if node.id in unit.bound or node.id in hidden:
            return MISSING
        return _look_up(unit.fn, node.id)
    if isinstance(node, gast.Attribute):
        base = resolve(unit, node.value, hidden)
        return MISSING if base is MISSING else _attribute(base, node.attr)
    return MISSING


def callee(unit: Unit, node: Node, hidden: frozenset[str] = frozenset()) -> FunctionType | None:
    """The plain function behind a call of a batched function; None for any other node."""
    if not isinstance(node, gast.Call):
        return None
    found = resolve(unit, node.func, hidden)
    return None if found is MISSING else unit.batched(found)


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
    return found.__func__ if isinstance(found, staticmethod) else found
