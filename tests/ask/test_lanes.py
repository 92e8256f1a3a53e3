"""Requests that take lanes of a machine which stays open: each is answered when its own lane has ended."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ask import lanes as open_lanes

pytestmark = pytest.mark.promotion("standard")  # "strict" would hold in this thread alone

together = pcbatch.batch(plan=pcbatch.Plan(schedule="sweep"))  # lanes that run one by one do not wait for each other
LONG = 2**30


@together
def counted(n: Any) -> Any:
    """Count up to a number, which for `LONG` takes longer than any test."""
    assert n != 13, f"bad {n}"
    k, total = 0, 0
    while k < n:
        k += 1
        total += k % 7
    return total


@together
def collected(n: Any) -> Any:
    """Return a list of so many numbers."""
    found = []
    for k in range(n):
        found.append(k * k)
    return found


@together
def deep(n: Any) -> Any:
    """Call itself so many times."""
    return 0 if n == 0 else 1 + deep(n - 1) % 1000


@together
def halved(state: Any, x: Any) -> Any:
    """Halve a state until it is small."""
    h, n = state["h"], 0
    while jnp.sum(h) > x:
        h, n = h / 2, n + 1
    return {"h": h + 1, "n": n}


@together
def drawn(key: Any, most: Any) -> Any:
    """Draw until a number is small; return the key that is left."""
    n = 0
    while n < most:
        key, own = jax.random.split(key)
        n = n + 1 + jax.random.randint(own, (), 0, 2)
    return key, n


def plain_count(n: int) -> int:
    """Return what `counted` does."""
    return sum(k % 7 for k in range(1, n + 1))


def test_fibers_get_what_plain_python_gives() -> None:
    def asks(k: int) -> list[int]:
        first = int(counted.ask(50 * k))
        return [first, int(counted.ask(first % 40))]

    want = [[plain_count(50 * k), plain_count(plain_count(50 * k) % 40)] for k in range(20)]
    assert pcbatch.gather(asks, range(20)) == want


def test_a_short_request_overtakes_a_long_one() -> None:
    with pcbatch.serving(counted, timeout=1000.0) as server, ThreadPoolExecutor(4) as pool:
        long = pool.submit(lambda: asyncio.run(given_up()))
        while not server.scheduler.lanes:
            pass
        assert [int(x) for x in pool.map(counted.ask, (3, 40, 500))] == [plain_count(n) for n in (3, 40, 500)]
        assert not long.done()
        stop.set()
        assert isinstance(long.exception(), TimeoutError)
    report = server.report()
    assert report.turns and not report.batches and report.requests == 3


stop = threading.Event()


async def given_up() -> None:
    """Ask for what takes too long, and give it up when the test says so."""
    request = asyncio.ensure_future(counted.ask(LONG))
    while not stop.is_set():
        await asyncio.sleep(0.01)
    await asyncio.wait_for(request, 0.01)


def test_a_lane_whose_time_is_over_is_given_to_others() -> None:
    with pcbatch.serving(counted, timeout=0.2, buckets=(2,)) as server, ThreadPoolExecutor(6) as pool:
        futures = {n: pool.submit(counted.ask, n) for n in (LONG, LONG + 1, 5, 60)}
        for n in (5, 60):
            assert int(futures[n].result()) == plain_count(n)
        for n in (LONG, LONG + 1):
            with pytest.raises(pcbatch.BatchRuntimeError, match="had not ended when the time was over") as caught:
                futures[n].result()
            assert f"n={n}" in str(caught.value)
    assert not server.scheduler.lanes and not server.scheduler.waiting


def test_a_cancelled_coroutine_gives_its_lane_back() -> None:
    async def main() -> list[int]:
        endless = [asyncio.ensure_future(counted.ask(LONG)) for _ in range(4)]
        await asyncio.sleep(0.3)
        for each in endless:
            each.cancel()
        return [int(await counted.ask(n)) for n in (1, 10, 100)]

    want = [plain_count(n) for n in (1, 10, 100)]
    assert asyncio.run(main()) == want
    with pcbatch.serving(buckets=(4,)) as server:
        assert asyncio.run(main()) == want
    assert server.report().requests == 3


def test_a_request_that_fails_fails_alone() -> None:
    def one(n: int) -> Any:
        try:
            return int(counted.ask(n))
        except pcbatch.BatchRuntimeError as error:
            return str(error)

    *others, failed = pcbatch.gather(one, [3, 200, 7, 13])
    assert others == [plain_count(n) for n in (3, 200, 7)]
    assert "1 of 1 lane failed an assertion" in failed and "bad 13" in failed


def test_lists_and_stacks_grow_while_others_run() -> None:
    lengths = [3, 700, 0, 40, 2, 90]
    for ask, want in ((collected.ask, [[k * k for k in range(n)] for n in lengths]), (deep.ask, lengths)):
        with pcbatch.serving() as server, ThreadPoolExecutor(6) as pool:
            got = list(pool.map(ask, lengths))
        assert [np.asarray(x).tolist() for x in got] == want
        assert server.report().turns and server.report().requests == len(lengths)


def test_more_requests_than_lanes_wait_for_one() -> None:
    with pcbatch.serving(buckets=(2, 4)) as server, ThreadPoolExecutor(20) as pool:
        got = list(pool.map(counted.ask, range(14, 54)))
    assert [int(x) for x in got] == [plain_count(n) for n in range(14, 54)]
    assert server.report().lanes <= 4


def test_lanes_become_more_and_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_lanes, "FEW", 2)

    async def main() -> list[int]:
        first = asyncio.ensure_future(counted.ask(200_000))
        await asyncio.sleep(0.1)
        many = await asyncio.gather(*(counted.ask(n) for n in range(14, 60)))
        return [*map(int, many), int(await first)]

    assert asyncio.run(main()) == [plain_count(n) for n in (*range(14, 60), 200_000)]


def test_states_stay_on_the_device() -> None:
    def rolled(k: int) -> tuple[list[float], int]:
        row = halved.ask({"h": np.full(3, 2.0**k, np.float32), "n": 0}, np.float32(1.0), keep=True)
        value = halved.ask(row, np.float32(2.0), keep=True).value()
        return value["h"].tolist(), int(value["n"])

    def plain(k: int) -> tuple[list[float], int]:
        state = halved.plain({"h": np.full(3, 2.0**k, np.float32), "n": 0}, np.float32(1.0))
        state = halved.plain(state, np.float32(2.0))
        return np.asarray(state["h"]).tolist(), int(state["n"])

    assert pcbatch.gather(rolled, range(10)) == [plain(k) for k in range(10)]


def test_keys_come_back_as_keys() -> None:
    keys = jax.random.split(jax.random.key(0), 5)
    for k, (key, n) in enumerate(pcbatch.gather(lambda k: drawn.ask(keys[k], 10 * k), range(5))):
        want, count = drawn.plain(keys[k], 10 * k)
        assert jnp.array_equal(jax.random.key_data(key), jax.random.key_data(want)) and int(n) == int(count)


def test_batches_alone_on_request() -> None:
    with pcbatch.serving(counted, continuous=False) as server:
        assert int(counted.ask(20)) == plain_count(20)
    assert server.report().batches == 1 and not server.report().turns
    with pytest.raises(pcbatch.UsageError, match="continuous must be True or False"):
        pcbatch.serving(counted, continuous=1)


def test_functions_without_loops_make_batches() -> None:
    @together
    def square(x: Any) -> Any:
        return x * x if x > 0 else -x

    with pcbatch.serving() as server, ThreadPoolExecutor(4) as pool:
        assert [int(x) for x in pool.map(square.ask, (2, -3, 4))] == [4, 3, 16]
    assert server.report().batches and not server.report().turns


def test_other_calls_of_the_function_may_need_more_room_meanwhile() -> None:
    with pcbatch.serving(collected, timeout=1000.0) as server, ThreadPoolExecutor(2) as pool:
        first = pool.submit(collected.ask, 1500)
        while not server.scheduler.lanes:
            pass
        assert collected(jnp.array([3000]))[0].shape == (3000,)
        assert np.asarray(collected.ask(4)).tolist() == [0, 1, 4, 9]
        assert np.asarray(first.result()).tolist() == [k * k for k in range(1500)]


@together
def fib(n: Any) -> Any:
    """Return a Fibonacci number by recursion."""
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def test_recursion_goes_on_while_lanes_become_more() -> None:
    def one(k: int) -> Any:
        if k == 0:
            return int(fib.ask(20))
        return int(fib.ask(3)), [int(x) for x in pcbatch.gather(fib.ask, [7] * 12)]

    assert pcbatch.gather(one, [0, 1]) == [6765, (2, [13] * 12)]


def test_lists_grow_beside_a_lane_that_does_not_end() -> None:
    @together
    def repeated(n: Any, rounds: Any) -> Any:
        found, k = [], 0
        while k < rounds:
            k += 1
            if k <= n:
                found.append(k)
        return found

    with pcbatch.serving(timeout=1000.0), ThreadPoolExecutor(4) as pool:
        endless = pool.submit(lambda: asyncio.run(stopped(repeated)))
        lengths = [2, 700, 5, 3]
        assert [np.asarray(x).size for x in pool.map(lambda n: repeated.ask(n, n), lengths)] == lengths
        assert not endless.done()
        finished.set()
        assert endless.exception() is None


finished = threading.Event()


async def stopped(repeated: Any) -> None:
    """Ask for what does not end, and give it up when the test says so."""
    task = asyncio.ensure_future(repeated.ask(1, LONG))
    while not finished.is_set():
        await asyncio.sleep(0.01)
    task.cancel()
