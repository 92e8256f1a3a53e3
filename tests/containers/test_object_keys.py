"""Objects of the user's as keys of dicts and sets: told apart by the fields that `__eq__` compares, or by identity."""

from __future__ import annotations

import enum
import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]


@dataclass(frozen=True, order=True)
class Point:
    x: int
    y: int

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


class Pair(NamedTuple):
    a: int
    b: int


@dataclass(frozen=True)
class Road:
    a: Point
    b: Point
    w: float = field(compare=False, default=0.0)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Tile:
    color: Color
    name: str


@dataclass(eq=False)
class Node:
    v: int
    next: Node | None = None


class Vec:
    def __init__(self, x, y, tag=0):
        self.x, self.y, self.tag = x, y, tag

    def __eq__(self, other):
        return isinstance(other, Vec) and (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.x, self.y))


class City:
    def __init__(self, name, people):
        self.name, self.people, self.roads = name, people, {}

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


class Near:
    def __init__(self, a):
        self.a = a

    def __eq__(self, other):
        return abs(self.a - other.a) < 2

    def __hash__(self):
        return 1


DIRS = [Point(1, 0), Point(0, 1), Point(-1, 0), Point(0, -1)]
WALLS = {Point(1, 1), Point(2, 2)}
COSTS = {Point(1, 1): 10, Point(3, 3): 30}


def steps_of_a_search(n):
    seen, queue = {Point(0, 0)}, deque([(Point(0, 0), 0)])
    while queue:
        p, d = queue.popleft()
        if p == Point(2, n):
            return d
        for step in DIRS:
            q = p + step
            if 0 <= q.x < 4 and 0 <= q.y < 4 and q not in seen and q not in WALLS:
                seen.add(q)
                queue.append((q, d + 1))
    return -1


def path_by_a_dict(n):
    came, todo = {Point(0, 0): None}, [Point(0, 0)]
    for p in todo:
        for step in DIRS[:2]:
            q = p + step
            if q.x < 3 and q.y < 3 and q not in came:
                came[q] = p
                todo.append(q)
    path, p = [], Point(2, n % 3)
    while p is not None:
        path.append((p.x, p.y))
        p = came[p]
    return path


def among_known(n):
    p = Point(n, 1)
    there = p in [Point(1, 1)], (p, 1) in {(Point(1, 1), 1)}, DIRS[n] in {Point(0, 1)}
    return p in WALLS, Point(n, n) in WALLS, COSTS.get(Point(n, n), -1), there


def named_tuples(n):
    grid = {Pair(i, i * n): i for i in range(4)}
    grid[(9, 9)] = 5
    total = 0
    for p, v in grid.items():
        total += p[0] * 10 + p[1] * v
    return total, Pair(9, 9) in grid, (1, n) in grid, len(grid)


def fields_of_named_tuples(n):
    grid = {Pair(i, i * n): i for i in range(4)}
    return sum(p.a * p.b for p in grid), max(grid, key=lambda p: p.b).a, grid


def fields_left_out(n):
    roads = set()
    for i in range(5):
        roads.add(Road(Point(i % 2, n), Point(0, i % 2), float(i)))
    return len(roads), sorted(road.w for road in roads)


def members_and_texts(n):
    counts = Counter()
    for i in range(6):
        counts[Tile(Color.RED if i % 2 else Color.BLUE, "ab"[i * n % 2])] += i
    return sorted(counts.values()), counts[Tile(Color.RED, "a")]


def order_of_a_set(n):
    points = set()
    for i in range(5):
        points.add(Point(i * n % 3, i))
    return [p.x * 10 + p.y for p in points], [p.y for p in sorted(points)]


def sets_of_points(n):
    a, b = {Point(0, n), Point(1, n)}, {Point(1, n), Point(2, n)}
    return len(a & b), len(a | b), len(a - b), Point(1, n) in (a ^ b), a <= b, (a & b) == {Point(1, n)}


def results(n):
    return {Point(i, n): i for i in range(n)}, {Point(i % 2, n) for i in range(3)}, {Pair(1, n)}


