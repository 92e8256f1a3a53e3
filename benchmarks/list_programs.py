"""Textbook programs on lists, dicts and sets, in plain Python and with arrays by hand, for `benchmarks.containers`."""

from __future__ import annotations

from collections import Counter

import jax.numpy as jnp

# Tables of lists.


def knapsack(weights, values, room):
    """The most valuable choice of things that fit."""
    best = [0] * (room + 1)
    for k in range(len(weights)):
        for w in range(room, weights[k] - 1, -1):
            best[w] = max(best[w], best[w - weights[k]] + values[k])
    return best[room]


def knapsack_at(weights, values, room):
    """The same in an array."""
    best = jnp.zeros(256, jnp.int32)
    for k in range(weights.shape[0]):
        for w in range(room, weights[k] - 1, -1):
            best = best.at[w].set(jnp.maximum(best[w], best[w - weights[k]] + values[k]))
    return best[room]


def product(a, b, n):
    """The sum of the product of two matrices, into a list of lists."""
    c = [[0] * n for _ in range(n)]
    total = 0
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i][j] += a[i, k] * b[k, j]
            total ^= c[i][j]
    return total


def product_at(a, b, n):
    """The same in an array."""
    c = jnp.zeros(a.shape, jnp.int32)
    total = 0
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c = c.at[i, j].add(a[i, k] * b[k, j])
            total ^= c[i, j]
    return total


def floyd(weights, n):
    """All shortest paths, by Floyd and Warshall; the sum of those from node 0."""
    dist = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            dist[i][j] = weights[i, j]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if dist[i][k] + dist[k][j] < dist[i][j]:
                    dist[i][j] = dist[i][k] + dist[k][j]
    return sum(dist[0])


def floyd_at(weights, n):
    """The same in an array."""
    dist = weights
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if dist[i, k] + dist[k, j] < dist[i, j]:
                    dist = dist.at[i, j].set(dist[i, k] + dist[k, j])
    return jnp.sum(jnp.where(jnp.arange(weights.shape[1]) < n, dist[0], 0))


def pascal(n):
    """A row of Pascal's triangle, modulo a prime."""
    rows = [[1] * (n + 1) for _ in range(n + 1)]
    for i in range(2, n + 1):
        for j in range(1, i):
            rows[i][j] = (rows[i - 1][j - 1] + rows[i - 1][j]) % 9973
    return rows[n][n // 2]


def pascal_at(n):
    """The same in an array."""
    rows = jnp.ones((64, 64), jnp.int32)
    for i in range(2, n + 1):
        for j in range(1, i):
            rows = rows.at[i, j].set((rows[i - 1, j - 1] + rows[i - 1, j]) % 9973)
    return rows[n, n // 2]


def increasing(xs, n):
    """The length of the longest increasing subsequence."""
    best = [1] * n
    for i in range(n):
        for j in range(i):
            if xs[j] < xs[i] and best[j] + 1 > best[i]:
                best[i] = best[j] + 1
    return max(best)


def increasing_at(xs, n):
    """The same in an array."""
    best = jnp.ones(xs.shape[0], jnp.int32)
    for i in range(n):
        for j in range(i):
            if xs[j] < xs[i] and best[j] + 1 > best[i]:
                best = best.at[i].set(best[j] + 1)
    return jnp.max(jnp.where(jnp.arange(xs.shape[0]) < n, best, 0))


def prefix(xs, n):
    """The longest part whose sum is zero, by prefix sums."""
    sums = [0]
    for i in range(n):
        sums.append(sums[-1] + xs[i])
    longest = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            if sums[i] == sums[j]:
                longest = max(longest, j - i)
    return longest


def prefix_at(xs, n):
    """The same in an array."""
    sums = jnp.zeros(xs.shape[0] + 1, jnp.int32)
    for i in range(n):
        sums = sums.at[i + 1].set(sums[i] + xs[i])
    longest = 0
    for i in range(n):
        for j in range(i + 1, n + 1):
            if sums[i] == sums[j]:
                longest = jnp.maximum(longest, j - i)
    return longest


def life(start, n, steps):
    """The game of life on a torus: cells alive after some steps."""
    grid = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            grid[i][j] = start[i, j]
    for _ in range(steps):
        new = [[0] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                around = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        around += grid[(i + di) % n][(j + dj) % n]
                around -= grid[i][j]
                if around == 3 or (around == 2 and grid[i][j] == 1):
                    new[i][j] = 1
        grid = new
    return sum(map(sum, grid))


def life_at(start, n, steps):
    """The same in arrays."""
    grid = start
    for _ in range(steps):
        new = jnp.zeros(start.shape, jnp.int32)
        for i in range(n):
            for j in range(n):
                around = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        around += grid[(i + di) % n, (j + dj) % n]
                around -= grid[i, j]
                if around == 3 or (around == 2 and grid[i, j] == 1):
                    new = new.at[i, j].set(1)
        grid = new
    return jnp.sum(grid)


# Dicts and sets, against a table with open addressing.


def seen_set(xs, n):
    """Count what was there before."""
    seen = set()
    again = 0
    for i in range(n):
        if xs[i] in seen:
            again += 1
        else:
            seen.add(xs[i])
    return again


def seen_table(xs, n):
    """The same by hand."""
    keys = jnp.full(128, -1)
    again = 0
    for i in range(n):
        x = xs[i]
        place = (x * 40503 >> 7) % 128
        while keys[place] != -1 and keys[place] != x:
            place = (place + 1) % 128
        if keys[place] == x:
            again += 1
        else:
            keys = keys.at[place].set(x)
    return again


def memo_dict(xs, n):
    """Sum a function whose values are kept."""
    memo = {}
    total = 0
    for i in range(n):
        x = xs[i]
        if x not in memo:
            memo[x] = x * x + 1
        total += memo[x]
    return total


def memo_table(xs, n):
    """The same by hand."""
    keys = jnp.full(128, -1)
    values = jnp.zeros(128, jnp.int32)
    total = 0
    for i in range(n):
        x = xs[i]
        place = (x * 40503 >> 7) % 128
        while keys[place] != -1 and keys[place] != x:
            place = (place + 1) % 128
        if keys[place] != x:
            keys = keys.at[place].set(x)
            values = values.at[place].set(x * x + 1)
        total += values[place]
    return total


def count_counter(xs, n):
    """Count numbers in a `Counter`; the most frequent one's count."""
    counts = Counter()
    best = 0
    for i in range(n):
        counts[xs[i]] += 1
        best = max(best, counts[xs[i]])
    return best
