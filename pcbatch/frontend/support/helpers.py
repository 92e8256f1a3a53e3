"""Helpers: functions of the user without a decorator, which lane code calls.

A helper is called as a copy in which operators and questions about types go through the support module, so that they
answer as in the plain function. All else in the copy is as it was, and its globals and cells are those of the function.
Functions of installed packages are called as they are; it is then not known whether a scalar result is a number of
Python.
"""

from __future__ import annotations

import ast
import functools
import inspect
import site
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import gast
import jax
import jax.extend.source_info_util

from pcbatch.errors import PcbatchError
from pcbatch.frontend.build.operators import LIBRARIES, PASSING, REPLACED, SUPPORT, TREES, in_helper
from pcbatch.frontend.source.compile_inner import compile_inner
from pcbatch.frontend.source.function_unit import make_unit
from pcbatch.frontend.source.locate import deep_trees
from pcbatch.frontend.support.type_questions import type_
from pcbatch.origins import Origin, Tracer, array, is_noted, is_noting, leaves, note, origin_of

Function = Callable[..., Any]

jax.extend.source_info_util.register_exclusion(__file__)

_INSTALLED = tuple(
    {*(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")), *site.getsitepackages()}
)
ARRAYS = frozenset({"jax", "jaxlib", "numpy"})
_JAX = str(Path(str(jax.__file__)).parent)
_copies: WeakKeyDictionary[FunctionType, FunctionType | None] = WeakKeyDictionary()


def substitute(fn: Any, support: ModuleType) -> Any:
    """Return the callable that stands in for `fn` while a primitive is traced; `fn` itself at any other time.

    `support` is the module of support functions. Results of the substitute are known as arrays, as numbers of Python,
    or as neither (see `pcbatch.origins`).
    """
    if not is_noting() or (isinstance(fn, type) and _package(fn) not in ARRAYS):
        return fn
    if isinstance(fn, functools.partial):
        return functools.partial(substitute(fn.func, support), *fn.args, **fn.keywords)
    replacement = next((name for function, name in REPLACED if fn is function), None)
    if replacement is not None:
        return getattr(support, replacement)
    if _is_rewritten(fn):
        return fn
    if not any(fn is function for function in PASSING) and _returns_arrays(fn):
        return _with_array_results(fn)
    match fn:
        case FunctionType() if hasattr(fn, "dispatch") and hasattr(fn, "registry"):  # by `functools.singledispatch`
            return functools.wraps(fn)(
                lambda first, *args, **options: substitute(fn.dispatch(type_(first)), support)(first, *args, **options)
            )
        case FunctionType():
            copy = _copy(fn, support)
            return _with_unknown_origins(fn) if copy is None else copy
        case MethodType(__func__=FunctionType() as function):
            copy = _copy(function, support)
            return _with_unknown_origins(fn) if copy is None else MethodType(copy, fn.__self__)
    method = inspect.getattr_static(type(fn), "__call__", None)
    copy = _copy(method, support) if isinstance(method, FunctionType) else None
    return _with_unknown_origins(fn) if copy is None else MethodType(copy, fn)


def _is_rewritten(fn: Any) -> bool:
    """Whether a callable needs no copy: it reads the support module already, or is an object of this package."""
    reads_support = isinstance(fn, FunctionType) and SUPPORT in fn.__code__.co_freevars
    return reads_support or _package(type(fn)) == "pcbatch" or _package(fn) == "pcbatch"


def _returns_arrays(fn: Any) -> bool:
    """Whether a callable is of JAX or NumPy, was made by JAX from another one, or is a method of their objects."""
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, Tracer):
        return origin_of(owner) is Origin.ARRAY
    if isinstance(fn, BuiltinFunctionType | MethodType) and not isinstance(owner, ModuleType | None):
        return _package(type(owner)) in LIBRARIES
    # A wrapper that JAX has made, by `jax.vmap` say, may have the `__module__` of the function in it.
    wrapper = isinstance(fn, FunctionType) and fn.__code__.co_filename.startswith(_JAX)
    return wrapper or _package(fn) in LIBRARIES or _package(type(fn)) in LIBRARIES


def _package(thing: Any) -> str:
    return str(getattr(thing, "__module__", "")).split(".")[0]


def _with_array_results(fn: Function) -> Function:
    if str(getattr(fn, "__module__", "")) in TREES:
        return fn
    return lambda *args, **options: array(fn(*args, **options))


def _with_unknown_origins(fn: Function) -> Function:
    """Wrap a function whose source is not known: its scalar results may be numbers of Python or arrays."""

    def run(*args: Any, **options: Any) -> Any:
        results = fn(*args, **options)
        for leaf in leaves(results):
            if isinstance(leaf, Tracer) and not is_noted(leaf):
                note(leaf, Origin.UNKNOWN)
        return results

    return run


def _copy(fn: FunctionType, support: ModuleType) -> FunctionType | None:
    """The copy of a helper, made once; None if its source is unavailable or not the user's."""
    if fn.__code__.co_filename.startswith(_INSTALLED):
        return None
    if fn not in _copies:
        _copies[fn] = _make_copy(fn, support)
    return _copies[fn]


def _make_copy(fn: FunctionType, support: ModuleType) -> FunctionType | None:
    try:
        with deep_trees():
            unit = make_unit(fn, lambda obj: None, {})
            if unit.in_class and any(name.startswith("__") and not name.endswith("__") for name in unit.names):
                return None  # such names belong to the class
            tree = gast.gast_to_ast(in_helper(unit, unit.node))
            definition = ast.copy_location(ast.Expr(tree), tree) if isinstance(tree, ast.expr) else tree  # a lambda
            copy = compile_inner(fn, definition, fn.__code__.co_name, {SUPPORT: support})
    except (PcbatchError, SyntaxError, ValueError, StopIteration):
        return None
    if copy is not None:
        copy.__defaults__, copy.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
        functools.update_wrapper(copy, fn)
    return copy
