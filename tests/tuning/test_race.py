"""The race between candidates, with a clock of its own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from pcbatch.tuning.race import INTERRUPTED, LEAST, SKIPPED, Candidate, Impossible, Race, Row, winner
from pcbatch.tuning.tolerance import difference


class FakeBench:
    """Takes given seconds to compile and run each candidate; `results` replaces the result of some."""

    compiled = 1

    def __init__(self, compiling: float, seconds: dict[str, float], results: dict[str, Any] | None = None) -> None:
        self.time, self.compiling, self.seconds, self.results = 0.0, compiling, seconds, results or {}
        self.runs: list[str] = []
        self.interrupt: str | None = None  # the candidate at whose first run Ctrl-C is pressed

    def now(self) -> float:
        return self.time

    def run(self, candidate: Candidate) -> Any:
        name = candidate.name
        if name == "impossible":
            raise Impossible("it needs what is not there")
        if name == self.interrupt:
            raise KeyboardInterrupt
        self.time += self.seconds[name] + (0 if name in self.runs else self.compiling)
        self.runs.append(name)
        return self.results.get(name, np.arange(3))


def names(*texts: str) -> list[Candidate]:
    """The defaults, and candidates that change one option."""
    return [Candidate(texts[0], {}), *(Candidate(text, {"schedule": text}) for text in texts[1:])]


def options(*texts: str) -> list[Candidate]:
    """The defaults, and candidates that change an option each, another one."""
    return [Candidate(texts[0], {}), *(Candidate(text, {text: 1}) for text in texts[1:])]


def race(candidates: list[Candidate], bench: FakeBench, budget: float) -> list[Row]:
    return Race(bench, budget, difference).run(candidates)


def test_the_fastest_candidate_wins_and_compiling_does_not_count() -> None:
    bench = FakeBench(10, {"default": 1, "slow": 4, "quick": 0.5})
    rows = race(names("default", "slow", "quick"), bench, 100)
    assert winner(rows).candidate.name == "quick"
    assert [row.first for row in rows] == [11, 14, 10.5]
    assert winner(rows).seconds == 0.5


def test_slow_candidates_are_measured_less_often() -> None:
    bench = FakeBench(0, {"default": 1, "hopeless": 9, "slow": 1.5, "quick": 0.5})
    rows = race(names("default", "hopeless", "slow", "quick"), bench, 100)
    assert [len(row.times) for row in rows] == [6, 1, 3, 6]


def test_a_tie_keeps_the_defaults() -> None:
    rows = race(names("default", "other"), FakeBench(1, {"default": 1, "other": 0.96}), 100)
    assert winner(rows).candidate.name == "default"


def test_the_budget_is_kept() -> None:
    bench = FakeBench(10, {"default": 1, "a": 1, "b": 1})
    rows = race(names("default", "a", "b"), bench, 27)
    assert bench.time <= 27
    assert rows[2].note.startswith("skipped") and not rows[2].times


def test_no_candidate_is_begun_that_could_not_be_measured() -> None:
    """Of 40 seconds three first runs take 33: a fourth would leave none of them measured."""
    bench = FakeBench(10, {name: 1 for name in ("default", "a", "b", "c")})
    rows = race(names("default", "a", "b", "c"), bench, 50)
    assert [row.note for row in rows] == ["", "", "", SKIPPED]
    assert all(len(row.times) > 1 for row in rows[:3]) and bench.time <= 50


def test_a_budget_that_the_defaults_use_up_leaves_them() -> None:
    bench = FakeBench(10, {"default": 1, "quick": 0.5})
    rows = race(names("default", "quick"), bench, 5)
    assert winner(rows) is rows[0] and rows[0].first == 11 and rows[1].note == SKIPPED
    assert bench.time == 11


def test_one_candidate_is_compared_if_any_time_is_left() -> None:
    """It exceeds the budget by no more than what it takes to compile and measure it."""
    bench = FakeBench(10, {"default": 1, "quick": 0.5, "third": 0.5})
    rows = race(names("default", "quick", "third"), bench, 14)
    assert winner(rows).candidate.name == "quick" and rows[2].note == SKIPPED
    assert bench.time <= 14 + rows[1].first + sum(rows[1].times)


def test_what_compiled_several_programs_lets_candidates_of_one_be_tried() -> None:
    """Lists of the first run had to grow twice; later ones begin with the room that they need."""
    bench = FakeBench(10, {name: 1 for name in ("default", "a", "b")})
    first, run = [3], bench.run

    def counted(candidate: Candidate) -> Any:
        bench.compiled = first.pop() if first else 1
        bench.time += 10 * (bench.compiled - 1)
        return run(candidate)

    bench.run = counted  # type: ignore[method-assign]
    rows = race(names("default", "a", "b"), bench, 70)
    assert rows[0].first == 31 and all(len(row.times) > 1 for row in rows) and bench.time <= 70


def test_ctrl_c_keeps_what_is_measured() -> None:
    bench = FakeBench(1, {"default": 1, "quick": 0.5, "third": 0.1, "fourth": 0.1})
    bench.interrupt = "third"
    rows = race(names("default", "quick", "third", "fourth"), bench, 100)
    assert winner(rows).candidate.name == "quick"
    assert [row.note for row in rows] == ["", "", INTERRUPTED, INTERRUPTED]


def test_ctrl_c_in_the_first_run_of_the_defaults_is_raised() -> None:
    bench = FakeBench(1, {"default": 1})
    bench.interrupt = "default"
    with pytest.raises(KeyboardInterrupt):
        race(names("default"), bench, 100)


class Together(FakeBench):
    """A combination takes the product of what its parts take."""

    def run(self, candidate: Candidate) -> Any:
        seconds = 1.0
        for part in candidate.name.split(" + "):
            seconds *= self.seconds[part]
        self.time += seconds
        self.runs.append(candidate.name)
        return self.results.get(candidate.name, 0)


def test_the_best_of_several_options_are_combined() -> None:
    rows = race(
        options("default", "slow", "good", "best"),
        Together(0, {"default": 1, "slow": 3, "good": 0.8, "best": 0.5}),
        100,
    )
    assert [row.candidate.name for row in rows[4:]] == ["best + good"]
    assert winner(rows).candidate.fields == {"best": 1, "good": 1}


def test_three_are_combined_if_two_gain() -> None:
    rows = race(options("default", "a", "b", "c"), Together(0, {"default": 1, "a": 0.5, "b": 0.6, "c": 0.7}), 100)
    assert [row.candidate.name for row in rows[4:]] == ["a + b", "a + b + c"]
    assert winner(rows).candidate.fields == {"a": 1, "b": 1, "c": 1}


def test_choices_of_one_option_are_not_combined() -> None:
    rows = race(names("default", "a", "b"), Together(0, {"default": 1, "a": 0.5, "b": 0.6}), 100)
    assert len(rows) == 3


def test_a_combination_that_gains_nothing_leaves_the_simpler_candidate() -> None:
    rows = race(options("default", "best", "idle"), Together(0, {"default": 1, "best": 0.5, "idle": 0.98}), 100)
    assert rows[-1].candidate.name == "best + idle" and winner(rows).candidate.name == "best"


def test_a_combination_with_another_result_is_refused() -> None:
    bench = Together(0, {"default": 1, "a": 0.5, "b": 0.6}, {"a + b": 1})
    rows = race(options("default", "a", "b"), bench, 100)
    assert rows[-1].note.startswith("refused") and winner(rows).candidate.name == "a"


def test_short_runs_are_repeated() -> None:
    bench = FakeBench(1, {"default": LEAST / 10, "quick": LEAST / 20})
    rows = race(names("default", "quick"), bench, 100)
    assert bench.runs.count("default") > 40
    assert abs(winner(rows).seconds - LEAST / 20) < 1e-9


def test_what_cannot_run_is_left_out() -> None:
    told: list[tuple[int, int]] = []
    bench = FakeBench(1, {"default": 1})
    rows = Race(bench, 100, difference, told=lambda done, of: told.append((done, of))).run(
        names("default", "impossible")
    )
    assert rows[1].note == "impossible: it needs what is not there" and winner(rows) is rows[0]
    assert told == [(1, 2), (2, 2)]


def test_another_result_is_refused() -> None:
    bench = FakeBench(1, {"default": 1, "wrong": 0.1}, {"wrong": np.array([0, 1, 3])})
    rows = race(names("default", "wrong"), bench, 100)
    assert rows[1].note.startswith("refused") and winner(rows).candidate.name == "default"


def test_floats_agree_up_to_rounding_and_all_else_bit_for_bit() -> None:
    x = np.array([1, np.nan, np.inf], np.float32)
    assert difference(x, x * np.float32(1 + 1e-6)) is None
    assert difference(x, x * np.float32(1.01)) is not None
    assert difference(x, np.array([1, 0, np.inf], np.float32)) is not None
    assert difference(jax.random.key(1), jax.random.key(1)) is None
    assert difference(jax.random.key(1), jax.random.key(2)) is not None
    assert difference((1, 2), [1, 2]) is not None


def test_a_share_of_the_numbers_may_differ() -> None:
    x = np.arange(10)
    y = np.where(x == 3, 0, x)
    assert difference(x, y) == "1 of 10 numbers differ in int64[10]"
    assert difference(x, y, alike=0.9) is None and difference(x, y, alike=0.95) is not None


def test_a_first_run_is_expected_to_take_as_long_as_those_of_its_kind() -> None:
    """Compiling `map` takes longer than compiling a call, for which there may still be time."""
    bench = FakeBench(0, {"default": 1, "wide": 20, "narrow": 20, "call": 1})
    candidates = [
        Candidate("default", {}),
        Candidate("wide", {}, 512),
        Candidate("narrow", {}, 32),
        *names("", "call")[1:],
    ]
    rows = race(candidates, bench, 50)
    assert [row.note for row in rows] == ["", "", SKIPPED, ""]


def test_a_disturbed_measurement_of_the_defaults_lets_nothing_win() -> None:
    default = Row(Candidate("default", {}), 1.0, [1.0, 1.5, 1.6])
    assert winner([default, Row(Candidate("lucky", {"schedule": "sweep"}), 1.0, [0.98, 1.0, 1.0])]) is default
    assert winner([default, Row(Candidate("quick", {"schedule": "sweep"}), 1.0, [0.9, 1.0, 1.0])]) is not default
