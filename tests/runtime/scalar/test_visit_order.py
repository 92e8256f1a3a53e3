"""Visits of a lane alone load in front of stores, and do not write what may hold anything."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.scalar.native import LOAD
from pcbatch.runtime.scalar.rules import ForOneLane
from pcbatch.runtime.scalar.visit_order import Ordered

LANES = 3


def graph_of(edges):
    graph = defaultdict(dict)
    for u, v, w in edges:
        graph[u][v] = min(w, graph[u].get(v, w))
        graph[v][u] = min(w, graph[v].get(u, w))
    return len(graph), sum(len(row) for row in graph.values()), max(w for row in graph.values() for w in row.values())


def buckets_of(edges):
    """Count edges by their weights: a key that is lacking is stored where it is read, behind a look at another one."""
    counts: dict[int, int] = {}
    buckets = defaultdict(dict)
    for u, v, w in edges:
        n = counts.get(u, 0)
        if u in buckets[n]:
            del buckets[n][u]
            if not buckets[n]:
                del buckets[n]
        counts[u] = n + 1
        buckets[n + 1][u] = w + v
    return len(buckets), max(buckets), sum(sum(row.values()) for row in buckets.values())


def sums_of(xs):
    counts: dict[int, int] = {}
    for x in xs:
        counts[x] = counts.get(x, 0) + 1
    fresh: dict[int, int] = {}
    for x, n in counts.items():
        fresh[n] = fresh.get(n, 0) + x
    return list(fresh.items())


@pytest.mark.parametrize("function", [graph_of, buckets_of])
def test_no_loop_copies_a_table_of_tables(function: Any) -> None:
    edges = [[(0, 1, 5), (1, 2, 3), (0, 1, 4)], [(7, 7, 1)], [(k, k + 1, k) for k in range(9)]]
    f = pcbatch.batch(function, plan=pcbatch.Plan(emitter="scalar"))
    found = f(pcbatch.ragged(edges))
    assert [tuple(int(part[k]) for part in found) for k in range(LANES)] == list(map(function, edges))
    text = f.lower(pcbatch.ragged(edges)).compile().as_text()
    table = r"s32\[\d+,8,\d+,8\]"
    assert re.search(rf"{table}\S* dynamic-update-slice\(", text)
    assert len(re.findall(rf"= {table}\S* copy\(", text)) <= 3  # keys, values and stamps, before the first lane


def test_places_of_an_empty_dict_are_not_written() -> None:
    """Only the stamps are, which say that no place is in use; dicts of earlier lanes are not seen."""
    xs = [[1, 2, 2, 3], [5, 5], [1, 9, 9, 1, 7]]
    f = pcbatch.batch(sums_of, plan=pcbatch.Plan(emitter="scalar"))
    assert f(pcbatch.ragged(xs)).tolist() == list(map(sums_of, xs))

    def empty_and_one(held: dict[str, Any]) -> dict[str, Any]:
        empty: Any = jax.lax.empty
        return {"keys": empty((4,), jnp.int32), "n": held["n"] + 1}

    held = {"keys": jnp.arange(4), "n": jnp.int32(0)}
    assert Ordered.of(empty_and_one, held)(held) == {"n": 1}


@pytest.mark.parametrize("depends", [False, True])
def test_a_store_comes_behind_what_is_loaded_before_it(depends: bool) -> None:
    """The array of a store that needs nothing of the load comes out of the load's call."""

    def visit(held: dict[str, Any], k: Any) -> dict[str, Any]:
        row = jax.lax.dynamic_slice(held["table"], (k, 0), (1, 8))
        new = row * 2 if depends else jnp.ones((1, 8))
        return {"table": jax.lax.dynamic_update_slice(held["table"], new, (k + 1, 0)), "row": row}

    held = {"table": jnp.arange(512.0).reshape(64, 8), "row": jnp.zeros((1, 8))}
    run = jex.jaxpr_as_fun(ForOneLane().inner(jax.make_jaxpr(visit)(held, 3)))

    def rewritten(held: dict[str, Any], k: Any) -> dict[str, Any]:
        return dict(zip(("row", "table"), run(*jax.tree.leaves(held), k), strict=True))

    ordered = Ordered.of(rewritten, held, 3)
    (load,) = [eqn for eqn in ordered.closed.eqns if eqn.params.get("name") in (LOAD, "both")]
    assert len(load.outvars) == (1 if depends else 2)
    want = visit(held, 3)
    assert all(np.array_equal(value, want[key]) for key, value in ordered(held, 3).items())
