"""Conway's game of life (and its relatives) on an unbounded board held as a set of cells."""

from collections import Counter
from itertools import product
from random import Random

NEIGHBOURS = [(dx, dy) for dx, dy in product((-1, 0, 1), repeat=2) if (dx, dy) != (0, 0)]


def parse_rule(rule):
    """'B3/S23' -> (frozenset({3}), frozenset({2, 3}))."""
    birth, survive = rule.upper().split("/")
    if birth[0] != "B" or survive[0] != "S":
        raise ValueError(rule)
    return frozenset(map(int, birth[1:])), frozenset(map(int, survive[1:]))


def parse_board(rows):
    return {(x, y) for y, row in enumerate(rows) for x, ch in enumerate(row) if ch == "#"}


def step(cells, birth, survive):
    counts = Counter((x + dx, y + dy) for x, y in cells for dx, dy in NEIGHBOURS)
    return {
        cell
        for cell, k in counts.items()
        if (k in survive if cell in cells else k in birth)
    } | ({c for c in cells if c not in counts} if 0 in survive else set())


def normal_form(cells):
    """Position-independent key of a pattern."""
    if not cells:
        return (), (0, 0)
    x0 = min(x for x, _ in cells)
    y0 = min(y for _, y in cells)
    return tuple(sorted((x - x0, y - y0) for x, y in cells)), (x0, y0)


def classify(history, key, origin, generation):
    """Compare with an earlier appearance of the same pattern."""
    seen_at, seen_origin = history[key]
    period = generation - seen_at
    shift = origin[0] - seen_origin[0], origin[1] - seen_origin[1]
    if shift != (0, 0):
        return f"spaceship p{period} {shift[0]:+d},{shift[1]:+d}"
    return "still life" if period == 1 else f"oscillator p{period}"


def show(cells):
    if not cells:
        return ""
    xs = [x for x, _ in cells]
    ys = [y for _, y in cells]
    return "/".join(
        "".join("#" if (x, y) in cells else "." for x in range(min(xs), max(xs) + 1)).rstrip(".")
        for y in range(min(ys), max(ys) + 1)
    )


def solve(rows, rule, generations):
    birth, survive = parse_rule(rule)
    cells = parse_board(rows)
    history = {}
    populations = []
    verdict = "unsettled"
    for g in range(generations):
        populations.append(len(cells))
        if not cells:
            verdict = "extinct"
            break
        key, origin = normal_form(cells)
        if key in history:
            verdict = classify(history, key, origin, g)
            break
        history[key] = g, origin
        cells = step(cells, birth, survive)
    return verdict, populations, show(cells)


def examples(n):
    rng = Random(1616)
    known = [
        [".#.", "..#", "###"],
        ["###"],
        [".#..#", "#....", "#...#", "####."],
        ["..###", "###.."],
        ["##.", "#.#", ".#."],
    ]
    out = []
    for i in range(n):
        if i % 3 == 0:
            rows = list(rng.choice(known))
        else:
            w, h = rng.randint(5, 8), rng.randint(5, 7)
            rows = ["".join(rng.choice(".#.") for _ in range(w)) for _ in range(h)]
        out.append((rows, rng.choice(["B3/S23", "B3/S23", "b36/s23"]), rng.randint(6, 14)))
    return out
