"""Runs of a function by Python that are watched: how many elements its containers have, and characters its texts.

A function that traces the frames of the user's functions (`sys.settrace`) looks at the local variables before each
line, and now and then into what they hold. The number of lines is limited, so that a run ends, and how far one
gets does not depend on the clock.
"""

from __future__ import annotations

import inspect
import math
import sys
import time
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

TABLES = (dict, set, frozenset)
HOLDERS = (list, deque, *TABLES)
SIZED = (str, *HOLDERS)
_DEEP = (tuple, *SIZED)
SELDOM = 4  # lines from one look at variables to the next
DEEPER, RARER = 4, 16  # a look into containers follows another after so many looks, and a share of all those so far
NOWHERE, IN_OBJECT, IN_CONTAINER = range(3)  # what is around a value; an object may be one of no table in lanes
FIRST = 2  # times that a function returns with a look
HUGE, WIDE = 2**20, 2**12  # elements or characters, and bits of an integer, that end a run
MOST_SEEN = 400  # values of one look
LISTING = frozenset({"join", "sorted", "list", "tuple", "extend", "deque"})
MANY, UNFINISHED = 8, 4  # objects of a class, of which a run that has not ended is taken to make more: times as many
FEW = 8  # elements that show whether a container has others in it


class TimeError(BaseException):
    """Runs have taken much longer than their lines should: what follows from them is not to depend on the clock."""


class BudgetError(BaseException):
    """A run has had as many lines as it may have; no exception of the program, so that it does not catch it."""


@dataclass
class Sizes:
    """The largest sizes that were seen.

    Attributes:
        elements: of lists that are in no other container.
        characters: of texts likewise.
        records: objects that were seen at a time of a class without a constructor of the user's.
        inner: elements of lists inside of other containers, or of objects.
        inner_characters: of texts likewise.
        entries: of dicts and sets that are in no other container.
        inner_entries: of those that are, or are in objects.
        rows: objects that were made of each class, by its name.
    """

    elements: int = 0
    characters: int = 0
    records: int = 0
    inner: int = 0
    inner_characters: int = 0
    entries: int = 0
    inner_entries: int = 0
    rows: dict[str, int] = field(default_factory=dict)

    def note(self, value: Any, size: int, around: int) -> None:
        """Note the size of a container or a text; see `NOWHERE`."""
        text, table = isinstance(value, str), isinstance(value, TABLES)
        if around < IN_CONTAINER:
            name = "characters" if text else "entries" if table else "elements"
            setattr(self, name, max(getattr(self, name), size))
        if around:
            name = "inner_characters" if text else "inner_entries" if table else "inner"
            setattr(self, name, max(getattr(self, name), size))


