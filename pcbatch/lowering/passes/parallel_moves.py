"""Assigning several variables at once, as a sequence of moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.ops import Move


def parallel_moves(
    pairs: Sequence[tuple[str, str]], fresh: Callable[[str], str], loc: Loc | None
) -> tuple[list[Move], list[Move]]:
    """Moves that together do `dsts = srcs`: first those that save a source about to be overwritten, then the rest.

    `fresh(name)` gives an unused variable to keep `name` in. Whatever reads the old values may stand between the two
    lists.
    """
    pairs = [(dst, src) for dst, src in pairs if dst != src]
    kept: dict[str, str] = {}
    done: set[str] = set()
    for dst, src in pairs:
        if src in done and src not in kept:
            kept[src] = fresh(src)
        done.add(dst)
    first = [Move(temp, src, loc) for src, temp in kept.items()]
    return first, [Move(dst, kept.get(src, src), loc) for dst, src in pairs]


class Fresh:
    """Names that are not in use: `name.t0`, `name.t1`, ..."""

    def __init__(self, used: Sequence[str] | set[str]) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}  # a number for a name from which on all are free but those used from the start
        self.made: dict[str, str] = {}  # new name -> the name it was made for

    def __call__(self, name: str) -> str:
        k = self._next.get(name, 0)
        while (new := f"{name}.t{k}") in self._used:
            k += 1
        self._next[name] = k + 1
        self._used.add(new)
        self.made[new] = name
        return new
