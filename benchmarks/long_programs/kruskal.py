"""Minimum spanning forest by Kruskal's algorithm, with union-find over names of towns."""

from collections import defaultdict
from random import Random


class UnionFind:
    def __init__(self, elements=()):
        self.parent = {}
        self.size = {}
        for e in elements:
            self.add(e)

    def add(self, e):
        if e not in self.parent:
            self.parent[e] = e
            self.size[e] = 1

    def __contains__(self, e):
        return e in self.parent

    def find(self, e):
        root = e
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[e] != root:
            self.parent[e], e = root, self.parent[e]
        return root

    def union(self, a, b):
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            return False
        if self.size[ra] < self.size[rb]:
            ra, rb = rb, ra
        self.parent[rb] = ra
        self.size[ra] += self.size[rb]
        return True

    def groups(self):
        out = defaultdict(list)
        for e in self.parent:
            out[self.find(e)].append(e)
        return sorted(sorted(g) for g in out.values())


def kruskal(edges):
    """Return (edges of the forest, union-find)."""
    uf = UnionFind()
    for a, b, _ in edges:
        uf.add(a)
        uf.add(b)
    chosen = [(a, b, w) for a, b, w in sorted(edges, key=lambda e: (e[2], e[0], e[1])) if uf.union(a, b)]
    return chosen, uf


def adjacency(edges):
    graph = defaultdict(dict)
    for a, b, w in edges:
        graph[a][b] = w
        graph[b][a] = w
    return graph


def farthest(graph, start):
    """The node farthest from start in a tree, by an explicit stack."""
    best = (0, start)
    seen = {start}
    stack = [(start, 0)]
    while stack:
        node, d = stack.pop()
        if (d, node) > best:
            best = d, node
        for nxt, w in graph[node].items():
            if nxt not in seen:
                seen.add(nxt)
                stack.append((nxt, d + w))
    return best


def diameter(graph, start):
    _, end = farthest(graph, start)
    length, other = farthest(graph, end)
    return length, min(end, other), max(end, other)


def solve(edges):
    forest, uf = kruskal(edges)
    graph = adjacency(forest)
    total = sum(w for *_, w in forest)
    groups = uf.groups()
    longest = max((diameter(graph, g[0]) for g in groups), default=(0, "", ""))
    degree = sorted(((len(nbrs), town) for town, nbrs in graph.items()), reverse=True)[:3]
    return total, [len(g) for g in groups], longest, [f"{t}({d})" for d, t in degree]


def examples(n):
    rng = Random(1515)
    starts, ends = ["Ash", "Birch", "Clay", "Dun", "Elm", "Fox"], ["ford", "ton", "ham", "by", "wick"]
    towns = [s + e for s in starts for e in ends]
    out = []
    for _ in range(n):
        chosen = rng.sample(towns, rng.randint(6, len(towns)))
        count = int(len(chosen) * rng.uniform(0.8, 4))
        edges = [(*rng.sample(chosen, 2), rng.randint(1, 60)) for _ in range(count)]
        out.append((edges,))
    return out
