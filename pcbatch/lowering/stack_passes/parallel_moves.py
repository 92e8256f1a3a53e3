"""Parallel moves: the assignment of several variables at once, as a sequence of moves.

before:  (a, b) = (b, a)                    after:  a.t0 = a; a = b; b = a.t0   (a temporary breaks the cycle)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.ops import Move


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
