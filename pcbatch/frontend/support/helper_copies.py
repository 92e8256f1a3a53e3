"""Helpers: functions of the user without a decorator, which lane code calls.

A helper is called as a copy in which operators and questions about types go through the support module, so that they
answer as in the plain function. All else in the copy is as it was, and its globals and cells are those of the function.
Functions of installed packages are called as they are; it is then not known whether a scalar result is a number of
Python.
"""

from __future__ import annotations

import ast
import dataclasses
import dis
import functools
import inspect
from collections.abc import Callable
from enum import EnumType
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import gast
import jax
import jax.extend.source_info_util

from pcbatch.data.functions.drafts import Draft
from pcbatch.data.functions.math_functions.table import replacement as math_replacement
from pcbatch.data.functions.operators import replacement
from pcbatch.data.functions.sequence_operators import method_of_known
from pcbatch.data.functions.type_questions import type_
from pcbatch.data.functions.users_code import (
    LIBRARIES,
    in_exception,
    package_of,
    same_defaults,
    substitute,
    without_cache,
)
from pcbatch.data.mappings.keys import is_of_lane
from pcbatch.data.members import with_value
from pcbatch.data.object_parts import INSTALLED, PACKAGES, is_generated
from pcbatch.data.objects import questions
from pcbatch.data.objects.made import made_schema, recorded
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.objects.reference import Ref, with_defaults
from pcbatch.data.origins import Origin, Tracer, array, is_noted, leaves, note, note_call, origin_of
from pcbatch.data.values import Value
from pcbatch.errors import PcbatchError, Refusal
from pcbatch.frontend.build.library_calls import PASSING, TREES
from pcbatch.frontend.build.operators import in_helper
from pcbatch.frontend.source.callable_objects import CACHE
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.locate import deep_trees
from pcbatch.frontend.source.make_unit import make_unit
from pcbatch.frontend.source.same_code import compile_inner
from pcbatch.frontend.source.tree import SUPPORT, SUPPORT_MODULE

Function = Callable[..., Value]

jax.extend.source_info_util.register_exclusion(__file__)

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
OF_FRAMES = (globals, locals, eval, exec)
"""Builtins that read the variables of the function that calls them."""
_JAX = str(Path(str(jax.__file__)).parent)
_copies: WeakKeyDictionary[FunctionType, dict[bool, FunctionType | None]] = WeakKeyDictionary()


def stand_in(fn: Any) -> Any:
    """Return the callable that stands in for `fn` while a primitive is traced.

    Its results are known as arrays, as numbers of Python, or as neither (see `pcbatch.data.origins`).
    """
    if (of_lanes := math_replacement(fn)) is not None:
        return of_lanes
    if (new := replacement(fn)) is not None:
        return new
    if any(fn is function for function in OF_FRAMES):
        title = f"a helper calls `{fn.__name__}()`, which means other variables where it is traced"
        raise Refusal("PCB305", title, helps=("name the variables it should use",))
    if isinstance(fn, EnumType):
        return lambda *args: with_value(fn, *args) if len(args) == 1 and is_of_lane(args) else fn(*args)
    if isinstance(fn, type) and package_of(fn) not in ARRAYS:
        return _constructor(fn)
    if isinstance(fn, Ref) and (called := questions.own_method(fn, "__call__")) is not None:
        return with_defaults(fn, substitute(called), called)
    if isinstance(fn, functools.partial):
        return functools.partial(substitute(fn.func), *fn.args, **fn.keywords)
    if isinstance(getattr(fn, "__self__", None), Tracer) and (operator := getattr(fn, "operator", None)) is not None:
        return functools.partial(operator, fn.__self__)  # `x.__add__` (see `tracer_operators`)
    if (method := method_of_known(fn)) is not None:
        return method
    if _is_rewritten(fn):
        return fn
    if isinstance(fn, CACHE):
        return without_cache(fn, substitute(fn.__wrapped__))
    if not any(fn is function for function in PASSING) and _returns_arrays(fn):
        return _with_array_results(fn)
    match fn:
        case FunctionType() if hasattr(fn, "dispatch") and hasattr(fn, "registry"):  # by `functools.singledispatch`
            return functools.wraps(fn)(
                lambda first, *args, **options: substitute(fn.dispatch(type_(first)))(first, *args, **options)
            )
        case FunctionType():
            note_call(fn.__code__)
            copy = _copy(fn)
            return _with_unknown_origins(fn) if copy is None else copy
        case MethodType(__func__=CACHE() as cached):
            return without_cache(fn, substitute(MethodType(cached.__wrapped__, fn.__self__)))
        case MethodType(__func__=FunctionType() as function):
            note_call(function.__code__)
            copy = _copy(function)
            return _with_unknown_origins(fn) if copy is None else MethodType(copy, fn.__self__)
    method = inspect.getattr_static(type(fn), "__call__", None)
    copy = _copy(method) if isinstance(method, FunctionType) else None
    return _with_unknown_origins(fn) if copy is None else MethodType(copy, fn)


