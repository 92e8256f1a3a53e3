"""Dicts in the fields of objects of several classes: each class has a kind of its own under one name."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np

import pcbatch


class Recent:
    """Keeps keys in the order in which they were asked for last."""

    def __init__(self) -> None:
        self.data: OrderedDict[int, int] = OrderedDict()

    def access(self, key: int) -> int:
        self.data[key] = key
        self.data.move_to_end(key)
        return next(iter(self.data))


class Frequent:
    """Keeps keys by how often they were asked for."""

    def __init__(self) -> None:
        self.data: dict[int, int] = {}
        self.keys: dict[int, OrderedDict[int, None]] = defaultdict(OrderedDict)

    def access(self, key: int) -> int:
        count = self.data.get(key, 0)
        if key in self.keys[count]:
            del self.keys[count][key]
        if not self.keys[count]:
            del self.keys[count]
        self.data[key] = count + 1
        self.keys[count + 1][key] = None
        return len(self.keys)


def replayed(seed: int) -> Any:
    stores = [Recent(), Frequent()]
    found = 0
    for _ in range(9):
        seed = (seed * 29 + 7) % 1009
        for store in stores:
            found = (found * 3 + store.access(seed % 4)) % 1_000_003
    return found


def test_classes_with_other_dicts_under_one_name() -> None:
    seeds = np.array([3, 11, 500])
    assert pcbatch.batch(replayed)(seeds).tolist() == [replayed(seed) for seed in seeds.tolist()]
