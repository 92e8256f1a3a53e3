"""Dicts, sets, lists and deques inside one another and in nodes that lanes make: tries, graphs, caches, trees."""

from __future__ import annotations

from collections import defaultdict, deque

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("containers", ROWS)


@row((1,), (4,), (9,))
def dict_of_dicts(n):
    d = {}
    for i in range(n):
        d[i % 3] = {}
    for i in range(n):
        d[i % 3][i] = i * i
    t = 0
    for k, v in d.items():
        for a, b in v.items():
            t = t * 3 + a + b + k
    return t


@row((1,), (4,), (9,))
def dict_of_lists(n):
    d = {}
    for i in range(n):
        if i % 3 not in d:
            d[i % 3] = []
        d[i % 3].append(i)
    return sum(len(v) * k for k, v in d.items()), d[0][0]


@row((1,), (4,), (9,))
def sets_by_setdefault(n):
    d = {}
    for i in range(n):
        d.setdefault(i % 3, set()).add(i % 4)
    return sum(len(s) * (k + 1) for k, s in d.items())


@row((1,), (4,), (9,))
def dicts_by_default(n):
    d = defaultdict(dict)
    for i in range(n):
        d[i % 3][i % 5] = i
    return sum(sum(x.values()) for x in d.values())


@row((1,), (4,), (9,))
def sets_by_default(n):
    d = defaultdict(set)
    for i in range(n):
        d[i % 3].add(i % 5)
    return sum(len(x) for x in d.values())


@row((1,), (4,), (9,))
def counts_of_counts(n):
    d = defaultdict(lambda: defaultdict(int))
    for i in range(n):
        d[i % 3][i % 5] += i
    return d[1][2], d[7][7], len(d)


