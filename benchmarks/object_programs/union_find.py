"""Union-find as a class, with groups by their roots."""


class UnionFind:
    def __init__(self, n):
        self.parent = list(range(n))
        self.rank = [0] * n
        self.size = [1] * n
        self.components = n

    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def union(self, a, b):
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            return False
        if self.rank[ra] < self.rank[rb]:
            ra, rb = rb, ra
        self.parent[rb] = ra
        self.size[ra] += self.size[rb]
        if self.rank[ra] == self.rank[rb]:
            self.rank[ra] += 1
        self.components -= 1
        return True

    def groups(self):
        result = {}
        for i in range(len(self.parent)):
            result.setdefault(self.find(i), []).append(i)
        return sorted(result.values(), key=lambda g: (-len(g), g[0]))


class Edge:
    def __init__(self, u, v, weight):
        self.u = u
        self.v = v
        self.weight = weight

    def __lt__(self, other):
        return self.weight < other.weight


def kruskal(n, edges, max_weight):
    uf = UnionFind(n)
    chosen = []
    for e in sorted(edges):
        if e.weight > max_weight:
            break
        if uf.union(e.u, e.v):
            chosen.append(e)
    return uf, chosen


def solve(xs, ys, max_weight):
    n = len(xs)
    edges = []
    for i in range(n):
        for j in range(i + 1, n):
            edges.append(Edge(i, j, abs(xs[i] - xs[j]) + abs(ys[i] - ys[j])))
    uf, chosen = kruskal(n, edges, max_weight)
    cost = sum(e.weight for e in chosen)
    desc = " ".join(f"{e.u}-{e.v}" for e in chosen)
    biggest = uf.groups()[0]
    return cost, uf.components, biggest, desc


ENTRY = solve
EXAMPLES = [
    ([0, 1, 5, 6, 10, 11], [0, 1, 0, 2, 0, 3], 4),
    ([0, 1, 5, 6, 10, 11], [0, 1, 0, 2, 0, 3], 100),
    ([0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], 0),
    ([1, 2, 4, 8, 16, 32], [0, 0, 0, 0, 0, 0], 5),
    ([1, 2, 4, 8, 16, 32], [3, 1, 4, 1, 5, 9], -1),
    ([3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8], 3),
    ([-5, 5, -5, 5, 0, 0], [-5, -5, 5, 5, 0, 1], 10),
    ([7, 7, 8, 8, 20, 21], [1, 2, 1, 2, 9, 9], 2),
]