def _constructor(cls: type) -> Function:
    """Return the callable that stands in for a class.

    For a class of the user's with an `__init__` it makes objects as `type.__call__` does, by a copy of that method. A
    class whose methods cannot be copied and may ask for types refuses scalars of a lane.
    """
    init: Any = getattr(cls, "__init__")  # noqa: B009 - as an attribute it has a type of its own
    new: Any = getattr(cls, "__new__")  # noqa: B009
    copy = _copy(init) if isinstance(init, FunctionType) else None
    of_python = new is object.__new__ or (issubclass(cls, BaseException) and isinstance(new, BuiltinFunctionType))
    if copy is None or type(cls).__call__ is not type.__call__ or not of_python:
        methods = [inspect.getattr_static(cls, name, None) for name in ("__new__", "__init__", "__post_init__")]
        if not any(_asks_types_uncopied(getattr(method, "__func__", method)) for method in methods):
            with_fields = _with_factories(cls) if dataclasses.is_dataclass(cls) and is_generated(init.__code__) else cls
            return functools.partial(_made, with_fields) if made_schema().number_of(cls) is not None else with_fields
        return _refuse_scalars(cls, *UNKNOWN_CLASS, CLASS_HELP.format(cls.__name__))

    def make(*args: Value, **options: Value) -> Value:
        note_call(init.__code__)
        value: Value = new(cls, *args) if issubclass(cls, BaseException) else object.__new__(cls)
        if copy(value, *args, **options) is not None:
            raise TypeError(f"__init__() of {cls.__name__} should return None")
        return recorded(value)

    return make


def _with_factories(cls: Any) -> Function:
    """Return what makes objects of a dataclass, with what stands in for the factories of its fields."""
    fields = [field for field in dataclasses.fields(cls) if field.init]
    in_order = [field.name for field in fields if not field.kw_only]
    factories = {f.name: f.default_factory for f in fields if f.default_factory is not dataclasses.MISSING}

    def make(*args: Value, **options: Value) -> Value:
        given = {*in_order[: len(args)], *options}
        made = {name: substitute(factory)() for name, factory in factories.items() if name not in given}
        return cls(*args, **options, **made)

    return make if factories else cls


def _made(make: Function, *args: Value, **options: Value) -> Value:
    return recorded(make(*args, **options))


def _is_rewritten(fn: Any) -> bool:
    """Whether a callable needs no copy: it reads the support module already, or is an object of this package."""
    reads_support = isinstance(fn, FunctionType) and SUPPORT in fn.__code__.co_freevars
    return reads_support or package_of(type(fn)) == "pcbatch" or package_of(fn) == "pcbatch"


def _returns_arrays(fn: Any) -> bool:
    """Whether a callable is of JAX or NumPy, was made by JAX from another one, or is a method of their objects."""
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, Tracer):
        return origin_of(owner) is Origin.ARRAY
    if isinstance(owner, (*RECORDS, Draft)):
        return False  # a method of the user's
    if isinstance(fn, BuiltinFunctionType | MethodType) and not isinstance(owner, ModuleType | None):
        return package_of(type(owner)) in LIBRARIES
    # A wrapper that JAX has made, by `jax.vmap` say, may have the `__module__` of the function in it.
    wrapper = isinstance(fn, FunctionType) and fn.__code__.co_filename.startswith(_JAX)
    return wrapper or package_of(fn) in LIBRARIES or package_of(type(fn)) in LIBRARIES


def _with_array_results(fn: Function) -> Function:
    if str(getattr(fn, "__module__", "")) in TREES:
        return fn
    return lambda *args, **options: array(fn(*args, **options))


