"""Keys of dicts and bounds of slices that are None in some lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")


def with_default(n):
    seen = {}
    for k in range(4):
        seen[k] = k * k
    key = n if n < 3 else None
    return seen.get(key, -1), key in seen


def texts(n):
    seen = {}
    for k in range(4):
        seen[str(k)] = k
    key = str(n) if n < 3 else None
    return seen.get(key, -1)


def pairs(n):
    seen = {}
    for k in range(4):
        seen[k, k] = k
    key = (n, n) if n < 3 else None
    return seen.get(key, -1)


class Node:
    def __init__(self, key=None, value=0):
        self.key = key
        self.value = value
        self.next = None


def of_objects(n):
    """The key of a sentinel is None, and no key of the dict."""
    head = Node()
    found = {}
    for k in range(3):
        node = Node(k * n, k)
        node.next, head.next = head.next, node
        found[node.key] = node.value
    total, node = 0, head.next
    while node is not None:
        total = total * 10 + found[node.key]
        del found[node.key]
        node = node.next if n > 0 else None
    return total, len(found)


def slices(n):
    end = None
    if n > 2:
        end = n - 1
    xs = [1, 2, 3, 4, 5]
    grown = [k + n for k in range(n)]
    s = "abcdefg"
    return xs[:end], xs[end:], s[end:], s[:end], xs[::end], grown[end:], grown[-1:end]


@pytest.mark.parametrize("fn", [with_default, texts, pairs, of_objects, slices])
def test_lanes_are_those_of_plain_python(fn: Callable[..., Any]) -> None:
    ns = range(6)
    found = pcbatch.batch(fn)(np.array(ns))
    assert [as_plain(lane_of(found, n)) for n in ns] == [as_plain(fn(n)) for n in ns]


def test_a_lane_stops_where_none_would_be_a_key() -> None:
    def stores(n):
        key = n if n < 3 else None
        seen = {}
        seen[key] = n
        return len(seen)

    result = pcbatch.batch(stores).run(np.arange(5))
    assert [int(status) for status in result.status] == [0, 0, 0, 7, 7]
