"""The race between candidates, with a clock of its own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pcbatch.tuning.race import LEAST, Candidate, Impossible, race, winner
from pcbatch.tuning.tolerance import difference


class FakeBench:
    """Takes given seconds to compile and run each candidate; `results` replaces the result of some."""

    def __init__(self, compiling: float, seconds: dict[str, float], results: dict[str, Any] | None = None) -> None:
        self.time, self.compiling, self.seconds, self.results = 0.0, compiling, seconds, results or {}
        self.runs: list[str] = []

    def now(self) -> float:
        return self.time

    def run(self, candidate: Candidate) -> Any:
        name = candidate.name
        if name == "impossible":
            raise Impossible("it needs what is not there")
        self.time += self.seconds[name] + (0 if name in self.runs else self.compiling)
        self.runs.append(name)
        return self.results.get(name, np.arange(3))


def names(*texts: str) -> list[Candidate]:
    return [Candidate(text, {"schedule": text}) for text in texts]


def test_the_fastest_candidate_wins_and_compiling_does_not_count() -> None:
    bench = FakeBench(10, {"default": 1, "slow": 4, "quick": 0.5})
    rows = race(names("default", "slow", "quick"), bench, 100, difference)
    assert winner(rows).candidate.name == "quick"
    assert [row.first for row in rows] == [11, 14, 10.5]
    assert winner(rows).seconds == 0.5


def test_slow_candidates_are_dropped_after_the_first_round() -> None:
    bench = FakeBench(0, {"default": 1, "slow": 9, "quick": 0.5})
    rows = race(names("default", "slow", "quick"), bench, 100, difference)
    assert [len(row.times) for row in rows] == [6, 2, 6]


def test_a_tie_keeps_the_defaults() -> None:
    rows = race(names("default", "other"), FakeBench(1, {"default": 1, "other": 0.96}), 100, difference)
    assert winner(rows).candidate.name == "default"


def test_the_budget_is_kept() -> None:
    bench = FakeBench(10, {"default": 1, "a": 1, "b": 1})
    rows = race(names("default", "a", "b"), bench, 25, difference)
    assert bench.time <= 25
    assert rows[2].note.startswith("skipped") and not rows[2].times


def test_short_runs_are_repeated() -> None:
    bench = FakeBench(1, {"default": LEAST / 10, "quick": LEAST / 20})
    rows = race(names("default", "quick"), bench, 100, difference)
    assert bench.runs.count("default") > 40
    assert abs(winner(rows).seconds - LEAST / 20) < 1e-9


def test_what_cannot_run_is_left_out() -> None:
    told: list[tuple[int, int]] = []
    bench = FakeBench(1, {"default": 1})
    rows = race(names("default", "impossible"), bench, 100, difference, lambda done, of: told.append((done, of)))
    assert rows[1].note == "impossible: it needs what is not there" and winner(rows) is rows[0]
    assert told == [(1, 2), (2, 2)]


def test_another_result_is_refused() -> None:
    bench = FakeBench(1, {"default": 1, "wrong": 0.1}, {"wrong": np.array([0, 1, 3])})
    rows = race(names("default", "wrong"), bench, 100, difference)
    assert rows[1].note.startswith("refused") and winner(rows).candidate.name == "default"


def test_floats_agree_up_to_rounding_and_all_else_bit_for_bit() -> None:
    x = np.array([1, np.nan, np.inf], np.float32)
    assert difference(x, x * np.float32(1 + 1e-6)) is None
    assert difference(x, x * np.float32(1.01)) is not None
    assert difference(x, np.array([1, 0, np.inf], np.float32)) is not None
    assert difference(jax.random.key(1), jax.random.key(1)) is None
    assert difference(jax.random.key(1), jax.random.key(2)) is not None
    assert difference((1, 2), [1, 2]) is not None
