"""Programs that strangers would write and that are refused: the help, followed to the letter, works."""

from __future__ import annotations

import pytest

from tests.diagnostics.refused import ROWS
from tests.diagnostics.refused.row import Row

pytestmark = pytest.mark.promotion("standard")
IDS = [row.name for row in ROWS]


def test_there_are_many_and_no_two_alike() -> None:
    assert len(ROWS) >= 60
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_what_is_said(row: Row) -> None:
    codes, helps = row.refusal()
    assert row.code in codes
    assert any(row.help in help for help in helps), helps
    assert row.code != "PCB303" or not any("with one example shows" in help for help in helps)


@pytest.mark.share(16)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # some rows leave files open
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_what_it_says_works(row: Row) -> None:
    assert not row.differences()
