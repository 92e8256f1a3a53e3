"""Geometry: points, hulls, trees of space, rays."""

from __future__ import annotations

import math

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


def _points(rng):
    return ([(rng.randint(0, 99), rng.randint(0, 99)) for _ in range(rng.randint(10, 24))],)


def _cross(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


@program("convex hull by a monotone chain", _points)
def hull(points):
    points = sorted(set(points))
    lower, upper = [], []
    for p in points:
        while len(lower) >= 2 and _cross(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    for p in reversed(points):
        while len(upper) >= 2 and _cross(upper[-2], upper[-1], p) <= 0:
            upper.pop()
        upper.append(p)
    corners = lower[:-1] + upper[:-1]
    area = 0
    for k in range(len(corners)):
        a, b = corners[k], corners[(k + 1) % len(corners)]
        area += a[0] * b[1] - a[1] * b[0]
    return len(corners), area / 2


def _squared(p, q):
    return (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2


def _closest(points):
    n = len(points)
    if n <= 3:
        best = 10**6
        for i in range(n):
            for j in range(i + 1, n):
                best = min(best, _squared(points[i], points[j]))
        return best
    middle = n // 2
    x = points[middle][0]
    best = min(_closest(points[:middle]), _closest(points[middle:]))
    strip = sorted((p for p in points if (p[0] - x) ** 2 < best), key=lambda p: p[1])
    for i in range(len(strip)):
        for j in range(i + 1, len(strip)):
            if (strip[j][1] - strip[i][1]) ** 2 >= best:
                break
            best = min(best, _squared(strip[i], strip[j]))
    return best


@program("closest pair, recursive", _points)
def closest_pair(points):
    return _closest(sorted(points))


def _scene(rng):
    spheres = [(rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(3, 6), rng.uniform(0.3, 0.8)) for _ in range(3)]
    return spheres, (rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3))


@program("ray marching, spheres and a floor", _scene)
def ray(spheres, direction):
    dx, dy = direction
    length = math.sqrt(dx * dx + dy * dy + 1.0)
    dx, dy, dz = dx / length, dy / length, 1.0 / length
    t = 0.0
    for _ in range(40):
        x, y, z = t * dx, t * dy, t * dz
        nearest = y + 1.5
        for cx, cy, cz, radius in spheres:
            distance = math.sqrt((x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2) - radius
            if distance < nearest:
                nearest = distance
        if nearest < 0.01:
            return t
        t += nearest
        if t > 20.0:
            break
    return 20.0


def _bodies(rng):
    return [(rng.uniform(0, 1), rng.uniform(0, 1)) for _ in range(rng.randint(6, 12))], rng.uniform(0.4, 0.9)


def _quadrants(inside, bodies, x, y, half):
    parts = [[], [], [], []]
    for b in inside:
        right, above = bodies[b][0] >= x + half, bodies[b][1] >= y + half
        parts[2 * right + above].append(b)
    return parts


@program("Barnes-Hut, a quadtree in lists", _bodies)
def barnes_hut(bodies, theta):
    px, py = 0.5, 0.5
    corners = [(0.0, 0.0, 1.0)]
    members = [list(range(len(bodies)))]
    fx = fy = 0.0
    while corners:
        x, y, size = corners.pop()
        inside = members.pop()
        mass = len(inside)
        dx = sum(bodies[b][0] for b in inside) / mass - px
        dy = sum(bodies[b][1] for b in inside) / mass - py
        distance = math.sqrt(dx * dx + dy * dy) + 0.01
        if mass == 1 or size / distance < theta or size < 0.01:
            fx += mass / distance**3 * dx
            fy += mass / distance**3 * dy
            continue
        half = size / 2
        for k, part in enumerate(_quadrants(inside, bodies, x, y, half)):
            if part:
                corners.append((x + half * (k // 2), y + half * (k % 2), half))
                members.append(part)
    return fx, fy
