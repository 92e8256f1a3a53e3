"""Convex hull (monotone chain), area, diameter by calipers, and onion layers."""
from functools import reduce
from itertools import pairwise
from math import dist, hypot


def cross(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def half_hull(points):
    def push(chain, p):
        while len(chain) >= 2 and cross(chain[-2], chain[-1], p) <= 0:
            chain.pop()
        chain.append(p)
        return chain

    return reduce(push, points, [])


def hull(points):
    pts = sorted(set(points))
    if len(pts) <= 2:
        return pts
    lower, upper = half_hull(pts), half_hull(reversed(pts))
    return lower[:-1] + upper[:-1]


def closed(poly):
    return poly + poly[:1]


def area(poly):
    return abs(sum(ax * by - bx * ay for (ax, ay), (bx, by) in pairwise(closed(poly)))) / 2


def perimeter(poly):
    return sum(dist(a, b) for a, b in pairwise(closed(poly)))


def diameter(poly):
    """Largest distance between two corners, rotating calipers."""
    n = len(poly)
    if n < 2:
        return 0.0, poly * 2
    if n == 2:
        return dist(*poly), poly
    best, pair, j = -1.0, None, 1
    for i in range(n):
        edge_end = poly[(i + 1) % n]
        while cross(poly[i], edge_end, poly[(j + 1) % n]) > cross(poly[i], edge_end, poly[j]):
            j = (j + 1) % n
        for p, q in ((poly[i], poly[j]), (edge_end, poly[j])):
            d = hypot(p[0] - q[0], p[1] - q[1])
            if d > best:
                best, pair = d, sorted((p, q))
    return best, pair


def inside(poly, p):
    return len(poly) > 2 and all(cross(a, b, p) >= 0 for a, b in pairwise(closed(poly)))


def layers(points):
    rest = set(points)
    while rest:
        ring = hull(list(rest))
        yield ring
        rest -= set(ring)


def solve(points, queries):
    points = [tuple(p) for p in points]
    outer = hull(points)
    d, ends = diameter(outer)
    onion = [len(ring) for ring in layers(points)]
    hits = "".join("+" if inside(outer, tuple(q)) else "-" for q in queries)
    return outer, area(outer), perimeter(outer), d, [tuple(e) for e in ends], onion, hits


def examples(n):
    import random
    r = random.Random(1717)
    out = []
    for _ in range(n):
        size = r.randint(5, 80)
        span = r.choice([6, 30, 1000])
        if r.random() < 0.5:
            pts = [(r.randint(-span, span), r.randint(-span, span)) for _ in range(size)]
        else:
            pts = [(round(r.gauss(0, span), 1), round(r.gauss(0, span / 2), 1)) for _ in range(size)]
        if r.random() < 0.08:
            pts = [(x, 2 * x) for x, _ in pts]
        qs = [(r.randint(-span, span), r.randint(-span, span)) for _ in range(r.randint(0, 8))]
        if all(isinstance(p[0], float) for p in pts):
            qs = [(float(x), float(y)) for x, y in qs]
        out.append((pts, qs))
    return out
