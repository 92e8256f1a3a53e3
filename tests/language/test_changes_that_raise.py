"""Changes of dicts that raise inside a `try` leave them as they are."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import pcbatch


def taken(k, q):
    items, failed = {1: 5, 2: 7}, False
    try:
        items[k] -= q
    except KeyError:
        failed = True
    return items.get(1, -1), items.get(k, -1), len(items), k in items, failed


def twice(k, q):
    log, items = 0, {1: 5, 2: 7}
    for _ in range(2):
        try:
            items[k] += q
            log += 1
        except KeyError:
            log += 100
    return log, sum(items.values())


def moved(k, q):
    order = OrderedDict()
    for each in range(3):
        order[each] = each
    try:
        order.move_to_end(k, last=q > 1)
    except KeyError:
        return -1, len(order), list(order)[0], list(order)[-1]
    return 0, len(order), list(order)[0], list(order)[-1]


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
@pytest.mark.parametrize("function", [taken, twice, moved])
def test_as_in_python(function: Any, emitter: str) -> None:
    ks, qs = np.array([1, 9, 2, 0], np.int32), np.array([1, 2, 3, 1], np.int32)
    found = pcbatch.batch(function, emitter=emitter)(ks, qs)
    for lane, (k, q) in enumerate(zip(ks.tolist(), qs.tolist(), strict=True)):
        assert [np.asarray(x)[lane].item() for x in found] == list(function(k, q))
