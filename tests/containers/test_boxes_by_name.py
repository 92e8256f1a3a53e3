"""Dicts by name that have several names and change: records of the lane with a field for each key, copied and asked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]


class Missing(Exception):
    def __init__(self, amount):
        self.amount = amount


def orders_of(n):
    return [{"who": "ab"[k % 2] * 2, "what": "xy"[k * n % 2], "n": k + n} for k in range(4)]


def copies(n):
    orders = orders_of(n)
    for o in orders:
        o["n"] += 1
    return [dict(o)["n"] for o in orders]


def copies_with_more(n):
    orders = orders_of(n)
    for o in orders:
        o["n"] += 1
    w = [{**o, "missing": 1} for o in orders]
    return [x["n"] + x["missing"] for x in w], w[0]["who"]


def questions(n):
    orders = orders_of(n)
    for o in orders:
        o["n"] += 1
    return (
        [o.get("n", 0) for o in orders],
        [o.get("zz", 7) for o in orders],
        "who" in orders[0],
        "zz" in orders[0],
        len(orders[1]),
    )


def equality_and_texts(n):
    orders = orders_of(n)
    for o in orders:
        o["n"] += 1
    return orders[0] == orders[1], orders[0] == dict(orders[0]), list(orders[0]), f"{orders[0]}"


def sorted_rows(n):
    orders = orders_of(n)
    for o in orders:
        o["n"] += 1
    orders.sort(key=itemgetter("who"))
    return [(o["who"], o["n"]) for o in orders]


def groups_of_rows(n):
    orders = orders_of(n)
    for o in orders:
        o["n"] += 1
    return [(k, sum(o["n"] for o in g)) for k, g in groupby(orders, key=lambda o: o["who"])]


def merged_rows(n):
    merged = {}
    for row in orders_of(n):
        key = (row["who"], row["what"])
        if key in merged:
            merged[key]["n"] += row["n"]
        else:
            merged[key] = dict(row)
    return [o["n"] for o in merged.values()], [o["who"] for o in merged.values()]


def copies_that_change(n):
    orders = orders_of(n)
    first = orders[0]
    c = dict(first)
    c["n"] = 100
    first["n"] += 5
    d = orders[0].copy()
    d["n"] += 1
    return c["n"], orders[0]["n"], first["n"], d["n"]


def lists_in_rows(n):
    orders = [{"who": "a", "tags": [1], "n": n} for _ in range(2)]
    o = orders[0]
    o["n"] += 1
    t = o.get("tags")
    t.append(7)
    return [x["tags"] for x in orders], orders[0]["n"]


def items_of_a_row(n):
    orders = orders_of(n)
    o = orders[n % 4]
    t = 0
    for k, v in o.items():
        if k == "n":
            t += v
        o["n"] += 10
    return t, orders[n % 4]["n"]


def copies_by_a_method(n):
    orders = orders_of(n)
    cs = [o.copy() for o in orders]
    first = cs[n % 4]
    first["n"] += 100
    key = (first["who"], first["what"])
    return [c["n"] for c in cs], [o["n"] for o in orders], key


def merged_copies(n):
    orders = orders_of(n)
    by = {}
    for o in orders:
        k = (o["who"], o["what"])
        if k in by:
            by[k]["n"] += o["n"]
        else:
            by[k] = o.copy()
    return [o["n"] for o in by.values()], [o["n"] for o in orders]


def merged_spreads(n):
    orders = orders_of(n)
    by = {}
    for o in orders:
        k = (o["who"], o["what"])
        if k in by:
            by[k]["n"] += o["n"]
        else:
            by[k] = {**o}
    return [o["n"] for o in by.values()], [o["n"] for o in orders]


def kept_by_setdefault(n):
    orders = orders_of(n)
    by = {}
    for o in orders:
        by.setdefault((o["who"], o["what"]), o)["n"] += 1
    return [o["n"] for o in by.values()], [o["n"] for o in orders]


def totals_and_rows(n):
    orders = orders_of(n)
    by = {}
    for o in orders:
        by[o["who"], o["what"]] = {"who": o["who"], "total": 0, "rows": []}
    for o in orders:
        e = by[o["who"], o["what"]]
        e["total"] += o["n"]
        e["rows"].append(dict(o))
    out = []
    for e in by.values():
        r = e["rows"]
        r[0]["n"] += 50
        out.append((e["who"], e["total"], [x["n"] for x in r]))
    return out, [o["n"] for o in orders]


def names_of_copies(n):
    a = {"x": n, "t": "s"}
    b = dict(a)
    c = b
    c["x"] += 1
    a["x"] += 10
    d = {"x": a, "y": b}
    d["y"]["x"] += 100
    return a["x"], b["x"], c["x"], d["x"] is a, d["y"] is c, {**c, "z": 1}["x"]


def texts_of_arguments(n):
    rows = [("b", "x", n), ("a", "y", 4), ("a", "b", 5)]
    orders = [{"who": a, "what": b, "n": k} for a, b, k in rows]
    for o in orders:
        o["n"] += 1
    return (
        [dict(o)["n"] for o in orders],
        [o.get("n", 0) for o in orders],
        orders[0] == orders[1],
        [len(o) for o in orders],
    )


def refused_payment(n):
    bank = {name: {"owner": name, "balance": 10 * n, "log": []} for name in ("ann", "bob")}
    failed = 0
    for name, amount in (("ann", 15), ("bob", 5), ("ann", 8)):
        account = bank[name]
        try:
            if account["balance"] < amount:
                raise Missing(amount - account["balance"])
            account["balance"] -= amount
            account["log"].append(amount)
        except Missing as e:
            failed += e.amount
    return failed, [a["balance"] for a in bank.values()], [len(a["log"]) for a in bank.values()]


PROGRAMS = (
    copies, copies_with_more, questions, equality_and_texts, sorted_rows, groups_of_rows, merged_rows,
    copies_that_change, lists_in_rows, items_of_a_row, texts_of_arguments, refused_payment,
    copies_by_a_method, merged_copies, merged_spreads, kept_by_setdefault, totals_and_rows, names_of_copies,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_rows_with_names(program: Callable[[int], Any]) -> None:
    found = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(found, k)), as_plain(program(n)), 0.0), (program.__name__, n)
