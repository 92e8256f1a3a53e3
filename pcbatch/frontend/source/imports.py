"""`import` statements in the body of a function: they run while compiling, and their names are constants then."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import FunctionType

import gast

from pcbatch.frontend.source.tree import Node


def imported(fn: FunctionType, bound: Mapping[str, Node]) -> dict[str, object]:
    """The objects that `import` statements of a function give to names; those that fail are left out.

    `bound` are names that are bound once, each by the node that binds it.
    """
    found: dict[str, object] = {}
    for name, node in bound.items():
        if isinstance(node, gast.Import | gast.ImportFrom):
            try:
                found[name] = _value(fn, name, node)
            except Exception:
                continue
    return found


def _value(fn: FunctionType, name: str, node: Node) -> object:
    alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
    if isinstance(node, gast.Import):
        module = importlib.import_module(alias.name)
        return module if alias.asname else importlib.import_module(alias.name.split(".")[0])
    package = str(fn.__globals__.get("__package__") or "")
    module = importlib.import_module("." * (node.level or 0) + (node.module or ""), package or None)
    if hasattr(module, alias.name):
        return getattr(module, alias.name)
    return importlib.import_module(f"{module.__name__}.{alias.name}")
