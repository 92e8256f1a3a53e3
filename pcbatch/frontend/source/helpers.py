"""Functions of the user's own that lane code calls without a decorator: a copy in which operators and questions about
types go through the support module, so that they answer as in the plain function.

All else in the copy is as it was, and its globals and cells are those of the function. Functions of installed packages
are called as they are; whether a scalar that they make is a number of Python is then not known.
"""

from __future__ import annotations

import ast
import functools
import inspect
import site
import sysconfig
import warnings
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import gast
import jax
import jax.extend.source_info_util

from pcbatch.errors import PcbatchError
from pcbatch.frontend.build.operators import LIBRARIES, PASSING, REPLACED, SUPPORT, TREES, in_helper
from pcbatch.frontend.source.function_unit import make_unit
from pcbatch.frontend.source.locate import deep_trees
from pcbatch.frontend.source.same_code import FUTURE_FLAGS
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


def called(fn: Any, support: ModuleType) -> Any:
    """What is called in place of `fn` while a primitive is traced."""
    if not is_noting() or (isinstance(fn, type) and _root(fn) not in ARRAYS):
        return fn
    if isinstance(fn, functools.partial):
        return functools.partial(called(fn.func, support), *fn.args, **fn.keywords)
    replaced = next((name for function, name in REPLACED if fn is function), None)
    if replaced is not None:
        return getattr(support, replaced)
    if _is_ours(fn):
        return fn
    if not any(fn is function for function in PASSING) and _gives_arrays(fn):
        return _giving_arrays(fn)
    match fn:
        case FunctionType() if hasattr(fn, "dispatch") and hasattr(fn, "registry"):
            return functools.wraps(fn)(
                lambda first, *args, **options: called(fn.dispatch(type_(first)), support)(first, *args, **options)
            )
        case FunctionType():
            copy = _copy(fn, support)
            return _opaque(fn) if copy is None else copy
        case MethodType(__func__=FunctionType() as function):
            copy = _copy(function, support)
            return _opaque(fn) if copy is None else MethodType(copy, fn.__self__)
    method = inspect.getattr_static(type(fn), "__call__", None)
    copy = _copy(method, support) if isinstance(method, FunctionType) else None
    return _opaque(fn) if copy is None else MethodType(copy, fn)


def _is_ours(fn: Any) -> bool:
    """Was this function written inside of a batched function, or is it a copy or an object of this package?"""
    inside = isinstance(fn, FunctionType) and SUPPORT in fn.__code__.co_freevars
    return inside or _root(type(fn)) == "pcbatch" or _root(fn) == "pcbatch"


def _gives_arrays(fn: Any) -> bool:
    """Is this a function of JAX or NumPy, one that JAX has made of another, or a method of their objects?"""
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, Tracer):
        return origin_of(owner) is Origin.ARRAY
    if isinstance(fn, BuiltinFunctionType | MethodType) and not isinstance(owner, ModuleType | None):
        return _root(type(owner)) in LIBRARIES
    made = isinstance(fn, FunctionType) and fn.__code__.co_filename.startswith(_JAX)
    return made or _root(fn) in LIBRARIES or _root(type(fn)) in LIBRARIES


def _root(thing: Any) -> str:
    return str(getattr(thing, "__module__", "")).split(".")[0]


def _giving_arrays(fn: Function) -> Function:
    if str(getattr(fn, "__module__", "")) in TREES:
        return fn
    return lambda *args, **options: array(fn(*args, **options))


def _opaque(fn: Function) -> Function:
    """The function itself; of scalars that it makes it is not known whether they are Python's."""

    def run(*args: Any, **options: Any) -> Any:
        found = fn(*args, **options)
        for leaf in leaves(found):
            if isinstance(leaf, Tracer) and not is_noted(leaf):
                note(leaf, Origin.UNKNOWN)
        return found

    return run


def _copy(fn: FunctionType, support: ModuleType) -> FunctionType | None:
    """The copy of a function, or None where its source is not there or not the user's."""
    if fn.__code__.co_filename.startswith(_INSTALLED):
        return None
    if fn not in _copies:
        _copies[fn] = _made(fn, support)
    return _copies[fn]


def _made(fn: FunctionType, support: ModuleType) -> FunctionType | None:
    try:
        with deep_trees():
            unit = make_unit(fn, lambda obj: None, {})
            if unit.in_class and any(name.startswith("__") and not name.endswith("__") for name in unit.names):
                return None  # such names belong to the class
            tree = gast.gast_to_ast(in_helper(unit, unit.node))
            code = _code(fn, tree)
    except (PcbatchError, SyntaxError, ValueError, StopIteration):
        return None
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)) | {SUPPORT: CellType(support)}
    if not cells.keys() >= set(code.co_freevars):
        return None
    closure = tuple(cells[name] for name in code.co_freevars)
    copy = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    copy.__kwdefaults__ = fn.__kwdefaults__
    functools.update_wrapper(copy, fn)
    return copy


def _code(fn: FunctionType, node: Any) -> CodeType:
    names = ", ".join((*fn.__code__.co_freevars, SUPPORT))
    tree = ast.parse(f"def __cells__({names}):\n  pass")
    shell = tree.body[0]
    assert isinstance(shell, ast.FunctionDef)
    shell.body = [ast.copy_location(ast.Expr(node), node) if isinstance(node, ast.expr) else node]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flags = fn.__code__.co_flags & FUTURE_FLAGS
        code: CodeType = compile(
            ast.fix_missing_locations(tree), fn.__code__.co_filename, "exec", flags, dont_inherit=True
        )
    for name in ("__cells__", fn.__code__.co_name):
        code = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)
    return code.replace(co_qualname=fn.__code__.co_qualname)
