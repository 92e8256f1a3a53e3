"""Searches in graphs and trees: heaps, objects made on the way, tours, forests."""

from __future__ import annotations

import heapq
import math

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


def _terrain(rng):
    return [[rng.randint(1, 9) for _ in range(6)] for _ in range(6)], (rng.randrange(6), rng.randrange(6))


@program("A*, a heap and dicts", _terrain)
def a_star(costs, goal):
    start = (0, 0)
    waiting = [(0, start)]
    came_from = {start: start}
    cost_so_far = {start: 0}
    while waiting:
        _, current = heapq.heappop(waiting)
        if current == goal:
            break
        row, column = current
        for dr, dc in [(1, 0), (-1, 0), (0, 1), (0, -1)]:
            r, c = row + dr, column + dc
            if not (0 <= r < 6 and 0 <= c < 6):
                continue
            new = cost_so_far[current] + costs[r][c]
            if (r, c) not in cost_so_far or new < cost_so_far[(r, c)]:
                cost_so_far[(r, c)] = new
                heapq.heappush(waiting, (new + abs(r - goal[0]) + abs(c - goal[1]), (r, c)))
                came_from[(r, c)] = current
    steps = 0
    while current != start:
        current = came_from[current]
        steps += 1
    return cost_so_far[goal], steps


class Node:
    def __init__(self, key):
        self.key = key
        self.left = None
        self.right = None


def _insert(node, key):
    if node is None:
        return Node(key)
    if key < node.key:
        node.left = _insert(node.left, key)
    elif key > node.key:
        node.right = _insert(node.right, key)
    return node


def _height(node):
    if node is None:
        return 0
    return 1 + max(_height(node.left), _height(node.right))


def _keys(rng):
    return [rng.randint(0, 99) for _ in range(rng.randint(8, 24))], [rng.randint(0, 99) for _ in range(8)]


@program("binary search tree, nodes as objects", _keys)
def search_tree(keys, queries):
    root = None
    for key in keys:
        root = _insert(root, key)
    found = 0
    for query in queries:
        node = root
        while node is not None and node.key != query:
            node = node.left if query < node.key else node.right
        if node is not None:
            found += 1
    return found, _height(root)


def _items(rng):
    return [rng.randint(3, 30) for _ in range(8)], [rng.randint(2, 20) for _ in range(8)], rng.randint(20, 50)


def _bound(values, weights, order, level, value, room):
    for k in order[level:]:
        if weights[k] <= room:
            room -= weights[k]
            value += values[k]
        else:
            return value + values[k] * room / weights[k]
    return value


@program("knapsack by best first search", _items)
def knapsack(values, weights, capacity):
    order = sorted(range(len(values)), key=lambda k: -values[k] / weights[k])
    best = 0
    heap = [(-_bound(values, weights, order, 0, 0, capacity), 0, 0, capacity)]
    while heap:
        bound, level, value, room = heapq.heappop(heap)
        if -bound <= best:
            break
        if level == len(order):
            best = max(best, value)
            continue
        k = order[level]
        for taken in (0, 1):
            if taken * weights[k] <= room:
                new_value = value + taken * values[k]
                new_room = room - taken * weights[k]
                bound = _bound(values, weights, order, level + 1, new_value, new_room)
                if bound > best:
                    heapq.heappush(heap, (-bound, level + 1, new_value, new_room))
    return best


def _cities(rng):
    return ([(rng.randint(0, 99), rng.randint(0, 99)) for _ in range(7)],)


@program("tour by nearest neighbours and 2-opt", _cities)
def tour_length(cities):
    def distance(a, b):
        return math.hypot(cities[a][0] - cities[b][0], cities[a][1] - cities[b][1])

    n = len(cities)
    left = list(range(1, n))
    tour = [0]
    while left:
        nearest = min(left, key=lambda city: distance(tour[-1], city))
        left.remove(nearest)
        tour.append(nearest)
    improved = True
    while improved:
        improved = False
        for i in range(1, n - 1):
            for j in range(i + 1, n):
                a, b, c, d = tour[i - 1], tour[i], tour[j], tour[(j + 1) % n]
                if distance(a, c) + distance(b, d) < distance(a, b) + distance(c, d) - 1e-3:
                    tour[i : j + 1] = list(reversed(tour[i : j + 1]))
                    improved = True
    return sum(distance(tour[k], tour[(k + 1) % n]) for k in range(n))


def _edges(rng):
    return 12, [(rng.randint(1, 50), rng.randrange(12), rng.randrange(12)) for _ in range(30)]


class UnionFind:
    def __init__(self, n):
        self.parent = list(range(n))
        self.size = [1] * n

    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return True


@program("Kruskal's algorithm, union-find as a class", _edges)
def kruskal(n, edges):
    forest = UnionFind(n)
    total = count = 0
    for weight, a, b in sorted(edges):
        if forest.union(a, b):
            total += weight
            count += 1
    return total, count
