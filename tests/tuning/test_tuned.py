"""Options that were chosen, as a mapping and as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pcbatch
from pcbatch.compiler.schedules import source_of
from pcbatch.errors import UsageError
from pcbatch.options import Dense, Few, Strips
from pcbatch.tuning.race import Candidate, Row
from pcbatch.tuning.tuned import Tuned, chosen

ROWS = [
    Row(Candidate("as it is", {}), 2.0, [1.0, 1.0]),
    Row(Candidate("drain", {"schedule": "drain"}), 2.0, [0.5, 0.5]),
    Row(Candidate("sweep", {"schedule": "sweep"}), note="skipped: compiling would exceed the budget"),
]


@pcbatch.batch
def f(x: Any) -> Any:
    return x + 1


@pcbatch.batch
def g(x: Any) -> Any:
    return x + 2


def test_the_options_that_won_are_a_mapping() -> None:
    tuned = chosen(ROWS, "f", "abc")
    assert {**tuned} == {"schedule": "drain"} and tuned.lanes is None
    assert "skipped" in str(tuned) and "0.5 s" in str(tuned)
    assert str(tuned).endswith("fastest: f.with_options(schedule='drain')")
    assert not chosen(ROWS[:1], "f", "abc")


def test_a_width_stands_beside_the_options() -> None:
    tuned = chosen([ROWS[0], Row(Candidate("map", {}, 32), 2.0, [0.5, 0.5])], "f", "abc")
    assert not tuned and tuned.lanes == 32
    assert str(tuned).endswith("fastest: f.map(..., lanes=32)")


def test_a_combination_names_both_and_notes_stand_above_it() -> None:
    both = Row(Candidate("drain + map", {"schedule": "drain"}, 32), 2.0, [0.5, 0.5])
    tuned = chosen([ROWS[0], both], "f", "abc", "one thing\nanother")
    assert str(tuned).endswith(
        "note: one thing\nnote: another\nfastest: f.with_options(schedule='drain').map(..., lanes=32)"
    )


@pytest.mark.parametrize("modes", [Dense(), Dense(3), Few(8), {"x": Strips(4), "y": Dense()}])
def test_a_file_gives_the_same_again(tmp_path: Path, modes: Any) -> None:
    best = Row(Candidate("best", {"schedule": "drain", "modes": modes}), 2.0, [0.5, 0.5])
    tuned = chosen([ROWS[0], best], "f", source_of(f.fn), "a note")
    tuned.save(tmp_path / "tuned.json")
    assert Tuned.load(tmp_path / "tuned.json", f) == tuned


def test_the_file_of_another_function_is_refused(tmp_path: Path) -> None:
    chosen(ROWS, "f", source_of(f.fn)).save(tmp_path / "tuned.json")
    with pytest.raises(UsageError, match="tuned for another function than `g`"):
        Tuned.load(tmp_path / "tuned.json", g)
    with pytest.raises(UsageError, match="is none"):
        Tuned.load(tmp_path / "tuned.json", 3)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 99}', '{"version": 1, "rows": []}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(UsageError, match="no tuned options"):
        Tuned.load(tmp_path / "other.json", f)
