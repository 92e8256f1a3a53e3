"""Functions of the user's own code that are compiled along with the batched function that calls them.

A helper without a decorator is traced as part of a primitive. Where that cannot work, because it branches on values of
a lane or calls itself, it is compiled along, as if it were decorated: its code is added to a set, and compiling starts
again. Installed packages are never compiled.
"""

from __future__ import annotations

import functools
import inspect
import linecache
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

from pcbatch.containers.object_parts import INSTALLED
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.source.callee import BatchedTest, Target

CodeKey = tuple[str, int, str]
"""The place of a function: file, first line and name; copies of its code have the same."""

_OURS = str(Path(__file__).parents[2]) + "/"
CACHE = type(functools.lru_cache(lambda: None))

_primitives: set[CodeKey] = set()


def key_of(code: CodeType) -> CodeKey:
    """Return the place of a function's code."""
    return (code.co_filename, code.co_firstlineno, code.co_name)


def keep_primitive(fn: FunctionType) -> None:
    """Have calls of a function always traced as one primitive."""
    _primitives.add(key_of(fn.__code__))


def is_kept(code: CodeType) -> bool:
    """Whether calls of a function are always traced as one primitive."""
    return key_of(code) in _primitives


def is_users(code: CodeType) -> bool:
    """Whether code is the user's own, and not that of an installed package, of Python or of this package."""
    file = code.co_filename
    return not file.startswith((*INSTALLED, _OURS, "<frozen")) and not file.endswith("/functools.py")


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason for which a function is compiled along: the name, the call that needs it, and why in words."""

    name: str
    place: str  # file and line of its definition
    call: Loc | None
    why: str
    file: str = ""
    lines: tuple[int, int] = (0, 0)

    def holds(self, loc: Loc) -> bool:
        """Whether a span is in this function."""
        return loc.file == self.file and self.lines[0] <= loc.line <= self.lines[1]

    def __str__(self) -> str:
        return f"`{self.name}` ({self.place}): {self.why}"


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """A `BatchedTest` to which functions of the set `reasons` count as batched, beside those that `batched` knows.

    Calls of those in `copied` are replaced by copies; `changed` are variables around a nested function that it changes
    in place. `wanted` collects, while the front end and type inference work,
    functions that have to be compiled along as well; `names` tells of which code the functions of the program are.
    """

    batched: BatchedTest
    reasons: Mapping[CodeKey, Reason] = field(default_factory=dict)
    copied: frozenset[CodeKey] = frozenset()
    changed: Mapping[CodeKey, frozenset[str]] = field(default_factory=dict)
    wanted: dict[CodeKey, Reason] = field(default_factory=dict)
    to_copy: set[CodeKey] = field(default_factory=set)
    to_change: dict[CodeKey, frozenset[str]] = field(default_factory=dict)
    names: dict[str, CodeKey] = field(default_factory=dict)

    def __call__(self, obj: object) -> Target | None:
        """Return the target of a call of an object; None if it is traced as a primitive."""
        found = self.batched(obj)
        return found if found is not None or not self.reasons else self._along(obj)

    def _along(self, obj: object) -> Target | None:
        fn, args, keywords = callee_of(obj)
        if fn is None or key_of(fn.__code__) not in self.reasons or is_kept(fn.__code__):
            return None
        if inspect.isgeneratorfunction(fn):  # written out where it is gone over
            return None
        return Target(fn, args, keywords, inline=key_of(fn.__code__) in self.copied, along=True)

    def covers(self, code: CodeType) -> bool:
        """Whether a function is compiled along."""
        return key_of(code) in self.reasons

    def want(self, code: CodeType, call: Loc | None, why: str) -> bool:
        """Ask for a function to be compiled along from the next time on; False if it cannot be, or is already."""
        if self.covers(code) or not is_users(code) or is_kept(code) or not linecache.getlines(code.co_filename):
            return False
        place = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        lines = (code.co_firstlineno, _last_line(code))
        self.wanted.setdefault(key_of(code), Reason(code.co_name, place, call, why, code.co_filename, lines))
        return True

    def want_nested(self, outer: CodeType, definition: Any, call: Loc | None, why: str) -> bool:
        """Ask for a function defined in `outer`, by its `def` or lambda, to be compiled along."""
        lines = [definition.lineno, *(decorator.lineno for decorator in getattr(definition, "decorator_list", ()))]
        name = getattr(definition, "name", "<lambda>")
        inner = (constant for constant in outer.co_consts if isinstance(constant, CodeType))
        code = next((code for code in inner if code.co_firstlineno == min(lines) and code.co_name == name), None)
        return code is not None and self.want(code, call, why)

    def copy_calls(self, name: str) -> bool:
        """Ask for copies of a function of the program at its calls; False unless it is compiled along without."""
        key = self.names.get(name)
        if key is None or key not in self.reasons or key in self.copied:
            return False
        self.to_copy.add(key)
        return True

    def grown(self) -> Along:
        """Return the test for the next compilation, with what this one has asked for."""
        changed = {key: self.changed.get(key, frozenset()) | names for key, names in self.to_change.items()}
        return Along(
            self.batched,
            {**self.reasons, **self.wanted},
            self.copied | self.to_copy,
            {**self.changed, **changed},
        )

    @property
    def asks(self) -> bool:
        """Whether compilation has to start again."""
        return bool(self.wanted or self.to_copy or self.to_change)


def callee_of(obj: object) -> tuple[FunctionType | None, tuple[object, ...], tuple[tuple[str, object], ...]]:
    """The plain function that a call of `obj` runs, with arguments that are bound to it; None for other callables.

    A cache around a function is seen through: its values are those of the function.
    """
    match obj:
        case FunctionType():
            return obj, (), ()
        case MethodType(__func__=inner):
            fn, args, keywords = callee_of(inner)
            return fn, (*args, obj.__self__), keywords
        case staticmethod(__func__=inner):
            return callee_of(inner)
        case functools.partial():
            fn, args, keywords = callee_of(obj.func)
            return fn, (*args, *obj.args), tuple({**dict(keywords), **obj.keywords}.items())
        case CACHE():
            return callee_of(obj.__wrapped__)
    call = None if isinstance(obj, type) else inspect.getattr_static(type(obj), "__call__", None)
    return (call, (obj,), ()) if isinstance(call, FunctionType) else (None, (), ())


def _last_line(code: CodeType) -> int:
    inner = [_last_line(part) for part in code.co_consts if isinstance(part, CodeType)]
    return max([code.co_firstlineno, *inner, *(line for *_, line in code.co_lines() if line is not None)])


def bound_function(base: object, name: str) -> Any:
    """The bound method `base.name` if it is a plain function of the user's class; None for anything else."""
    if isinstance(base, type) or name in getattr(base, "__dict__", ()):
        return None
    value = inspect.getattr_static(type(base), name, None)
    if isinstance(value, FunctionType) or isinstance(value, CACHE):
        return MethodType(value, base)
    return None


