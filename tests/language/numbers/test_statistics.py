"""Functions of `statistics` on lists of the lane, and on known ones with numbers of the lane, next to plain Python."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest

import pcbatch

NAMES = ["median_low", "median_high", "pvariance", "variance", "pstdev", "stdev"]
INTEGERS = [[1, 2, 4], [5], [], [100000001, 100000002, 100000003], [2**31 - 1, -(2**31)], [3, 3, 3]]
FLOATS = [[1.5, 2.25, 4.0], [5.0], [], [1e7, 1e7 + 1, 1e7 + 2], [-1e3, 7.5, 7.5, 2.0]]


def _plain(fn: Any, values: list[Any]) -> Any:
    try:
        return fn(values)
    except statistics.StatisticsError:
        return None


@pytest.mark.parametrize("lists", [INTEGERS, FLOATS], ids=["integers", "floats"])
@pytest.mark.parametrize("name", NAMES)
def test_lists_of_the_lane(name: str, lists: list[Any]) -> None:
    fn = getattr(statistics, name)

    @pcbatch.batch
    def batched(xs: Any) -> Any:
        return fn(xs)

    run = batched.run(pcbatch.ragged(lists))
    for values, status, found in zip(lists, run.status, np.asarray(run.value).tolist(), strict=True):
        expected = _plain(fn, values)
        assert (status == 0) == (expected is not None)
        assert expected is None or found == pytest.approx(expected, rel=1e-6)


def test_numbers_of_the_lane_and_a_known_mean() -> None:
    def spread(a: Any, b: Any) -> Any:
        return statistics.pvariance([a, b, 3]), statistics.variance((a, b, 2.5), 2.0), statistics.stdev([a, b])

    found = pcbatch.batch(spread)(np.array([1, 7]), np.array([4, -9]))
    for k, args in enumerate([(1, 4), (7, -9)]):
        assert [float(column[k]) for column in found] == pytest.approx(spread(*args), rel=1e-6)


def test_bools_are_refused() -> None:
    def spread(a: Any) -> Any:
        return statistics.variance([a > 1, a > 2])

    with pytest.raises(pcbatch.CompileError, match="make them integers"):
        pcbatch.batch(spread)(np.array([1, 7]))


def test_means_of_known_lists_are_rounded_once() -> None:
    """XLA divides by a known number of data with its reciprocal, which rounds twice."""

    def means(n: Any) -> Any:
        return statistics.mean([n, 2, 3]), statistics.mean([n, 2, 3, 4, 5, 6, 8]), statistics.fmean((n, 1, 5))

    found = pcbatch.batch(means)(np.arange(1, 9))
    for k, n in enumerate(range(1, 9)):
        assert [column[k] for column in np.asarray(found)] == [np.float32(mean) for mean in means(n)]
