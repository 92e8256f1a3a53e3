"""Options that were chosen, as a mapping and as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcbatch.errors import UsageError
from pcbatch.tuning.race import Candidate, Row
from pcbatch.tuning.tuned import Tuned, chosen

ROWS = [
    Row(Candidate("default", {}), 2.0, [1.0, 1.0]),
    Row(Candidate("drain", {"schedule": "drain"}), 2.0, [0.5, 0.5]),
    Row(Candidate("sweep", {"schedule": "sweep"}), note="skipped: compiling would exceed the budget"),
]


def test_the_options_that_won_are_a_mapping() -> None:
    tuned = chosen(ROWS, "f", "abc")
    assert {**tuned} == {"schedule": "drain"}
    assert "skipped" in str(tuned) and "0.5 s" in str(tuned)
    assert not chosen(ROWS[:1], "f", "abc")


def test_a_file_gives_the_same_again(tmp_path: Path) -> None:
    tuned = chosen(ROWS, "f", "abc")
    tuned.save(tmp_path / "tuned.json")
    assert Tuned.load(tmp_path / "tuned.json") == tuned


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 99}', '{"version": 1, "rows": []}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(UsageError, match="no tuned options"):
        Tuned.load(tmp_path / "other.json")