@dataclass(frozen=True, slots=True)
class Decisions:
    """Facts that inference has found out about the user's source.

    `expanded` are places that could not be traced: a comprehension around one of them, or a builtin that consumes an
    iterable there, becomes a loop. `made` are classes of the user's whose objects are records made in lanes. At the
    places `linked` a variable gets a part of another one, with which it is kept equal (see `frontend.build.links`); at
    those `in_place`, `x += ...` changes the object of `x`. The loops over what stands at the places `taken` go over
    an iterator that is kept. At the places `asked` elements are taken of an object of the user's. In
    the code at the places `stored`, reading an element stores what a `defaultdict` lacks.
    """

    expanded: frozenset[Loc] = frozenset()
    made: frozenset[Any] = frozenset()
    linked: frozenset[Loc] = frozenset()
    in_place: frozenset[Loc] = frozenset()
    taken: frozenset[Loc] = frozenset()
    asked: frozenset[Loc] = frozenset()
    stored: frozenset[Loc] = frozenset()

    def expands(self, span: Loc) -> bool:
        """Return whether a construct at this span becomes a loop."""
        return any(_inside(place, span) for place in self.expanded)

    def stores(self, span: Loc) -> bool:
        """Return whether reading an element at this span may store it."""
        return any(_inside(span, place) for place in self.stored)


NONE = Decisions()


def _inside(place: Loc, span: Loc) -> bool:
    start, end = (span.line, span.col), (span.end_line, span.end_col)
    return place.file == span.file and start <= (place.line, place.col) and (place.end_line, place.end_col) <= end
