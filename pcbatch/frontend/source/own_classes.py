"""The classes of the user's whose objects a function may meet, and a name for each.

They are found from the names that the function can see, through modules, functions, classes and objects of the user's:
`geometry.Vector`, a class around the function, that of an attribute of an object.
"""

from __future__ import annotations

import dis
import inspect
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pcbatch.data.object_parts import attributes, is_users

ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None)})
MOST = 50_000
"""The number of objects among which classes are looked for, nearest first; of a list a fiftieth, of a dict a fifth."""


def own_classes(fn: FunctionType, known: Iterable[object], hidden: Collection[str]) -> dict[str, type]:
    """Return the classes, each by a name that means it in the function, or else by one that no code can have.

    `known` are objects of arguments; `hidden` are names that mean other things in the function than around it.
    """
    cells = dict(zip(fn.__code__.co_freevars, contents(fn.__closure__ or ()), strict=True))
    seen: dict[int, object] = {}
    waiting = deque([*known, *cells.values(), fn.__globals__])
    looked_at = 0
    while waiting and looked_at < MOST:
        looked_at += 1
        value = waiting.popleft()
        if id(value) not in seen:
            seen[id(value)] = value
            waiting.extend(part for part in _leads_to(value) if type(part) not in ATOMS)
    names = {id(value): name for name, value in reversed({**fn.__globals__, **cells}.items()) if name not in hidden}
    found: dict[str, type] = {}
    for cls in seen.values():
        if isinstance(cls, type) and is_users(cls.__module__):
            name = names.get(id(cls), f"class {cls.__qualname__} of {cls.__module__}")
            found[name if name not in found else f"{name} {len(found)}"] = cls
    return found


def own_methods(classes: Iterable[type], name: str) -> Iterator[FunctionType]:
    """Yield the functions of classes that are methods of a name."""
    found = (inspect.getattr_static(cls, name, None) for cls in classes)
    return (method for method in found if isinstance(method, FunctionType) and is_users(method.__module__ or ""))


def stores(fn: FunctionType, classes: Iterable[type], attribute: str, apart: str = "") -> bool:
    """Whether a function beside this one, or a method of a class, assigns an attribute of this name; methods of
    the name `apart` are not looked at."""
    spaces = [fn.__globals__, *(vars(cls) for cls in classes)]
    found = (value for space in spaces for name, value in space.items() if name != apart)
    codes = [value.__code__ for value in found if isinstance(value, FunctionType)]
    return any(attribute in _assigned(code) for code in (fn.__code__, *codes))


@lru_cache(maxsize=4096)
def _assigned(code: CodeType) -> frozenset[str]:
    """The names of the attributes that a function, or one in it, assigns."""
    own = {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_ATTR"}
    return frozenset(own).union(*(_assigned(part) for part in code.co_consts if isinstance(part, CodeType)))


def contents(cells: tuple[CellType, ...]) -> Iterator[object]:
    """Yield what variables around a function hold, None for those that are not bound yet."""
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:
            yield None


def _leads_to(value: Any) -> Iterator[object]:
    """The objects to which code that has a value may come by it, where they may lead to a class."""
    match value:
        case ModuleType():
            yield vars(value) if is_users(value.__name__) else None
        case FunctionType() if is_users(value.__module__ or ""):
            yield from (value.__globals__, *contents(value.__closure__ or ()))
        case type() if is_users(value.__module__):
            yield from (*value.__bases__, *type.__subclasses__(value), *vars(value).values())
        case FunctionType() | type():
            return
        case MethodType():
            yield from (value.__func__, value.__self__)
        case staticmethod() | classmethod():
            yield value.__func__
        case dict():
            yield from (part for key, part in islice(value.items(), MOST // 5) if key != "__builtins__")
        case list() | tuple():
            yield from (type(value), *value[: MOST // 50])
        case _:
            yield from (type(value), inspect.getattr_static(value, "__wrapped__", None))
            yield from attributes(value).values() if is_users(type(value).__module__) else ()
