"""Threads and coroutines that ask: answers are their own, failures too, and nothing is left behind."""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.ask.programs import WEIGHTS, grown, named, play, steps

pytestmark = pytest.mark.promotion("standard")  # "strict" would hold in this thread alone


def test_threads_get_what_plain_python_gives() -> None:
    with pcbatch.serving(grown, min_batch=4, max_wait=0.01) as server, ThreadPoolExecutor(8) as pool:
        got = list(pool.map(play, range(16)))
    np.testing.assert_allclose(got, [play(k, grown.plain) for k in range(16)], rtol=1e-6)
    report = server.report()
    assert report.requests == sum(k % 3 + 1 for k in range(16)) and report.batches < report.requests
    assert not [thread for thread in threading.enumerate() if thread.name == "pcbatch.serving"]


def test_a_batch_waits_for_others_but_not_for_ever() -> None:
    with pcbatch.serving(steps, min_batch=1000, max_wait=0.02) as server, ThreadPoolExecutor(4) as pool:
        assert list(map(int, pool.map(steps.ask, range(1, 5)))) == [0, 1, 7, 2]
    assert server.report().batches <= 4


def test_requests_that_wait_when_serving_ends_are_answered() -> None:
    threads = []
    answers: dict[int, int] = {}
    with pcbatch.serving(steps, min_batch=1000, max_wait=60.0) as server:
        for k in range(1, 5):
            threads.append(threading.Thread(target=lambda k=k: answers.update({k: int(steps.ask(k))})))
            threads[-1].start()
        while server.scheduler.waiting < 4:
            pass
    for thread in threads:
        thread.join()
    assert answers == {1: 0, 2: 1, 3: 7, 4: 2}


def test_batches_have_the_sizes_that_were_asked_for() -> None:
    with pcbatch.serving(steps, buckets=(3, 6), min_batch=6, max_wait=5.0) as server, ThreadPoolExecutor(6) as pool:
        list(pool.map(steps.ask, range(1, 7)))
    report = server.report()
    assert (report.requests, report.batches, report.padding) == (6, 1, 0.0)


def test_coroutines_await_their_answers() -> None:
    async def one(k: int) -> Any:
        await asyncio.sleep(0.001 * (k % 3))
        n, name = await named.ask(k, "y" * k)
        return int(n), name

    async def main() -> list[Any]:
        return await asyncio.gather(*(one(k) for k in range(10)), return_exceptions=True)

    for serving in (False, True):
        if serving:
            with pcbatch.serving(named, min_batch=4, max_wait=0.01):
                got = asyncio.run(main())
        else:
            got = asyncio.run(main())
        assert got[:3] + got[4:] == [(2 * k, "y" * k + "!") for k in range(10) if k != 3]
        assert isinstance(got[3], pcbatch.BatchRuntimeError)


def test_a_cancelled_coroutine_disturbs_no_other() -> None:
    async def main() -> list[int]:
        tasks = [asyncio.ensure_future(steps.ask(k)) for k in range(1, 9)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[2], asyncio.CancelledError)
        return [int(x) for k, x in enumerate(found) if k != 2]

    assert asyncio.run(main()) == [int(steps.plain(k)) for k in (1, 2, 4, 5, 6, 7, 8)]


def test_asking_alone_warns_once() -> None:
    @pcbatch.batch
    def alone(x: Any) -> Any:
        return x + 1

    with pytest.warns(UserWarning, match=r"pcbatch\.gather"):
        assert alone.ask(1) == 2
    assert alone.ask(2) == 3


@pytest.mark.parametrize("options", [{"min_batch": 0}, {"buckets": ()}, {"buckets": 8}, {"max_wait": -1}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(pcbatch.UsageError):
        pcbatch.serving(steps, **options)


def test_a_request_after_the_end_goes_alone() -> None:
    with pcbatch.serving(steps):
        pass
    with pytest.warns(UserWarning):
        assert int(steps.ask(3)) == 7


def test_an_example_that_never_ends_fails_under_a_timeout() -> None:
    @pcbatch.batch
    def waits(n: Any) -> Any:
        while n < 0:
            n = n - 1 if n > -5 else -1
        return n

    with pcbatch.serving(waits, min_batch=3, max_wait=1.0, timeout=0.3), ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(waits.ask, n) for n in (1, -2, 2)]
        assert int(futures[0].result()) == 1 and int(futures[2].result()) == 2
        with pytest.raises(pcbatch.BatchRuntimeError):
            futures[1].result()


@pytest.mark.promotion("strict")
def test_a_setting_of_one_thread_alone_is_refused() -> None:
    with pcbatch.serving(steps), pytest.raises(pcbatch.UsageError, match="a setting of JAX differs"):
        steps.ask(3)


@pytest.mark.long
def test_many_requests_of_many_askers_get_their_own_answers() -> None:
    def asker(seed: int) -> None:
        r = random.Random(seed)
        for _ in range(100):
            k = r.randint(0, 20)
            match r.randint(0, 2):
                case 0:
                    assert int(steps.ask(k + 1)) == collatz[k + 1]
                case 1:
                    assert float(grown.ask(WEIGHTS, np.full(4, k, np.float32))[1]) == grown_sums[k]
                case _ if k == 3:
                    with pytest.raises(pcbatch.BatchRuntimeError):
                        named.ask(k, "z")
                case _:
                    n, name = named.ask(k, "z" * (k % 4))
                    assert (int(n), name) == (2 * k, "z" * (k % 4) + "!")

    collatz = {k: int(steps.plain(k)) for k in range(1, 22)}
    grown_sums = [float(grown.plain(WEIGHTS, np.full(4, k, np.float32))[1]) for k in range(21)]
    before = threading.active_count()
    with pcbatch.serving() as server, ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(asker, seed) for seed in range(32)]:
            future.result()
    assert server.report().requests == 3200 and threading.active_count() == before


def test_a_parameter_named_timeout() -> None:
    @pcbatch.batch
    def later(x: Any, timeout: Any) -> Any:
        return x + timeout

    with pcbatch.serving(later, timeout=5.0):
        assert int(later.ask(1, timeout=2)) == 3


def test_no_copy_of_an_example_prints(capfd: pytest.CaptureFixture[str]) -> None:
    @pcbatch.batch
    def told(x: Any) -> Any:
        print("got", x)
        return x

    with pcbatch.serving(told, min_batch=3, max_wait=5.0), ThreadPoolExecutor(3) as pool:
        assert sorted(map(int, pool.map(told.ask, (5, 6, 7)))) == [5, 6, 7]
    assert capfd.readouterr().out.count("got") == 3


def test_a_loop_without_its_executor_is_answered_all_the_same() -> None:
    async def main() -> int:
        await asyncio.get_running_loop().shutdown_default_executor()
        return int(await steps.ask(3))

    assert asyncio.run(main()) == 7
