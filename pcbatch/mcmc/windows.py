"""The schedule of a warm-up, as in Stan: a fast window, slow windows of doubling length, a fast window.

In fast windows only the step size is adapted; after each slow one the mass matrix is estimated from its draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

OPENING, FIRST, CLOSING = 75, 25, 50  # draws, when there is time for them
EARLY_DEPTH = 8  # of trees before the second mass matrix: a chain with a bad one has no use for longer trajectories
ROUND = 16  # most draws between two adjustments of a pooled step size


class Window(NamedTuple):
    """A stretch of warm-up: its draws, whether the mass matrix is estimated from them, whether trees are kept small."""

    draws: int
    estimates: bool
    early: bool = False


def windows(warmup: int) -> Iterator[Window]:
    """The stretches of a warm-up of `warmup` draws in all."""
    if warmup < FIRST:
        yield Window(warmup, False)  # too short to learn a mass matrix from
        return
    opening, closing = OPENING, CLOSING
    if warmup < OPENING + FIRST + CLOSING:
        opening, closing = int(0.15 * warmup), max(1, int(0.1 * warmup))
    left, size = warmup - opening - closing, FIRST
    early = True
    if opening:
        yield Window(opening, False, early)
    while left > 0:
        if left < 3 * size:  # the next window would not have twice the length: take what is left
            size = left
        yield Window(size, True, early)
        left, size, early = left - size, 2 * size, False
    yield Window(closing, False)


def rounds(draws: int, early: bool = True) -> Iterator[int]:
    """The draws between two adjustments of a pooled step size: one by one at first, then longer, as it settles.

    Not `early`, the step size is nearly right from the first draw on, and rounds are longer at once.
    """
    size = 1 if early else 2
    while draws > 0:
        for _ in range(4):
            if draws <= 0:
                return
            taken = min(size, draws)
            yield taken
            draws -= taken
        size = min(2 * size, ROUND)
