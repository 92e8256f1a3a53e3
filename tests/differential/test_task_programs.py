"""Random programs whose calls are independent of each other: tasks against plain Python, in several orders.

`python -m tests.fuzz_python --grammar forks --seed n --count 100` runs more of them.
"""

from __future__ import annotations

import pytest

from tests.fuzz_python import explore

pytestmark = [pytest.mark.promotion("standard"), pytest.mark.timeout(300)]


@pytest.mark.share(3)
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_tasks_mean_what_plain_python_means(first: int) -> None:
    """After each pass, in the order of the source and in others; some of the programs fork."""
    tally = explore(first, 10, "interpreters", as_is=True, grammar="forks")
    assert not tally.failing
    assert tally.counts["forks"] >= 3
