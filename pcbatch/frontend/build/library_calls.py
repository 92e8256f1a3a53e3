"""Calls of NumPy, found before anything runs: what they give is looked at while a primitive is traced."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType

import gast
import numpy as np

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import Node

# Asking other objects for attributes may run code of the user.
FUNCTIONS = (FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum), type)


def is_numpy_call(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Tell whether a node calls what is known to be a function or a class of NumPy."""
    if not isinstance(node, gast.Call):
        return False
    target = resolve(unit, node.func, hidden)
    if isinstance(target, np.ufunc):
        return True  # some releases of NumPy do not say so in `__module__`
    return isinstance(target, FUNCTIONS) and str(target.__module__).partition(".")[0] == "numpy"
