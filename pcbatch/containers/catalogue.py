"""What the compiler knows of a method by its name, before types are known: it is said where the method is defined.

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
    """What is known of a method; as a decorator it says so of the method that it decorates.

    Attributes:
        changes: it changes its object.
        changes_bare: it does if it is called without arguments; with some, a method of another class is meant.
        ambiguous: other objects have a function of this name: where its value is used, it changes nothing.
        grows: all elements stay where they are, and more come behind them.
        moves: a loop over a deque that it changes raises.
        removes: its value has been taken out of the object.
        only_stores: of keys of a dict or set it removes none.
        only_drops: of keys of a dict or set it stores none.
        by_index: its first argument says which place it changes.
        by_value: its argument says which element it removes.
        iterates: it takes iterables, and gives what it would give for lists of their elements.
        stepwise: it takes their elements one by one: those before a raise stay, where others change nothing.
        one: the name of the method that takes one of them.
        views: its value sees what becomes of its object.
    """

    changes: bool = False
    changes_bare: bool = False
    ambiguous: bool = False
    grows: bool = False
    moves: bool = False
    removes: bool = False
    only_stores: bool = False
    only_drops: bool = False
    by_index: bool = False
    by_value: bool = False
    iterates: bool = False
    stepwise: bool = False
    one: str = ""
    views: bool = False

    def __call__(self, method: F) -> F:
        """Say these facts of a method."""
        self.hold_for(method.__name__)
        return method

    def hold_for(self, name: str) -> None:
        """Say these facts of the methods with a name."""
        _facts[name] = self | facts(name)

    def __or__(self, other: Facts) -> Facts:
        names = [field.name for field in fields(self)]
        return Facts(**{name: getattr(self, name) or getattr(other, name) for name in names})


_NONE = Facts()
_facts: dict[str, Facts] = {}


def facts(name: str) -> Facts:
    """Return what is known of the methods with a name; of a function, `heapq.heappush`, with its module."""
    return _facts.get(name, _NONE)


@dataclass(frozen=True, slots=True)
class ChangingFunction:
    """A function of a module of Python's that changes its first argument.

    Attributes:
        plain: the function itself.
        of_lane: the function that takes its place for a container of the lane.
    """

    plain: Callable[..., Any]
    of_lane: Callable[..., Any]


FUNCTIONS: dict[str, ChangingFunction] = {}
"""The functions that change their first argument, by their names, such as "heapq.heappush"."""


def stands_for(plain: Callable[..., Any], *, removes: bool = False) -> Callable[[F], F]:
    """Return a decorator: of the function that stands for one of Python's that changes its first argument."""
    name = f"{plain.__module__.removeprefix('_')}.{plain.__name__}"
    Facts(changes=True, removes=removes).hold_for(name)

    def decorated(of_lane: F) -> F:
        FUNCTIONS[name] = ChangingFunction(plain, of_lane)
        return of_lane

    return decorated
