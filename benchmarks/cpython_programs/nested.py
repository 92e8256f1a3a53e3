"""Dicts and lists of containers: graphs as people keep them, groups of words, a cache of buckets."""

from __future__ import annotations

from collections import OrderedDict, defaultdict

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)

WORDS = "listen silent enlist inlets tinsel rat tar art cat act star tars rats arts".split()


def _edges(rng, nodes, most):
    return [(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(rng.randint(most // 4, most))]


@program("depth first over a dict of lists", lambda rng: (_edges(rng, 20, 40),))
def depth_first(edges):
    graph = defaultdict(list)
    for a, b in edges:
        graph[a].append(b)
        graph[b].append(a)
    seen = {0}
    stack = [0]
    order = 0
    while stack:
        node = stack.pop()
        order = order * 3 % 10007 + node
        for other in graph[node]:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return order


@program("triangles of a dict of sets", lambda rng: (_edges(rng, 12, 40), 12))
def triangles(edges, n):
    graph = {}
    for a, b in edges:
        graph.setdefault(a, set()).add(b)
        graph.setdefault(b, set()).add(a)
    found = 0
    for a, b in edges:
        for c in range(n):
            if c in graph[a] and c in graph[b]:
                found += 1
    return found


@program("weights in a dict of dicts", lambda rng: (_edges(rng, 12, 40), 12))
def weights(edges, n):
    table = defaultdict(dict)
    for k, (a, b) in enumerate(edges):
        table[a][b] = k
        table[b][a] = k
    total = 0
    for a in range(n):
        for b in range(n):
            if a in table and b in table[a]:
                total += table[a][b]
    return total


@program("groups of anagrams", lambda rng: (rng.choices(WORDS, k=rng.randint(4, 20)),))
def anagrams(words):
    groups = {}
    for word in words:
        key = "".join(sorted(word))
        if key not in groups:
            groups[key] = set()
        groups[key].add(word)
    return max(len(group) for group in groups.values())


@program("least frequently used cache", lambda rng: ([int(rng.expovariate(0.2)) for _ in range(60)], rng.randint(3, 9)))
def frequencies(keys, room):
    counts = {}
    buckets = defaultdict(OrderedDict)
    hits = low = 0
    for key in keys:
        if key in counts:
            hits += 1
            count = counts[key]
            del buckets[count][key]
            if not buckets[count]:
                del buckets[count]
                if low == count:
                    low += 1
            counts[key] = count + 1
            buckets[count + 1][key] = None
            continue
        if len(counts) >= room:
            old, _ = buckets[low].popitem(last=False)
            del counts[old]
        counts[key] = low = 1
        buckets[1][key] = None
    return hits
