"""Parts of arrays in memory: what a block reads and writes by index is all that it loads and stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.kernel import memory
from tests.oracles.plans import planned, replanned
from tests.runtime.kernel.kernels import lowered
from tests.runtime.kernel.test_machine import same

pytestmark = pytest.mark.share(3)

TILE = 4
KERNEL = pcbatch.Kernel(tile=TILE)
N = np.array([0, 3, 1, 5, 2, 4], np.int32)
ROOM = 1000


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The elements of each load and store in the kernels that are traced."""
    sizes: list[int] = []

    def noted(access: Callable[..., Any]) -> Callable[..., Any]:
        def counted(ref: Any, *args: Any, **more: Any) -> Any:
            sizes.append(int(more["mask"].size))
            return access(ref, *args, **more)

        return counted

    monkeypatch.setattr(memory.triton, "load", noted(memory.triton.load))
    monkeypatch.setattr(memory.triton, "store", noted(memory.triton.store))
    return sizes


def check(fn: Callable[..., Any], *args: Any, **options: Any) -> None:
    """The kernel and the machine of loops agree, and the kernel lowers for a GPU."""
    f = pcbatch.batch(fn, **planned(emitter=KERNEL, **options))
    same(f.run(*args), pcbatch.batch(fn, **planned(**options)).run(*args))
    text = lowered(f.with_options(max_depth=8), *args)
    assert text.count("__gpu$xla.gpu.triton") == 1


def blocks_of(fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return pcbatch.batch(fn, **planned(emitter=KERNEL, **options)).lower(*args).program.executable.machine.plan.blocks


def recorded(n):
    xs, i = jnp.zeros(ROOM), 0
    while i < n:
        xs = xs.at[i].set(xs[i - 1] + 1.0)
        i += 1
    return xs


def test_one_element_is_stored(moved: list[int]) -> None:
    check(recorded, N)
    small = [size for size in moved if size <= TILE]
    whole = [size for size in moved if size > TILE]
    # The array is written once when it is made; the loop touches an element of each lane.
    assert len(whole) <= 2 * len({*moved}) and len(small) > len(whole)
    assert any(block.stores and block.loads for block in blocks_of(recorded, N))


def test_a_row_of_a_matrix(moved: list[int]) -> None:
    def rows(x, n):
        i = 0
        while i < n:
            x = x.at[i].set(x[i + 1] * 2 + i)
            i += 1
        return x[n, 1], x[:, 2].sum()

    x = np.arange(6 * 100 * 3, dtype=np.int32).reshape(6, 100, 3)
    check(rows, x, N)
    loop = next(block for block in blocks_of(rows, x, N) if block.stores)
    assert len(loop.loads) == 1 and not loop.used_whole & set(loop.versions)


def test_an_old_value_that_is_read_later() -> None:
    """Then the array is read whole: a store in place would change what is read."""

    def marked(x, n):
        return x.at[n].set(-1.0), x[n] + x[n - 1]

    def both(x, n):
        total = jnp.float32(0)
        while n > 0:
            x, old = marked(x, n)
            total, n = total + old, n - 1
        return x, total

    check(both, np.arange(6 * 40, dtype=np.float32).reshape(6, 40), N)


def test_places_beyond_the_end() -> None:
    def wild(x, i):
        while i < 60:
            x = x.at[i - 25].add(1).at[i].set(x[i + 3])
            i += 13
        return x

    check(wild, np.arange(6 * 32, dtype=np.int32).reshape(6, 32), N - 3)


def test_several_places_at_once() -> None:
    def some(x, i):
        while i < 20:
            x = x.at[jnp.array([0, 3, 3]) + i].add(1)
            x = x.at[jnp.stack([i, i + 7])].set(0, unique_indices=True)
            i += 4
        return x

    check(some, np.ones((6, 24), np.int32), N)


def test_two_stores_and_a_load_between() -> None:
    def between(x, n):
        while n > 0:
            x = x.at[n].set(n)
            k = x[n] + x[n + 1]
            x = x.at[k % 20].set(-n)
            n = n - 1
        return x

    check(between, np.arange(6 * 20, dtype=np.int32).reshape(6, 20), N)


@pytest.mark.parametrize("schedule", ["sweep", "earliest"])
def test_an_array_that_all_lanes_share(moved: list[int], schedule: str) -> None:
    def walk(i, table):
        total = 0
        while i < 50_000:
            total, i = total + table[i] % 7, i + 1 + table[i + 1] % 9000
        return total

    table = np.random.default_rng(0).integers(0, 10_000, 300_000).astype(np.int32)
    check(walk, N, table, in_axes=(0, None), schedule=schedule)
    assert max(moved) <= TILE


def test_a_constant_is_read_by_index(moved: list[int]) -> None:
    constant = jnp.asarray(np.random.default_rng(1).normal(size=(500, 3)), jnp.float32)

    def walk(n):
        total = jnp.zeros(3)
        while n < 400:
            total, n = total + constant[n], n + 100
        return total

    check(walk, N)
    assert max(moved) <= 4 * TILE


def test_limits_and_failures_store_nothing() -> None:
    def failing(x, n, k):
        while n > 0:
            assert n * k != 6
            x, n = x.at[n].set(n * k), n - 1
        return x

    x, k = np.zeros((6, 32), np.int32), np.arange(1, 7, dtype=np.int32)
    for options in ({}, {"max_steps": 3}):
        f = pcbatch.batch(failing, **planned(**options))
        got, want = replanned(f, emitter=KERNEL).run(x, N, k), f.run(x, N, k)
        same(got, want)
        assert {*got.status.tolist()} > {0}


def test_refill() -> None:
    f = pcbatch.batch(recorded, plan=pcbatch.Plan(emitter=KERNEL))
    np.testing.assert_array_equal(f.map(N, lanes=3).value, pcbatch.batch(recorded)(N))


def test_an_inner_loop_that_needs_the_values_of_active_lanes() -> None:
    def halves(x, n):
        while n > 0:
            x = x.at[n].set(jax.lax.while_loop(lambda c: c != 1, lambda c: jnp.where(c % 2 == 0, c // 2, c - 1), x[n]))
            n = n - 1
        return x

    x = np.random.default_rng(2).integers(1, 1000, (6, 20)).astype(np.int32)
    x[0] = -5  # of a lane that never enters the loop
    check(halves, x, N)
