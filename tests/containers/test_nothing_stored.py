"""Lists without an element, tuples without one, and None among the values of dicts: every lane equals plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.diagnostics.following import lanes_of

pytestmark = pytest.mark.promotion("standard")
GRAPHS = [{"a": ["b", "c"], "b": ["c"], "c": []}, {"a": ["b"], "b": [], "c": []}, {"a": ["c"], "b": ["c"], "c": []}]


def value(result: Any, lane: int) -> Any:
    """The value of a lane, as Python's own."""
    if isinstance(result, dict):
        return {key: value(part, lane) for key, part in result.items()}
    if isinstance(result, tuple):
        return tuple(value(part, lane) for part in result)
    return result.tolist()[lane] if hasattr(result, "tolist") else lanes_of(result, lane)


def reached(graph: dict[str, list[str]], start: str) -> list[str]:
    found = []
    stack = [start]
    while stack:
        node = stack.pop()
        if node not in found:
            found.append(node)
            for other in graph[node]:
                stack.append(other)
    return found


def test_a_list_that_is_empty_in_all_lanes_takes_the_type_of_the_others() -> None:
    graph = {key: pcbatch.ragged([g[key] for g in GRAPHS]) for key in "abc"}
    got = pcbatch.batch(reached)(graph, pcbatch.ragged(["a", "a", "b"]))
    assert got.tolist() == [reached(g, start) for g, start in zip(GRAPHS, "aab", strict=True)]


def questions(parts: dict[str, list[int]], k: int) -> Any:
    xs = parts["b"]
    read = xs[k] + 1 if k < len(xs) else k
    chosen = parts["a" if k else "b"]
    return read, max(xs, default=7), sorted(xs), [x * 2 for x in xs], sum(chosen), xs == parts["a"], xs < parts["a"]


def grown(parts: dict[str, list[int]], k: int) -> Any:
    parts["b"].append(k)
    return parts


@pytest.mark.parametrize("f", [questions, grown])
def test_a_list_that_is_empty_in_all_lanes_is_read_and_grows(f: Any) -> None:
    rows = [[1, 2], [3], []]
    got = pcbatch.batch(f)({"a": pcbatch.ragged(rows), "b": pcbatch.ragged([[], [], []])}, np.arange(3))
    for lane, row in enumerate(rows):
        assert value(got, lane) == f({"a": list(row), "b": []}, lane)


def subsets(xs: list[int]) -> list[tuple[int, ...]]:
    found: set[tuple[int, ...]] = set()
    _choose(found, xs, [], 0)
    return sorted(found)


def _choose(found: set[tuple[int, ...]], xs: list[int], chosen: list[int], k: int) -> None:
    if k == len(xs):
        found.add(tuple(chosen))
    else:
        chosen.append(xs[k])
        _choose(found, xs, chosen, k + 1)
        chosen.pop()
        _choose(found, xs, chosen, k + 1)


def test_an_empty_tuple_among_tuples_of_any_length() -> None:
    rows = [[1, 2, 2], [1, 2], [], [3, 1, 2]]
    assert pcbatch.batch(subsets)(pcbatch.ragged(rows)).tolist() == [subsets(list(row)) for row in rows]


def many(n: int, k: int) -> Any:
    xs = [(0,)]
    xs.pop()
    for _ in range(n):
        xs.append(())
    if k:
        xs.append(tuple(range(k)))
    return len(xs), xs[-1], xs[n // 2], xs


def test_more_empty_tuples_than_there_was_room_for() -> None:
    rows = [(100, 0), (3, 2), (40, 5), (0, 3)]
    got = pcbatch.batch(many)(*map(np.array, zip(*rows, strict=True)))
    for lane, row in enumerate(rows):
        assert value(got, lane) == many(*row)


def looked_up(n: int) -> Any:
    found: dict[int, int | None] = {}
    for k in range(3):
        found[k] = None
    found[2] = 1
    beside = found.get(n, 5)
    popped = found.pop(n, None)
    return found.get(0), found.get(n), beside, popped, found.setdefault(n, None), found.get(n) is None


def test_none_is_found_where_it_is_stored() -> None:
    got = pcbatch.batch(looked_up)(np.arange(5))
    for lane in range(5):
        assert value(got, lane) == looked_up(lane)


def path(n: int) -> list[str]:
    before = {"s": None, "a": "s", "b": "a"}
    before["b"] = "s" if n == 5 else "a"
    node = "sab"[n % 3] if n < 9 else None
    found = []
    while node is not None:
        found.append(node)
        node = before.get(node + "")
    return found


def test_a_chain_that_ends_with_none() -> None:
    assert pcbatch.batch(path)(np.arange(12)).tolist() == [path(n) for n in range(12)]
