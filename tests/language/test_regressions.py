"""Programs that once gave wrong values, never ended, or broke the compiler."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.oracles.plans import replanned

pytestmark = [pytest.mark.share(3), pytest.mark.long]

VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"schedule": "sweep", "emitter": "port"},
    {"schedule": "earliest", "emitter": "port"},
    {"schedule": "largest", "emitter": "guard"},
)
variants = pytest.mark.parametrize("options", VARIANTS, ids=lambda o: "-".join(o.values()) or "auto")


def agrees(batched: Any, options: dict[str, Any], *args: Any) -> None:
    """Every lane of the batched result is the plain result of that lane."""
    got = np.asarray(replanned(batched, **options)(*args))
    want = np.stack([np.asarray(batched.plain(*(arg[k] for arg in args))) for k in range(len(args[0]))])
    np.testing.assert_allclose(got, want, rtol=1e-5)


def collatz(n: Any) -> Any:
    """Steps from n to 1. Never ends for n = 0, so it must not run on values that the program does not give it."""

    def following(state: tuple[Any, Any]) -> tuple[Any, Any]:
        m, count = state
        return jnp.where(m % 2 == 0, m // 2, 3 * m + 1), count + 1

    return jax.lax.while_loop(lambda s: s[0] != 1, following, (n, jnp.int32(0)))[1]


def rows(lanes: int, size: int) -> jax.Array:
    """Different numbers for every lane."""
    return jnp.arange(lanes * size, dtype=jnp.float32).reshape(lanes, size)


@variants
def test_adding_to_a_whole_array_leaves_other_lanes_alone(options: dict[str, Any]) -> None:
    """A full slice is a scatter with no index at all, so there is nothing to point out of range."""

    @pcbatch.batch
    def add(n: Any, xs: Any) -> Any:
        while n > 0:
            xs = xs.at[:].add(1.0)
            n = n - 1
        return xs

    agrees(add, options, jnp.array([0, 3, 1, 2]), rows(4, 20))


@variants
def test_replacing_a_whole_array_leaves_other_lanes_alone(options: dict[str, Any]) -> None:
    @pcbatch.batch
    def replace(n: Any, xs: Any) -> Any:
        while n > 0:
            xs = xs.at[...].set(xs[0] + 1.0)
            n = n - 1
        return xs

    agrees(replace, options, jnp.array([0, 3, 1, 2]), rows(4, 20))


@variants
def test_storing_a_row_leaves_other_lanes_alone(options: dict[str, Any]) -> None:
    """The plain case: one element of a large array at a time, in some lanes longer than in others."""

    @pcbatch.batch
    def fill(n: Any, xs: Any) -> Any:
        while n > 0:
            xs = xs.at[n].set(-1.0)
            n = n - 1
        return xs

    agrees(fill, options, jnp.array([0, 3, 1, 2]), rows(4, 20))


@variants
def test_storing_into_a_copy_leaves_the_original_alone(options: dict[str, Any]) -> None:
    @pcbatch.batch
    def fill(n: Any, xs: Any) -> Any:
        ys = xs
        while n > 0:
            ys = xs.at[n].add(1.0)
            xs = ys.at[n + 1].set(ys[0] - xs[1])
            n = n - 1
        return xs - ys

    agrees(fill, options, jnp.array([0, 3, 1, 2]), rows(4, 20))


@variants
def test_storing_and_writing_in_one_block(options: dict[str, Any]) -> None:
    """A register that a selection writes as well needs its mask."""

    @pcbatch.batch
    def fill(n: Any, xs: Any) -> Any:
        while n > 0:
            xs = xs.at[n].set(-1.0)
            if n % 2 == 0:
                xs = xs * 2.0
            n = n - 1
        return xs

    agrees(fill, options, jnp.array([0, 3, 1, 2]), rows(4, 20))


@variants
def test_storing_with_an_index_that_is_clipped(options: dict[str, Any]) -> None:
    """An index out of range would be moved to the last element, not dropped."""

    @pcbatch.batch
    def fill(n: Any, xs: Any) -> Any:
        while n > 0:
            xs = xs.at[n * 9].set(-1.0, mode="clip")
            n = n - 1
        return xs

    agrees(fill, options, jnp.array([0, 3, 1, 2]), rows(4, 20))


@variants
def test_small_index_types_leave_other_lanes_alone(options: dict[str, Any]) -> None:
    """The largest uint8 is an index like any other of an array of 256."""
    where = jax.lax.ScatterDimensionNumbers((), (0,), (0,))

    @pcbatch.batch
    def store(n: Any, xs: Any) -> Any:
        while n > 0:
            xs = jax.lax.scatter(xs, jnp.array([n], jnp.uint8), jnp.float32(-1), where, mode="fill")
            n = n - 1
        return xs

    agrees(store, options, jnp.array([0, 3, 1, 2]), rows(4, 256))


@variants
def test_storing_beside_an_inner_loop_keeps_the_arrays_of_other_lanes(options: dict[str, Any]) -> None:
    """Lanes that are elsewhere borrow another lane's values for the inner loop: not to keep them."""

    @pcbatch.batch
    def fill(n: Any, xs: Any) -> Any:
        i = 1
        while i <= n:
            xs = xs.at[collatz(i)].set(-i)
            i = i + 1
        return xs

    agrees(fill, options, jnp.array([0, 5, 2, 7]), rows(4, 20))


