"""A cache that drops what was not used for the longest time: a class with a dict, whose keys are values of the lane."""

from __future__ import annotations

import numpy as np

import pcbatch
from examples.in_python import check


class Cache:
    """Pages, and when each was asked for last."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.used = {}
        self.misses = 0

    def ask(self, page, time):
        """Ask for a page; if it is not there, it takes the place of the one that was not used for the longest time."""
        if page not in self.used:
            self.misses += 1
            if len(self.used) == self.capacity:
                oldest = min(self.used, key=self.used.get)
                del self.used[oldest]
        self.used[page] = time


@pcbatch.batch
def misses(pages, capacity):
    """How many pages were not in a cache of this capacity when they were asked for, and when each was used last."""
    cache = Cache(capacity)
    for time, page in enumerate(pages):
        cache.ask(page, time)
    return cache.misses, cache.used


def main(lanes: int = 100) -> None:
    """Ask caches of 1 to 6 pages for 20 pages of 8."""
    rng = np.random.default_rng(0)
    found = check(misses, rng.integers(0, 8, (lanes, 20)), rng.integers(1, 7, lanes))
    print(f"lru_cache: {sum(missed for missed, _ in found)} misses of {20 * lanes}, all as in plain Python")


if __name__ == "__main__":
    main()
