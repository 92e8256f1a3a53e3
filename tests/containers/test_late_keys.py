"""Dicts by name that get keys later, on some ways through the program or at some of the places that make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]


def rows_of(n):
    return [{"id": k, "qty": n + k, "name": "ab"[k % 2] * (k + 1)} for k in range(3)]


def totals(n):
    rows = rows_of(n)
    for r in rows:
        r["total"] = r["qty"] * 2
    for r in rows:
        r["total"] += 1
        r["label"] = r["name"] + "!"
    return rows


def of_displays(n):
    people = [{"name": "a", "age": n}, {"name": "b", "age": n + 1}]
    for p in people:
        p["adult"] = p["age"] > 2
    return [p["name"] for p in people if p["adult"]]


def on_some_ways(n):
    rows = rows_of(n)
    for r in rows:
        if r["qty"] > 3:
            r["big"] = r["qty"] * 2
    there = sum(1 for r in rows if "big" in r), sum(1 for r in rows if "big" not in r)
    return there, [r.get("big", -1) for r in rows], "id" in rows[0], "zz" in rows[0]


def caught(n):
    rows = rows_of(n)
    for r in rows[1:]:
        if r["qty"] > 2:
            r["big"] = r["qty"]
    out = []
    for r in rows:
        try:
            out.append(r["big"])
        except KeyError:
            out.append(-1)
    return out


def filled(n):
    out = []
    for k in range(n):
        row = {}
        row["id"] = k
        row["name"] = "n" * k
        out.append(row)
    for r in out:
        r["score"] = r["id"] * 1.5
    return max(out, key=lambda r: r["score"])["name"], out[-1]["score"]


def lists_in_late_keys(n):
    rows = [{"id": k} for k in range(3)]
    for r in rows:
        r["tags"] = [n]
    t = rows[0]["tags"]
    t.append(5)
    rows[1]["tags"] += [7]
    for r in rows:
        r["tags"].append(r["id"])
    return [r["tags"] for r in rows], t


def by_another_name(n):
    rows = rows_of(n)
    first = rows[0]
    if n > 1:
        first["x"] = n
    return first.get("x"), rows[0].get("x", -1), len([r for r in rows if r.get("x")])


def made_at_two_places(n):
    rows = [{"id": 1, "k": n, "t": "x"}, {"id": 2, "t": "y"}]
    for r in rows:
        r["id"] += 1
    return [r.get("k", 0) + r["id"] for r in rows]


def in_groups(n):
    rows = rows_of(n)
    groups = {}
    for r in rows:
        r["key"] = r["name"][0]
        groups.setdefault(r["key"], []).append(r)
    for group in groups.values():
        for r in group:
            r["size"] = len(group) + n
    return [r["size"] for r in rows]


def grades(n):
    students = [{"name": "a", "marks": [n, 2, 3]}, {"name": "b", "marks": [4, n]}]
    for s in students:
        s["avg"] = sum(s["marks"]) / len(s["marks"])
        s["grade"] = "A" if s["avg"] > 2.5 else "B"
    students.sort(key=lambda s: s["avg"], reverse=True)
    return [(s["name"], s["grade"]) for s in students]


def asked_as_a_whole(n):
    rows = [{"id": k} for k in range(3)]
    for r in rows:
        if r["id"] < n:
            r["seen"] = 7
    del rows[0]["seen"]
    return len(rows[0]), rows[0] == rows[1], [sorted(r.keys()) for r in rows], [sum(r.values()) for r in rows]


def updated(n):
    rows = rows_of(n)
    first = rows[0]
    for r in rows:
        r.update(qty=r["id"], id=r["qty"], both=r["qty"] + r["id"])
        r.update({"tags": [n], "text": r["name"] * 2})
        r["tags"].append(r["id"])
    return [(r["qty"], r["id"], r["both"], r["tags"], r["text"]) for r in rows], first["both"]


def before_they_are_stored(n):
    rows = []
    for k in range(n + 1):
        row = {"id": k}
        if k % 2:
            row["odd"] = True
        rows.append(row)
    return sum(1 for r in rows if r.get("odd")), [("odd" in r) for r in rows]


def by_a_key(n):
    by = {r["id"]: r for r in rows_of(n)}
    by[n % 3]["chosen"] = n
    return [r.get("chosen") for r in by.values()]


def rows_in_late_keys(n):
    rows = rows_of(n)
    for r in rows:
        r["inner"] = {"k": n}
    for r in rows:
        r["inner"]["m"] = r["id"] + n
    return [r["inner"]["m"] * 10 + r["inner"]["k"] for r in rows]


PROGRAMS = (
    totals, of_displays, on_some_ways, caught, filled, lists_in_late_keys, by_another_name, made_at_two_places,
    in_groups, grades, asked_as_a_whole, updated, before_they_are_stored, by_a_key, rows_in_late_keys,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_rows_that_get_keys_later(program: Callable[[int], Any]) -> None:
    found = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(found, k)), as_plain(program(n)), 1e-6), (program.__name__, n)


def lacking(n):
    rows = rows_of(n)
    for r in rows:
        if r["qty"] > 2:
            r["big"] = True
    return rows


def test_a_row_that_is_returned_without_a_key_stops_its_lane() -> None:
    result = pcbatch.batch(lacking).run(np.array([1, 2, 3]))
    assert [code > 0 for code in result.status.tolist()] == [True, True, False]
    with pytest.raises(pcbatch.BatchRuntimeError, match="is returned without the key 'big'"):
        pcbatch.batch(lacking)(np.array([2]))


def none_later(n):
    rows = [{"id": k} for k in range(3)]
    for r in rows:
        r["v"] = None if n > 1 else 3
    return [r["v"] for r in rows]


def test_none_in_a_late_key_is_refused_with_the_line() -> None:
    with pytest.raises(pcbatch.CompileError, match="put the key into the display, with None as its first value"):
        pcbatch.batch(none_later).lower(np.array(LANES))


def in_a_trie(n):
    root = {}
    for word in ["ab", "abc", "b"][:n]:
        node = root
        for c in word:
            node = node.setdefault(c, {})
    return len(root), len(root["a"]), "c" in root["a"]["b"]


def test_nodes_of_a_trie_by_setdefault() -> None:
    found = pcbatch.batch(in_a_trie)(np.array(LANES))
    assert [tuple(lane_of(found, k)) for k in range(3)] == [in_a_trie(n) for n in LANES]
