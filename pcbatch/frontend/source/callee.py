"""The target of a call of a batched function: the plain function, and the arguments bound to it in advance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """The plain function that a call runs, with arguments that are bound to it already.

    `args` come before the arguments of the call (a method's object, those of a `functools.partial`), `keywords` are
    those of a partial; `inline`: a copy of the function is put where it is called; `helper`: it has no decorator, so
    that it may also be used as the plain function that it is; `cached`: Python makes equal calls of it once.

    A function defined inside another one gets the variables that it reads of that one as further arguments: `captured`
    has them by their names inside it and those in the scope of the call. Those in `returned` (by their names inside) it
    assigns by `nonlocal`, or changes in place: they are further results. `nested` is its definition. A function that
    takes part in a cached recursion gets the memos of it likewise (`rewrites/memos.py`).
    """

    fn: FunctionType
    args: tuple[object, ...] = ()
    keywords: tuple[tuple[str, object], ...] = ()
    inline: bool = False
    helper: bool = False
    cached: bool = False
    captured: tuple[tuple[str, str], ...] = ()
    returned: tuple[str, ...] = ()
    nested: Any = None  # a `Nested`, which `rewrites.nested` makes

    def passed_as(self, parameter: str) -> Target:
        """The target as another function knows it that gets this function as an argument."""
        captured = tuple((inner, f"{parameter}.{inner}") for inner, _ in self.captured)
        return replace(self, captured=captured)

    @property
    def assigned(self) -> tuple[str, ...]:
        """The variables in the scope of a call that the call assigns beside its result."""
        return tuple(outer for inner, outer in self.captured if inner in self.returned)


BatchedTest = Callable[[object], Target | None]  # gives None for an object that is not a batched function
Statics = Mapping[str, object]  # parameter -> object, for arguments known while compiling that are no numbers


def same_statics(a: Statics, b: Statics, batched: BatchedTest) -> bool:
    """Whether two calls give the same objects to the same parameters."""
    return a.keys() == b.keys() and all(_same(a[name], b[name], batched) for name in a)


def _same(a: object, b: object, batched: BatchedTest) -> bool:
    if a is b or (isinstance(a, str) and a == b):
        return True
    # A bound method, or a nested function that is handed on, is a new object each time.
    one, two = (value if isinstance(value, Target) else batched(value) for value in (a, b))
    if one is None or two is None or one.fn is not two.fn or len(one.args) != len(two.args):
        return False
    if one.captured != two.captured:
        return False
    return all(_same(x, y, batched) for x, y in zip(one.args, two.args, strict=True)) and same_statics(
        dict(one.keywords), dict(two.keywords), batched
    )


def is_static(value: object) -> bool:
    """Whether an argument may decide which function a call means: anything but None, a number or an array."""
    return value is not None and not isinstance(value, bool | int | float | complex) and not hasattr(value, "dtype")
