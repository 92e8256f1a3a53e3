"""The facts about methods that the compiler needs before types are known; each stands where its method is defined.

    @Facts(changes=True, grows=True)
    def append(self, value: Any, /) -> None: ...

    facts("append").grows        True

Methods of several classes may share a name, and then whatever is said of one of them holds for the name. Functions of
Python's modules that change their first argument, such as `heapq.heappush`, stand here beside the methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about a method; as a decorator it says them of the method that it decorates."""

    changes: bool = False  # its object
    changes_bare: bool = False  # if it is called without arguments; with some, a method of another class is meant
    ambiguous: bool = False  # other objects have a function of this name: where its value is used, it changes nothing
    grows: bool = False  # all elements stay where they are, and more come behind them
    moves: bool = False  # a loop over a deque that it changes raises
    removes: bool = False  # its value has been taken out of the object
    only_stores: bool = False  # it removes no keys of a dict or set
    only_drops: bool = False  # it stores no keys in a dict or set
    by_index: bool = False  # its first argument says which place it changes
    by_value: bool = False  # its argument says which element it removes
    iterates: bool = False  # it takes iterables, and gives what it would give for lists of their elements
    stepwise: bool = False  # it takes their elements one by one: those before a raise stay
    one: str = ""  # the name of the method that takes one of them
    views: bool = False  # its value sees what becomes of its object

    def __call__(self, method: F) -> F:
        """Say these facts of a method."""
        self.hold_for(method.__name__)
        return method

    def hold_for(self, name: str) -> None:
        """Say these facts of the methods with a name."""
        known = facts(name)
        _facts[name] = Facts(**{f.name: getattr(self, f.name) or getattr(known, f.name) for f in fields(self)})


_NONE = Facts()
_facts: dict[str, Facts] = {}

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
"""Functions that change their first argument, by their names with the module, such as "heapq.heappush": each with the
one that takes its place for a list of the lane."""

NEXT = "builtins.next"
"""The method of the change that `next(it)` makes."""


def facts(name: str) -> Facts:
    """Return what is known of the methods with a name; of a function by its name with the module."""
    return _facts.get(name, _NONE)


def stands_for(plain: Callable[..., Any], *, removes: bool = False) -> Callable[[F], F]:
    """Return a decorator for what takes the place of one of `FUNCTIONS`."""
    name = f"{plain.__module__.removeprefix('_')}.{plain.__name__}"
    Facts(changes=True, removes=removes).hold_for(name)

    def decorated(of_lane: F) -> F:
        FUNCTIONS[name] = plain, of_lane
        return of_lane

    return decorated
