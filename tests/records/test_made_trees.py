"""Trees of nodes that lanes make, whose fields are dicts, sets and deques: search, sharing, results, room."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Position:
    """A position of Nim in a search tree."""

    def __init__(self, stones, turn, parent):
        self.stones = stones
        self.turn = turn
        self.parent = parent
        self.children = {}
        self.wins = 0.0
        self.visits = 0


def searched(stones, key, rounds):
    root = Position(stones, 1, None)
    for _ in range(rounds):
        node = root
        while node.stones > 0 and len(node.children) == min(3, node.stones):
            parent = node
            node = max(
                node.children.values(),
                key=lambda c: c.wins / c.visits + 1.4 * math.sqrt(math.log(parent.visits) / c.visits),
            )
        if node.stones > 0:
            for move in range(1, 4):
                if move <= node.stones and move not in node.children:
                    child = Position(node.stones - move, -node.turn, node)
                    node.children[move] = child
                    node = child
                    break
        left, turn = node.stones, node.turn
        while left > 0:
            key, drawn = jax.random.split(key)
            left -= jax.random.randint(drawn, (), 1, min(3, left) + 1)
            turn = -turn
        while node is not None:
            node.visits += 1
            if node.turn == turn:
                node.wins += 1.0
            node = node.parent
    best = max(root.children.items(), key=lambda item: item[1].visits)
    return best[0], root.visits, sum(m * c.visits for m, c in root.children.items())


def test_a_tree_search_as_it_is_written():
    f = pcbatch.batch(searched)
    stones, rounds, keys = [3, 5, 7], [30, 10, 20], jax.random.split(jax.random.key(0), 3)
    found = f(jnp.array(stones), keys, jnp.array(rounds))
    expected = [f.plain(*lane) for lane in zip(stones, keys, rounds, strict=True)]
    assert [part.tolist() for part in found] == [list(part) for part in zip(*expected, strict=True)]


class Node:
    """A node whose fields are containers of all kinds."""

    def __init__(self, v):
        self.v = v
        self.kids = {}
        self.seen = set()
        self.ends = deque()
        self.log = []


def chain(n):
    root = Node(0)
    x = root
    for i in range(n):
        x.kids[i] = Node(i)
        x.seen.add(i)
        x.ends.appendleft(i)
        x.ends.append(i)
        x.log.append({i: 1})
        x = x.kids[i]
    return root


def shown(x: Any) -> Any:
    if isinstance(x, Node):
        return x.v, shown(x.kids), x.seen, shown(x.ends), shown(x.log)
    if isinstance(x, dict):
        return {k: shown(v) for k, v in x.items()}
    return [shown(v) for v in x] if isinstance(x, list | deque) else x


def test_results_are_objects_with_such_fields():
    f = pcbatch.batch(chain)
    assert [shown(x) for x in f(jnp.array([1, 4])).tolist()] == [shown(f.plain(n)) for n in (1, 4)]


def rows(n):
    found, ends, sets = [], [deque() for _ in range(n)], [set() for _ in range(n)]
    for i in range(n):
        found.append({i: i * 2, i + 1: 3})
        ends[i // 2].appendleft(i)
        sets[i].add(i)
    return found, ends, sets


def test_lists_of_dicts_deques_and_sets_as_results():
    f = pcbatch.batch(rows)
    expected = zip(*map(f.plain, (1, 4)), strict=True)
    assert [part.tolist() for part in f(jnp.array([1, 4]))] == [list(map(list, part)) for part in expected]


def grown(n):
    d, root = {}, Node(0)
    for i in range(n):
        d[i] = {}
        root.kids[i] = Node(i)
        for j in range(40):
            d[i][j] = j
            root.kids[i].ends.append(j)
            if j > 10:
                root.kids[i].ends.popleft()
    return len(d[0]), sum(d[n - 1].values()), sum(root.kids[0].ends)


def test_containers_inside_others_get_more_room():
    f = pcbatch.batch(grown)
    found = f(jnp.array([1, 3]))
    assert list(zip(*(part.tolist() for part in found), strict=True)) == [f.plain(n) for n in (1, 3)]


def of_a_copy(n):
    g = [{} for _ in range(n)]
    h = g[:]
    h[0][5] = 1
    return len(g[0])


def of_two_nodes(n):
    one, other = Node(0), Node(1)
    other.kids = one.kids
    one.kids[n] = Node(2)
    return len(other.kids)


def of_one_set_in_a_list(n):
    g, s = [], set()
    for i in range(n):
        s.add(i)
        g.append(s)
    return sum(len(x) for x in g)


@pytest.mark.parametrize("fn", [of_a_copy, of_two_nodes, of_one_set_in_a_list])
def test_both_names_show_a_change(fn):
    assert pcbatch.batch(fn)(jnp.array([2, 3])).tolist() == [fn(2), fn(3)]


def of_another_name(n):
    root = Node(0)
    kids = root.kids
    for i in range(n):
        kids[i] = Node(i)
    return len(root.kids) + len(kids)


def test_a_dict_of_a_record_has_a_name():
    assert pcbatch.batch(of_another_name)(jnp.array([1, 4])).tolist() == [2, 8]


class Branch:
    """A node that holds a list and a dict of nodes."""

    def __init__(self, v):
        self.v = v
        self.parts = []
        self.named = {}


def branched(depth):
    node = Branch(depth)
    for _ in range(depth):
        node.parts.append(branched(depth - 1))
    return node


def grown_by_name(depth):
    node = Branch(depth)
    for k in range(depth):
        node.named[k] = grown_by_name(depth - 1)
    return node


class Whole:
    """A node that gets the list of its parts when it is made."""

    def __init__(self, v, parts):
        self.v = v
        self.parts = parts


def grown_at_once(depth):
    return Whole(depth, [grown_at_once(depth - 1) for _ in range(2)] if depth else [])


def worth(node):
    return node.v + 2 * sum(worth(part) for part in node.parts)


def worth_by_name(node):
    return node.v + 3 * sum(worth_by_name(part) for part in node.named.values())


@pytest.mark.parametrize(
    "fn",
    [lambda n: worth(branched(n)), lambda n: worth_by_name(grown_by_name(n)), lambda n: worth(grown_at_once(n))],
)
def test_trees_that_a_recursion_makes(fn):
    assert pcbatch.batch(fn)(jnp.arange(4)).tolist() == [fn(n) for n in range(4)]
