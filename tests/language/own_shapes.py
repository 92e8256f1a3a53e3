"""Classes for tests that reach them through this module, or through what its functions return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any


class Vector:
    """Two numbers whose methods branch on what a lane holds."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x = x
        self.y = y
        while self.x > 5:
            self.x -= 1

    def norm(self) -> Any:
        return self.x if self.x > self.y else self.y

    def grow(self, k: Any) -> None:
        for i in range(k):
            self.x += i

    def __getitem__(self, k: Any) -> Any:
        return self.x if k == 0 else self.y

    def __setitem__(self, k: Any, value: Any) -> None:
        if k == 0:
            self.x = value
        else:
            self.y = value

    def __delitem__(self, k: Any) -> None:
        if k == 0:
            self.x = 0
        else:
            self.y = 0

    def __add__(self, other: Any) -> Any:
        if self.x > 2:
            return Vector(other.x, self.y)
        return Vector(self.x + other.x, self.y + other.y)

    def __neg__(self) -> Any:
        return Vector(1, 2) if self.x > 2 else Vector(-self.x, self.y)

    def __abs__(self) -> Any:
        return self.y if self.x > 2 else self.x

    def __call__(self, k: Any) -> Any:
        return k if self.x > k else self.x

    def __bool__(self) -> bool:
        if self.x > 2:
            return self.y > 1
        return False

    def __iter__(self) -> Iterator[Any]:
        yield self.x
        if self.y > 1:
            yield self.y


class Bag:
    """A number of things that is added to in place, and is true where it holds any."""

    def __init__(self, n: Any) -> None:
        self.n = n

    def __iadd__(self, k: Any) -> Any:
        if k > 1:
            self.n += k
        return self

    def __len__(self) -> int:
        return self.n if self.n > 2 else 0


class Holder:
    """An object whose attribute is of another class of this module."""

    def __init__(self, x: Any) -> None:
        self.bag = Bag(x)


class Shape(ABC):
    """A class with a metaclass."""

    def __init__(self, x: Any) -> None:
        self.x = x

    @abstractmethod
    def area(self) -> Any:
        """Return a number."""


class Square(Shape):
    def area(self) -> Any:
        return 4 if self.x > 2 else self.x * self.x


class Line(Shape):
    def area(self) -> Any:
        while self.x > 2:
            self.x -= 1
        return self.x


def made(x: Any, y: Any) -> Vector:
    return Vector(x, y)
