"""A* with eight directions on a weighted terrain grid, Node class with __lt__."""
import heapq
from math import inf, sqrt

COST = {".": 1.0, "~": 3.0, "^": 5.0, "=": 0.5}
SQRT2 = sqrt(2)


class NoPath(Exception):
    def __init__(self, expanded):
        super().__init__(f"no path after {expanded} nodes")
        self.expanded = expanded


class Node:
    __slots__ = ("x", "y", "g", "h", "parent", "closed")

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.g, self.h = inf, 0.0
        self.parent = None
        self.closed = False

    @property
    def f(self):
        return self.g + self.h

    def __lt__(self, other):
        return (self.f, self.h) < (other.f, other.h)

    def __repr__(self):
        return f"Node({self.x}, {self.y}, g={self.g:.2f})"


class Grid:
    def __init__(self, rows):
        self.rows = rows
        self.height, self.width = len(rows), len(rows[0])
        self.nodes = {}
        self.cheapest = min(COST.values())

    def node(self, x, y):
        key = (x, y)
        if key not in self.nodes:
            self.nodes[key] = Node(x, y)
        return self.nodes[key]

    def passable(self, x, y):
        return 0 <= x < self.width and 0 <= y < self.height and self.rows[y][x] in COST

    def neighbours(self, node):
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                x, y = node.x + dx, node.y + dy
                if dx == dy == 0 or not self.passable(x, y):
                    continue
                if dx and dy:
                    # no cutting of corners
                    if not (self.passable(node.x, y) and self.passable(x, node.y)):
                        continue
                    yield self.node(x, y), SQRT2 * COST[self.rows[y][x]]
                else:
                    yield self.node(x, y), COST[self.rows[y][x]]

    def octile(self, a, b):
        dx, dy = abs(a.x - b.x), abs(a.y - b.y)
        return self.cheapest * (max(dx, dy) + (SQRT2 - 1) * min(dx, dy))


def astar(grid, start, goal):
    start.g = 0.0
    start.h = grid.octile(start, goal)
    frontier = [start]
    expanded = 0
    while frontier:
        cur = heapq.heappop(frontier)
        if cur.closed:
            continue
        cur.closed = True
        expanded += 1
        if cur is goal:
            return expanded
        for nb, cost in grid.neighbours(cur):
            g = cur.g + cost
            if not nb.closed and g < nb.g - 1e-12:
                nb.g = g
                nb.h = grid.octile(nb, goal)
                nb.parent = cur
                heapq.heappush(frontier, nb)
    raise NoPath(expanded)


def solve(rows, start, goal):
    grid = Grid(rows)
    a, b = grid.node(*start), grid.node(*goal)
    try:
        expanded = astar(grid, a, b)
    except NoPath as err:
        return -1.0, err.expanded, str(err), []
    path, node = [], b
    while node is not None:
        path.append((node.x, node.y))
        node = node.parent
    path.reverse()
    return b.g, expanded, repr(b), path


def examples(n):
    import random
    r = random.Random(707)
    out = []
    for _ in range(n):
        h, w = r.randint(5, 10), r.randint(5, 12)
        wall = r.uniform(0.05, 0.3)
        rows = [["#" if r.random() < wall else r.choice("....~~^=") for _ in range(w)] for _ in range(h)]
        s = (r.randrange(w // 2), r.randrange(h // 2))
        g = (r.randrange(w // 2, w), r.randrange(h // 2, h))
        rows[s[1]][s[0]] = rows[g[1]][g[0]] = "."
        out.append((["".join(row) for row in rows], s, g))
    return out
