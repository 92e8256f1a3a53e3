"""Functions of the user's own code that are compiled along with the batched function that calls them.

A helper without a decorator is traced as part of a primitive. Where that cannot work, because it branches on values of
a lane or calls itself, it is compiled along, as if it were decorated: its code is added to a set, and compiling starts
again. Installed packages are never compiled.
"""

from __future__ import annotations

import inspect
import linecache
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects.function_values import FunctionValue, made_class
from pcbatch.decisions import NONE, CodeKey, Decisions, Reason
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.errors import Restart
from pcbatch.frontend.source.caches import cached_in_recursion
from pcbatch.frontend.source.callable_objects import callee_of, is_cached
from pcbatch.frontend.source.callee import BatchedTest, Target
from pcbatch.ir.names import MEMO

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


@dataclass(frozen=True, slots=True, eq=False)
class Helpers:
    """A `BatchedTest` to which functions that are compiled along count as batched, beside those that `batched` knows.

    `wanted` and `changing` collect what the front end and type inference want beyond the decisions: functions to be
    compiled along, and variables around a nested function that it changes in place; `streams` has the classes of
    generators that are kept. `names` tells of which code the functions of the program are; `memos` has the variables in
    which lanes keep the results of cached functions. `boxes` has the functions of the program of `entry` with boxes.
    """

    batched: BatchedTest
    decisions: Decisions = NONE
    wanted: dict[CodeKey, Reason] = field(default_factory=dict)
    changing: dict[CodeKey, frozenset[str]] = field(default_factory=dict)
    streams: dict[type, None] = field(default_factory=dict)
    names: dict[str, CodeKey] = field(default_factory=dict)
    memos: dict[CodeKey, str] = field(default_factory=dict)
    functions: dict[tuple[object, ...], type[FunctionValue]] = field(default_factory=dict)
    units: list[Any] = field(default_factory=list)
    entry: tuple[FunctionType, ...] = ()
    boxes: list[Any] = field(default_factory=list)
    _in_recursion: dict[FunctionType, list[CodeType]] = field(default_factory=dict)

    def __call__(self, obj: object) -> Target | None:
        """Return the target of a call of an object; None if it is traced as a primitive."""
        found = self.batched(obj)
        return found if found is not None or not self.decisions.helpers else self._helper(obj)

    def _helper(self, obj: object) -> Target | None:
        fn, args, keywords = callee_of(obj)
        if fn is None or not self.covers(fn.__code__) or is_kept(fn.__code__):
            return None
        if inspect.isgeneratorfunction(fn):  # written out where it is gone over
            return None
        copied = key_of(fn.__code__) in self.decisions.copied
        memos = self._memos_of(fn)
        captured = tuple((memo, memo) for memo in memos)
        return Target(fn, args, keywords, copied, True, is_cached(obj), captured=captured, returned=memos)

    def memo(self, key: CodeKey) -> str | None:
        """Return the variable of the memo of a cached function; None for one that is to have no memo."""
        if key in self.decisions.forgetful:
            return None
        return self.memos.setdefault(key, f"{MEMO}{len(self.memos)}.{key[2]}")

    def _memos_of(self, fn: FunctionType) -> tuple[str, ...]:
        """The memos that a function reads, which takes part in a cached recursion."""
        if fn not in self._in_recursion:
            self._in_recursion[fn] = cached_in_recursion(fn)
        memos = (self.memo(key_of(code)) for code in self._in_recursion[fn])
        return tuple(sorted(memo for memo in memos if memo is not None))

    def covers(self, code: CodeType) -> bool:
        """Whether a function is compiled along."""
        return key_of(code) in self.decisions.helpers

    def want(self, code: CodeType, call: Loc | None, why: str) -> bool:
        """Ask for a function to be compiled along from the next time on; False if it cannot be, or is already."""
        if self.covers(code) or not is_user_code(code) or is_kept(code) or not linecache.getlines(code.co_filename):
            return False
        place = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        lines = (code.co_firstlineno, _last_line(code))
        self.wanted.setdefault(key_of(code), Reason(code.co_name, place, call, why, code.co_filename, lines))
        return True

    def demand(self, wants: Decisions) -> None:
        """Raise Restart unless all that is wanted is decided already."""
        if self.decisions | wants != self.decisions:
            raise Restart(wants)

    @property
    def wants(self) -> Decisions:
        """The decisions that have been collected: functions to compile along, variables to change, classes."""
        changed = frozenset((key, name) for key, names in self.changing.items() for name in names)
        made = frozenset(made_class(cls) for cls in self.functions.values() if cls.pcbatch_recorded)
        functions, streams = dict.fromkeys(self.functions.values()), dict(self.streams)
        wanted = dict(self.wanted)
        return Decisions(helpers=wanted, changed=changed, made=made, functions=functions, streams=streams)


def _last_line(code: CodeType) -> int:
    inner = [_last_line(part) for part in code.co_consts if isinstance(part, CodeType)]
    return max([code.co_firstlineno, *inner, *(line for *_, line in code.co_lines() if line is not None)])
