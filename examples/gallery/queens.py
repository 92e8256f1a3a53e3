"""All ways to place queens on a board: nested functions that call themselves, and a list of lists as the result."""

from __future__ import annotations

import numpy as np

import pcbatch
from examples.in_python import check


@pcbatch.batch
def queens(n):
    """The columns of `n` queens, row by row, of which none attacks another: all ways."""
    placed = []
    found = []

    def safe(column):
        row = len(placed)
        return all(c != column and abs(c - column) != row - r for r, c in enumerate(placed))

    def place():
        if len(placed) == n:
            found.append(placed.copy())
            return
        for column in range(n):
            if safe(column):
                placed.append(column)
                place()
                placed.pop()

    place()
    return found


def main(lanes: int = 6) -> None:
    """Solve boards of 1 to 6 rows."""
    found = check(queens, np.arange(lanes) % 6 + 1)
    print(f"queens: {sum(map(len, found))} ways to place queens on {lanes} boards, all as in plain Python")


if __name__ == "__main__":
    main()
