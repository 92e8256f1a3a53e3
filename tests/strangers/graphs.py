"""Graphs as matrices, lists of neighbours and lists of edges."""

from __future__ import annotations

import heapq
from collections import deque
from queue import Queue

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("graphs", ROWS)


@row(
    ([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]], 0),
    ([[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]], 1),
)
def bfs_order(graph, start):
    visited = [False] * len(graph)
    queue = deque([start])
    visited[start] = True
    order = []
    while queue:
        u = queue.popleft()
        order.append(u)
        for v in range(len(graph)):
            if graph[u][v] and not visited[v]:
                visited[v] = True
                queue.append(v)
    return order


@row(([[0, 4, 0], [4, 0, 8], [0, 8, 0]], 0), ([[0, 1, 5], [1, 0, 1], [5, 1, 0]], 2))
def dijkstra_matrix(graph, src):
    n = len(graph)
    dist = [1000000] * n
    dist[src] = 0
    done = [False] * n
    for _ in range(n):
        u = -1
        for i in range(n):
            if not done[i] and (u == -1 or dist[i] < dist[u]):
                u = i
        done[u] = True
        for v in range(n):
            if graph[u][v] > 0 and dist[u] + graph[u][v] < dist[v]:
                dist[v] = dist[u] + graph[u][v]
    return dist


@row(([[1, 2], [0, 3], [0, 3], [1, 2]], 0), ([[1], [0], []], 0))
def reachable_by_a_stack(graph, start):
    seen = set()
    stack = [start]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for neighbour in graph[node]:
            if neighbour not in seen:
                stack.append(neighbour)
    return sorted(seen)


@row(([[0, 3, 100], [3, 0, 1], [100, 1, 0]],), ([[0, 9, 2], [9, 0, 3], [2, 3, 0]],))
def floyd_warshall(dist):
    n = len(dist)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if dist[i][k] + dist[k][j] < dist[i][j]:
                    dist[i][j] = dist[i][k] + dist[k][j]
    return dist


@row((4, [(0, 1), (2, 3)]), (3, [(0, 1), (1, 2)]), (2, []))
def count_components(n, edges):
    parent = list(range(n))

    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    count = n
    for a, b in edges:
        ra, rb = find(a), find(b)
        if ra != rb:
            parent[ra] = rb
            count -= 1
    return count


@row(([[1, 1, 0], [0, 1, 0], [0, 0, 1]],), ([[1, 0, 1], [0, 0, 0], [1, 0, 1]],))
def count_islands(grid):
    def sink(r, c):
        if r < 0 or c < 0 or r >= len(grid) or c >= len(grid[0]) or grid[r][c] != 1:
            return
        grid[r][c] = 0
        sink(r + 1, c)
        sink(r - 1, c)
        sink(r, c + 1)
        sink(r, c - 1)

    count = 0
    for r in range(len(grid)):
        for c in range(len(grid[0])):
            if grid[r][c] == 1:
                sink(r, c)
                count += 1
    return count


@row((3, [(0, 1, 4), (1, 2, -2), (0, 2, 5)]), (3, [(0, 1, 1), (1, 2, 1), (2, 0, 1)]))
def bellman_ford(n, edges):
    distance = [10**6] * n
    distance[0] = 0
    for _ in range(n - 1):
        for u, v, w in edges:
            if distance[u] + w < distance[v]:
                distance[v] = distance[u] + w
    return distance


@row(([[1, 2], [3], [3], []],), ([[1], [2], []],))
def topological_order(graph):
    incoming = [0] * len(graph)
    for targets in graph:
        for t in targets:
            incoming[t] += 1
    queue = [v for v in range(len(graph)) if incoming[v] == 0]
    order = []
    while queue:
        v = queue.pop(0)
        order.append(v)
        for t in graph[v]:
            incoming[t] -= 1
            if incoming[t] == 0:
                queue.append(t)
    return order


@row(([[1, 2], [0, 2], [0, 1]],), ([[1], [0, 2], [1]],))
def is_bipartite(graph):
    colour = [-1] * len(graph)
    for start in range(len(graph)):
        if colour[start] != -1:
            continue
        colour[start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for other in graph[node]:
                if colour[other] == -1:
                    colour[other] = 1 - colour[node]
                    queue.append(other)
                elif colour[other] == colour[node]:
                    return False
    return True


@row(([[(1, 4), (2, 1)], [(3, 1)], [(1, 2), (3, 5)], []], 0), ([[(1, 7)], [(2, 1)], []], 0))
def dijkstra_with_a_heap(graph, source):
    distance = [10**6] * len(graph)
    distance[source] = 0
    heap = [(0, source)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > distance[u]:
            continue
        for v, w in graph[u]:
            if d + w < distance[v]:
                distance[v] = d + w
                heapq.heappush(heap, (d + w, v))
    return distance


@row(([[0, 1], [0], [1, 2]],), ([[0], [0], [2]],))
def bipartite_matching(choices):
    match = [None] * len(choices)

    def augment(u, seen):
        for v in choices[u]:
            if not seen[v]:
                seen[v] = True
                if match[v] is None or augment(match[v], seen):
                    match[v] = u
                    return True
        return False

    size = 0
    for u in range(len(choices)):
        if augment(u, [False] * len(choices)):
            size += 1
    return size


@row(([[1, 2], [3], [3], []], 0), ([[1], [0, 2], [1], [2]], 3))
def distances_by_queue(graph, start):
    seen, distance = [False] * len(graph), [-1] * len(graph)
    q = Queue()
    q.put(start)
    seen[start], distance[start] = True, 0
    while not q.empty():
        node = q.get()
        for other in graph[node]:
            if not seen[other]:
                seen[other] = True
                distance[other] = distance[node] + 1
                q.put(other)
    return distance, q.qsize()
