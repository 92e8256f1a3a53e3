"""Calls whose value does not come from their arguments: random numbers, clocks, files, the user.

Such a call runs once, while compiling, and all lanes and iterations would share its value. A generator that is made
with a seed where it is used gives the same numbers to every example, in plain Python as well, and is allowed.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import gast
import numpy as np

from pcbatch.diagnostics.impure_calls import GENERATORS, draw
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import Node, one_line

MAKERS = (*GENERATORS, np.random.default_rng)  # without a seed, each gives other numbers every time
MODULES = {"time": "clock", "secrets": "random", "uuid": "random"}
OUTSIDE = (open, input)
DRAWS = (np.random.seed, np.random.ranf, np.random.sample)  # functions that are no methods of a generator
FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)
NOW = frozenset({"now", "utcnow", "today"})


@dataclass(frozen=True, slots=True)
class Impure:
    """An impure call, by its name as the user wrote it.

    `kind` is "random", "clock" or "outside"; `draw` is a call of `jax.random` that replaces it, empty if there is none.
    """

    name: str
    kind: str
    draw: str = ""


def impure(unit: Unit, node: Node, target: Any, hidden: frozenset[str]) -> Impure | None:
    """The impurity of a call; None if it is pure or unknown. `target` is the object that is called, or MISSING."""
    kind = _kind(target, bool(node.args or node.keywords))
    if kind is None and isinstance(node.func, gast.Attribute):
        base = resolve(unit, node.func.value, hidden)
        if isinstance(base, GENERATORS):
            kind = "random"
        elif (base is datetime.datetime or base is datetime.date) and node.func.attr in NOW:
            kind = "clock"
    if kind is None:
        return None
    return Impure(one_line(node.func), kind, _draw(node, target) if kind == "random" else "")


def _draw(node: Node, target: Any) -> str:
    """A call of `jax.random` that draws from the same distribution; empty if the arguments do not tell."""
    if any(isinstance(arg, gast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords):
        return ""
    python = isinstance(getattr(target, "__self__", None), random.Random)
    args, named = [one_line(arg) for arg in node.args], {k.arg: one_line(k.value) for k in node.keywords}
    return draw(one_line(node.func).rpartition(".")[2], args, named, python)


def _kind(target: Any, seeded: bool) -> str | None:
    if any(target is maker for maker in MAKERS):
        return None if seeded else "random"
    if any(target is function for function in OUTSIDE):
        return "outside"
    if any(target is function for function in DRAWS):
        return "random"
    if not isinstance(target, FUNCTIONS):  # asking other objects for attributes may run code of the user
        return None
    if isinstance(getattr(target, "__self__", None), GENERATORS):
        return "random"
    return MODULES.get(str(target.__module__))
