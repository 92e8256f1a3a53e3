"""Fibers: plain Python for many items, whose requests are answered in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.ask import fibers
from pcbatch.ask.scheduler import Scheduler, Settings
from tests.ask.programs import WEIGHTS, first_state, grown, named, next_state, play, steps, total

pytest.importorskip("greenlet")


def plain(k: int) -> float:
    return play(k, grown.plain)


@pytest.mark.parametrize("limit", [None, 1, 3])
def test_each_item_gets_what_plain_python_gives(limit: int | None) -> None:
    seen: list[tuple[int, int | None]] = []
    got = pcbatch.gather(play, range(12), limit=limit, progress=lambda done, all: seen.append((done, all)))
    np.testing.assert_allclose(got, [plain(k) for k in range(12)], rtol=1e-6)
    assert seen[-1] == (12, 12)


def test_requests_that_wait_together_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    begin = Scheduler.begin

    def counted(self: Scheduler, requests: Any) -> Any:
        sizes.append(len(requests))
        return begin(self, requests)

    monkeypatch.setattr(Scheduler, "begin", counted)
    pcbatch.gather(play, range(12))
    assert sizes == [12, 8, 4]  # a third of them asks once, twice, three times


def test_many_requests_are_two_batches_of_which_one_runs_while_the_host_works(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    begin = Scheduler.begin

    def told(self: Scheduler, requests: Any) -> Any:
        events.append(f"begin {len(requests)}")
        finish = begin(self, requests)

        def ended() -> None:
            events.append(f"end {len(requests)}")
            finish()

        return ended

    monkeypatch.setattr(Scheduler, "begin", told)
    monkeypatch.setattr(fibers, "cores", lambda: 2)
    got = pcbatch.gather(lambda k: (steps.ask(1), int(steps.ask(k + 1)))[1], range(24))
    assert got == [int(steps.plain(k + 1)) for k in range(24)]
    # Of the first requests it is not known yet whether lanes suit them.
    assert events[:2] == ["begin 24", "end 24"]
    assert events[2:] == ["begin 12", "begin 12", "end 12", "end 12"]


def test_an_iterator_is_read_as_items_end() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for k in range(6):
            taken.append(k)
            yield k

    def one(k: int) -> int:
        assert len(taken) <= k + 2
        return int(steps.ask(k + 1))

    assert pcbatch.gather(one, items(), limit=1) == [int(steps.plain(k + 1)) for k in range(6)]


def test_a_gather_in_a_fiber_shares_the_batches() -> None:
    def outer(k: int) -> float:
        return sum(pcbatch.gather(play, range(k))) + play(k)

    want = [plain(k) for k in range(6)]
    got = pcbatch.gather(outer, range(6))
    np.testing.assert_allclose(got, [sum(want[:k]) + want[k] for k in range(6)], rtol=1e-6)


def test_a_failure_is_that_of_its_own_request() -> None:
    def one(k: int) -> Any:
        return named.ask(k, "x" * k)

    results: list[Any] = pcbatch.gather(one, range(6), return_exceptions=True)
    assert [r for r in results if not isinstance(r, Exception)] == [(2 * k, "x" * k + "!") for k in (0, 1, 2, 4, 5)]
    assert isinstance(results[3], pcbatch.BatchRuntimeError) and "1 of 1 lane failed" in str(results[3])
    assert "n=3" in str(results[3])
    with pytest.raises(pcbatch.BatchRuntimeError, match="bad 3"):
        pcbatch.gather(one, range(6))


def test_host_code_that_catches_a_failure_goes_on() -> None:
    def one(k: int) -> Any:
        try:
            return int(named.ask(k, "")[0])
        except pcbatch.BatchRuntimeError:
            return int(named.ask(-k, "")[0])

    assert pcbatch.gather(one, range(5)) == [0, 2, 4, -6, 8]


def test_an_exception_ends_the_others_by_their_finally_blocks() -> None:
    ended: list[int] = []

    def one(k: int) -> None:
        try:
            while k:
                grown.ask(WEIGHTS, np.ones(4, np.float32))
        finally:
            ended.append(k)
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        pcbatch.gather(one, range(4))
    assert sorted(ended) == [0, 1, 2, 3]


def test_time_that_is_over_names_where_fibers_wait() -> None:
    def one(k: int) -> int:
        while k:
            steps.ask(k)
        return 7

    with pytest.raises(TimeoutError, match="2 of 3 fibers") as caught:
        pcbatch.gather(one, range(3), timeout=0.3)
    assert caught.value.results == [7, None, None] and caught.value.running == (1, 2)  # type: ignore[attr-defined]
    assert "steps.ask(k)" in str(caught.value)


def test_lists_texts_and_kept_rows_are_arguments() -> None:
    def one(k: int) -> Any:
        state = first_state.ask(float(k), keep=True)
        for j in range(k):
            state = next_state.ask(state, float(j), keep=True)
        ordered = total.ask(list(range(k + 1, 0, -1)))
        return state.value()["h"].tolist(), int(state.value()["n"]), int(ordered[0]), list(map(int, ordered[1]))

    want = [([k + sum(range(k))] * 3, k, (k + 1) * (k + 2) // 2, list(range(1, k + 2))) for k in range(70)]
    assert pcbatch.gather(one, range(70)) == want  # more rows than an arena begins with


def test_different_functions_and_shapes_do_not_mix() -> None:
    def one(k: int) -> Any:
        if k % 3 == 0:
            return int(steps.ask(k + 1))
        if k % 3 == 1:
            return float(grown.ask(WEIGHTS, np.ones(4, np.float32))[1])
        return float(grown.ask(WEIGHTS * 1.0, np.ones(4, np.float32))[1])  # other weights, though equal

    assert pcbatch.gather(one, range(9)) == [int(steps.plain(k + 1)) if k % 3 == 0 else 124.0 for k in range(9)]


class Rates:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    @pcbatch.batch
    def shrunk(self, x: Any) -> Any:
        while x > 1:
            x = x * self.rate
        return x


def test_methods_are_asked_and_objects_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    begin = Scheduler.begin
    monkeypatch.setattr(Scheduler, "begin", lambda self, batch: sizes.append(len(batch)) or begin(self, batch))
    halves, quarters = Rates(0.5), Rates(0.25)
    got = pcbatch.gather(lambda k: float((quarters if k % 2 else halves).shrunk.ask(float(k + 2))), range(6))
    assert got == [1.0, 0.75, 1.0, 0.3125, 0.75, 0.4375]
    assert sizes == [3, 3]


def test_a_number_that_does_not_fit_fails_alone() -> None:
    results = pcbatch.gather(lambda k: steps.ask(2**40 if k == 1 else k + 1), range(3), return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["int32", "UsageError", "int32"]


def test_a_kind_that_is_passed_over_comes_in_the_end() -> None:
    scheduler, order = Scheduler(Settings(continuous=False)), []
    from pcbatch.ask.request import request_of

    for _ in range(12):
        for k in range(4):
            scheduler.add(request_of(steps, (k + 1,), {}, False))
        if not order:
            scheduler.add(request_of(named, (1, ""), {}, False))
        work: Any = scheduler.take(at_once=True)
        order.append(work.args[0][0].kind.asked.__name__)
    assert "named" in order[:6]


@pytest.mark.parametrize("limit", [0, -1, True, "a"])
def test_a_wrong_limit_is_refused(limit: Any) -> None:
    with pytest.raises(pcbatch.UsageError, match="limit must be a positive integer"):
        pcbatch.gather(steps.ask, [1, 2], limit=limit)


def test_an_inner_gather_that_fails_leaves_the_outer_one_alone() -> None:
    def inner(k: int) -> int:
        n = int(steps.ask(k + 1))
        if k == 0:
            raise ValueError("inner")
        return n + int(steps.ask(k + 2))

    def outer(k: int) -> int:
        try:
            pcbatch.gather(inner, range(20))
        except ValueError:
            return int(steps.ask(3)) + int(steps.ask(k + 1))
        return -1

    assert pcbatch.gather(outer, range(3)) == [7 + int(steps.plain(k + 1)) for k in range(3)]


@pytest.mark.promotion("standard")  # "strict" would hold in this thread alone
def test_coroutines_inside_of_a_fiber() -> None:
    async def two(k: int) -> int:
        return int(await steps.ask(k)) + int(await steps.ask(k + 1))

    want = [int(steps.plain(k)) + int(steps.plain(k + 1)) for k in (3, 5)]
    assert pcbatch.gather(lambda k: asyncio.run(two(k)), (3, 5)) == want


def test_fibers_inside_of_a_coroutine() -> None:
    async def main() -> list[int]:
        return [int(x) for x in pcbatch.gather(steps.ask, (1, 2, 3))]

    assert asyncio.run(main()) == [0, 1, 7]


def test_an_exception_that_is_false_is_a_result() -> None:
    class Empty(Exception):
        def __bool__(self) -> bool:
            return False

    def fails(k: int) -> int:
        raise Empty

    (found,) = pcbatch.gather(fails, [1], return_exceptions=True)
    assert isinstance(found, Empty)
