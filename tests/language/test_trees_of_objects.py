"""Recursive methods over the children of objects, and variables of comprehensions with names that mean something
outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of


class Node:
    """A node of a tree whose leaves have no children."""

    def __init__(self, value: Any, parent: Any = None) -> None:
        self.value, self.parent = value, parent
        self.children: list[Node] = []

    def add(self, value: Any) -> Any:
        child = Node(value, self)
        self.children.append(child)
        return child

    def total(self) -> Any:
        return self.value + sum(c.total() for c in self.children)

    def depth(self) -> Any:
        return 1 + max((c.depth() for c in self.children), default=0)

    def largest(self) -> Any:
        return max([self.value] + [abs.largest() for abs in self.children])

    def size(self) -> Any:
        return 1 + sum(map(lambda node: node.size(), self.children))

    def leaves(self) -> Any:
        return sum(c.leaves() for c in self.children) if self.children else 1

    def level(self) -> Any:
        return 0 if self.parent is None else 1 + self.parent.level()


def grown(n: Any) -> Any:
    root = node = Node(n)
    while n > 0:
        if n % 2:
            node = node.add(n)
        else:
            node.add(-n)
        n -= 1
    return root, node


def c(x: Any) -> Any:
    """A global function of the name of variables in comprehensions."""
    while x > 3:
        x -= 2
    return x


def node(x: Any) -> Any:
    """A global function of the name of the parameter of a lambda."""
    return c(x) + 1 if x > 2 else 7


def _total(n: Any) -> Any:
    return grown(n)[0].total()


def _depth(n: Any) -> Any:
    root, last = grown(n)
    return root.depth(), last.level()


def _largest(n: Any) -> Any:
    return grown(n)[0].largest()


def _size(n: Any) -> Any:
    return grown(n)[0].size()


def _leaves(n: Any) -> Any:
    return grown(n)[0].leaves() + c(n)


def _children_of_a_call(n: Any) -> Any:
    return sum(c.total() for c in grown(n)[0].children) + c(n)


def _in_a_comprehension_and_outside(n: Any) -> Any:
    return [c * 2 for c in [n, c(n + 4)]] + [c(n)], sum(node for node in [node(n)])


def _depth_of_what_is_never_grown(n: Any) -> Any:
    root = Node(n)
    return root.depth(), [c.value for c in root.children], sum(c.total() for c in root.children)


class Part:
    """A part of a tree without parents."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.parts: list[Part] = []

    def total(self) -> Any:
        return self.value + sum(part.total() for part in self.parts)


def by_a_stack(n: Any) -> Any:
    """Only by another name than that in the stack parts get parts."""
    stack = [Part(n)]
    for k in range(n):
        part = Part(k)
        top = stack[-1]
        top.parts.append(part)
        if k % 3:
            stack.append(part)
        else:
            stack.append(top.parts[0])
    return stack[0].total(), sum(part.value for part in stack[n // 2].parts)


PROGRAMS = (
    by_a_stack,
    *(_total, _depth, _largest, _size, _leaves, _children_of_a_call),
    *(_in_a_comprehension_and_outside, _depth_of_what_is_never_grown),
)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_a_lane_does_what_python_does(function: Callable[..., Any]) -> None:
    found = pcbatch.batch(function)(jnp.arange(6))
    assert alike([as_plain(lane_of(found, n)) for n in range(6)], [as_plain(function(n)) for n in range(6)], 0)


def _search(n: Any) -> Any:
    root = Node(1.0)
    for k in range(n):
        at = root
        while at.children and len(at.children) > 1:
            at = max(at.children, key=lambda ch: (ch.value / math.sqrt(1.0 + at.value), -ch.level()))
        at.add(float((k * 7) % 5))
        while at is not None:
            at.value += 1.0
            at = at.parent
    return root.depth(), root.total()


def test_a_tree_that_is_searched_while_it_grows() -> None:
    found = pcbatch.batch(_search)(jnp.arange(9))
    assert alike([as_plain(lane_of(found, n)) for n in range(9)], [as_plain(_search(n)) for n in range(9)], 1e-5)
