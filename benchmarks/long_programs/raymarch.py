"""Ray marching of a handful of spheres, shaded into ASCII art."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Vec:
    x: float
    y: float
    z: float

    def __add__(self, other: Vec) -> Vec:
        return Vec(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vec) -> Vec:
        return Vec(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, k: float) -> Vec:
        return Vec(self.x * k, self.y * k, self.z * k)

    __rmul__ = __mul__

    def __neg__(self) -> Vec:
        return Vec(-self.x, -self.y, -self.z)

    def dot(self, other: Vec) -> float:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def __abs__(self) -> float:
        return math.sqrt(self.dot(self))

    def unit(self) -> Vec:
        return self * (1.0 / abs(self))


@dataclass(frozen=True)
class Sphere:
    center: Vec
    radius: float

    def distance(self, p: Vec) -> float:
        return abs(p - self.center) - self.radius

    def normal(self, p: Vec) -> Vec:
        return (p - self.center).unit()


class Scene:
    EPS = 1e-2
    FAR = 12.0
    MAX_STEPS = 20

    def __init__(self, spheres: list[Sphere], light: Vec):
        self.spheres = spheres
        self.light = light.unit()
        self.evaluations = 0

    def nearest(self, p: Vec) -> tuple[float, Sphere | None]:
        best, hit = self.FAR, None
        for s in self.spheres:
            self.evaluations += 1
            d = s.distance(p)
            if d < best:
                best, hit = d, s
        return best, hit

    def march(self, origin: Vec, direction: Vec) -> tuple[Vec, Sphere] | None:
        travelled = 0.0
        for _ in range(self.MAX_STEPS):
            p = origin + direction * travelled
            d, sphere = self.nearest(p)
            if sphere is not None and d < self.EPS:
                return p, sphere
            travelled += d
            if travelled > self.FAR:
                break
        return None

    def brightness(self, origin: Vec, direction: Vec) -> float:
        hit = self.march(origin, direction)
        if hit is None:
            return 0.0
        p, sphere = hit
        return 0.1 + 0.9 * max(0.0, sphere.normal(p).dot(self.light))


def solve(balls, light, width, height):
    spheres = [Sphere(Vec(x, y, z), r) for x, y, z, r in balls]
    scene = Scene(spheres, Vec(*light))
    eye = Vec(0.0, 0.0, -5.0)
    ramp = " .:-=+*#%@"
    lines = []
    total = 0.0
    for j in range(height):
        line = ""
        for i in range(width):
            target = Vec(4 * ((i + 0.5) / width - 0.5), 4 * (0.5 - (j + 0.5) / height), 0.0)
            b = scene.brightness(eye, (target - eye).unit())
            total += b
            line += ramp[min(int(b * len(ramp)), len(ramp) - 1)]
        lines.append(line.rstrip())
    return "\n".join(lines), round(total, 6), scene.evaluations


def examples(n):
    rng = Random(202)
    u = rng.uniform
    out = []
    for _ in range(n):
        balls = [(u(-1.5, 1.5), u(-1.5, 1.5), u(-0.5, 3), u(0.4, 1.1)) for _ in range(rng.randint(1, 3))]
        out.append((balls, (u(-1, 1), u(0.2, 1), u(-1, -0.2)), rng.randint(4, 7), 3))
    return out
