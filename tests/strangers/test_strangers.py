"""Functions that strangers wrote run as they are: every lane gives what plain Python gives for its example."""

from __future__ import annotations

import pytest

from tests.strangers import ROWS
from tests.strangers.rows import Row

pytestmark = pytest.mark.promotion("standard")


@pytest.mark.share(4)
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_as_it_is(row: Row) -> None:
    assert not row.differences()


def test_there_are_many_and_no_two_alike() -> None:
    assert len(ROWS) >= 120
    assert len({row.name for row in ROWS}) == len(ROWS)
