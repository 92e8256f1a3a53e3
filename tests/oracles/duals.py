"""Numbers with a derivative in plain Python: what derivatives of a function over floats, lists and dicts have to be."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class Dual:
    """A number and its derivative; comparisons and conversions look at the number."""

    __slots__ = ("slope", "value")

    def __init__(self, value: float, slope: float = 0.0) -> None:
        self.value, self.slope = value, slope

    def __repr__(self) -> str:
        return f"Dual({self.value}, {self.slope})"

    def __add__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __truediv__(self, other: Any) -> Dual:
        other = dual(other)
        value = self.value / other.value
        return Dual(value, (self.slope - value * other.slope) / other.value)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Dual:
        return self + (-dual(other))

    def __rsub__(self, other: Any) -> Dual:
        return dual(other) - self

    def __rtruediv__(self, other: Any) -> Dual:
        return dual(other) / self

    def __pow__(self, n: int) -> Dual:
        return Dual(self.value**n, n * self.value ** (n - 1) * self.slope)

    def __floordiv__(self, other: Any) -> Dual:
        return Dual(self.value // dual(other).value)

    def __abs__(self) -> Dual:
        return -self if self.value < 0 else self

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: Any) -> bool:
        return self.value < dual(other).value

    def __le__(self, other: Any) -> bool:
        return self.value <= dual(other).value

    def __gt__(self, other: Any) -> bool:
        return self.value > dual(other).value

    def __ge__(self, other: Any) -> bool:
        return self.value >= dual(other).value

    def __eq__(self, other: object) -> bool:
        return self.value == dual(other).value

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __round__(self) -> int:
        return round(self.value)


def dual(x: Any) -> Dual:
    """A number as one with a derivative."""
    return x if isinstance(x, Dual) else Dual(x)


def _function(value: Callable[[float], float], slope: Callable[[float], float]) -> Callable[[Any], Dual]:
    def apply(x: Any) -> Dual:
        x = dual(x)
        return Dual(value(x.value), slope(x.value) * x.slope)

    return apply


MATH = SimpleNamespace(
    sin=_function(math.sin, math.cos),
    exp=_function(math.exp, math.exp),
    sqrt=_function(math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    tanh=_function(math.tanh, lambda x: 1.0 - math.tanh(x) ** 2),
    log=_function(math.log, lambda x: 1.0 / x),
)
"""`math` for such numbers."""
