"""Changes of what a loop goes over: those inside the loop are seen by it, those beside it or after it are not."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import pcbatch

# mypy: disable-error-code="no-untyped-def"


def in_another_branch(n):
    xs = []
    for k in range(4):
        if n > 2:
            for x in xs:
                if len(xs) < 6:
                    xs.append(x + k)
            xs.append(n)
        else:
            xs.sort()
            n = n + 1
    return xs


def behind_the_loop(n):
    d = deque([n, 2, 3])
    if n % 2:
        for x in d:
            n = n + x
    d.rotate(n)
    return list(d)


def in_one_of_two_loops(n):
    d = deque([1, 2, 3])
    if n == 1:
        for x in d:
            if x == 2:
                d.rotate(1)
    elif n == 2:
        d.rotate(n)
        for _k, x in enumerate(d):
            d.append(x)
    return list(d)


@pytest.mark.parametrize("fn", [in_another_branch, behind_the_loop, in_one_of_two_loops])
def test_a_loop_sees_the_changes_of_its_own_body(fn) -> None:
    got = pcbatch.batch(fn, on_failure="ignore").run(np.arange(6)).value.tolist()
    for n in range(6):
        try:
            want = fn(n)
        except RuntimeError:
            want = None
        assert got[n] == want, n