def orders_and_groups(n):
    points = [Point(i % 3, n) for i in range(7)]
    od = OrderedDict()
    for i, p in enumerate(points):
        od[p] = i
    od.move_to_end(Point(0, n))
    first, v = od.popitem(last=False)
    groups = {k: len(list(g)) for k, g in itertools.groupby(sorted(points))}
    return first.x, v, [p.x for p in dict.fromkeys(points)], [groups[p] for p in od]


def memo_of_points(n):
    memo = {}

    def ways(p):
        if p in memo or p.x == 0 or p.y == 0:
            return memo.get(p, 1)
        memo[p] = ways(Point(p.x - 1, p.y)) + ways(Point(p.x, p.y - 1))
        return memo[p]

    return ways(Point(n, 3)), len(memo)


def message_of_a_missing_key(n):
    d = {Point(0, n): 1}
    try:
        return str(d[Point(0, 1)])
    except KeyError:
        return "none"


def copies_of_nodes(n):
    head = Node(1, Node(2, Node(n)))
    copies, cur = {}, head
    while cur is not None:
        copies[cur] = Node(cur.v * 10)
        cur = cur.next
    cur = head
    while cur is not None:
        copies[cur].next = copies[cur.next] if cur.next is not None else None
        cur = cur.next
    values, cur = [], copies[head]
    while cur is not None:
        values.append(cur.v)
        cur = cur.next
    return values


def nodes_by_identity(n):
    a, b = Node(n), Node(n)
    d = {a: 1, None: 7}
    d[b] = 2
    b.next = a
    d[b.next] += 5
    cur = a if n > 1 else None
    return d[a], d[b], d[cur], len(d), a in d, Node(n) in d


def ranks_of_nodes(n):
    nodes = [Node(i * n) for i in range(4)]
    rank = {x: i for i, x in enumerate(nodes)}
    pairs = {(nodes[0], nodes[1]): n}
    pairs[nodes[1], nodes[0]] = 2
    late = {x for x in nodes if rank[x] > 1}
    return rank[nodes[n]], pairs[nodes[0], nodes[1]], len(pairs), nodes[3] in late, nodes[n - 1] in late


def sets_of_nodes(n):
    nodes = [Node(i) for i in range(4)]
    s, t, groups = set(nodes[:n]), set(nodes[1:]), [{nodes[0]}, {nodes[2]}]
    groups[n % 2].add(nodes[3])
    return len(s & t), len(s | t), len(s - t), s <= t, nodes[0] in s, [len(g) for g in groups], nodes[3] in groups[0]


def identities(n):
    nodes = [Node(i * n) for i in range(4)]
    seen = {id(nodes[0])}
    seen.add(id(nodes[1]))
    places = {id(x): i for i, x in enumerate(nodes)}
    x = nodes[n]
    return id(x) in seen, id(nodes[0]) in seen, places[id(x)], id(x) == id(nodes[0])


def own_equality(n):
    v = Vec(n, 1)
    d = {v: 7}
    v.tag = 5
    key = next(iter(d))
    s = {v}
    s.add(Vec(n, 1, 9))
    return key.tag, key is v, key.x, [x.tag for x in s], Vec(n, 1) in d, Vec(1, n) in d


def own_equality_with_lists(n):
    d = defaultdict(list)
    for i in range(5):
        d[Vec(i % 2, n)].append(i)
    d.setdefault(Vec(7, 7), []).append(n)
    x = d.pop(Vec(0, n))
    e = dict(d)
    return x, Vec(0, n) in d, [(v.x, xs) for v, xs in d.items()], len(e), e == d


def cities_and_roads(n):
    cities = [City("a", 1), City("b", n), City("c", 3)]
    cities[0].roads[cities[1]] = 5
    cities[1].roads[cities[2]] = n
    cities[2].roads[cities[0]] = 1
    total, cur = 0, cities[0]
    for _ in range(4):
        for neighbour, d in cur.roads.items():
            total = total * 3 + d
            last = neighbour
        cur = last
    by_name = {city: k for k, city in enumerate(cities)}
    return total, cur.people, by_name[City("b", 0)], City("z", 0) in by_name


