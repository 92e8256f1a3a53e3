"""The methods of the user's classes that may change their object, found in what their code names.

class Parser:
    def parse(self): return self.expr()             changes: it names `expr`, which names `take`
    def expr(self): return self.take() + 1
    def take(self): self.pos += 1; ...              stores an attribute
    def rest(self): return self.text[self.pos:]     changes nothing

Code names methods, properties and functions without their types, so a name means all methods of that name, and whatever
a function may change counts as part of its caller's object.
"""

from __future__ import annotations

import builtins
import dis
import functools
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pcbatch.data.catalogue import FUNCTIONS, facts
from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects.function_values import FunctionValue
from pcbatch.frontend.source.callable_objects import callee_of
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.own_classes import contents, own_methods

STORES = frozenset({"STORE_ATTR", "STORE_SUBSCR", "DELETE_ATTR", "DELETE_SUBSCR"})
CHANGING = (setattr, delattr, next, *(plain for plain, _ in FUNCTIONS.values()))
"""Functions of Python's that change an argument."""


def changes_object(unit: Unit, name: str) -> bool:
    """Return whether a method of this name, of a class of the user's, may change its object; calls of functions that
    are values change what these have captured, and not them."""
    if name not in unit.changing:
        classes = [cls for cls in unit.classes.values() if not issubclass(cls, FunctionValue)]
        unit.changing[name] = _may_change(unit, own_methods(classes, name))
    return unit.changing[name]


def changes_arguments(unit: Unit, function: FunctionType) -> bool:
    """Return whether a function of the user's may change one of its arguments."""
    return _may_change(unit, [function])


def attributes_read(unit: Unit, function: FunctionType) -> frozenset[str]:
    """Return the names of the attributes that a function may read, by itself or by what it names."""
    return frozenset().union(*(_attributes(each.__code__)[0] for each, _ in _reached(unit, [function])))


def attributes_changed(unit: Unit, function: FunctionType) -> frozenset[str]:
    """Return the names of the attributes that a function may assign, or whose containers it may change."""
    found = ((_attributes(each.__code__), changes) for each, changes in _reached(unit, [function]))
    return frozenset().union(*(read | stored for (read, stored), changes in found if changes))


@cache
def _attributes(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the attributes that code reads, and those that it stores."""
    steps = list(dis.get_instructions(code))
    read = frozenset(str(one.argval) for one in steps if one.opname in ("LOAD_ATTR", "LOAD_METHOD"))
    stored = frozenset(str(one.argval) for one in steps if one.opname in ("STORE_ATTR", "DELETE_ATTR"))
    inner = [_attributes(part) for part in code.co_consts if isinstance(part, CodeType)]
    return read.union(*(one for one, _ in inner)), stored.union(*(one for _, one in inner))


def _may_change(unit: Unit, functions: Iterable[FunctionType]) -> bool:
    """Whether one of some functions may change its arguments, by itself or by a function that it names."""
    return any(changes for _, changes in _reached(unit, functions))


def _reached(unit: Unit, functions: Iterable[FunctionType]) -> Iterator[tuple[FunctionType, bool]]:
    """Yield some functions and those that they name, each with whether it may itself change its arguments."""
    waiting, seen = [function for function in functions if _takes_arguments(function.__code__)], set[CodeType]()
    methods = _methods(unit.classes.values()) if waiting else {}
    for function in waiting:  # what they name is added to it
        if function.__code__ in seen:
            continue
        seen.add(function.__code__)
        stores, names = _facts(function.__code__)
        values = list(_named(function, names))
        yield function, stores or any(value is changing for value in values for changing in CHANGING)
        found = [*(method for name in names for method in methods.get(name, ())), *_functions(unit, values)]
        waiting += [each for each in found if is_user_code(each.__code__) and _takes_arguments(each.__code__)]


def _methods(classes: Iterable[type]) -> dict[str, list[FunctionType]]:
    """The functions that run where the attributes of classes are called or read, by the names of these."""
    found: dict[str, list[FunctionType]] = {}
    for cls in classes:
        for name, value in vars(cls).items():
            found.setdefault(name, []).extend(_of_attribute(value))
    return found


def _of_attribute(value: Any) -> Iterator[FunctionType]:
    match value:
        case property():
            value = value.fget
        case functools.cached_property():
            value = value.func
        case classmethod():
            value = value.__func__
    function = value if isinstance(value, FunctionType) else callee_of(value)[0]
    if function is not None:
        yield function


def _named(function: FunctionType, names: frozenset[str]) -> Iterator[object]:
    """The objects that a function names: those of its module and of functions around it, and parts of modules."""
    values = [function.__globals__.get(name, getattr(builtins, name, None)) for name in names]
    for value in [*values, *contents(function.__closure__ or ())]:
        yield value
        if isinstance(value, ModuleType):
            yield from (vars(value).get(name) for name in names)


def _functions(unit: Unit, values: Iterable[object]) -> Iterator[FunctionType]:
    for value in values:
        target = unit.batched(value)
        function = callee_of(value)[0] if target is None else target.fn
        if function is not None:
            yield function


def _takes_arguments(code: CodeType) -> bool:
    return code.co_argcount + code.co_kwonlyargcount > 0 or bool(code.co_flags & (CO_VARARGS | CO_VARKEYWORDS))


@cache
def _facts(code: CodeType) -> tuple[bool, frozenset[str]]:
    """Whether a function, or one inside it, assigns an attribute or an element, or calls a method that changes
    something; and the names in it."""
    inner = [_facts(part) for part in code.co_consts if isinstance(part, CodeType)]
    names = frozenset(code.co_names).union(*(found for _, found in inner))
    stores = any(instruction.opname in STORES for instruction in dis.get_instructions(code))
    return stores or any(one for one, _ in inner) or any(facts(name).changes for name in code.co_names), names
