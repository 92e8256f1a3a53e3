"""Refusal of code that changes objects outside of the program while it is traced: counters of a class, global lists.

A primitive runs once, while compiling, where plain Python runs it for each lane and iteration. So what its functions
can reach by the names in their code (globals, captured variables, classes, default arguments, and what these hold) is
read before and after inference. Where something has changed, inference runs again: a table that is filled once stays as
it is then, and so does the program, and that is allowed. Objects of installed packages are not looked at.
"""

from __future__ import annotations

import builtins
import functools
import operator
import re
import types
import warnings
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pcbatch.data.object_parts import INSTALLED, OURS, is_users
from pcbatch.errors import Refusal
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.trace import Traced, trace

MOST = 20_000  # objects that are looked at, nearest first
LARGEST = 1 << 24  # bytes of an array that are compared
ATOMS = frozenset({bool, int, float, complex, str, bytes, type(None), range, slice})
CONTAINERS = (list, tuple, dict, set, frozenset, deque, bytearray, array, np.ndarray)
WRAPPERS = (
    *(types.MethodType, types.SimpleNamespace, property, staticmethod, classmethod, functools.partial),
    functools._lru_cache_wrapper,
)
PARTS = ("__func__", "__self__", "__wrapped__", "fget", "fset", "func", "args", "keywords")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
MISSING = object()

Traces = Mapping[Any, Sequence[tuple[tuple[Abstract, ...], Traced]]]
"""The traces of each primitive, with the types of its operands."""

Contents = list[tuple[str, Any]]
"""The parts of an object, each with what is written for it: behind the name of the object if it begins with . or [."""


class OuterState:
    """The contents of the objects outside of a program that its primitives can reach, with their names."""

    def __init__(self, program: CfgProgram, args: Mapping[str, Abstract]) -> None:
        self._objects: dict[int, tuple[str, Any, Contents]] = {}
        prims = (op for f in program.functions for op in f.ops if isinstance(op, Prim))
        known = [leaf.value for value in args.values() for leaf in value.leaves if isinstance(leaf, Known)]
        due: deque[tuple[str, Any]] = deque([("", fn) for fn in {op.expr.fn: None for op in prims}])
        due.extend((type(value).__name__, value) for value in known)
        while due and len(self._objects) < MOST:
            name, value = due.popleft()
            if id(value) in self._objects or not has_state(value):
                continue
            contents = contents_of(value)
            self._objects[id(value)] = name, value, contents
            if not ATOMS.issuperset(map(type, _values(contents))):
                due.extend((_joined(name, part), child) for part, child in contents)

    def changes(self) -> list[str]:
        """Return the names of the objects that are not as they were when this was asked before, or made."""
        found = []
        for key, (name, value, before) in self._objects.items():
            now = contents_of(value)
            if len(now) != len(before) or not all(map(operator.is_, _values(now), _values(before))):
                self._objects[key] = name, value, now
                found += _differences(name, value, before, now)
        return found


def watching(state: OuterState) -> Callable[..., Traced]:
    """Return a `trace` that raises Refusal for a primitive that changes an object outside of the program."""

    def traced(
        fn: Callable[..., Any], ins: Sequence[Abstract], results: int, written: Callable[..., Any] | None = None
    ) -> Traced:
        result = trace(fn, ins, results, written)
        if names := state.changes():
            raise refusal(names[0])
        return result

    return traced


def refusal(name: str) -> Refusal:
    """Return the refusal of code that changes the object of this name."""
    title = f"`{name}` does not belong to a lane, so a lane cannot change it"
    note = "what is called here changes it, once, while compiling; plain Python does for each lane"
    help = "keep the value in a variable of the function, pass it to what is called here, and return it from there"
    return Refusal("PCB117", title, note, helps=(help,))


def unlike(before: Traces, now: Traces) -> list[Any]:
    """Return the keys of primitives that compute something else now: what they read has changed in between."""
    pairs = [(key, *both) for key in now for both in zip(before.get(key, ()), now[key], strict=False)]
    return [key for key, (ins, one), (others, other) in pairs if ins == others and _meaning(one) != _meaning(other)]


def _meaning(traced: Traced) -> tuple[object, ...]:
    leaves = [leaf for out in traced.outs for leaf in out.leaves]
    atoms = [repr(leaf.value) if isinstance(leaf, Known) and type(leaf.value) in ATOMS else None for leaf in leaves]
    return ADDRESS.sub("", str(traced.closed.jaxpr)), atoms