def _with_unknown_origins(fn: Function) -> Function:
    """Wrap a function whose source is not known: its scalar results may be numbers of Python or arrays."""
    code = getattr(fn, "__code__", None)
    if isinstance(code, CodeType) and code.co_filename.startswith(PACKAGES) and _asks_types(code):
        fn = _refuse_scalars(fn, *OF_A_PACKAGE, ARRAY_HELP)
    elif _asks_types_uncopied(fn):
        fn = _refuse_scalars(fn, *UNKNOWN_SOURCE, SOURCE_HELP.format(getattr(fn, "__name__", "it")))

    def run(*args: Value, **options: Value) -> Value:
        results = fn(*args, **options)
        for leaf in leaves(results):
            if isinstance(leaf, Tracer) and not is_noted(leaf):
                note(leaf, Origin.UNKNOWN)
        return results

    return run


def _refuse_scalars(fn: Function, title: str, note: str, help: str) -> Function:
    """Wrap a function so that a call with a scalar of a lane as an argument is refused."""

    def run(*args: Value, **options: Value) -> Value:
        if any(is_noted(value) for value in (*args, *options.values())):
            raise Refusal("PCB305", title, note, helps=(help,))
        return fn(*args, **options)

    return run


def _asks_types_uncopied(fn: Any) -> bool:
    """Whether a function of the user's, which is called as it is, may ask for the type of a value."""
    code = getattr(fn, "__code__", None)
    return isinstance(code, CodeType) and not code.co_filename.startswith(INSTALLED) and _asks_types(code)


def _asks_types(code: CodeType) -> bool:
    """Whether code, or a function in it, may ask for the type of a value."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    has_class_pattern = any(instruction.opname == "MATCH_CLASS" for instruction in dis.get_instructions(code))
    return has_class_pattern or not QUESTIONS.isdisjoint(code.co_names) or any(map(_asks_types, inner))


def _copy(fn: FunctionType) -> FunctionType | None:
    """The copy of a helper, made once; None if its source is unavailable or not the user's."""
    if fn.__code__.co_filename.startswith(INSTALLED):
        return None
    copies = _copies.setdefault(fn, {})
    if in_exception() not in copies:
        copies[in_exception()] = _make_copy(fn)
    return copies[in_exception()]


def _make_copy(fn: FunctionType) -> FunctionType | None:
    if _assigns_globals(fn.__code__):
        assert isinstance(_refuse_globals, FunctionType)
        return _refuse_globals
    try:
        with deep_trees():
            unit = make_unit(fn, Helpers(lambda obj: None), {})
            tree = gast.gast_to_ast(in_helper(unit, unit.node))
            definition = ast.copy_location(ast.Expr(tree), tree) if isinstance(tree, ast.expr) else tree  # a lambda
            if unit.in_class and any(map(_is_private, ast.walk(tree))):
                definition = _in_class(fn, definition)
            copy = compile_inner(fn, definition, fn.__code__.co_name, {SUPPORT: SUPPORT_MODULE})
    except (PcbatchError, SyntaxError, ValueError, StopIteration):
        return None
    if copy is not None:
        copy.__defaults__, copy.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
        functools.update_wrapper(copy, fn)
        return same_defaults(copy)
    return copy


def _assigns_globals(code: CodeType) -> bool:
    """Whether code, or a function in it, assigns a global variable."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    own = any(instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") for instruction in dis.get_instructions(code))
    return own or any(map(_assigns_globals, inner))


def _refuse_globals(*args: Value, **options: Value) -> None:
    raise Refusal("PCB305", "a helper assigns a global variable", "what is traced runs once, for all lanes")


def _is_private(node: ast.AST) -> bool:
    """Whether a node has a private name of a class, as `self.__x` does."""
    name = getattr(node, "attr", getattr(node, "id", getattr(node, "name", "")))
    return isinstance(name, str) and name.startswith("__") and not name.endswith("__")


def _in_class(fn: FunctionType, definition: ast.stmt) -> ast.ClassDef:
    """Put a method into a class with the name of its class, for which Python mangles names like `__x`."""
    name = [part for part in fn.__qualname__.split(".") if part != "<locals>"][-2]
    tree = ast.parse(f"class {name}:\n  pass").body[0]
    assert isinstance(tree, ast.ClassDef)
    tree.body = [definition]
    return ast.copy_location(tree, definition)
