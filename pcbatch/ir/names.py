"""Unused names: of new variables, and of new functions."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from pcbatch.ir.types import ArrayType

LAMBDA = "lambda_"
"""The name of a function of a program that has none in the source."""

ITSELF = "this function"
"""A name by which a function means itself in its own body."""

MEMO = "memo.0"
"""The beginning of the name of a variable in which lanes keep the results of a cached function; a number, a dot and the
function's name follow. No variable of the user's has a part that begins with a digit."""


def unused(name: str, ending: str, *taken: Container[str]) -> str:
    """Return a name that nothing has yet: as it is, or with as many endings as it takes."""
    while any(name in names for names in taken):
        name += ending
    return name


class Fresh:
    """A source of unused names: called with `name` it returns `name.t0`, `name.t1`, ..."""

    def __init__(self, used: Sequence[str] | set[str]) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}  # all smaller numbers of a name are taken
        self.origins: dict[str, str] = {}  # new name -> the name it was made for

    def __call__(self, name: str) -> str:
        k = self._next.get(name, 0)
        while (new := f"{name}.t{k}") in self._used:
            k += 1
        self._next[name] = k + 1
        self._used.add(new)
        self.origins[new] = name
        return new


class TypedFresh(Fresh):
    """A source of unused names that have types: one that is given, or that of the variable they are made for."""

    def __init__(self, types: Mapping[str, ArrayType | None]) -> None:
        super().__init__(set(types))
        self.types = dict(types)

    def __call__(self, name: str, type_: ArrayType | None = None) -> str:
        new = super().__call__(name)
        self.types[new] = type_ or self.types.get(name)
        return new
