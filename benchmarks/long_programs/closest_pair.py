"""Closest pair of labelled points: divide and conquer, checked against a grid hash."""
import math
from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    label: str

    def __sub__(self, other):
        return math.hypot(self.x - other.x, self.y - other.y)


@dataclass(frozen=True)
class Pair:
    a: Point
    b: Point
    gap: float

    @classmethod
    def of(cls, p, q):
        if q.label < p.label:
            p, q = q, p
        return cls(p, q, p - q)

    def better(self, other):
        if other is None or self.gap < other.gap:
            return self
        if self.gap == other.gap and (self.a.label, self.b.label) < (other.a.label, other.b.label):
            return self
        return other

    def __str__(self):
        return f"{self.a.label}~{self.b.label}@{self.gap:.3f}"


def brute(points):
    best = None
    for i, p in enumerate(points):
        for q in points[i + 1:]:
            best = Pair.of(p, q).better(best)
    return best


def merge_by_y(left, right):
    out, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i].y <= right[j].y:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


def divide(points):
    """points sorted by x -> (best pair, same points sorted by y)."""
    if len(points) <= 3:
        return brute(points), sorted(points, key=attrgetter("y"))
    mid = len(points) // 2
    line = points[mid].x
    best_l, left = divide(points[:mid])
    best_r, right = divide(points[mid:])
    merged = merge_by_y(left, right)
    best = best_l.better(best_r) if best_l else best_r
    strip = [p for p in merged if abs(p.x - line) <= best.gap]
    for i, p in enumerate(strip):
        for q in strip[i + 1:i + 8]:
            if q.y - p.y > best.gap:
                break
            best = Pair.of(p, q).better(best)
    return best, merged


def neighbours_within(points, radius):
    """Number of neighbours of each label within radius, by hashing into cells."""
    cells = defaultdict(list)
    for p in points:
        cells[math.floor(p.x / radius), math.floor(p.y / radius)].append(p)
    counts = dict.fromkeys((p.label for p in points), 0)
    for (cx, cy), members in cells.items():
        near = [q for dx in (-1, 0, 1) for dy in (-1, 0, 1) for q in cells.get((cx + dx, cy + dy), ())]
        for p in members:
            counts[p.label] += sum(1 for q in near if q is not p and p - q <= radius)
    return counts


def solve(coords):
    points = [Point(x, y, f"P{i:03d}") for i, (x, y) in enumerate(coords)]
    if len(points) < 2:
        return "too few points", 0.0, "", 0
    best, by_y = divide(sorted(points, key=lambda p: (p.x, p.y)))
    radius = max(best.gap * 2.5, 1e-6)
    counts = neighbours_within(points, radius)
    crowd = max(counts, key=lambda k: (counts[k], k))
    return str(best), best.gap, crowd, counts[crowd], by_y[0].label, sum(counts.values())


def examples(n):
    import random
    r = random.Random(1818)
    out = []
    for _ in range(n):
        size = r.randint(4, 70)
        if r.random() < 0.7:
            out.append(([(r.uniform(0, 100), r.uniform(0, 60)) for _ in range(size)],))
        else:
            out.append(([(float(r.randint(0, 30)), float(r.randint(0, 30))) for _ in range(size)],))
    return out
