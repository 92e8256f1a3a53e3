"""A cache that drops what was not used for the longest time: a dict whose keys are values of the lane."""

from __future__ import annotations

import numpy as np

import pcbatch
from examples.in_python import check


@pcbatch.batch
def misses(pages, capacity):
    """How many pages were not in a cache of this capacity when they were asked for, and when each was used last."""
    used = {}
    missed = 0
    for time, page in enumerate(pages):
        if page not in used:
            missed += 1
            if len(used) == capacity:
                oldest = min(used, key=used.get)
                del used[oldest]
        used[page] = time
    return missed, used


def main(lanes: int = 100) -> None:
    """Ask caches of 1 to 6 pages for 20 pages of 8."""
    rng = np.random.default_rng(0)
    found = check(misses, rng.integers(0, 8, (lanes, 20)), rng.integers(1, 7, lanes))
    print(f"lru_cache: {sum(missed for missed, _ in found)} misses of {20 * lanes}, all as in plain Python")


if __name__ == "__main__":
    main()
