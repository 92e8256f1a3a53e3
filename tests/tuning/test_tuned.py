"""The plan that was chosen, with what was measured, as a table and as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pcbatch
from pcbatch import Plan
from pcbatch.api.tune import report_of
from pcbatch.compiler.schedules import source_of
from pcbatch.errors import UsageError
from pcbatch.plan import Dense, Few, Strips
from pcbatch.report import Tuned
from pcbatch.tuning.race import Candidate, Row

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


def test_the_plan_that_won() -> None:
    tuned = report_of(ROWS, Plan(), "f", "abc")
    assert tuned.plan == Plan(schedule="drain") and tuned.changes == ("schedule",) and tuned.lanes is None
    assert "skipped" in str(tuned) and "0.5 s" in str(tuned)
    assert str(tuned).endswith('fastest: f.with_options(plan=pcbatch.Plan(schedule="drain"))')
    as_it_is = report_of(ROWS[:1], Plan(emitter="port"), "f", "abc")
    assert as_it_is.plan == Plan(emitter="port") and as_it_is.changes == ()


def test_what_was_a_mapping_of_options_still_goes_into_with_options() -> None:
    tuned = report_of(ROWS, Plan(), "f", "abc")
    with pytest.warns(DeprecationWarning, match=r"PCB429(.|\n)*plan=tuned.plan"):
        assert f.with_options(**tuned).options.plan == tuned.plan
    with pytest.warns(DeprecationWarning, match="PCB429"):
        assert tuned["schedule"] == "drain"


def test_a_width_stands_beside_the_options() -> None:
    tuned = report_of([ROWS[0], Row(Candidate("map", {}, 32), 2.0, [0.5, 0.5])], Plan(), "f", "abc")
    assert not tuned.changes and tuned.lanes == 32
    assert str(tuned).endswith("fastest: f.map(..., lanes=32)")


def test_a_combination_names_both_and_notes_stand_above_it() -> None:
    both = Row(Candidate("drain + map", {"schedule": "drain"}, 32), 2.0, [0.5, 0.5])
    tuned = report_of([ROWS[0], both], Plan(), "f", "abc", "one thing\nanother")
    assert str(tuned).endswith(
        "note: one thing\nnote: another\n"
        'fastest: f.with_options(plan=pcbatch.Plan(schedule="drain")).map(..., lanes=32)'
    )


@pytest.mark.parametrize("modes", [Dense(), Dense(3), Few(8), {"x": Strips(4), "y": Dense()}])
def test_a_file_gives_the_same_again(tmp_path: Path, modes: Any) -> None:
    best = Row(Candidate("best", {"schedule": "drain", "modes": modes}), 2.0, [0.5, 0.5])
    tuned = report_of([ROWS[0], best], Plan(), "f", source_of(f.fn), "a note")
    tuned.save(tmp_path / "tuned.json")
    assert Tuned.load(tmp_path / "tuned.json", f) == tuned
    assert Plan.load(tmp_path / "tuned.json") == tuned.plan


def test_the_file_of_another_function_is_refused(tmp_path: Path) -> None:
    report_of(ROWS, Plan(), "f", source_of(f.fn)).save(tmp_path / "tuned.json")
    with pytest.raises(UsageError, match="tuned for another function than `g`"):
        Tuned.load(tmp_path / "tuned.json", g)
    with pytest.raises(UsageError, match="is none"):
        Tuned.load(tmp_path / "tuned.json", 3)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 99}', '{"version": 1, "rows": []}', '{"version": 2, "rows": []}']
)
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(UsageError, match="no tuned options"):
        Tuned.load(tmp_path / "other.json", f)
