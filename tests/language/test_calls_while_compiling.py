"""Functions that are called very often while one expression is compiled: they are compiled along."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch.data import origins
from pcbatch.errors import Refusal


class Game:
    def __init__(self, moves):
        self.left = [3, 4, 5]
        self.turn = 1
        for m in moves:
            self.take(m)

    def take(self, m):
        if self.left[m] > 0:
            self.left[m] -= 1
            self.turn = -self.turn
            return True
        return False

    def back(self, m):
        self.left[m] += 1
        self.turn = -self.turn


def best(g, depth):
    if depth == 0:
        return sum(g.left) * g.turn, 1
    score, count = -100, 1
    for m in range(3):
        if g.take(m):
            s, c = best(g, depth - 1)
            g.back(m)
            score = max(score, -s)
            count += c
    return score, count


def solve(n):
    return best(Game([0] * n), 3)  # known when types are inferred first, of a board without moves


def test_a_recursion_over_what_is_known_is_compiled_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "MOST_CALLS", 50)
    scores, counts = pcbatch.batch(solve)(np.array([1, 2, 3]))
    assert list(zip(scores.tolist(), counts.tolist(), strict=True)) == [solve(n) for n in (1, 2, 3)]


def test_calls_are_counted_while_an_expression_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "MOST_CALLS", 50)
    for _ in range(60):
        origins.note_call(best.__code__)  # nothing is traced
    with origins.noting(), pytest.raises(Refusal, match="more than 50 times while one expression") as refused:
        for _ in range(60):
            origins.note_call(best.__code__)
    assert refused.value.functions == (best.__code__,)
