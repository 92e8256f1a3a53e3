"""What is said of methods, against the tables that it takes the place of."""

from __future__ import annotations

import pytest

import pcbatch
from pcbatch.containers import catalogue

TABLES = {
    "changes": "append appendleft extend extendleft insert pop popleft popitem remove discard clear sort reverse rotate update "
    "setdefault move_to_end add fill subtract intersection_update difference_update symmetric_difference_update "
    "put put_nowait get_nowait heapq.heappush heapq.heappop heapq.heapify heapq.heappushpop heapq.heapreplace bisect.insort_left bisect.insort_right",
    "changes_bare": "get",
    "ambiguous": "sort add update fill",
    "only_drops": "pop popitem clear remove discard difference_update intersection_update",
    "moves": "append appendleft extend extendleft insert pop popleft remove rotate clear",
    "only_stores": "setdefault update add",
    "grows": "append extend",
    "removes": "pop popleft popitem heapq.heappop",
    "stepwise": "extend extendleft update subtract difference_update",
    "one": "extend extendleft",
    "iterates": "extend extendleft join update subtract union intersection difference symmetric_difference intersection_update "
    "difference_update symmetric_difference_update issubset issuperset isdisjoint",
    "views": "keys values items",
    "by_index": "pop insert",
    "by_value": "remove",
}


@pytest.mark.parametrize("fact", TABLES)
def test_tables(fact: str) -> None:
    assert {name for name in catalogue._facts if getattr(catalogue.facts(name), fact)} == set(TABLES[fact].split())
