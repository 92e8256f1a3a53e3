"""A variable that a loop ends with None has, before the loop, the type that it has there."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


@pcbatch.batch
def path_of_texts(word, most):
    """Textbooks follow the parents of `current` itself, which has been a key of dicts before."""
    parents = {"a": None}
    queue = deque(["a"])
    letters = 0
    while queue:
        current = queue.popleft()
        letters += len(current)
        if current == word or len(parents) > most:
            path = []
            while current is not None:
                path.append(current)
                current = parents[current]
            return path, letters
        for c in "ab":
            new = current + c
            if new not in parents and len(new) < 5:
                parents[new] = current
                queue.append(new)
    return [], letters


def test_parents_of_texts() -> None:
    words = ["aab", "ab", "zz", "abab"]
    paths, letters = path_of_texts(pcbatch.ragged(words), np.full(4, 9, np.int32))
    assert list(zip(paths.tolist(), letters.tolist(), strict=True)) == [path_of_texts.plain(w, 9) for w in words]


@pcbatch.batch
def climbs(n):
    """The variable goes round an outer loop, and comes to the inner one from several places, after a condition."""
    up = {1: None}
    total = 0
    for k in range(2, n + 2):
        up[k] = k // 2
    x = n
    while total < 100:
        total += up[x] if x > 1 else 1
        if x % 3 == 0 or total > 50:
            while x is not None:
                total += x
                x = up[x]
            x = n + 1
        else:
            x = x - 1 if x > 1 else n
    return total


def test_numbers_round_an_outer_loop() -> None:
    ns = np.arange(1, 9)
    assert climbs(ns).tolist() == [climbs.plain(int(n)) for n in ns]


@pcbatch.batch
def lists(n):
    held = {0: None, 1: [1, 2], 2: [3]}
    current = held[2] if n > 2 else [n]
    total, k = current[0], 2
    while current is not None:
        current.append(total)
        total += len(current)
        k -= 1
        current = held[k]
    return total


def test_lists_with_two_names_are_changed_under_both() -> None:
    assert lists(np.arange(4)).tolist() == [lists.plain(n) for n in range(4)]
