"""What a call of a batched function runs: the plain function, and arguments that are bound to it already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType


@dataclass(frozen=True, slots=True)
class Target:
    """`args` come before the arguments of the call (a method's object, those of a `functools.partial`); `inline`: a
    copy of the function is put where it is called."""

    fn: FunctionType
    args: tuple[object, ...] = ()
    keywords: tuple[tuple[str, object], ...] = ()
    inline: bool = False


BatchedTest = Callable[[object], Target | None]  # None: not a batched function
Statics = Mapping[str, object]  # parameter -> its object, for those that are known while compiling and not numbers


def same_statics(a: Statics, b: Statics, batched: BatchedTest) -> bool:
    """Do both give the same parameters the same objects?"""
    return a.keys() == b.keys() and all(_same(a[name], b[name], batched) for name in a)


def _same(a: object, b: object, batched: BatchedTest) -> bool:
    if a is b or (isinstance(a, str) and a == b):
        return True
    one, two = batched(a), batched(b)  # a bound method is a new object each time it is looked up
    if one is None or two is None or one.fn is not two.fn or len(one.args) != len(two.args):
        return False
    return all(_same(x, y, batched) for x, y in zip(one.args, two.args, strict=True)) and same_statics(
        dict(one.keywords), dict(two.keywords), batched
    )


def is_static(value: object) -> bool:
    """May an object of this kind decide, as an argument, which function a call means?"""
    return value is not None and not isinstance(value, bool | int | float | complex) and not hasattr(value, "dtype")
