"""Barnes-Hut n-body in the plane: quadtree of optional children, leapfrog steps."""
from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Body:
    x: float
    y: float
    mass: float
    vx: float = 0.0
    vy: float = 0.0
    ax: float = 0.0
    ay: float = 0.0

    def kinetic(self) -> float:
        return 0.5 * self.mass * (self.vx ** 2 + self.vy ** 2)


class Quad:
    MAX_DEPTH = 16

    def __init__(self, cx: float, cy: float, half: float, depth: int = 0):
        self.cx, self.cy, self.half, self.depth = cx, cy, half, depth
        self.mass = self.mx = self.my = 0.0
        self.body: Body | None = None
        self.children: list[Quad | None] | None = None

    def child_for(self, b: Body) -> Quad:
        index = (1 if b.x >= self.cx else 0) + (2 if b.y >= self.cy else 0)
        if self.children[index] is None:
            q = self.half / 2
            self.children[index] = Quad(self.cx + (q if index & 1 else -q),
                                        self.cy + (q if index & 2 else -q), q, self.depth + 1)
        return self.children[index]

    def insert(self, b: Body) -> None:
        total = self.mass + b.mass
        self.mx = (self.mx * self.mass + b.x * b.mass) / total
        self.my = (self.my * self.mass + b.y * b.mass) / total
        empty = self.mass == 0.0
        self.mass = total
        if empty:
            self.body = b
            return
        if self.depth >= self.MAX_DEPTH:
            return
        if self.children is None:
            self.children = [None] * 4
            resident, self.body = self.body, None
            self.child_for(resident).insert(resident)
        self.child_for(b).insert(b)

    def pull(self, b: Body, theta: float, eps: float) -> int:
        """Add the acceleration of this cell to b; return the interactions used."""
        if self.body is b:
            return 0
        dx, dy = self.mx - b.x, self.my - b.y
        d2 = dx * dx + dy * dy + eps * eps
        if self.children is None or (2 * self.half) ** 2 < theta * theta * d2:
            f = self.mass / (d2 * math.sqrt(d2))
            b.ax += f * dx
            b.ay += f * dy
            return 1
        return sum(c.pull(b, theta, eps) for c in self.children if c is not None)

    def __len__(self) -> int:
        if self.children is None:
            return 1
        return 1 + sum(len(c) for c in self.children if c is not None)


def build(bodies: list[Body]) -> Quad:
    xs, ys = [b.x for b in bodies], [b.y for b in bodies]
    half = max(max(xs) - min(xs), max(ys) - min(ys)) / 2 + 1e-9
    root = Quad((max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2, half)
    for b in bodies:
        root.insert(b)
    return root


def step(bodies: list[Body], dt: float, theta: float, eps: float = 0.05) -> tuple[int, int]:
    root = build(bodies)
    work = 0
    for b in bodies:
        b.ax = b.ay = 0.0
        work += root.pull(b, theta, eps)
    for b in bodies:
        b.vx += b.ax * dt
        b.vy += b.ay * dt
        b.x += b.vx * dt
        b.y += b.vy * dt
    return work, len(root)


def solve(data, steps, theta, dt):
    bodies = [Body(*row) for row in data]
    work = cells = 0
    for _ in range(steps):
        w, c = step(bodies, dt, theta)
        work += w
        cells = max(cells, c)
    total = sum(b.mass for b in bodies)
    centre = (sum(b.x * b.mass for b in bodies) / total, sum(b.y * b.mass for b in bodies) / total)
    fastest = max(bodies, key=Body.kinetic)
    return work, cells, sum(map(Body.kinetic, bodies)), centre, bodies.index(fastest)


def examples(n):
    import random
    r = random.Random(1515)
    out = []
    for _ in range(n):
        data = [(r.gauss(0, 1), r.gauss(0, 1), r.uniform(0.1, 2)) for _ in range(r.randint(4, 24))]
        if r.random() < 0.1:
            data.append(data[0])
        out.append((data, r.randint(1, 2), round(r.uniform(0.4, 1.2), 2), 0.01))
    return out
