"""Dicts and sets as arguments, other ones in each lane: `pcbatch.ragged`."""

from __future__ import annotations

import collections
import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import ragged

pytestmark = pytest.mark.share(2)

DICTS: list[list[Any]] = [
    [{"A": ["B", "C"], "B": []}, {}],
    [{1: {2: 3}, 4: {}}, {}],
    [[{"a": 1}, {"b": 2}, {}], []],
    [{(1, "a"): (2, 0.5)}, {}],
    [{1, 2}, set()],
    [frozenset({(1, 2)})],
    [[{"b": 1, "a": 2}, {"a": 3, "b": 1}]],
    [{1: {3, 4}}, {2: set()}],
    [{}, {}],
    [{1.5: 2, 2.5: 3}, {7.0: 4}],
    [{k * 64: k for k in range(300)}, {5: 7}],
    [{"a": {"n": [1, 2]}, "b": {"n": []}}],
    [[({1: 2}, 3)], []],
]


class TestMaking:
    @pytest.mark.parametrize("given", DICTS)
    def test_it_gives_back_what_it_was_made_of(self, given: list[Any]) -> None:
        r = ragged(given)
        assert str(r.tolist()) == str(given)
        assert [r[k] for k in range(len(r))] == given
        assert r[:1] == given[:1]

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ([{1: 2}, [3]], "has a dict for lane 0"),
            ([{1, 2}, frozenset()], "has a set for lane 0"),
            ([{1: 2}, {"a": 3}], "let the keys be of one kind"),
            ([{"name": "bob", "age": 3}], "(?s)values of dicts .* give one dict with an argument for each"),
            ([collections.Counter("ab")], "begin the function with `d = Counter"),
            ([{None: 3}], "keys are numbers, texts"),
            ([{(): 3}], "keys are numbers, texts"),
            ([{frozenset({1}): 2}], "keys are numbers, texts"),
            ([{0.1: 1, 0.1 + 1e-12: 2}], "one float in float32"),
            ([{float("nan"): 1}], "are NaN"),
            ([{2**40: 1}], "do not fit int32"),
        ],
    )
    def test_what_is_refused(self, given: list[Any], why: str) -> None:
        with pytest.raises(pcbatch.UsageError, match=why):
            ragged(given)


def words(env: dict[str, int], extra: list[str]) -> Any:
    known = [(name, env[name]) for name in env]
    total = env.get("x", 100) + sum(env.values()) + len(env)
    if "y" in env:
        del env["y"]
    for word in extra:
        env[word] = env.get(word, 0) + 1
    return known, total, env


def reached(graph: dict[str, list[str]], costs: dict[tuple[int, int], float], places: set[int], start: str) -> Any:
    found, queue = {start: 0}, collections.deque([start])
    while queue:
        here = queue.popleft()
        for there in graph.get(here, []):
            if there not in found:
                found[there] = found[here] + 1
                queue.append(there)
    graph[start].append("end")
    places.add(len(found))
    return found, graph, costs.get((1, len(found)), -1.0), sorted(places), 3 in places, {v: k for k, v in costs.items()}


class TestArguments:
    def test_dicts_that_grow_and_shrink(self) -> None:
        envs: list[dict[str, int]] = [{"x": 3, "y": 4}, {"z": 7}, {"y": 1, "x": -2, "w": 0}]
        extra = [["q", "x"], [f"w{k}" for k in range(40)], []]
        given = ragged(envs)
        f = pcbatch.batch(words)
        for _ in range(2):
            found = f(given, ragged(extra))
            want = [words(copy.deepcopy(env), more) for env, more in zip(envs, extra, strict=True)]
            assert [*zip(*(part.tolist() for part in found), strict=True)] == want
            assert [[*d] for d in found[2].tolist()] == [[*row[2]] for row in want]
        assert given.tolist() == envs
        assert pcbatch.batch(lambda env: len(env))(found[2]).tolist() == [2, 41, 2]

    def test_a_lane_without_a_key_raises(self) -> None:
        @pcbatch.batch
        def f(d, key):
            return d[key]

        status = f.run(ragged([{5: 1}, {4: 1}, {}]), jnp.array([5, 5, 5])).status
        assert [int(s) == 0 for s in status] == [True, False, False]

    def test_graphs_and_keys_of_pairs(self) -> None:
        graphs: list[dict[str, list[str]]] = [{"A": ["B", "C"], "B": ["D"], "C": ["D"], "D": []}, {"s": []}]
        costs = [{(1, 4): 0.5, (2, 1): 3.0}, {(1, 1): 2.0}]
        places = [{3, 9}, {1}]
        columns = ragged(graphs), ragged(costs), ragged(places), ragged(["A", "s"])
        found = pcbatch.batch(reached)(*columns)
        want = [reached(*copy.deepcopy(row)) for row in zip(graphs, costs, places, ["A", "s"], strict=True)]
        assert [*zip(*(part.tolist() for part in found), strict=True)] == want

    def test_dicts_in_lists_and_dicts_in_dicts(self) -> None:
        rows = [[{"ab": 2, "c": 1}, {"bonus": 4}], [], [{}]]
        nets = [{1: {2: 7, 3: 2}, 2: {}}, {5: {1: 1}}, {}]

        @pcbatch.batch
        def f(rows, net):
            total = 0
            for row in rows:
                for key, value in row.items():
                    total += value * len(key)
            for key in list(net):
                net[key][9] = len(net[key])
            return total, rows, net, {u: sum(v.values()) for u, v in net.items()}

        found = f(ragged(rows), ragged(nets))
        want = [f.plain(*copy.deepcopy(row)) for row in zip(rows, nets, strict=True)]
        assert [*zip(*(part.tolist() for part in found), strict=True)] == want

    def test_one_list_of_dicts_for_all_lanes(self) -> None:
        f = pcbatch.batch(lambda dicts, n: dicts[n].get(n, 5), in_axes=(None, 0))
        assert f(ragged([{0: 3}, {}, {2: 8, 1: 1}]), np.arange(3)).tolist() == [3, 5, 8]

    def test_inside_jit_and_of_other_lengths(self) -> None:
        f = pcbatch.batch(lambda d: sum(d.values()))
        assert jax.jit(f)(ragged([{1: 2, 7: 5}, {}])).tolist() == [7, 0]
        assert f.plain({1: 2}) == 2
        assert f(ragged([{1: 2, 7: 5, 4: 4, 9: 1}])).tolist() == f(ragged([{3: 2, 7: 5, 1: 5}])).tolist() == [12]
