"""The shortest way through a maze: breadth-first search with a deque and a set of pairs, None where there is no way."""

from __future__ import annotations

from collections import deque

import numpy as np

import pcbatch
from examples.in_python import check

MOVES = [(1, 0), (-1, 0), (0, 1), (0, -1)]


@pcbatch.batch
def steps(maze, row, column):
    """The number of steps from the corner of a maze to a place, or None."""
    queue = deque([(0, 0, 0)])
    seen = {(0, 0)}
    while queue:
        r, c, distance = queue.popleft()
        if r == row and c == column:
            return distance
        for down, right in MOVES:
            r2, c2 = r + down, c + right
            if 0 <= r2 < len(maze) and 0 <= c2 < len(maze[0]) and maze[r2][c2] == 0 and (r2, c2) not in seen:
                seen.add((r2, c2))
                queue.append((r2, c2, distance + 1))
    return None


def main(lanes: int = 100, size: int = 6) -> None:
    """Look for ways through random mazes to random places."""
    rng = np.random.default_rng(0)
    mazes = (rng.random((lanes, size, size)) < 0.35).astype(int)
    found = check(steps, mazes, *rng.integers(0, size, (2, lanes)))
    ways = [distance for distance in found if distance is not None]
    print(f"maze: {len(ways)} of {lanes} places can be reached, in up to {max(ways)} steps, all as in plain Python")


if __name__ == "__main__":
    main()