def _differences(name: str, value: Any, before: Contents, now: Contents) -> list[str]:
    if isinstance(value, CONTAINERS) or hasattr(type(value), "__next__"):
        same = len(now) == len(before) and all(map(_same, _values(now), _values(before)))
        return [] if same else [name]
    old, new = dict(before), dict(now)
    parts = [part for part in old | new if not _same(old.get(part, MISSING), new.get(part, MISSING))]
    return [_joined(name, part) for part in parts]


def _values(contents: Contents) -> list[Any]:
    return [value for _, value in contents]


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and type(a) in ATOMS and (a == b or repr(a) == repr(b)))


def _joined(name: str, part: str) -> str:
    return name + part if part[:1] in (".", "[") else part


def has_state(value: Any) -> bool:
    """Return whether an object may change, or refers to what may."""
    cls = type(value)
    if cls in ATOMS or isinstance(value, types.ModuleType):
        return False
    if isinstance(value, types.FunctionType):
        file = value.__code__.co_filename
        return file.startswith(OURS) or not file.startswith(INSTALLED)
    iterates = hasattr(cls, "__next__") and cls.__module__ in ("builtins", "itertools")
    module = str((value if isinstance(value, type) else cls).__module__)
    return isinstance(value, CONTAINERS + WRAPPERS) or iterates or is_users(module)


def contents_of(value: Any) -> Contents:
    """Return the parts of an object, by what is written for them: it has changed where one of them is another."""
    match value:
        case types.FunctionType():
            return _of_function(value)
        case type():
            bases = [(base.__name__, base) for base in value.__mro__[1:]]
            items = [(name, part) for name, part in list(vars(value).items()) if name[:2] != "__" or callable(part)]
            return [*((f".{name}", part) for name, part in items), *bases]
        case dict():
            return [(f"[{key!r}]", part) for key, part in list(value.items())] + [("", len(value))]
        case set() | frozenset():
            return sorted((("[]", part) for part in value), key=lambda item: id(item[1]))
        case bytearray() | array() | np.ndarray():
            return [("", _digest(value))]
        case list() | tuple() | deque():
            return [(f"[{k}]", part) for k, part in enumerate(value)]
        case types.GeneratorType():
            frame = value.gi_frame
            place = -1 if frame is None else frame.f_lasti
            return [("", place), *([] if frame is None else frame.f_locals.items())]
    if hasattr(type(value), "__next__") and not hasattr(value, "__dict__"):
        return _of_iterator(value)
    if isinstance(value, WRAPPERS) and not isinstance(value, types.SimpleNamespace):
        return [(f".{name}", getattr(value, name)) for name in PARTS if hasattr(value, name)]
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if name != "__weakref__"]
    slots = [name for name in slots if hasattr(value, name)]
    items = [*getattr(value, "__dict__", {}).items(), *((name, getattr(value, name)) for name in slots)]
    return [*((f".{name}", part) for name, part in items), (type(value).__name__, type(value))]


def _of_function(fn: types.FunctionType) -> Contents:
    """The globals and captured variables that the code of a function names, defaults and attributes.

    The globals of this package's own functions are not the user's, but what they have captured may be.
    """
    found = dict[str, Any]()
    names = set() if fn.__code__.co_filename.startswith(OURS) else set(_names(fn.__code__))
    for name in sorted(names):
        value = fn.__globals__.get(name, MISSING)
        if isinstance(value, types.ModuleType) and getattr(value, "__file__", None) and is_users(value.__name__):
            found |= {f"{name}.{part}": vars(value).get(part, MISSING) for part in sorted(names)}
        elif not hasattr(builtins, name):
            found[name] = value
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            found[name] = MISSING
    defaults = [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
    found |= {f"{fn.__name__}.__defaults__[{k}]": value for k, value in enumerate(defaults)}
    return list((found | {f"{fn.__name__}.{name}": value for name, value in vars(fn).items()}).items())


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)


def _of_iterator(value: Any) -> Contents:
    """The parts from which a copy of an iterator could be made; how it is shown where there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parts = value.__reduce__()[1:]
        except Exception:  # an iterator that cannot be copied
            parts = (repr(value),)
    return [("", part) for group in parts for part in (group if isinstance(group, tuple) else (group,))]


def _digest(value: Any) -> int:
    """A checksum of the bytes of an array, 0 for one that is large."""
    if isinstance(value, np.ndarray):
        if value.dtype == object or value.nbytes > LARGEST or not value.flags.writeable:
            return 0
        value = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return zlib.crc32(value)
