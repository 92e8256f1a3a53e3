"""Shortest path through a maze given as a list of strings, with keys and doors."""
from collections import deque

STEPS = {"N": (-1, 0), "E": (0, 1), "S": (1, 0), "W": (0, -1)}


def find(maze, what):
    for r, line in enumerate(maze):
        c = line.find(what)
        if c >= 0:
            return r, c
    return None


def bfs(maze, start, goal):
    came_from = {(start, frozenset()): None}
    todo = deque([(start, frozenset())])
    while todo:
        state = todo.popleft()
        (r, c), keys = state
        if (r, c) == goal:
            return state, came_from
        for name, (dr, dc) in STEPS.items():
            nr, nc = r + dr, c + dc
            if not (0 <= nr < len(maze) and 0 <= nc < len(maze[nr])):
                continue
            ch = maze[nr][nc]
            if ch == "#" or (ch.isupper() and ch not in "SG" and ch.lower() not in keys):
                continue
            nkeys = keys | {ch} if ch.islower() else keys
            nxt = ((nr, nc), nkeys)
            if nxt not in came_from:
                came_from[nxt] = (state, name)
                todo.append(nxt)
    return None, came_from


def walk_back(state, came_from):
    path = []
    while came_from[state] is not None:
        state, name = came_from[state]
        path.append(name)
    return "".join(reversed(path))


def compress(path):
    """NNNEE -> 3N2E"""
    if not path:
        return ""
    out, last, count = [], path[0], 0
    for ch in path:
        if ch == last:
            count += 1
        else:
            out.append(f"{count}{last}")
            last, count = ch, 1
    out.append(f"{count}{last}")
    return "".join(out)


def solve(maze):
    start, goal = find(maze, "S"), find(maze, "G")
    if start is None or goal is None:
        return -1, "", 0
    end, seen = bfs(maze, start, goal)
    if end is None:
        return -1, "no way", len(seen)
    path = walk_back(end, seen)
    return len(path), compress(path), len(seen)


def examples(n):
    import random
    r = random.Random(505)
    out = []
    for _ in range(n):
        h, w = r.randint(6, 14), r.randint(7, 18)
        density = r.uniform(0.1, 0.3)
        grid = [["#" if r.random() < density else "." for _ in range(w)] for _ in range(h)]
        cells = [(y, x) for y in range(h) for x in range(w)]
        r.shuffle(cells)
        marks = "SG" + r.choice(["", "aA", "aAA", "aAbB", "aAAAAA"])
        for ch, (y, x) in zip(marks, cells):
            grid[y][x] = ch
        out.append((["".join(row) for row in grid],))
    return out
