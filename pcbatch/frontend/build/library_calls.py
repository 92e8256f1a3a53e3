"""Calls of functions of libraries and of Python, recognised by name resolution."""

from __future__ import annotations

import builtins
from types import BuiltinFunctionType, FunctionType
from typing import Any

import gast
import jax
import numpy as np

from pcbatch.data.functions import sequence_operators
from pcbatch.data.functions.users_code import LIBRARIES
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import MISSING, asked_type, resolve
from pcbatch.frontend.source.tree import Node, constant, is_constant, supported

# `__module__` is read of these types only: an attribute of another object may run code of the user.
FUNCTIONS = (FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum), type)
PASSING = (jax.lax.stop_gradient, jax.block_until_ready)  # may return their argument, a number of Python
TREES = frozenset({jax.tree.map.__module__, jax.tree_util.tree_map.__module__})  # call functions as Python does
BUILTIN_TYPES = tuple(value for value in vars(builtins).values() if isinstance(value, type))


def is_numpy_call(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Whether a node is a call of a known function or class of NumPy."""
    if not isinstance(node, gast.Call):
        return False
    target = resolve(unit, node.func, hidden)
    if isinstance(target, np.ufunc):
        return True  # in some releases of NumPy a ufunc has no `__module__`
    return isinstance(target, FUNCTIONS) and str(target.__module__).partition(".")[0] == "numpy"


def calls_argument(target: Any) -> bool:
    """Whether a builtin calls its first argument."""
    return target is map or target is filter


def function_arguments(unit: Unit, node: Node, target: Any, hidden: frozenset[str]) -> frozenset[int]:
    """The positions of the arguments that are plain functions, which the callee may call with values of the lane."""
    if not isinstance(node, gast.Call) or is_library(target):
        return frozenset()
    args = [(k, resolve(unit, arg, hidden)) for k, arg in enumerate(node.args) if not isinstance(arg, gast.Starred)]
    functions = [(k, arg) for k, arg in args if isinstance(arg, FunctionType | BuiltinFunctionType)]
    return frozenset(k for k, function in functions if unit.batched(function) is None)


def is_library(target: Any) -> bool:
    """Whether a callee is of JAX or NumPy: it returns arrays, and calls no function with numbers of Python."""
    if target is MISSING or any(target is function for function in PASSING):
        return False
    module = str(getattr(target, "__module__", ""))
    return module.split(".")[0] in LIBRARIES and module not in TREES


def is_builtin_type(target: Any) -> bool:
    """Whether a callee is a type of Python's own, which runs no code of the user's that has to be copied."""
    return isinstance(target, type) and target in BUILTIN_TYPES


TYPE_TESTS = (gast.Is, gast.IsNot, gast.Eq, gast.NotEq, gast.In, gast.NotIn)


def is_type_test(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Whether a node is a comparison such as `type(x) is ...`."""
    if not isinstance(node, gast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in TYPE_TESTS:
        return False
    return asked_type(unit, node.left, hidden) is not None


def is_text(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Whether a node is a text that is known while compiling: written there, or a global's."""
    return isinstance(node.value if is_constant(node) else resolve(unit, node, hidden), str)


def is_text_method(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Whether a node is a method of such a text."""
    return isinstance(node, gast.Attribute) and is_text(unit, node.value, hidden)


def text_method(method: Node) -> Node:
    """Return what stands for the method of a text, which may get texts of the lane."""
    return supported(sequence_operators.text_method, [method.value, constant(method.attr, method)], method)


def text_call(node: Node) -> Node:
    """Return what stands for a call of such a method."""
    return gast.copy_location(gast.Call(text_method(node.func), node.args, node.keywords), node)
