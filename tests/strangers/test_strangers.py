"""Functions that strangers wrote run as they are: every lane gives what plain Python gives for its example."""

from __future__ import annotations

import pytest

import pcbatch
from tests.strangers import ROWS
from tests.strangers.rows import Row

pytestmark = pytest.mark.promotion("standard")


RUN = [row for row in ROWS if not row.refused]
REFUSED = [row for row in ROWS if row.refused]


@pytest.mark.share(16)
@pytest.mark.parametrize("row", RUN, ids=[row.name for row in RUN])
def test_as_it_is(row: Row) -> None:
    assert not row.differences()


@pytest.mark.parametrize("row", REFUSED, ids=[row.name for row in REFUSED])
def test_what_does_not_run_is_refused(row: Row) -> None:
    with pytest.raises(pcbatch.CompileError, match=row.refused):
        pcbatch.batch(row.function).lower(*row.arguments())


def test_there_are_many_and_no_two_alike() -> None:
    assert len(RUN) >= 200
    assert len({row.name for row in ROWS}) == len(ROWS)
