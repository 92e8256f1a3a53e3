"""Calls of NumPy functions, recognised by name resolution so that tracing can check their results."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType

import gast
import numpy as np

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.tree import Node

# `__module__` is read of these types only: an attribute of another object may run code of the user.
FUNCTIONS = (FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum), type)


def is_numpy_call(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Whether a node is a call of a known function or class of NumPy."""
    if not isinstance(node, gast.Call):
        return False
    target = resolve(unit, node.func, hidden)
    if isinstance(target, np.ufunc):
        return True  # in some releases of NumPy a ufunc has no `__module__`
    return isinstance(target, FUNCTIONS) and str(target.__module__).partition(".")[0] == "numpy"