def keys_in_tuples(n):
    seen = {(Vec(0, n), 1)}
    seen.add((Vec(0, n), 2))
    seen.add((Vec(0, n), 1))
    return len(seen), (Vec(0, n), 2) in seen, sorted((v.x, k) for v, k in seen)


PROGRAMS = (
    steps_of_a_search, path_by_a_dict, among_known, named_tuples, fields_of_named_tuples, fields_left_out,
    members_and_texts, order_of_a_set, sets_of_points, results, orders_and_groups, memo_of_points,
    message_of_a_missing_key, copies_of_nodes, nodes_by_identity, ranks_of_nodes, sets_of_nodes, identities,
    own_equality, own_equality_with_lists, cities_and_roads, keys_in_tuples,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_objects_are_keys(program: Callable[[int], Any]) -> None:
    found = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(found, k)), as_plain(program(n)), 0.0), (program.__name__, n)


@pytest.mark.parametrize("program", [steps_of_a_search, ranks_of_nodes, own_equality], ids=lambda one: one.__name__)
def test_lanes_together_have_objects_as_keys(program: Callable[[int], Any]) -> None:
    found = pcbatch.batch(program, plan=pcbatch.Plan(emitter="guard"))(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(found, k)), as_plain(program(n)), 0.0), (program.__name__, n)


def test_a_dict_of_objects_is_an_argument_and_a_result() -> None:
    made = pcbatch.batch(lambda n: {Point(n, 1): n * 5})(np.array(LANES))
    assert made.tolist() == [{Point(n, 1): n * 5} for n in LANES]
    asked = pcbatch.batch(lambda d, n: d[Point(n, 1)])
    assert asked(made, np.array(LANES)).tolist() == [5, 10, 15]
    given = pcbatch.ragged([{Point(1, 1): 5}, {Point(2, 1): 6, Point(3, 3): 3}])
    assert asked(given, np.array([1, 2])).tolist() == [5, 6]


def test_gradients_go_through_dicts_of_objects() -> None:
    def total(x, n):
        sums = {}
        for i in range(3):
            p = Point(i % 2, n)
            sums[p] = sums.get(p, 0.0) + x * i
        return sums[Point(0, n)] * x

    run = pcbatch.batch(total)
    gradient = jax.grad(lambda x: run(x, jnp.array(LANES)).sum())(jnp.array([1.0, 2.0, 3.0]))
    assert gradient.tolist() == [4.0, 8.0, 12.0]


def test_nodes_of_packed_graphs_are_keys() -> None:
    class Place:
        def __init__(self, v):
            self.v, self.ways = v, []

    a, b, c = Place(1), Place(2), Place(3)
    a.ways, b.ways = [b, c], [c]

    def reached(root, n):
        seen, stack, total = set(), [root], 0
        while stack:
            place = stack.pop()
            if place not in seen:
                seen.add(place)
                total += place.v * n
                for way in place.ways:
                    stack.append(way)
        return total, len(seen)

    totals, counts = pcbatch.batch(reached)(pcbatch.pack([a, b]), np.array([1, 2]))
    assert (totals.tolist(), counts.tolist()) == ([6, 10], [3, 2])


def test_a_key_that_changes_by_what_tells_it_apart_ends_the_lane() -> None:
    def changed(n):
        v = Vec(n, 0)
        d = {v: 1}
        v.x = n % 3
        return Vec(n, 0) in d

    run = pcbatch.batch(changed).run(np.array(LANES))
    assert [int(status) == pcbatch.Status.OK for status in run.status] == [True, True, False]
    assert run.value[:2].tolist() == [True, True]


def refused(program: Callable[[int], Any]) -> str:
    with pytest.raises(pcbatch.CompileError) as error:
        pcbatch.batch(program)(np.array(LANES))
    return str(error.value)


def test_what_is_no_key() -> None:
    assert "cannot have a key of type Near" in refused(lambda n: len({Near(n), Near(5)}))
    assert "keys are records" in refused(lambda n: {Vec(n, 1): n})
    assert "must be alike" in refused(lambda n: {Point(n, 1): 1, Tile(Color.RED, "a"): n}[Point(n, 1)])

    @dataclass
    class Open:
        a: int

    assert "unhashable type: 'Open'" in refused(lambda n: len({Open(n)}))
