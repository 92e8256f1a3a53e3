"""Programs that change lists, arrays and objects in place: every lane gives what plain Python gives."""

from __future__ import annotations

import bisect
import dataclasses
import heapq

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.share(5)


def check(f, *args):
    """Compare a batch with the plain function, which gets copies of each example."""
    examples = [[np.array(a[k]) if np.ndim(a[k]) else int(a[k]) for a in args] for k in range(len(args[0]))]
    out = pcbatch.batch(f)(*map(jnp.asarray, args))
    np.testing.assert_array_equal(np.asarray(out), np.stack([f(*example) for example in examples]))


def bubble(x):
    n = len(x)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


def insertion(x):
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


def sieve(n):
    is_prime = np.ones(50, dtype=bool)
    is_prime[:2] = False
    p = 2
    while p * p < n:
        if is_prime[p]:
            for q in range(p * p, n, p):
                is_prime[q] = False
        p += 1
    count = 0
    for k in range(n):
        if is_prime[k]:
            count += 1
    return count


def lcs(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                table[i + 1][j + 1] = table[i][j] + 1
            else:
                table[i + 1, j + 1] = max(table[i][j + 1], table[i + 1, j])
    return table[len(a), len(b)]


def transpose(m):
    for i in range(m.shape[0]):
        for j in range(i):
            m[i][j], m[j][i] = m[j][i], m[i][j]
    return m


def union_find(edges, n):
    parent = np.arange(10)
    count = n
    for k in range(len(edges)):
        a, b = edges[k, 0], edges[k, 1]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
            count -= 1
    return count


def partition(a, lo, hi):
    p = a[hi]
    i = lo
    for j in range(lo, hi):
        if a[j] < p:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[hi] = a[hi], a[i]
    return i


def sort_between(a, lo, hi):
    if lo < hi:
        p = partition(a, lo, hi)
        sort_between(a, lo, p - 1)
        sort_between(a, p + 1, hi)


def quicksort(a):
    sort_between(a, 0, len(a) - 1)
    return a


def entry_calls_itself(a, lo, hi):
    if lo < hi:
        a[lo] += 1
        entry_calls_itself(a, lo + 1, hi)
    return a


def sort_row(row):
    for i in range(len(row)):
        for j in range(len(row) - 1):
            if row[j] > row[j + 1]:
                row[j], row[j + 1] = row[j + 1], row[j]


def sorts_parts(m, k):
    sort_row(m[k])
    sort_row(m[:, 0])
    return m


def push(stack, v):
    stack.append(v)
    return len(stack)


def pop_two(stack):
    if len(stack) > 1:
        stack.pop()
        return stack.pop()
    return 0


def machine(x):
    s = []
    n = 0
    for i in range(6):
        if (x >> i) & 1:
            n += push(s, i)
        else:
            n += pop_two(s) * 10
    return n


def rebinds(a):
    a = a.copy()
    a[0] = 9
    return a.sum()


def rebinds_first(x):
    t = rebinds(x)
    return t + x[0]


def find(parent, x):
    if parent[x] != x:
        parent[x] = find(parent, parent[x])
    return parent[x]


def union_find_recursive(edges):
    parent = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    n = 10
    for k in range(len(edges)):
        a = find(parent, edges[k, 0])
        b = find(parent, edges[k, 1])
        if a != b:
            parent[a] = b
            n -= 1
    return n


def nested(x):
    seen = []

    def visit(n):
        if n > 0:
            seen.append(n)
            visit(n - 1)

    visit(x)
    return len(seen)


def lists_of_known_structure(x):
    a = [x, x + 1]
    a.append(x * 2)
    t = a.pop(0) + a[0]
    a[1] += 5
    a.insert(1, t)
    a += [7, x]
    a.reverse()
    b = [[0, 0], [1, x]]
    b[1][0] = x
    b[0].append(3)
    d = {"a": x}
    d["b"] = 2 * x
    d["a"] -= 1
    d.update(c=1)
    q = d.pop("a")
    d.setdefault("e", x)
    s = 0
    for v in a:
        s = s * 3 + v
    return s + b[1][0] * b[0][2] + d["b"] * d["c"] + d["e"] + q


def evaluation_order(x):
    i = 0
    a = [x, x + 1, x + 2]
    i, a[i] = 1, 9
    a[0], i = 5, 2
    z = a[0] + a.pop() * 10 + a[1] + len(a)
    a[0] += a.pop()
    del a[0]
    return z + i + len(a)


def array_elements(x, i, j):
    y = x.copy()
    y[-1] = 3.7
    y[i] += 2
    y[1:3] = [5, 6]
    y[[0, 0]] += 1
    y[y > 4] = 0
    y[i:j] = 8
    y[i : i + 2] += 1
    z = np.zeros((3, 2))
    z[i % 3, 1] = 4
    z[i % 3][0] = 5
    z[1] = [1, 2]
    z[:, 0] += 10
    z[i:] *= 3
    return y.astype(float).sum() + z.sum()


def rows_made_in_a_loop(x):
    grid = []
    for i in range(3):
        row = []
        for j in range(2):
            row.append(x + i * j)
        grid.append(row)
    s = 0
    for row in grid:
        for v in row:
            s += v
    return s + len(grid)


def copies_of_rows(x):
    g = [[0] * 2 for _ in range(3)]
    g[1][0] = x
    g[2][1] += 3
    h = list(g[1])
    h[0] = 9
    return g[0][0] + g[1][0] + g[2][1]


def change_before_break(x):
    xs = [x, x + 2]
    for v in xs:
        if v == 3:
            xs.append(v)
            break
    return len(xs)


def copies_of_arrays(x, k):
    y = x[1:].copy()
    x[k] = 7
    w = jnp.where(x > 3, x, 0)
    x[k] = 8
    z = x + 0
    x[0] = 5
    return y.sum() * w.sum() + z.sum()


def paths_on_a_stack(x):
    stack = [(x, [])]
    out = []
    while stack:
        n, path = stack.pop()
        path = path + [n]
        if n > 0:
            stack.append((n - 1, path))
        else:
            out = path
    return len(out)


def second_name_alone(x):
    a = [x]
    b = a
    b.append(2)
    return len(b)


def stack_until_empty(x):
    i = 3
    q = [x]
    while q and i > 0:
        v = q.pop()
        if v % 2 == 0:
            q.append(v + 1)
        q.append(v // 2)
        i -= 1
    return len(q)


@dataclasses.dataclass
class P:
    n: int
    xs: list


class Q:
    def __init__(self, a):
        self.a = a
        self.b = [a]


def objects(x):
    p = P(x, [x])
    p.n += 1
    p.n = p.n * 2
    p.xs.append(4)
    q = Q(x)
    q.b[0] = p.n
    q.b.append(x)
    return p.n + p.xs[1] + q.a + q.b[0] + len(q.b)


class Node:
    def __init__(self, v):
        self.v = v
        self.kids = []


def objects_in_a_loop(x):
    p = Node(x)
    for i in range(3):
        p.v += i
        p.kids.append(p.v)
        if p.v > 4:
            p.v = 0
    q = p
    q.v = 7
    return q.v + len(q.kids)


def heap_order(x):
    h = []
    for i in range(len(x)):
        heapq.heappush(h, x[i])
    out = np.zeros(len(x) + 3, dtype=int)
    out[0] = h[1]
    out[1] = heapq.heapreplace(h, 5)
    out[2] = heapq.heappushpop(h, 4)
    k = 3
    while h:
        out[k] = heapq.heappop(h)
        k += 1
    return out


def heap_made_at_once(x):
    h = [x[0], x[1], x[2], x[3], x[4]]
    heapq.heapify(h)
    s = 0
    for v in h:
        s = s * 10 + v
    return s


def kept_sorted(x):
    h = []
    for i in range(len(x)):
        bisect.insort(h, x[i])
    s = 0
    for v in h:
        s = s * 10 + v
    return s


def dijkstra(w):
    n = 4
    dist = [1000] * 4
    dist[0] = 0
    q = [(0, 0)]
    while q:
        d, u = heapq.heappop(q)
        if d > dist[u]:
            continue
        for v in range(n):
            c = w[u, v]
            if c > 0 and d + c < dist[v]:
                dist[v] = d + c
                heapq.heappush(q, (dist[v], v))
    return dist[3]


def groups_by_key(x):
    d = {}
    for i in range(len(x)):
        d.setdefault(x[i] % 3, []).append(i)
    s = 0
    for k in d:
        s = s * 10 + len(d[k])
    return s


def rows_of_a_list_swapped(m):
    a = [[m[0, 0], m[0, 1]], [m[1, 0], m[1, 1]]]
    if a[0][0] == 0:
        a[0], a[1] = a[1], a[0]
    a[1][0] += a[0][0]
    return a[1][0] * 100 + a[0][1]


def rows_of_an_array_swapped(m):
    m[0], m[1] = m[1], m[0]
    m[0][0] = 9
    return m


class Stack:
    def __init__(self):
        self.items = []
        self.n = 0

    def push(self, v):
        self.items.append(v)
        self.n += 1

    def take(self):
        self.n -= 1
        return self.items.pop()

    def size(self):
        return self.n


def methods_of_a_class(x):
    s = Stack()
    for i in range(4):
        s.push(x + i)
    t = s.take() * 10
    if s.size() > 2:
        s.push(t)
    return t + s.size() + s.items[-1]


RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.integers(0, 9, (4, 5))
NUMBERS = np.arange(5)
CASES = [
    (bubble, RANDOM.integers(0, 50, (5, 7))),
    (insertion, RANDOM.integers(0, 50, (5, 7))),
    (sieve, np.array([3, 10, 30, 50, 49])),
    (lcs, RANDOM.integers(0, 3, (4, 6)), RANDOM.integers(0, 3, (4, 5))),
    (transpose, RANDOM.integers(0, 9, (3, 4, 4))),
    (union_find, RANDOM.integers(0, 10, (4, 6, 2)), np.full(4, 10)),
    (quicksort, VECTORS),
    (entry_calls_itself, VECTORS, np.array([0, 1, 2, 3]), np.array([3, 4, 2, 4])),
    (sorts_parts, RANDOM.integers(0, 9, (3, 3, 3)), np.array([0, 1, 2])),
    (machine, RANDOM.integers(0, 64, 6)),
    (rebinds_first, VECTORS),
    (union_find_recursive, RANDOM.integers(0, 10, (3, 6, 2))),
    (nested, NUMBERS),
    (lists_of_known_structure, NUMBERS),
    (evaluation_order, NUMBERS),
    (array_elements, RANDOM.integers(0, 9, (4, 6)), np.array([0, 1, 2, 1]), np.array([0, 3, 6, 2])),
    (rows_made_in_a_loop, NUMBERS),
    (copies_of_rows, NUMBERS),
    (change_before_break, NUMBERS),
    (copies_of_arrays, VECTORS, np.arange(4)),
    (paths_on_a_stack, NUMBERS),
    (second_name_alone, NUMBERS),
    (stack_until_empty, NUMBERS),
    (objects, NUMBERS),
    (objects_in_a_loop, NUMBERS),
    (heap_order, VECTORS),
    (heap_made_at_once, VECTORS),
    (kept_sorted, VECTORS),
    (dijkstra, RANDOM.integers(0, 9, (4, 4, 4))),
    (groups_by_key, VECTORS),
    (rows_of_a_list_swapped, RANDOM.integers(0, 2, (6, 2, 2))),
    (rows_of_an_array_swapped, RANDOM.integers(0, 9, (3, 2, 2))),
    (methods_of_a_class, np.arange(3)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_as_in_python(case):
    check(*case)


def test_index_out_of_range_fails_the_lane():
    @pcbatch.batch
    def store(x, i):
        x[i] = 1
        return x

    x = jnp.zeros((3, 4), int)
    with pytest.raises(pcbatch.BatchRuntimeError, match="index 4 is out of bounds for axis 0 with size 4"):
        store(x, jnp.array([3, -4, 4]))


def test_a_function_without_return_gives_none():
    @pcbatch.batch
    def nothing(x):
        if x > 2:
            return
        x += 1

    assert nothing(jnp.arange(4)) is None