ENDS = """
import sys
sys.path[:0] = {path!r}
import jax.numpy as jnp, pcbatch
from tests.language.test_regressions import collatz
{program}
"""


def ends(program: str) -> None:
    """Run in a process of its own: a program that does not end cannot be stopped from inside."""
    text = ENDS.format(path=sys.path, program=textwrap.dedent(program))
    # The source of batched functions must be found: give it a file name through the line cache.
    loader = "import linecache\ns = {0!r}\nlinecache.cache['<ends>'] = (len(s), None, s.splitlines(True), '<ends>')\n"
    loader += "exec(compile(s, '<ends>', 'exec'))"
    subprocess.run([sys.executable, "-c", loader.format(text)], check=True, timeout=90)


@pytest.mark.share(2)
@pytest.mark.parametrize("emitter", ["guard", "port"])
def test_inner_loop_in_a_block_that_no_lane_waits_for(emitter: str) -> None:
    """With no lane at the block there is none to borrow from: its inner loop would run on lane 0's leftovers."""
    ends(f"""
        @pcbatch.batch(plan=pcbatch.Plan(schedule="sweep", emitter={emitter!r}))
        def count(n):
            s = 0
            while n > 0:
                s = s + collatz(n)
                n = n - 1
            return s
        assert count(jnp.array([0, 1, 2, 3])).tolist() == [0, 0, 1, 8]
    """)


@pytest.mark.full_only
def test_inner_loop_in_a_block_where_every_lane_reaches_the_step_limit() -> None:
    ends("""
        @pcbatch.batch(max_steps=2)
        def count(n):
            s = 0
            while n > 0:
                s = s + collatz(n)
                n = n - 1
            return s
        assert count.run(jnp.array([0, 3, 4])).status.tolist() == [0, 2, 2]
    """)


@pytest.mark.full_only
def test_shared_inner_loop_runs_only_where_control_gets() -> None:
    """`collatz(k)` has one value for all lanes, but computing it before the run would not end."""
    ends("""
        @pcbatch.batch(in_axes=(0, None))
        def guarded(n, k):
            if k > 0:
                c = collatz(k)
                n = n + c
            return n
        assert guarded(jnp.array([1, 2]), jnp.int32(0)).tolist() == [1, 2]
        assert guarded(jnp.array([1, 2]), jnp.int32(3)).tolist() == [8, 9]
    """)


@variants
def test_a_register_made_by_an_equation_without_operands(options: dict[str, Any]) -> None:
    """`jnp.arange` is one: what decides whether a write is a store must not ask for its first operand."""

    @pcbatch.batch
    def last(n: Any) -> Any:
        row = jnp.arange(20)
        for i in range(n):
            row = row.at[0].set(i)
        return row

    agrees(last, options, jnp.array([0, 3, 1]))
