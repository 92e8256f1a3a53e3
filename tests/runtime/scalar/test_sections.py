"""Programs in sections: each lane goes through several native functions, with the results, limits and growth of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcbatch.runtime.scalar import sections
from pcbatch.runtime.vm.status import Status
from tests.programs import PROGRAMS, Program
from tests.runtime.scalar.test_machine import assert_alone, machine, scalar

NUMBERS = np.array([3, 10, 0, 7, 12, 1], np.int32)


def in_parts(n):
    """Four loops in order, lists that grow, and a recursion."""
    squares = []
    for k in range(n):
        squares.append(k * k)
    total = 0
    while squares and total < 500:
        total += squares.pop()
        if total % 7 == 3:
            squares.insert(0, n)
    depth = deeper(n % 9)
    while depth > 0:
        total, depth = total + depth, depth - 2
    return total, squares


def with_tables(n):
    """A list of lists that becomes an empty one, whose places all lanes share."""
    rows = []
    for k in range(n):
        rows.append([k] * 3)
    total = 0
    for k in range(n):
        if k % 2:
            rows = []
        for row in rows:
            total += sum(row)
    return total


def deeper(n):
    return 0 if n == 0 else 1 + deeper(n - 1)


def endless(n):
    k = 0
    while k < n:
        k += 1
    while n == 7:
        k += 1
    while n > 0:
        n -= 1
    return k


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a section costs nothing, so each component of the control flow is a section."""
    monkeypatch.setattr(sections, "CALL", 1)


def count(f: Any, *args: Any) -> int:
    return len(sections.sections(machine(f, *args).scalar_layout))


@pytest.mark.share(12, 1)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs(program: Program) -> None:
    assert_alone(program)


class TestRuns:
    def test_lists_and_frames_grow(self) -> None:
        f = scalar(in_parts)
        assert count(f, NUMBERS) >= 4
        for n in (NUMBERS, np.array([100, 2, 70], np.int32)):
            totals, lists = f(n)
            want = [in_parts(int(k)) for k in n]
            assert [(int(t), xs) for t, xs in zip(totals, lists.tolist(), strict=True)] == want

    def test_limits(self) -> None:
        run = scalar(endless, max_steps=200).run(NUMBERS)
        status = [Status.STEP_LIMIT if n == 7 else Status.OK for n in NUMBERS]
        assert count(scalar(endless, max_steps=200), NUMBERS) >= 3
        assert run.status.tolist() == status
        assert [k for k, n in zip(run.value.tolist(), NUMBERS, strict=True) if n != 7] == [3, 10, 0, 12, 1]
        run = scalar(deeper, max_depth=5).run(NUMBERS)
        assert run.status.tolist() == [Status.OK if n < 6 else Status.STACK_FULL for n in NUMBERS]

    def test_runs_in_bits(self, tmp_path: Path) -> None:
        f = scalar(in_parts)
        begun = f.start(NUMBERS).advance(max_trips=9)
        assert not begun.done
        begun.save(tmp_path / "run")
        for rest in (begun, f.load(tmp_path / "run")):
            assert rest.advance().result().value[0].tolist() == [in_parts(int(n))[0] for n in NUMBERS]
        assert f.map(np.tile(NUMBERS, 3), lanes=4).value[0].tolist() == [in_parts(int(n))[0] for n in NUMBERS] * 3

    def test_no_array_is_copied_or_made_for_each_lane(self) -> None:
        text = scalar(with_tables).lower(NUMBERS).compile().as_text()
        bodies = list(loops_with_calls(text))
        assert len(bodies) == 1
        assert not re.findall(r"= \w+\[[\d,]+\]\S* (?:copy|fusion|broadcast)\(", bodies[0])


def loops_with_calls(text: str) -> Iterator[str]:
    """Yield the bodies of the loops of XLA's entry computation."""
    entry = text[text.index("\nENTRY") :]
    for name in re.findall(r"body=(%[\w.\-]+)", entry):
        begin = text.index(f"\n{name} (")
        body = text[begin : text.index("\n}", begin)]
        if " call(" in body:
            yield body


class TestCuts:
    @pytest.mark.parametrize("call", [1, 30, 150])
    def test_no_other_cuts_are_cheaper(self, call: int) -> None:
        sizes = [90, 4, 10, 80, 4, 4, 60, 7]

        def cost(cuts: tuple[int, ...]) -> int:
            parts = [sizes[a:b] for a, b in zip((0, *cuts), (*cuts, len(sizes)), strict=True)]
            return sum(sum(part) ** 2 for part in parts) + (len(parts) * call**2 if cuts else 0)

        ways = [cuts for n in range(len(sizes)) for cuts in combinations(range(1, len(sizes)), n)]
        assert cost(sections.cheapest_cuts(sizes, call)) == min(map(cost, ways))

    def test_a_small_program_is_one_function(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        assert count(scalar(in_parts), NUMBERS) == 1
