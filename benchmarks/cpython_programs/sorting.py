"""Sorts written by hand."""

from __future__ import annotations

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


def _numbers(rng):
    return ([rng.randint(0, 999) for _ in range(rng.randint(10, 40))],)


def _quicksort(xs, low, high):
    if low >= high:
        return
    pivot = xs[(low + high) // 2]
    i, j = low, high
    while i <= j:
        while xs[i] < pivot:
            i += 1
        while xs[j] > pivot:
            j -= 1
        if i <= j:
            xs[i], xs[j] = xs[j], xs[i]
            i += 1
            j -= 1
    _quicksort(xs, low, j)
    _quicksort(xs, i, high)


@program("quicksort in place", _numbers)
def quicksort(xs):
    xs = xs[:]
    _quicksort(xs, 0, len(xs) - 1)
    return xs


@program("merge sort, lists cut and merged", _numbers)
def merge_sort(xs):
    if len(xs) <= 1:
        return xs
    middle = len(xs) // 2
    left, right = merge_sort(xs[:middle]), merge_sort(xs[middle:])
    out = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


@program("insertion sort", lambda rng: ([rng.randint(0, 999) for _ in range(rng.randint(8, 20))],))
def insertion_sort(xs):
    xs = list(xs)
    for i in range(1, len(xs)):
        x = xs[i]
        j = i - 1
        while j >= 0 and xs[j] > x:
            xs[j + 1] = xs[j]
            j -= 1
        xs[j + 1] = x
    return xs


@program("bitonic sorting network, 16 numbers", lambda rng: ([rng.randint(0, 999) for _ in range(16)],))
def bitonic(xs):
    xs = list(xs)
    n = len(xs)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            for i in range(n):
                other = i ^ j
                if other > i:
                    if (i & k == 0) == (xs[i] > xs[other]):
                        xs[i], xs[other] = xs[other], xs[i]
            j //= 2
        k *= 2
    return xs
