"""Which functions Python may run for an example before they are compiled, and what they leave as it was."""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import random
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.sizing.closed import outside

TABLE = [3, 1, 2]
NESTED = {"a": [1, 2], "b": [3]}
SEEN: list[int] = []
TOTAL = 0
GENERATOR = random.Random(7)


class Colour(Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: float
    y: float


@dataclass
class Item:
    name: str
    weight: int = 1
    tags: list[str] = field(default_factory=list)


class Queue:
    made = 0

    def __init__(self) -> None:
        self.items: deque[int] = deque()
        Queue.made += 1

    @property
    def size(self) -> int:
        return len(self.items)

    @staticmethod
    def twice(n: int) -> int:
        return 2 * n


@functools.cache
def steps(n: int) -> int:
    return 1 if n < 2 else steps(n // 2) + 1


def of_tables(n: int) -> list[int]:
    return [TABLE[n % 3], *NESTED["a"], math.isqrt(n)]


def of_objects(n: int) -> list[Any]:
    q = Queue()
    q.items.append(n)
    return [q.size, Queue.twice(n), Item("a", n), Point(1.0, 2.0), Colour.RED, Counter("aab")]


def of_heap(n: int) -> list[int]:
    heap = [n, 2, 1]
    heapq.heapify(heap)
    return [heapq.heappop(heap), steps(n)]


@pcbatch.batch
def of_batched(n: int) -> list[int]:
    return [] if n == 0 else [*of_batched(n - 1), n]


def of_closure() -> Callable[[int], list[int]]:
    table = [1, 2, 3]

    def inner(n: int) -> list[int]:
        return [table[k % 3] for k in range(n)]

    return inner


def keeps_in_table(n: int) -> list[int]:
    SEEN.append(n)
    NESTED["a"].append(n)
    NESTED[str(n)] = []
    return SEEN[:]


def prints(n: int) -> list[int]:
    print(n)
    return [n]


def assigns(n: int) -> list[int]:
    global TOTAL
    TOTAL += n
    return [n]


def waits(n: int) -> list[float]:
    return [time.time()]


def draws(n: int) -> list[float]:
    return [random.random()]


def draws_of_object(n: int) -> list[float]:
    return [GENERATOR.random()]


def of_numpy(n: int) -> list[Any]:
    return [np.zeros(n)]


def of_jax(n: int) -> list[Any]:
    return [jnp.sin(n)]


def imports(n: int) -> list[str]:
    import os

    return [os.sep]


def reads(n: int) -> list[str]:
    return [open("/dev/null").read()]


def catches_all(n: int) -> list[int]:
    try:
        return [1 // n]
    except:  # noqa: E722
        return []


def catches_ends(n: int) -> list[int]:
    try:
        return [1 // n]
    except BaseException:
        return []


def by_helper(n: int) -> list[int]:
    return prints(n)


def sets_attributes(n: int) -> list[int]:
    setattr(Queue, "made", n)
    return [n]


DRAW, PUSH, COUNTS = random.random, SEEN.append, Counter()


def draws_by_name(n: int) -> list[float]:
    return [DRAW()]


def pushes(n: int) -> list[int]:
    PUSH(n)
    return [n]


def counts_outside(n: int) -> list[int]:
    COUNTS["n"] += n
    return [n]


def of_module_inside(n: int) -> list[float]:
    return [statistics.random.random()]  # type: ignore[attr-defined]


def has_attributes(n: int) -> list[int]:
    has_attributes.calls = n  # type: ignore[attr-defined]
    steps_of.last = n  # type: ignore[attr-defined]
    return [n]


def steps_of(n: int) -> int:
    return n


def of_member(n: int) -> list[int]:
    Colour.RED.hits = n  # type: ignore[attr-defined]
    return [n]


def of_counter() -> Callable[[int], list[int]]:
    count = 0

    def inner(n: int) -> list[int]:
        nonlocal count
        count += 1
        return [n]

    return inner


def returns_in_the_end(n: int) -> list[int]:
    k = 0
    try:
        k = 1 // n
    finally:
        k += 1
        return [k]


def all_orders(n: int) -> int:
    return len(list(itertools.permutations(range(n))))


def ends_properly(n: int) -> list[int]:
    k = [0]
    try:
        k.append(1 // n)
    except (ZeroDivisionError, KeyError):
        k.append(0)
    finally:
        k.append(1)
    return k


def is_closed(fn: Callable[..., Any]) -> bool:
    return outside(fn, lambda value: None) is not None


@pytest.mark.parametrize(
    "fn",
    [of_tables, of_objects, of_heap, of_closure(), keeps_in_table, has_attributes, of_member, ends_properly],
)
def test_functions_that_only_compute(fn: Callable[[int], Any]) -> None:
    assert is_closed(fn)


@pytest.mark.parametrize(
    "fn",
    [
        *(prints, assigns, waits, draws, draws_of_object, of_numpy, of_jax, imports, reads, catches_all, catches_ends),
        *(by_helper, sets_attributes, draws_by_name, pushes, counts_outside, of_module_inside, of_counter()),
        *(returns_in_the_end, all_orders, len, 3),
    ],
)
def test_functions_that_may_do_more(fn: Any) -> None:
    assert not is_closed(fn)


def test_what_changed_outside_is_put_back() -> None:
    found, inner = outside(keeps_in_table, lambda value: None), NESTED["a"]
    assert found is not None
    keeps_in_table(5)
    found.put_back()
    assert SEEN == []
    assert NESTED == {"a": [1, 2], "b": [3]} and NESTED["a"] is inner


def test_attributes_of_functions_and_members_are_put_back() -> None:
    for fn in (has_attributes, of_member):
        found = outside(fn, lambda value: None)
        assert found is not None
        fn(3)
        found.put_back()
    assert not has_attributes.__dict__ and not steps_of.__dict__ and not hasattr(Colour.RED, "hits")


def test_attributes_of_classes_and_caches_are_put_back() -> None:
    found, other = (outside(fn, lambda value: None) for fn in (of_objects, of_heap))
    assert found is not None and other is not None
    before = Queue.made
    of_objects(3)
    assert Queue.made == before + 1
    found.put_back()
    assert Queue.made == before
    of_heap(8)
    other.put_back()
    assert steps.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("fn", "is_long"),
    [
        (lambda n: sum(range(n)), True),
        (lambda n: [0] * n, True),
        (lambda n: "ab" * n, True),
        (lambda n: [10**n], True),
        (lambda n: [1 << n], True),
        (lambda n: [k**2 for k in range(n)], False),
        (lambda n: [n * 5 % 7, n**2], False),
    ],
)
def test_lines_that_take_as_long_as_a_number_is_large(fn: Callable[[int], Any], is_long: bool) -> None:
    found = outside(fn, lambda value: None)
    assert found is not None and found.is_long == is_long
