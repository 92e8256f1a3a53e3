"""Dynamic programming, sieves and packing."""

from __future__ import annotations

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


def _two_texts(rng):
    return tuple("".join(rng.choice("ACGT") for _ in range(rng.randint(8, 16))) for _ in range(2))


@program("longest common subsequence of texts", _two_texts)
def common_subsequence(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    out = ""
    i, j = len(a), len(b)
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            out = a[i - 1] + out
            i, j = i - 1, j - 1
        elif table[i - 1][j] >= table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return out


def _best_chain(sizes, i, j, memo):
    if i == j:
        return 0
    if (i, j) in memo:
        return memo[(i, j)]
    best = float("inf")
    for k in range(i, j):
        cost = _best_chain(sizes, i, k, memo) + _best_chain(sizes, k + 1, j, memo)
        best = min(best, cost + sizes[i] * sizes[k + 1] * sizes[j + 1])
    memo[(i, j)] = best
    return best


@program("matrix chain with a memo", lambda rng: ([rng.randint(1, 30) for _ in range(rng.randint(4, 8))],))
def matrix_chain(sizes):
    return _best_chain(sizes, 0, len(sizes) - 2, {})


@program("sieve of Eratosthenes", lambda rng: (rng.randint(50, 400),))
def primes_below(n):
    is_prime = [True] * n
    is_prime[0] = is_prime[1] = False
    p = 2
    while p * p < n:
        if is_prime[p]:
            for multiple in range(p * p, n, p):
                is_prime[multiple] = False
        p += 1
    return sum(is_prime), [k for k in range(n) if is_prime[k]][-1]


def _sizes(rng):
    return [rng.randint(1, 9) for _ in range(rng.randint(10, 24))], rng.randint(10, 15)


@program("bin packing, first fit decreasing", _sizes)
def bin_packing(sizes, capacity):
    bins = []
    for size in sorted(sizes, reverse=True):
        for b in bins:
            if sum(b) + size <= capacity:
                b.append(size)
                break
        else:
            bins.append([size])
    return len(bins), [capacity - sum(b) for b in bins]
