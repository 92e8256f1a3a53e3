"""Sudoku by constraint propagation on a dict of strings (after a well known essay)."""
from functools import cache


def cross(xs, ys):
    return [x + y for x in xs for y in ys]


@cache
def geometry(size):
    """Squares, units and peers for 4x4 (blocks 2x2) or 6x6 (blocks 2x3)."""
    digits = "123456789"[:size]
    letters = "ABCDEFGHI"[:size]
    squares = cross(letters, digits)
    bands = [letters[i:i + 2] for i in range(0, size, 2)]
    stacks = [digits[i:i + size // 2] for i in range(0, size, size // 2)]
    units = ([cross(letters, d) for d in digits] + [cross(c, digits) for c in letters]
             + [cross(ls, ds) for ls in bands for ds in stacks])
    of = {s: [u for u in units if s in u] for s in squares}
    peers = {s: sorted(set(sum(of[s], [])) - {s}) for s in squares}
    return digits, squares, of, peers


class Contradiction(Exception):
    pass


def assign(values, s, d, geo):
    for other in values[s].replace(d, ""):
        eliminate(values, s, other, geo)


def eliminate(values, s, d, geo):
    if d not in values[s]:
        return
    values[s] = values[s].replace(d, "")
    if not values[s]:
        raise Contradiction(s)
    if len(values[s]) == 1:
        for peer in geo[3][s]:
            eliminate(values, peer, values[s], geo)
    for unit in geo[2][s]:
        places = [q for q in unit if d in values[q]]
        if not places:
            raise Contradiction(d)
        if len(places) == 1:
            assign(values, places[0], d, geo)


def search(values, geo, stats):
    stats["nodes"] += 1
    open_squares = [s for s in geo[1] if len(values[s]) > 1]
    if not open_squares:
        return values
    s = min(open_squares, key=lambda q: (len(values[q]), q))
    for d in values[s]:
        trial = values.copy()
        try:
            assign(trial, s, d, geo)
        except Contradiction:
            stats["dead"] += 1
            continue
        found = search(trial, geo, stats)
        if found:
            return found
    return None


def solve(size, puzzle):
    geo = geometry(size)
    digits, squares = geo[0], geo[1]
    values = {s: digits for s in squares}
    stats = {"nodes": 0, "dead": 0}
    try:
        for s, ch in zip(squares, puzzle):
            if ch in digits:
                assign(values, s, ch, geo)
    except Contradiction:
        return "impossible", 0, 1
    result = search(values, geo, stats)
    if result is None:
        return "unsolvable", stats["nodes"], stats["dead"]
    return "".join(result[s] for s in squares), stats["nodes"], stats["dead"]


def examples(n):
    import random
    r = random.Random(1111)
    out = []
    for _ in range(n):
        size = r.choice([4, 4, 6])
        half = size // 2
        ds = list("123456789"[:size])
        r.shuffle(ds)
        rows = [i * 2 + j for i in r.sample(range(half), half) for j in r.sample(range(2), 2)]
        cols = [i * half + j for i in r.sample(range(2), 2) for j in r.sample(range(half), half)]
        grid = [ds[(half * (y % 2) + y // 2 + x) % size] for y in rows for x in cols]
        keep = r.uniform(0.25, 0.5) if size == 4 else r.uniform(0.4, 0.7)
        grid = [c if r.random() < keep else "." for c in grid]
        if r.random() < 0.1:
            grid[r.randrange(len(grid))] = r.choice(ds)
        out.append((size, "".join(grid)))
    return out
