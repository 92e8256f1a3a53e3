"""Backtracking: Sudoku of four by four, with as many givens as you like, solvable or not."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np

import pcbatch


@pcbatch.batch
def allowed(board, row, column, digit):
    """Whether `digit` may go to an empty field."""
    for k in range(4):
        if board[row, k] == digit or board[k, column] == digit:
            return False
        if board[row // 2 * 2 + k // 2, column // 2 * 2 + k % 2] == digit:
            return False
    return True


@pcbatch.batch
def solve(board, field):
    """Fill the board from `field` on: whether that can be done, and the first solution."""
    if field == 16:
        return True, board
    row, column = field // 4, field % 4
    if board[row, column] > 0:
        return solve(board, field + 1)
    for digit in range(1, 5):
        if allowed(board, row, column, digit):
            solved, filled = solve(board.at[row, column].set(digit), field + 1)
            if solved:
                return True, filled
    return False, board


def main(lanes: int = 500) -> None:
    """Solve random boards and look every result up among all 288 that there are."""
    rng = np.random.default_rng(0)
    boards = np.zeros((lanes, 4, 4), int)
    for board in boards:
        for row, column, digit in rng.integers((0, 0, 1), (4, 4, 5), (rng.integers(12), 3)):
            if board[row, column] == 0 and allowed.plain(board, row, column, digit):
                board[row, column] = digit
    solved, filled = solve.with_options(in_axes=(0, None))(jnp.array(boards), 0)
    every = all_solutions()
    for board, ok, found in zip(boards, solved, np.asarray(filled), strict=True):
        fits = np.all((board == 0) | (board == every), axis=(1, 2))
        np.testing.assert_equal(bool(ok), bool(fits.any()))
        np.testing.assert_array_equal(found, every[fits.argmax()] if ok else board)
    print(f"sudoku: {int(solved.sum())} of {lanes} boards solved, all as a table of every solution says")


def all_solutions() -> np.ndarray:
    """Every board, smallest first when its digits are read as one number."""
    rows = list(itertools.permutations((1, 2, 3, 4)))
    boards = np.array(list(itertools.product(rows, repeat=4)))
    boxes = boards.reshape(-1, 2, 2, 2, 2).swapaxes(2, 3).reshape(-1, 4, 4)
    right = [np.all(np.sort(units, axis=2) == [1, 2, 3, 4], axis=(1, 2)) for units in (boards.swapaxes(1, 2), boxes)]
    return boards[right[0] & right[1]]


if __name__ == "__main__":
    main()
