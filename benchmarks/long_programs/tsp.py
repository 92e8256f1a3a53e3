"""Travelling salesman: nearest neighbour tour, then 2-opt until nothing improves."""

from math import dist, pi, cos, sin
from random import Random


def distance_table(points):
    return [[dist(p, q) for q in points] for p in points]


def tour_length(tour, d):
    return sum(d[a][b] for a, b in zip(tour, tour[1:] + tour[:1]))


def nearest_neighbour(d, start):
    unvisited = set(range(len(d)))
    unvisited.remove(start)
    tour = [start]
    while unvisited:
        row = d[tour[-1]]
        nxt = min(unvisited, key=lambda city: (row[city], city))
        unvisited.discard(nxt)
        tour.append(nxt)
    return tour


def two_opt(tour, d, max_rounds):
    tour = tour[:]
    n = len(tour)
    moves = 0
    for _ in range(max_rounds):
        improved = False
        for i in range(n - 2):
            for j in range(i + 2, n):
                if i == 0 and j == n - 1:
                    continue
                a, b = tour[i], tour[i + 1]
                c, e = tour[j], tour[(j + 1) % n]
                gain = d[a][b] + d[c][e] - d[a][c] - d[b][e]
                if gain > 1e-9:
                    tour[i + 1 : j + 1] = reversed(tour[i + 1 : j + 1])
                    moves += 1
                    improved = True
        if not improved:
            break
    return tour, moves


def normalise(tour):
    """Rotate so that city 0 comes first, with its smaller neighbour second."""
    k = tour.index(0)
    t = tour[k:] + tour[:k]
    if len(t) > 2 and t[1] > t[-1]:
        t = [t[0]] + t[:0:-1]
    return t


def solve(points, starts, max_rounds):
    d = distance_table(points)
    best = None
    total_moves = 0
    for s in starts:
        tour, moves = two_opt(nearest_neighbour(d, s), d, max_rounds)
        total_moves += moves
        key = (round(tour_length(tour, d), 6), normalise(tour))
        if best is None or key < best:
            best = key
    length, tour = best
    return length, tour, total_moves


def examples(n):
    rng = Random(707)
    out = []
    for _ in range(n):
        count = rng.randint(8, 22)
        if rng.random() < 0.7:
            pts = [(rng.uniform(0, 100), rng.uniform(0, 100)) for _ in range(count)]
        else:
            pts = []
            for _ in range(count):
                r, a = rng.uniform(30, 50), rng.uniform(0, 2 * pi)
                pts.append((r * cos(a), r * sin(a)))
        starts = rng.sample(range(count), rng.randint(1, 3))
        out.append((pts, starts, rng.randint(2, 5)))
    return out
