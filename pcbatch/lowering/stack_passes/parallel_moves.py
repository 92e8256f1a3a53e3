"""Parallel moves: the assignment of several variables at once, as a sequence of moves.

before:  (a, b) = (b, a)                    after:  a.t0 = a; a = b; b = a.t0   (a temporary breaks the cycle)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.ops import Move
from pcbatch.ir.types import ArrayType


def parallel_moves(
    pairs: Sequence[tuple[str, str]], fresh: Callable[[str], str], loc: Loc | None
) -> tuple[list[Move], list[Move]]:
    """Sequence the moves of `(dst, src)` pairs: first those that save a source about to be overwritten, then the rest.

    `fresh(name)` returns an unused variable to save `name` in. Operations that read the old values may stand between
    the two lists.
    """
    pairs = [(dst, src) for dst, src in pairs if dst != src]
    saved: dict[str, str] = {}
    written: set[str] = set()
    for dst, src in pairs:
        if src in written and src not in saved:
            saved[src] = fresh(src)
        written.add(dst)
    first = [Move(temp, src, loc) for src, temp in saved.items()]
    return first, [Move(dst, saved.get(src, src), loc) for dst, src in pairs]


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
