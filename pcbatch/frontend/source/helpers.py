"""Functions of the user's own that lane code calls without a decorator: a copy in which operators and questions about
types go through the support module, so that they answer as in the plain function.

All else in the copy is as it was, and its globals and cells are those of the function. Functions of installed packages
are called as they are; whether a scalar that they make is a number of Python is then not known.
"""

from __future__ import annotations

import ast
import dis
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

from pcbatch.errors import PcbatchError, Refusal
from pcbatch.frontend.build.operators import LIBRARIES, PASSING, REPLACED, SUPPORT, TREES, in_helper
from pcbatch.frontend.source.function_unit import make_unit
from pcbatch.frontend.source.locate import deep_trees
from pcbatch.frontend.source.same_code import FUTURE_FLAGS
from pcbatch.frontend.support.type_questions import type_
from pcbatch.origins import Origin, Tracer, array, is_noted, is_noting, leaves, note, origin_of

Function = Callable[..., Any]

jax.extend.source_info_util.register_exclusion(__file__)

_PACKAGES = tuple({*(sysconfig.get_paths()[name] for name in ("purelib", "platlib")), *site.getsitepackages()})
_INSTALLED = (*_PACKAGES, *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")))
ARRAYS = frozenset({"jax", "jaxlib", "numpy"})
QUESTIONS = frozenset("isinstance type hasattr getattr callable isscalar iterable __class__".split())
UNKNOWN_SOURCE = (
    "a function whose source is not found asks for the type of a value of the lane",
    "without its source it cannot be compiled, and values of lanes would answer as arrays",
)
OF_A_PACKAGE = (
    "a function of another package asks for the type of a number of the lane",
    "packages are not compiled, and numbers of lanes would answer as arrays",
)
ARRAY_HELP = "pass an array in place of the number `x`: `jnp.asarray(x)`"
UNKNOWN_CLASS = (
    "making an object asks for the type of a value of the lane",
    "what Python calls while it makes such an object is not compiled, and values of lanes would answer as arrays",
)
CLASS_HELP = "ask in the batched function, before an object of `{}` is made, and leave the question out of the class"
SOURCE_HELP = "write `{}` in a file, so that its source can be read"
_JAX = str(Path(str(jax.__file__)).parent)
PLAIN = (Tracer, jax.Array, ModuleType, type, FunctionType, int, float, complex, str, list, dict)
_copies: WeakKeyDictionary[FunctionType, FunctionType | None] = WeakKeyDictionary()


def called(fn: Any, support: ModuleType) -> Any:
    """What is called in place of `fn` while a primitive is traced."""
    if not is_noting():
        return fn
    if isinstance(fn, type) and _root(fn) not in ARRAYS:
        return _constructor(fn, support)
    if isinstance(fn, functools.partial):
        return functools.partial(called(fn.func, support), *fn.args, **fn.keywords)
    replaced = next((name for function, name in REPLACED if fn is function), None)
    if replaced is not None:
        return getattr(support, replaced)
    if isinstance(getattr(fn, "__self__", None), Tracer) and (operator := getattr(fn, "operator", None)) is not None:
        return functools.partial(operator, fn.__self__)  # `x.__add__`
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


def loaded(value: Any, name: str, support: ModuleType) -> Any:
    """`value.name`, with a copy of the function of a property."""
    if not is_noting() or isinstance(value, PLAIN) or _root(type(value)) in LIBRARIES:
        return getattr(value, name)
    found = inspect.getattr_static(type(value), name, None)
    match found:
        case property(fget=FunctionType() as getter):
            return called(getter, support)(value)
        case functools.cached_property(func=FunctionType() as getter) if name not in vars(value):
            return called(getter, support)(value)
    return getattr(value, name)


def _constructor(cls: type, support: ModuleType) -> Function:
    """`cls` itself, or for a class of the user's what makes an object as `type.__call__` does."""
    init: Any = getattr(cls, "__init__")  # noqa: B009 - as an attribute it has a type of its own
    new: Any = getattr(cls, "__new__")  # noqa: B009
    copy = _copy(init, support) if isinstance(init, FunctionType) else None
    if copy is None or type(cls).__call__ is not type.__call__ or new is not object.__new__:
        methods = [inspect.getattr_static(cls, name, None) for name in ("__new__", "__init__", "__post_init__")]
        if not any(_asks_unseen(getattr(method, "__func__", method)) for method in methods):
            return cls
        return _refusing(cls, *UNKNOWN_CLASS, CLASS_HELP.format(cls.__name__))

    def make(*args: Any, **options: Any) -> Any:
        value: Any = object.__new__(cls)
        if copy(value, *args, **options) is not None:
            raise TypeError(f"__init__() of {cls.__name__} should return None")
        return value

    return make


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

    code = getattr(fn, "__code__", None)
    if isinstance(code, CodeType) and code.co_filename.startswith(_PACKAGES) and _asks(code):
        fn = _refusing(fn, *OF_A_PACKAGE, ARRAY_HELP)
    elif _asks_unseen(fn):
        fn = _refusing(fn, *UNKNOWN_SOURCE, SOURCE_HELP.format(getattr(fn, "__name__", "it")))

    def run(*args: Any, **options: Any) -> Any:
        found = fn(*args, **options)
        for leaf in leaves(found):
            if isinstance(leaf, Tracer) and not is_noted(leaf):
                note(leaf, Origin.UNKNOWN)
        return found

    return run


def _refusing(fn: Function, title: str, note: str, help: str) -> Function:
    """The function, for calls without scalars of a lane."""

    def run(*args: Any, **options: Any) -> Any:
        if any(is_noted(value) for value in (*args, *options.values())):
            raise Refusal("PCB305", title, note, helps=(help,))
        return fn(*args, **options)

    return run


def _asks_unseen(fn: Any) -> bool:
    """Whether a function of the user's, which runs as it is, may ask for the type of a value."""
    code = getattr(fn, "__code__", None)
    return isinstance(code, CodeType) and not code.co_filename.startswith(_INSTALLED) and _asks(code)


def _asks(code: CodeType) -> bool:
    """Whether code may ask for the type of a value."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    classes = any(instruction.opname == "MATCH_CLASS" for instruction in dis.get_instructions(code))
    return classes or not QUESTIONS.isdisjoint(code.co_names) or any(map(_asks, inner))


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
            tree = gast.gast_to_ast(in_helper(unit, unit.node))
            if unit.in_class and any(map(_is_private, ast.walk(tree))):
                tree = _in_class(fn, tree)
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


def _is_private(node: ast.AST) -> bool:
    """Whether a node names what belongs to a class, as `self.__x` does."""
    name = getattr(node, "attr", getattr(node, "id", getattr(node, "name", "")))
    return isinstance(name, str) and name.startswith("__") and not name.endswith("__")


def _in_class(fn: FunctionType, node: Any) -> Any:
    """The function inside of a class of its class's name, to which names like `__x` belong."""
    name = [part for part in fn.__qualname__.split(".") if part != "<locals>"][-2]
    inner = ast.copy_location(ast.Expr(node), node) if isinstance(node, ast.expr) else node
    tree = ast.parse(f"class {name}:\n  pass").body[0]
    assert isinstance(tree, ast.ClassDef)
    tree.body = [inner]
    return ast.copy_location(tree, node)


def _code(fn: FunctionType, node: Any) -> CodeType:
    cells = ", ".join((*fn.__code__.co_freevars, SUPPORT))
    tree = ast.parse(f"def __cells__({cells}):\n  pass")
    shell = tree.body[0]
    assert isinstance(shell, ast.FunctionDef)
    shell.body = [ast.copy_location(ast.Expr(node), node) if isinstance(node, ast.expr) else node]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flags = fn.__code__.co_flags & FUTURE_FLAGS
        code: CodeType = compile(
            ast.fix_missing_locations(tree), fn.__code__.co_filename, "exec", flags, dont_inherit=True
        )
    names = ("__cells__", *([node.name] if isinstance(node, ast.ClassDef) else []), fn.__code__.co_name)
    for name in names:
        code = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)
    return code.replace(co_qualname=fn.__code__.co_qualname)
