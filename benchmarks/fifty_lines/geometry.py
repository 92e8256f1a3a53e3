"""Points and rays."""

import math

from benchmarks.fifty_lines.program import Program, each, uniform, vectors


def march(angle, height, glow):
    """The light that a ray brings back from spheres over a chequered floor, with reflections."""

    def scene(x, y, z):
        nearest = y + 1.0
        kind = 0
        for cx, cy, cz, r in ((0.0, 0.0, 3.0, 1.0), (1.5, -0.4, 2.0, 0.5)):
            d = math.sqrt((x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2) - r
            if d < nearest:
                nearest = d
                kind = 1
        return nearest, kind

    x, y, z = 0.0, height, 0.0
    dx, dy, dz = math.sin(angle), -0.2, math.cos(angle)
    light, strength = 0.0, 1.0
    bounces, steps = 0, 0
    travelled = 0.0
    while steps < 60 and travelled < 12.0:
        steps += 1
        d, kind = scene(x, y, z)
        if d > 0.01:
            x, y, z = x + d * dx, y + d * dy, z + d * dz
            travelled += d
            continue
        if kind == 0:
            square = (math.floor(x) + math.floor(z)) % 2
            if square == 0:
                light += strength * 0.8
            else:
                light += strength * 0.1
            break
        light += strength * glow * 0.2
        if bounces == 2:
            break
        bounces += 1
        strength *= 0.6
        nx = scene(x + 0.01, y, z)[0] - d
        ny = scene(x, y + 0.01, z)[0] - d
        nz = scene(x, y, z + 0.01)[0] - d
        norm = math.sqrt(nx * nx + ny * ny + nz * nz + 1e-9)
        nx, ny, nz = nx / norm, ny / norm, nz / norm
        along = dx * nx + dy * ny + dz * nz
        dx, dy, dz = dx - 2 * along * nx, dy - 2 * along * ny, dz - 2 * along * nz
        x, y, z = x + 0.05 * nx, y + 0.05 * ny, z + 0.05 * nz
    if travelled >= 12.0:
        light += strength * (0.5 + 0.5 * dy)
    return light


def convex_hull(xs, ys):
    """The area and the circumference of the convex hull of points, by wrapping it like a gift."""
    n = len(xs)
    start = 0
    for i in range(1, n):
        if ys[i] < ys[start]:
            start = i
        elif ys[i] == ys[start] and xs[i] < xs[start]:
            start = i

    def cross(a, b, c):
        return (xs[b] - xs[a]) * (ys[c] - ys[a]) - (ys[b] - ys[a]) * (xs[c] - xs[a])

    def distance(a, b):
        return math.sqrt((xs[a] - xs[b]) ** 2 + (ys[a] - ys[b]) ** 2)

    hull = []
    here = start
    while len(hull) <= n:
        hull.append(here)
        candidate = 0
        if candidate == here:
            candidate = 1
        for i in range(n):
            if i == here or i == candidate:
                continue
            turn = cross(here, candidate, i)
            if turn < 0:
                candidate = i
            elif turn == 0 and distance(here, i) > distance(here, candidate):
                candidate = i
        here = candidate
        if here == start:
            break
    area = 0.0
    around = 0.0
    widest = 0.0
    for k in range(len(hull)):
        a = hull[k]
        b = hull[(k + 1) % len(hull)]
        area += xs[a] * ys[b] - xs[b] * ys[a]
        around += distance(a, b)
        for other in hull:
            d = distance(a, other)
            if d > widest:
                widest = d
    if widest > 0:
        return 0.5 * area, around, widest
    return 0.0, 0.0, 0.0


PROGRAMS = (
    Program(march, each(uniform(-0.6, 0.6), uniform(0, 1), uniform(0.5, 1)), smooth=True),
    Program(convex_hull, each(vectors(0, 1, 9), vectors(0, 1, 9))),
)