@dataclass
class Watch:
    """The watch over one run of a function: the lines that it may have, and the sizes that were seen.

    Attributes:
        codes: the code of the functions that are watched.
        lines: how many lines may still run.
        sizes: what was seen.
        until: the time (`time.perf_counter`) at which it ends without a result.
        given: the sizes of the arguments and of what is in them, by identity: they have a room of their own.
    """

    codes: set[types.CodeType]
    lines: int
    until: float = math.inf
    sizes: Sizes = field(default_factory=Sizes)
    given: dict[int, int] = field(default_factory=dict)
    _yields: Counter[types.FrameType] = field(default_factory=Counter)
    _returns: Counter[types.CodeType] = field(default_factory=Counter)
    _count: int = 0
    _next: int = 0  # the number of the next look that goes into containers

    def run(self, fn: Callable[..., Any], args: dict[str, Any]) -> None:
        """Run a function for one example, to its end or as far as the lines go."""
        _note_given(args.values(), self.given)
        before = sys.gettrace()
        sys.settrace(self._of_call)
        try:
            result = fn(**args)
            if isinstance(result, types.GeneratorType):
                result = list(result)
            self._look_into((result,))
        except BudgetError:  # of what it makes one by one it would have made more
            made = self.sizes.rows
            made.update((name, n * UNFINISHED) for name, n in made.items() if n >= MANY)
        except Exception:  # that of the lane
            pass
        finally:
            sys.settrace(before)

    def _of_call(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        return self._of_line if frame.f_code in self.codes else None

    def _of_line(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "line":  # others come while a generator is thrown away, which an exception would not end
            self.lines -= 1
            if self.lines < 0:
                raise BudgetError
            if time.perf_counter() > self.until:
                raise TimeError
            if self.lines % SELDOM == 0:
                self._look_at([*frame.f_locals.values()])
        elif event == "return":
            self._note_return(frame)
            self._look_at([*frame.f_locals.values(), arg])
        return self._of_line

    def _note_return(self, frame: types.FrameType) -> None:
        code = frame.f_code
        if code.co_flags & inspect.CO_GENERATOR and _is_listed(frame):
            self._yields[frame] += 1  # of which a list may be made that no variable holds
            self.sizes.note([], self._yields[frame], NOWHERE)
        elif code.co_name == "__init__" and not _calls_same(frame.f_back, made := frame.f_locals[code.co_varnames[0]]):
            name = type(made).__qualname__
            self.sizes.rows[name] = self.sizes.rows.get(name, 0) + 1
        self._returns[code] += 1
        if self._returns[code] <= FIRST:
            self._next = 0

    def _look_at(self, values: list[Any]) -> None:
        """Look at local variables, and now and then into what they hold."""
        for value in values:
            if isinstance(value, SIZED) and self.given.get(id(value), -1) < (size := len(value)):
                self.sizes.note(value, size, NOWHERE)
                self.lines *= size <= HUGE
            elif type(value) is int and value.bit_length() > WIDE:
                self.lines = 0
        self._count += 1
        if self._count >= self._next:
            self._next = self._count + max(DEEPER, self._count // RARER)
            self._look_into(values)

    def _look_into(self, values: Iterable[Any]) -> None:
        """Look at values and all that is in them, the nearest first."""
        sizes, seen, given = self.sizes, set[tuple[int, int]](), self.given
        records = dict[int, type]()
        waiting = deque((value, NOWHERE) for value in values)
        while waiting and len(seen) < MOST_SEEN:
            value, around = waiting.popleft()
            kind = type(value)
            if kind in (int, float, bool, type(None)) or (id(value), around) in seen:
                continue
            if isinstance(value, SIZED) and given.get(id(value), -1) < len(value):
                sizes.note(value, len(value), around)
            if isinstance(value, str):
                continue
            seen.add((id(value), around))
            if isinstance(value, tuple):
                waiting.extend((part, around) for part in value[:MOST_SEEN])
            elif isinstance(value, HOLDERS):
                waiting.extend((part, IN_CONTAINER) for part in islice(value, MOST_SEEN))
                if isinstance(value, dict):
                    waiting.extend((part, IN_CONTAINER) for part in islice(value.values(), MOST_SEEN))
            elif (fields := _fields(value)) is not None:
                records[id(value)] = kind
                waiting.extend((part, max(around, IN_OBJECT)) for part in fields)
        others = (n for cls, n in Counter(records.values()).items() if cls.__qualname__ not in sizes.rows)
        sizes.records = max(sizes.records, max(others, default=0))


def _is_listed(frame: types.FrameType) -> bool:
    """Whether a list may be made of what a generator gives: of an expression where a name in the code says so."""
    back = frame.f_back
    return frame.f_code.co_name != "<genexpr>" or (back is not None and not LISTING.isdisjoint(back.f_code.co_names))


def _calls_same(around: types.FrameType | None, made: Any) -> bool:
    """Whether what calls a constructor is one of the same object: that of a class above."""
    if around is None or (code := around.f_code).co_name != "__init__":
        return False
    return around.f_locals.get(code.co_varnames[0]) is made


def _note_given(values: Iterable[Any], found: dict[int, int]) -> None:
    """Note the sizes of containers and texts, and of those in them."""
    for value in values:
        if isinstance(value, _DEEP) and id(value) not in found:
            found[id(value)] = len(value)
            if isinstance(value, str) or not any(isinstance(part, _DEEP) for part in islice(value, FEW)):
                continue
            _note_given(value, found)
            if isinstance(value, dict):
                _note_given(value.values(), found)


def _fields(value: Any) -> list[Any] | None:
    """The attributes of an object of a class of the user's; None for other values."""
    if isinstance(value, type | types.FunctionType | types.GeneratorType | types.ModuleType):
        return None
    names = getattr(value, "__dict__", None)
    if names is not None:
        return list(names.values())
    slots = getattr(type(value), "__slots__", ())
    return [getattr(value, name, None) for name in ([slots] if isinstance(slots, str) else slots)] if slots else None