@row((1,), (4,), (9,))
def list_of_dicts(n):
    g = []
    for i in range(n):
        g.append({})
        g[-1][i] = 1
        g[i // 2][i + 1] = 5
    return sum(len(x) for x in g)


@row((1,), (4,), (9,))
def windows(n):
    g = [deque() for _ in range(3)]
    for i in range(n):
        g[i % 3].append(i)
        if len(g[i % 3]) > 2:
            g[i % 3].popleft()
    return sum(q[0] for q in g if q)


@row((1,), (4,), (9,))
def dicts_that_are_equal(n):
    g = []
    for i in range(n):
        g.append({i: 1, i + 1: 2})
    return ({1: 1, 2: 2} in g), (g[0] == {0: 1, 1: 2}), g[0] == {1: 2, 0: 1}, {7: 1} in g


@row((1,), (4,), (9,))
def sets_that_are_equal(n):
    g = [set() for _ in range(n)]
    for i in range(n):
        g[i].add(i)
        g[i].add(i % 2)
    return g == g, g.count({1, 0}), g.index({0})


@row((1,), (4,), (9,))
def queues_by_default(n):
    g = defaultdict(deque)
    for i in range(n):
        g[i % 2].append(i)
    return g[0][0], len(g[0])


@row((1,), (4,), (9,))
def dicts_in_tuples(n):
    g = {}
    for i in range(n):
        g[i % 3] = (i, {i: [i]})
    for i in range(min(n, 3)):
        g[i][1][9] = [1, 2]
        g[i][1][9].append(5)
    return sum(len(x[1][9]) for x in g.values())


@row((1,), (4,), (9,))
def dicts_in_lists_in_lists(n):
    g = [[{}]]
    for i in range(n):
        g.append([{i: 1}])
        g[i].append({})
        g[i][1][3] = 5
        g[i][0][4.5] = 5
    return sum(sum(sum(k for k in y) for y in x) for x in g)


@row((1,), (4,), (9,))
def rows_and_columns_of_a_board(n):
    rows = [set() for _ in range(9)]
    cols = [set() for _ in range(9)]
    ok = True
    for i in range(n * 7):
        r, c, v = i % 9, (i * i) % 9, i % 5
        if v in rows[r] or v in cols[c]:
            ok = False
        else:
            rows[r].add(v)
            cols[c].add(v)
    return ok, sum(len(r) for r in rows), sum(len(c) for c in cols)


@row((1,), (4,), (9,))
def largest_dict(n):
    d = {}
    for i in range(n):
        d[i] = {j: i * j for j in range(i)}
    best = max(d.values(), key=lambda e: len(e))
    x = d.pop(n - 1)
    return len(best), sum(x.values()), len(d)


@row((1,), (4,), (9,))
def neighbour_sets(n):
    g = {i: set() for i in range(n)}
    for i in range(n):
        g[i].add((i + 1) % n)
        g[(i * 3) % n].add(i)
    seen = set()
    stack = [0]
    while stack:
        x = stack.pop()
        if x in seen:
            continue
        seen.add(x)
        for y in range(n):
            if y in g[x]:
                stack.append(y)
    return len(seen)


class Trie:
    def __init__(self):
        self.children = {}
        self.end = False


@row(([1, 5, 9, 26],), ([3, 3, 3, 3],), ([0, 1, 2, 3],))
def words_in_a_trie(words):
    root = Trie()
    for w in words:
        node = root
        for c in [w // 9, w // 3 % 3, w % 3]:
            if c not in node.children:
                node.children[c] = Trie()
            node = node.children[c]
        node.end = True

    def count(node):
        total = 1 if node.end else 0
        for child in node.children.values():
            total += count(child)
        return total

    return count(root)


class Part:
    def __init__(self):
        self.kids = []
        self.seen = set()
        self.q = deque()
        self.names = {}


@row((1,), (4,), (9,))
def all_kinds_of_fields(n):
    a = Part()
    for i in range(n):
        b = Part()
        b.seen.add(i)
        a.kids.append(b)
        a.seen.add(i % 3)
        a.q.append(b)
        if len(a.q) > 3:
            a.q.popleft()
        a.names[i] = b
        b.names[0] = a
    t = 0
    for k in a.kids:
        t += len(k.seen) + len(k.names[0].kids)
    for b in a.q:
        t = t * 2 + len(b.names)
    return t, len(a.seen), len(a.q)


class Branch:
    def __init__(self, k):
        self.k = k
        self.left = None
        self.right = None
        self.tags = set()


class Vertex:
    def __init__(self, v):
        self.v = v
        self.nb = []
        self.seen = False


class Linked:
    def __init__(self, k, v):
        self.k = k
        self.v = v
        self.prev = None
        self.next = None


class Cache:
    def __init__(self, cap):
        self.cap = cap
        self.map = {}
        self.head = Linked(0, 0)
        self.tail = Linked(0, 0)
        self.head.next = self.tail
        self.tail.prev = self.head

    def _remove(self, n):
        n.prev.next = n.next
        n.next.prev = n.prev

    def _add(self, n):
        p = self.tail.prev
        p.next = n
        n.prev = p
        n.next = self.tail
        self.tail.prev = n

    def get(self, k):
        if k in self.map:
            n = self.map[k]
            self._remove(n)
            self._add(n)
            return n.v
        return -1

    def put(self, k, v):
        if k in self.map:
            self._remove(self.map[k])
        n = Linked(k, v)
        self._add(n)
        self.map[k] = n
        if len(self.map) > self.cap:
            old = self.head.next
            self._remove(old)
            del self.map[old.k]


@row((1,), (4,), (9,))
def cache(n):
    c = Cache(3)
    t = 0
    for i in range(n):
        c.put(i * 7 % 5, i)
        t = t * 3 + c.get(i % 4)
        t = t % 10007
    return t, len(c.map)


@row((1,), (4,), (9,))
def breadth_first(n):
    nodes = [Vertex(i) for i in range(n)]
    for i in range(n):
        nodes[i].nb.append(nodes[(i * 2 + 1) % n])
        nodes[(i * 3) % n].nb.append(nodes[i])
    q = deque([nodes[0]])
    nodes[0].seen = True
    order = 0
    while q:
        x = q.popleft()
        order = (order * 5 + x.v) % 1009
        for y in x.nb:
            if not y.seen:
                y.seen = True
                q.append(y)
    return order


@row((1,), (4,), (9,))
def search_tree_with_sets(n):
    root = None
    for i in range(n):
        k = i * 5 % 11
        if root is None:
            root = Branch(k)
        else:
            cur = root
            while True:
                cur.tags.add(k)
                if k < cur.k:
                    if cur.left is None:
                        cur.left = Branch(k)
                        break
                    cur = cur.left
                else:
                    if cur.right is None:
                        cur.right = Branch(k)
                        break
                    cur = cur.right
    return len(root.tags), root.k


class Counted:
    def __init__(self, depth):
        self.kids = {}
        self.vals = []
        self.depth = depth


def build(n, d):
    node = Counted(d)
    node.vals.append(n)
    if n > 0:
        for m in (1, 2):
            if m <= n:
                node.kids[m] = build(n - m - 1, d + 1)
    return node


def total(node):
    t = sum(node.vals) + node.depth
    for m, kid in node.kids.items():
        t += m * total(kid)
    return t


@row((1,), (4,), (6,))
def tree_by_recursion(n):
    return total(build(n, 0))
