"""Random programs over Python's own data (lists, dicts, sets, None, objects, exceptions) against the oracles.

`python -m tests.fuzz_python --seed n --count 100 --jax 10` runs more of them.
"""

from __future__ import annotations

import pytest

from tests.fuzz_python import GRAMMARS, drawn, explore
from tests.oracles.reduce_program import reduced
from tests.shares import examples

pytestmark = [pytest.mark.long, pytest.mark.promotion("standard"), pytest.mark.timeout(900)]

MOST_REFUSED = 0.4  # of the programs


@pytest.mark.share(40)
@pytest.mark.parametrize("first", range(0, 400, 10))
def test_all_stages_mean_what_plain_python_means(first: int) -> None:
    tally = explore(first, 10, "interpreters", as_is=True)
    assert not tally.failing
    assert tally.counts["refused"] <= MOST_REFUSED * 10, tally.titles


@pytest.mark.share(40)
@pytest.mark.parametrize("first", range(0, 200, 5))
def test_all_stages_of_small_programs_mean_what_plain_python_means(first: int) -> None:
    assert not explore(first, examples(5, 3), "interpreters", as_is=True, grammar="small").failing


@pytest.mark.share(40)
@pytest.mark.parametrize("first", range(0, 80, 2))
def test_derivatives_of_small_programs_are_those_of_plain_python(first: int) -> None:
    assert not explore(first, examples(2, 1), "gradients", as_is=True, grammar="small").failing


@pytest.mark.share(20)
@pytest.mark.parametrize("first", range(0, 400, 20))
def test_parts_of_expressions_are_evaluated_in_pythons_order(first: int) -> None:
    count = examples(20, 8)
    tally = explore(first, count, "interpreters", as_is=True, grammar="order")
    assert not tally.failing
    assert tally.counts["refused"] <= MOST_REFUSED * count, tally.titles


@pytest.mark.share(20)
@pytest.mark.parametrize("first", range(0, 400, 20))
def test_tasks_mean_what_plain_python_means(first: int) -> None:
    """Programs whose calls are independent, half of which fork: after each pass, in several orders."""
    count = examples(20, 8)
    tally = explore(first, count, "interpreters", as_is=True, grammar="forks")
    assert not tally.failing
    assert tally.counts["refused"] <= MOST_REFUSED * count, tally.titles
    assert tally.counts["forks"] >= count / 4


@pytest.mark.share(20)
@pytest.mark.parametrize("first", range(1000, 1040, 2))
def test_batched_programs_mean_what_plain_python_means(first: int) -> None:
    assert not explore(first, examples(2, 1), "jax", as_is=True).failing


def test_a_seed_gives_the_same_program_each_time() -> None:
    assert all(drawn(7, grammar) == drawn(7, grammar) for grammar in GRAMMARS)
    assert len({drawn(seed).text for seed in range(20)}) > 15


def test_a_failing_program_is_reduced() -> None:
    program = next(p for p in map(drawn, range(100)) if ".append(" in p.text and "while " in p.text)
    small = reduced(program, lambda p: ".append(" in p.text)
    assert small.text.count("\n") < 10, small
