"""Calls, branches and loops in a kernel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.runtime.kernel.arrays import floats, ints
from tests.runtime.kernel.kernels import run, same

pytestmark = pytest.mark.share(16)


@jax.custom_jvp
def doubled(x: Any) -> Any:
    return x * 2


doubled.defjvp(lambda primals, tangents: (doubled(*primals), tangents[0] * 2))


@jax.custom_vjp
def halved(x: Any) -> Any:
    return x / 2


halved.defvjp(lambda x: (x / 2, None), lambda _, g: (g / 2,))

CALLS = {
    "jit": jax.jit(lambda x: jnp.sin(x) + 1),
    "custom_jvp": doubled,
    "custom_vjp": halved,
    "remat": jax.checkpoint(lambda x: jnp.sin(x) * x),
    "nested": jax.jit(lambda x: jax.jit(doubled)(jax.checkpoint(halved)(x))),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    same(CALLS[name], floats(3, 5), tolerance=1e-6)
    same(jax.vmap(jax.grad(lambda x: CALLS[name](x).sum())), floats(3, 5), tolerance=1e-6)


BRANCHES = [lambda x: x + 1, lambda x: x * 2, lambda x: jnp.zeros_like(x)]


def test_branches() -> None:
    fn = lambda i, x: (lax.switch(i, BRANCHES, x), lax.cond(i > 0, *BRANCHES[:2], x))
    for i in (-3, 0, 1, 2, 9):
        same(fn, np.int32(i), floats(3, 5))
    same(jax.vmap(fn), ints(4, low=-1, high=4), floats(4, 5))
    same(lambda x: lax.cond(True, *BRANCHES[:2], x), floats(3))


def test_numbers_as_results() -> None:
    same(lambda i, x: (lax.cond(i > 0, lambda: 1.0, lambda: 2.0) + x, 3, x.shape[0]), np.int32(1), floats(3))
    same(lambda i, x: lax.while_loop(lambda c: c[0] < 3.0, lambda c: (5.0, 7), (x[0], i)), np.int32(1), floats(3))
    same(lambda x: lax.scan(lambda c, a: (2.0, True), x[0], x), floats(3))
    same(lambda x: lax.fori_loop(0, 3, lambda i, c: (c[1], 4.0), (x, 1.0))[1], np.float32(3))


def test_branches_by_platform() -> None:
    """The branch of a GPU, also in interpret mode: it stands in the kernel."""
    fn = lambda x: lax.platform_dependent(x, cpu=BRANCHES[2], cuda=BRANCHES[0], default=BRANCHES[1])
    other = lambda x: lax.platform_dependent(x, tpu=BRANCHES[0], default=BRANCHES[1])
    same(lambda x: other(x), floats(3))
    x = floats(3)
    assert np.array_equal(run(fn, x)[0], x + 1)


LOOPS = {
    "counted": lambda x, n: lax.fori_loop(0, 4, lambda i, c: c + i * x, x),
    "dynamic": lambda x, n: lax.fori_loop(0, n, lambda i, c: c + i * x, x),
    "counter_used_twice": lambda x, n: lax.fori_loop(0, n, lambda i, c: c * (i + 1) + (i + 1) * i, x),
    "while": lambda x, n: lax.while_loop(lambda c: jnp.any(c < 100), lambda c: c + 3 + abs(x), x),
    "bounds": lambda x, n: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1], c[2] + c[0]), (0, n, x)),
    "never": lambda x, n: lax.while_loop(lambda c: jnp.any(c > 1000), lambda c: c + 1, x),
    "nested": lambda x, n: lax.fori_loop(0, n, lambda i, c: lax.fori_loop(0, i, lambda j, d: d + j, c) + x, x),
    "scan": lambda x, n: lax.scan(lambda c, a: (c + a, c * a), jnp.int32(1), x),
    "scan_back": lambda x, n: lax.scan(lambda c, a: (c * 3 + a, c), jnp.int32(1), x, reverse=True),
    "scan_alone": lambda x, n: lax.scan(lambda c, _: (c + 1, c), x, length=3),
    "map": lambda x, n: lax.map(lambda a: a * 2 + n, x),
    "associative": lambda x, n: lax.associative_scan(jnp.add, x),
    "branch_inside": lambda x, n: lax.fori_loop(0, n, lambda i, c: lax.cond(i % 2 == 0, *BRANCHES[:2], c), x),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    fn, x = LOOPS[name], ints(4, 5, low=0, high=9)
    same(fn, x[0], np.int32(3))
    same(jax.vmap(fn), x, np.int32([0, 3, 1, 5]))  # lanes leave at their own time


def test_lanes_that_are_not_a_power_of_two() -> None:
    """Junk lanes neither keep a loop going nor stop it."""
    for name in ("dynamic", "while"):
        same(jax.vmap(LOOPS[name]), ints(3, 5, low=0, high=9), np.int32([0, 3, 1]))


def test_arrays_in_inner_jaxprs() -> None:
    table = jnp.asarray(floats(5))

    def fn(x: Any, n: Any) -> Any:
        y = lax.fori_loop(0, 3, lambda i, c: c + table, x)
        z = lax.cond(n > 0, lambda: table, lambda: -table)
        return y, z, jax.jit(lambda x: x * table)(x), lax.scan(lambda c, a: (c + table, a), x, x)[0]

    same(fn, floats(5), np.int32(1), tolerance=1e-6)
    same(jax.vmap(fn), floats(4, 5), ints(4), tolerance=1e-6)


def test_long_words() -> None:
    with jax.enable_x64(True):
        for name in ("counted", "dynamic", "scan_alone", "counter_used_twice"):
            same(jax.vmap(LOOPS[name]), ints(4, 5).astype(np.int64), np.int64([0, 3, 1, 5]))
