"""Values that may be None, asked for elements and length without a test before: where they are None, the lane fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch

N = np.array([0, 1, 3], np.int32)


def last(n):
    pair = None
    for k in range(n):
        pair = (k, 1)
    return pair


def by_index(n):
    return last(n)[0]


def by_unpacking(n):
    a, b = last(n)
    return a + b


def by_loop(n):
    total = 0
    for part in last(n):
        total += part
    return total


def by_sum(n):
    return sum(last(n))


def by_containment(n):
    return 1 if 2 in last(n) else 0


def by_length(n):
    return len(last(n))


@pytest.mark.parametrize("fn", [by_index, by_unpacking, by_loop, by_sum, by_containment, by_length])
def test_as_python_answers(fn: Callable[[Any], Any]) -> None:
    found = pcbatch.batch(fn).run(N)
    assert found.status.tolist() == [pcbatch.Status.ERROR, 0, 0]
    assert np.asarray(found.value)[1:].tolist() == [fn(1), fn(3)]


def test_containment_and_equality_of_none_itself() -> None:
    def f(n):
        found = None
        for k in range(n):
            found = k
        return found in (1, 2), found in (None, 2), found == 2

    got = [np.asarray(part).tolist() for part in pcbatch.batch(f)(N)]
    assert got == [list(part) for part in zip(*[f(int(n)) for n in N], strict=True)]


def test_text_of_a_lane_by_a_method_of_the_class_is_refused() -> None:
    show, bound = str.format, "{}".format
    assert np.asarray(pcbatch.batch(lambda n: len(bound(n)))(N)).tolist() == [len(bound(int(n))) for n in N]
    with pytest.raises(pcbatch.CompileError, match="PCB304"):
        pcbatch.batch(lambda n: len(show("{}", n)))(N)
