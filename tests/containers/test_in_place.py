"""Changes of tables and lists in place: the compiled program stores elements, and copies no table in its loop."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.vm.layout import never_awaited

pytestmark = pytest.mark.in_place

LANES, SIDE = 53, 37  # primes, so that a shape in the text can only be a table


def array_argument(table, n):
    for i in range(1, n):
        for j in range(1, n):
            table[i][j] = table[i - 1][j] + table[i][j - 1] + i
    return table[n - 1][n - 1]


def array_of_zeros(n):
    table = jnp.zeros((SIDE, SIDE), jnp.int32)
    for i in range(1, n):
        for j in range(1, n):
            table[i, j] = table[i - 1, j] + table[i, j - 1] + i
    return table[n - 1, n - 1]


def lists_of_zeros(n):
    table = [[0] * n for _ in range(n)]
    for i in range(1, n):
        for j in range(1, n):
            table[i][j] = table[i - 1][j] + table[i][j - 1] + i
    return table[n - 1][n - 1]


def stack_of_numbers(n):
    stack = []
    total = 0
    for i in range(n):
        stack.append(i)
        if i % 3 == 2:
            total += stack.pop()
    return total, len(stack)


BOUND = np.arange(LANES, dtype=np.int32) % 7 + 2
PROGRAMS = {
    "array argument": (array_argument, (np.zeros((LANES, SIDE, SIDE), np.int32), BOUND), f"{LANES},{SIDE},{SIDE}"),
    "array of zeros": (array_of_zeros, (BOUND,), f"{LANES},{SIDE},{SIDE}"),
    "lists of zeros": (lists_of_zeros, (BOUND,), f"{LANES},64,64"),
    "stack": (stack_of_numbers, (BOUND,), f"{LANES},64"),
}


@pytest.mark.share(4, 0, 2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_table_is_copied_in_the_loop(name: str) -> None:
    fn, args, shape = PROGRAMS[name]
    batched = pcbatch.batch(fn, max_length=64)
    text = batched.lower(*args).compile().as_text()
    assert f"s32[{shape}]" in text
    assert moved_whole(text, shape) == []
    found = jax.tree.map(lambda leaf: int(leaf[5]), batched(*args))
    # JAX's own arrays have no item assignment: the table of zeros is compared with the same one of NumPy.
    n = int(BOUND[5])
    assert found == (
        fn(n) if fn in (lists_of_zeros, stack_of_numbers) else array_argument(np.zeros((SIDE, SIDE), int), n)
    )


def moved_whole(text: str, shape: str) -> list[str]:
    """The operations that make a new table: the first block may, which each lane visits once, and the entry."""
    loops = text[: text.index("\nENTRY")].splitlines()
    moves = [line for line in loops if re.search(rf"= s32\[{shape}\]\S* (select|copy|convert)\(", line)]
    return [line for line in moves if "/bb0 " not in line]


def fails(x):
    total = 0
    while x > 0:
        assert x != 13, f"{x} is bad luck"
        total += x
        x -= 2
    return total


def test_no_lane_waits_for_a_block_that_only_fails() -> None:
    program = pcbatch.batch(fails).lower(BOUND).stages.opt
    assert {program.block(label).terminator.kind for label in never_awaited(program)} == {"assertion", "limit"}
