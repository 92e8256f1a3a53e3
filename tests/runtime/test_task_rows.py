"""Calls whose results a loop appends to a list: rows of an array in a frame."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.compiler.program import Program
from pcbatch.ir.tasks import Spawn
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions
from tests.oracles.plans import planned

pytestmark = pytest.mark.older_emitters


class Node:
    """A node of a tree with any number of children."""

    def __init__(self, value: int, children: list[Node]) -> None:
        self.value = value
        self.children = children


def grown(seed: int, depth: int) -> Node:
    rng = np.random.default_rng(seed)
    children = [grown(int(rng.integers(1 << 30)), depth - 1) for _ in range(rng.integers(0, 4))] if depth else []
    return Node(int(rng.integers(9)), children)


TREES = [grown(k, depth) for k, depth in enumerate((4, 0, 3, 5, 2))]


def weighted(node):
    """Results in the order of the children, which counts."""
    parts = [weighted(child) for child in node.children]
    total = node.value
    for part in parts:
        total = (total * 3 + part) % 1009
    return total


weigh = pcbatch.batch(weighted)  # as a function that calls it sees it


def plain_both(node):
    total = 1
    for child in node.children:
        total = (total * 5 + plain_both(child) + 2 * weighted(child)) % 997
    return total


def heights(node):
    """Two results, of which two lists are made; one begins with an element."""
    deep, wide = [0], []
    for child in node.children:
        height, width = heights(child)
        deep.append(height)
        wide.append(width)
    return max(deep) + 1, sum(wide) * 0.5 + 1.0


def both(node):
    """Two calls for each child, each into a list of its own."""
    found, other = [], []
    for child in node.children:
        found.append(both(child))
        other.append(weigh(child))
    total = 1
    for k in range(len(found)):
        total = (total * 5 + found[k] + 2 * other[k]) % 997
    return total


def counted(n):
    """Sums, whose tasks add to the row, as many as there is room for, and more."""
    if n <= 1:
        return 1
    parts = [counted(n - 2), counted(n - 1)]
    for k in range(n):
        parts.append(fibonacci(k % 4))
    return sum(parts)


def fibonacci(n):
    return 1 if n <= 1 else fibonacci(n - 2) + fibonacci(n - 1)


def picky(node):
    """Some children raise, between others."""
    if node.value == 8 and not node.children:
        raise ValueError("eight")
    return sum([picky(child) for child in node.children]) + 1


def summed(n, parts):
    if n <= 0:
        return sum(parts)
    return summed(n - 1, parts) + summed(n - 2, parts)


def reading(n):
    """Calls that read the list to which their results are appended."""
    parts = [1]
    for k in range(n):
        parts.append(summed(k % 3, parts))
    return sum(parts)


def program(fn: Any, *args: Any, **options: Any) -> Program:
    """The compiled program of a call."""
    found: Program = pcbatch.batch(fn, **planned(fork="always", **options))._programs.of_call(args, {})[0]
    return found


def rows(fn: Any, *args: Any) -> int:
    """How many calls have results that become rows."""
    tasks = program(fn, *args).tasks
    assert tasks is not None
    ops = [op for block in tasks.program.blocks for op in block.ops]
    return len({op.dsts for op in ops if isinstance(op, Spawn) and op.row is not None})


@pytest.mark.parametrize(("fn", "plain", "lists"), [(weighted, weighted, 1), (both, plain_both, 3)])
def test_children(fn: Any, plain: Any, lists: int) -> None:
    trees = pcbatch.pack(TREES)
    assert rows(fn, trees) == lists
    assert pcbatch.batch(fn)(trees).tolist() == [plain(tree) for tree in TREES]


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "options", [{"width": 4, "frames": 9, "reserve": 2}, {"width": 1, "frames": 6, "reserve": 0, "room": 3}], ids=str
)
def test_small_machines(options: dict[str, int]) -> None:
    """Visits of a few records, a pool of few frames: every row comes to its own place."""
    trees = pcbatch.pack(TREES)
    made, call = pcbatch.batch(weighted, plan=pcbatch.Plan(fork="always"))._programs.of_call((trees,), {})
    assert made.tasks is not None
    named = dict(zip(made.tasks.program.params, made.params, strict=False))
    args = made.args(call)
    tasks = TaskExecutable(made.tasks.program, TaskOptions(**options))
    found = tasks.run({v: args[name] for v, name in named.items()}, len(TREES))
    assert np.asarray(found.raw.values[0]).tolist() == [weighted(tree) for tree in TREES]


@pytest.mark.full_only
def test_two_results_of_a_call() -> None:
    found = pcbatch.batch(heights, plan=pcbatch.Plan(fork="auto"))(pcbatch.pack(TREES))
    wanted = [heights(tree) for tree in TREES]
    assert found[0].tolist() == [one for one, _ in wanted]
    np.testing.assert_allclose(found[1], [other for _, other in wanted], rtol=1e-6)


@pytest.mark.full_only
def test_more_rows_than_there_is_room_for() -> None:
    numbers = np.array([0, 9, 3, 7, 1], np.int32)
    found = pcbatch.batch(counted, plan=pcbatch.Plan(fork="always"), max_length=4).run(numbers).status.tolist()
    assert found == [0 if n <= 2 else int(pcbatch.Status.LIST_FULL) for n in numbers]
    assert pcbatch.batch(counted, plan=pcbatch.Plan(fork="always"))(numbers).tolist() == [
        counted(int(n)) for n in numbers
    ]


@pytest.mark.full_only
def test_children_that_raise() -> None:
    trees = pcbatch.pack(TREES)
    wanted, found = (pcbatch.batch(picky, plan=pcbatch.Plan(fork=fork)).run(trees) for fork in ("never", "always"))
    assert found.status.tolist() == wanted.status.tolist()
    assert jnp.array_equal(found.value, wanted.value)


def test_calls_that_read_the_list() -> None:
    numbers = np.arange(5, dtype=np.int32)
    assert rows(reading, numbers) == 0
    found = pcbatch.batch(reading, plan=pcbatch.Plan(fork="always"))(numbers)
    assert found.tolist() == [reading(n) for n in numbers.tolist()]
