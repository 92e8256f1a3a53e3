"""Helpers that change a record that a lane has made, and assign their parameter: the caller keeps its own record."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import pcbatch


class Node:
    """A node of a linked list."""

    def __init__(self, n: Any, next: Any) -> None:
        self.n = n
        self.next = next


def changed_or_replaced(p: Any, k: Any) -> Any:
    if k > 2:
        p.n += 7
    else:
        p = Node(k, p)
    return p.n


def two_steps(p: Any) -> None:
    p.n += 1
    p = p.next
    p.n += 10


@pcbatch.batch
def entry(a: Any, b: Any) -> Any:
    p = None
    for k in range(3):
        p = Node(k + a, p)
    t = changed_or_replaced(p, b)
    two_steps(p)
    while p is not None:
        t = t * 11 + p.n
        p = p.next
    return t


def test_the_caller_keeps_its_record() -> None:
    a, b = [0, 1, 2, 3], [0, 5, 2, 3]
    result = entry(jnp.array(a), jnp.array(b))
    assert np.asarray(result).tolist() == [entry.plain(x, y) for x, y in zip(a, b, strict=True)]
