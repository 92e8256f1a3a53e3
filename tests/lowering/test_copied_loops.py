"""Loops over constants whose bodies are large stay loops, where nothing asks for what is known while compiling."""

from __future__ import annotations

import heapq

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

SIZES = jnp.array([2, 5, 3, 4])
SHAPES = (1, (2.0, 3), "four", 0)  # have no common type: which one it is has to be known


def _spread(n, moves):
    seen, waiting = {(0, 0): 0}, [(0, 0, 0)]
    while waiting:
        cost, r, c = heapq.heappop(waiting)
        for dr, dc in moves:
            a, b = r + dr, c + dc
            if not (0 <= a < n and 0 <= b < n):
                continue
            new = cost + 1 + (a * b) % 3
            if (a, b) not in seen or new < seen[(a, b)]:
                seen[(a, b)] = new
                heapq.heappush(waiting, (new, a, b))
    return seen[(n - 1, n - 1)], len(seen)


@pcbatch.batch
def four_ways(n):
    return _spread(n, ((1, 0), (-1, 0), (0, 1), (0, -1)))


@pcbatch.batch
def eight_ways(n):
    return _spread(n, [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)])


@pcbatch.batch
def asks_for_the_number(n):
    seen, total = {}, 0.0
    for k in (0, 3, 1):
        for j in range(n):
            seen[(k, j)] = seen.get((j, k), 0) + k
        shape = SHAPES[k]
        total += shape if isinstance(shape, int) else shape[1]
    return total, len(seen), sum(seen.values())


@pcbatch.batch
def small_body(x):
    for c in (1.0, 0.5, 0.25):
        x = x * x + c
    return x


def _alike(function) -> None:
    found = function(SIZES)
    for lane, n in enumerate(np.asarray(SIZES).tolist()):
        assert [part[lane].tolist() for part in found] == list(function.plain(n))


@pytest.mark.together
def test_a_large_body_is_compiled_once() -> None:
    _alike(four_ways)
    _alike(eight_ways)
    program, other = (f._programs.of_call((SIZES,), {})[0] for f in (four_ways, eight_ways))
    assert len(program.stages.opt.blocks) == len(other.stages.opt.blocks)


def test_a_body_that_asks_for_the_number_is_copied() -> None:
    _alike(asks_for_the_number)
    program, _ = asks_for_the_number._programs.of_call((SIZES,), {})
    assert program.recompile.decisions.copies


def test_a_small_body_is_copied() -> None:
    program, _ = small_body._programs.of_call((jnp.array([0.5]),), {})
    assert not program.recompile.decisions.rolled
    assert len(program.stages.opt.blocks) == 1
