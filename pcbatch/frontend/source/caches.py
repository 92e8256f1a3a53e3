"""Functions under a cache of Python's: which call themselves, and which other functions take part in that."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType

from pcbatch.data.object_parts import is_user_code
from pcbatch.frontend.source.callable_objects import CACHE, callee_of
from pcbatch.ir.analysis.dataflow import reachable

WITHOUT_KEY = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR


def cached_in_recursion(fn: FunctionType) -> list[CodeType]:
    """Return the codes of the cached functions that call `fn` and that it calls, by itself or through others.

    Found by the names of global variables and of variables around functions. One whose calls cannot be told apart by
    the values of their arguments is left out.
    """
    graph: dict[FunctionType, list[FunctionType]] = {}
    work = [fn]
    while work:
        if (each := work.pop()) not in graph:
            called = (callee_of(value)[0] for value in _named(each))
            graph[each] = [one for one in called if one is not None and is_user_code(one.__code__)]
            work += graph[each]
    if not any(isinstance(value, CACHE) for each in graph for value in _named(each)):
        return []
    within = [each for each in graph if fn in reachable(graph[each], graph)]
    cached = {callee_of(value)[0] for each in within for value in _named(each) if isinstance(value, CACHE)}
    return [each.__code__ for each in within if each in cached and has_key(each.__code__)]


def has_key(code: CodeType) -> bool:
    """Return whether the values of the arguments tell the calls of a function apart."""
    return code.co_argcount + code.co_kwonlyargcount > 0 and not code.co_flags & WITHOUT_KEY


def _named(fn: FunctionType) -> Iterator[object]:
    """The functions and caches that a function names, in nested functions too."""
    values = {name: fn.__globals__[name] for name in _names(fn.__code__) if name in fn.__globals__}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return (value for value in values.values() if isinstance(value, FunctionType | CACHE))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)
