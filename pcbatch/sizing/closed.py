"""The test whether a function is closed: Python may run it for an example, and nobody outside can tell.

A closed function consists of Python's operators and builtins without input or output, of modules that only compute, and
of functions and classes of the user's that are closed, too. It has no global statement. What it finds outside, tables
and objects with numbers and texts, may be read and is put back should it have changed (`Outside`).
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from pcbatch.frontend.source.callee import BatchedTest
from pcbatch.sizing.steps import may_catch_all, may_take_long

MODULES = frozenset({
    *("abc", "_abc", "bisect", "_bisect", "cmath", "collections", "_collections", "_collections_abc", "copy"),
    *("dataclasses", "enum", "fractions", "functools", "_functools", "heapq", "_heapq", "itertools", "math", "numbers"),
    *("operator", "_operator", "__future__", "reprlib", "statistics", "string", "types", "typing"),
})  # fmt: skip
"""The modules that a closed function may use: they compute and do nothing else."""
OPEN = frozenset({
    *("breakpoint", "compile", "delattr", "eval", "exec", "exit", "globals", "help", "input", "locals", "open"),
    *("print", "quit", "setattr", "vars", "__import__", "BaseException", "SystemExit", "KeyboardInterrupt"),
    *("permutations", "combinations", "combinations_with_replacement", "product"),  # which small numbers make long
})  # fmt: skip
"""The builtins and classes that it may not use."""
OF_CLASSES = frozenset({"_abc", "abc", "dataclasses", "enum", "typing"})
"""The modules of objects that stand in classes, and that change nothing and do not change."""
CONSTANTS = frozenset({"Fraction", "itemgetter", "attrgetter", "methodcaller", "_tuplegetter"})
MAKING = frozenset({"BUILD_LIST", "BUILD_MAP", "BUILD_SET", "BUILD_STRING", "BUILD_CONST_KEY_MAP"})
MAKERS = frozenset({
    *("list", "dict", "set", "str", "sorted", "deque", "Counter", "defaultdict", "OrderedDict", "join", "split"),
    *("chr", "repr", "bin", "hex", "oct", "format", "upper", "lower", "strip", "replace", "fromkeys", "copy"),
})  # fmt: skip
NUMBERS = (int, float, complex, bool, str, bytes, type(None), type(...), range)
MOST_DATA = 10_000  # elements of what is outside, which is copied
_GENERATED = "<string>"  # the file of methods that `dataclass` has written


class OpenError(Exception):
    """A function does more than to compute its result, as far as can be told."""


class Outside:
    """The objects that a function uses from outside of it, with the content that they had before it ran.

    Attributes:
        codes: the code of the user's functions that may run.
        makes: whether it makes containers, texts or objects of the user's, as far as can be told.
        is_long: whether one line of it may take long where a number is large.
    """

    def __init__(self, fn: types.FunctionType, batched: BatchedTest) -> None:
        """Look at all that a function may reach; `batched` tells batched functions, which run as plain ones.

        Raises:
            OpenError: it is not closed.
        """
        self.codes: set[types.CodeType] = set()
        self.makes = self.is_long = False
        self._batched, self._left = batched, MOST_DATA
        self._seen: dict[int, Any] = {}
        self._found: list[tuple[Any, Any]] = []  # objects that may change, and copies of what is in them
        self._caches: list[Any] = []  # those of functions, which are empty
        self._look(fn)

    def put_back(self) -> None:
        """Give what has changed outside the content that it had."""
        for cache in self._caches:
            cache.cache_clear()
        for value, before in self._found:
            if isinstance(value, list):
                if len(value) != len(before) or any(x is not y for x, y in zip(value, before, strict=True)):
                    value[:] = before
            elif isinstance(value, type):
                for name in {*vars(value)} - {*before}:
                    delattr(value, name)
                for name, part in before.items():
                    if vars(value).get(name) is not part:
                        setattr(value, name, part)
            elif isinstance(value, dict):
                if [*map(id, value), *map(id, value.values())] != [*map(id, before), *map(id, before.values())]:
                    value.clear()
                    value.update(before)
            elif value != before:
                value.clear()
                value.update(before)

    def _look(self, value: Any) -> None:
        if isinstance(value, NUMBERS) or id(value) in self._seen:
            return
        self._seen[id(value)] = value  # which lives, so that no other one has its identity
        target = self._batched(value)
        if target is not None and target.fn is not value:
            self._look(target.fn)
        elif isinstance(value, types.FunctionType):
            self._look_at_function(value)
        elif isinstance(value, type):
            self._look_at_class(value)
        elif isinstance(value, types.ModuleType):
            _require(value.__name__ in MODULES, value)
        elif isinstance(value, tuple | frozenset):
            self._look_at_elements(value)
        elif type(value) in (list, dict, set):
            self._found.append((value, value.copy()))
            self._look_at_elements(value)
        elif isinstance(value, staticmethod | classmethod):
            self._look(value.__func__)
        elif isinstance(value, property | functools.cached_property):
            parts = (value.fget, value.fset, value.fdel) if isinstance(value, property) else (value.func,)
            for part in parts:
                self._look(part)
        elif isinstance(value, functools._lru_cache_wrapper):
            _require(not value.cache_info().currsize, value)  # what it has kept may give way to more
            self._look(value.__wrapped__)
            self._caches.append(value)
        elif isinstance(value, functools.partial):
            self._look((value.func, value.args, {**value.keywords}))
        elif isinstance(value, enum.Enum):
            self._look(value.__dict__)
            self._look(type(value))
        elif isinstance(value, types.GenericAlias | types.UnionType | types.MemberDescriptorType):
            return
        elif isinstance(value, types.BuiltinFunctionType):
            _require(isinstance(value.__self__, types.ModuleType | type), value)  # and no method of an object
            _require(_owner(value.__self__) in MODULES or _is_builtin(value.__self__, value.__name__), value)
        elif isinstance(value, types.MethodDescriptorType | types.WrapperDescriptorType):
            _require(_owner(value.__objclass__) in {*MODULES, "builtins"}, value)
        else:
            _require(type(value).__module__ in OF_CLASSES or type(value).__name__ in CONSTANTS, value)

    def _look_at_elements(self, values: Any) -> None:
        self._left -= len(values)
        _require(self._left > 0, "so much data")
        for value in [*values, *values.values()] if isinstance(values, dict) else values:
            self._look(value)

    def _look_at_class(self, cls: type) -> None:
        if cls.__module__ in MODULES or cls.__module__ == "builtins":
            _require(cls.__name__ not in OPEN, cls)
            return
        _require(type(cls) is type or type(cls).__module__ in MODULES, cls)
        _require("__del__" not in vars(cls), cls)
        self._found.append((cls, dict(vars(cls))))
        for base in cls.__bases__:
            self._look(base)
        for name, value in vars(cls).items():
            if name not in _OF_EVERY_CLASS and not isinstance(value, types.GetSetDescriptorType):
                self._look(value)

    def _look_at_function(self, fn: types.FunctionType) -> None:
        if fn.__globals__.get("__name__") in MODULES:
            return
        self.makes |= fn.__name__ == "__init__"
        if fn.__code__.co_filename == _GENERATED:
            self.codes.add(fn.__code__)
            return
        self._look((fn.__defaults__ or (), tuple((fn.__kwdefaults__ or {}).values()), fn.__dict__))
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        for cell in cells.values():
            try:
                self._look(cell.cell_contents)
            except ValueError:  # nothing is assigned to the variable yet
                raise OpenError("a variable without a value") from None
        self._look_at_code(fn.__code__, fn.__globals__, frozenset(fn.__code__.co_freevars))

    def _look_at_code(self, code: types.CodeType, scope: dict[str, Any], outer: frozenset[str]) -> None:
        """Look at code with this global scope, and at that inside of it; `outer` are variables of functions around."""
        self.codes.add(code)
        steps = [*dis.get_instructions(code)]
        _require(not may_catch_all(steps, code), code)
        self.is_long |= may_take_long(steps)
        owner = None  # the module of which the next step may take an attribute
        for step in steps:
            name = step.argval
            self.makes |= step.opname in MAKING or (step.opname.startswith("LOAD_") and name in MAKERS)
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                raise OpenError(name)
            if step.opname in ("STORE_DEREF", "DELETE_DEREF"):
                _require(name not in outer, name)
            elif step.opname == "IMPORT_NAME":
                _require(name in MODULES and name in sys.modules, name)
                owner = sys.modules[name]
                continue
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                self._look_at_name(name, code, scope)
                owner = scope.get(name)
                continue
            elif isinstance(owner, types.ModuleType) and step.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"):
                self._look(getattr(owner, name, None))
            owner = owner if step.opname in ("IMPORT_FROM", "STORE_FAST") else None  # of several names
        for part in _codes(code.co_consts):
            self._look_at_code(part, scope, outer)

    def _look_at_name(self, name: str, code: types.CodeType, scope: dict[str, Any]) -> None:
        if name in scope:
            if name != "__name__":
                self._look(scope[name])
        elif hasattr(builtins, name):
            _require(name not in OPEN, name)
        else:  # a name of a class that is made in a function, or an error
            _require(name in code.co_names and name in (*code.co_varnames, "__module__", "__qualname__"), name)


_OF_EVERY_CLASS = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__qualname__"})


def _owner(value: Any) -> str:
    """The name of a module, or of that of a class."""
    name: str = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return name


def _is_builtin(owner: Any, name: str) -> bool:
    return _owner(owner) == "builtins" and name not in OPEN


def _codes(constants: tuple[Any, ...]) -> Iterator[types.CodeType]:
    return (value for value in constants if isinstance(value, types.CodeType))


def _require(holds: bool, what: Any) -> None:
    if not holds:
        raise OpenError(what)


def outside(fn: Callable[..., Any], batched: BatchedTest) -> Outside | None:
    """Return what a function uses from outside; None if it is not closed."""
    try:
        return Outside(fn, batched) if isinstance(fn, types.FunctionType) else None
    except OpenError:
        return None
