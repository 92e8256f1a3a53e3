"""Random programs against five oracles: with `--full` 2,000 through the interpreters of every stage, 200 through JAX;
and the derivatives of 40.

Every batch follows from its seed; `make fuzz SEED=n` runs more of them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import draw_programs, gradients_batch, interpreters_batch, jax_batch
from tests.programs.census import CONSTRUCTS, census
from tests.programs.random_programs import RandomProgram, load_plain
from tests.shares import examples

pytestmark = [pytest.mark.long, pytest.mark.promotion("standard"), pytest.mark.timeout(900)]


@pytest.mark.share(80)
@pytest.mark.parametrize("seed", range(80))
def test_all_stages_mean_what_plain_python_means(seed: int) -> None:
    interpreters_batch(seed, examples(25, 10))


@pytest.mark.share(100)
@pytest.mark.parametrize("seed", range(100))
def test_batched_programs_mean_what_plain_python_means(seed: int) -> None:
    jax_batch(1000 + seed, examples(2, 1))


@pytest.mark.share(40)
@pytest.mark.parametrize("seed", range(40))
def test_derivatives_are_those_of_plain_python(seed: int) -> None:
    gradients_batch(2000 + seed, 1)


@pytest.mark.full_only
def test_programs_hold_every_construct() -> None:
    """The grammar gives what it promises: each construct in three programs of 1,000, recursion in every fifth."""
    holding: Counter[str] = Counter()

    def count(program: RandomProgram) -> None:
        holding.update(name for name, times in census(program).items() if times)

    draw_programs(0, 1000, count)
    assert set(holding) == CONSTRUCTS
    assert {name: times for name, times in holding.items() if times < 3} == {}
    assert holding["recursion"] >= 200


def test_a_seed_gives_the_same_programs_each_time() -> None:
    first: list[str] = []
    again: list[str] = []
    draw_programs(7, 20, lambda program: first.append(program.text))
    draw_programs(7, 20, lambda program: again.append(program.text))
    assert first == again and len(set(first)) > 15


@pytest.mark.full_only
def test_a_wrong_stage_is_named_and_the_program_shrunk() -> None:
    """A made-up fault, which every program with an `enumerate` shows: a small such program is found."""

    def check(program: RandomProgram) -> None:
        load_plain(program.text, "<shrunk>")
        if "enumerate" in program.text:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        draw_programs(0, 100, check)
    shrunk = caught.value.__notes__[0]
    assert "enumerate" in shrunk and shrunk.count("\n") < 25, shrunk
