"""Which cases of a test a run takes, and how many examples of Hypothesis.

A usual run takes a share of what is marked `share`. A quick one takes of these cases so many of each test as took
`BUDGET` seconds when they were measured (`seconds.json`, by `python -m tools.suite --record-seconds`): which, is a
matter of the test's name. A test of one case that took longer has its turn in one of several tests.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from zlib import crc32

SECONDS = Path(__file__).with_name("seconds.json")
BUDGET = 0.6

full = False  # or else a run with `--full`, or of tests that are asked for by name; told before tests are imported


def in_share(number: int, one_in: int, *places: int) -> bool:
    """One of each `one_in` cases in a row (or those of these places), of each row others, so that parameters vary."""
    return (number - number // one_in) % one_in in (places or (0,))


def examples(number: int, usual: int) -> int:
    """Return how many examples Hypothesis draws: this number, and so many in a usual run."""
    return number if full else usual


@lru_cache
def seconds() -> dict[str, float]:
    """Return the seconds that all usual cases of a test took, by its node, where they were more than `BUDGET`."""
    found: dict[str, float] = json.loads(SECONDS.read_text("utf-8"))
    return found


def is_quick(suite: str, number: int) -> bool:
    """Return whether a quick run takes a case, by the node of its test and its number among the usual ones."""
    turns = math.ceil(seconds().get(suite, 0.0) / BUDGET)
    return turns < 2 or (number + crc32(suite.encode())) % turns == 0
