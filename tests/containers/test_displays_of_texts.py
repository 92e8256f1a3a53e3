"""Sets and dicts that comprehensions make of known sequences, whose elements are texts and tuples of the lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]


def suits(n):
    words = "ab cd ab ef".split()[: n + 1]
    hand = [(1, words[0]), (2, words[1])]
    return len({suit for _, suit in hand}) == 1


def places(n):
    hand = [(1, "ab"[:n]), (2, "ab"[:2])]
    return {suit: k for k, suit in hand}["ab"], len({suit for _, suit in hand})


def lengths(n):
    text, counts = str(n), {}
    for k, x in [(1, text), (2, "2")]:
        counts[x] = counts.get(x, 0) + k
    return counts["2"], len({c for c in [text, "1"]}), {c: len(c) for c in (text, text + "0")}[text]


def tuples(n):
    t = tuple(range(n))
    return len({x for x in [t, (0,), (0, 1)]})


@pytest.mark.parametrize("program", [suits, places, lengths, tuples], ids=lambda program: program.__name__)
def test_comprehensions_over_known_sequences(program: Callable[[int], Any]) -> None:
    found = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(found, k)), as_plain(program(n)), 0.0), (program.__name__, n)
