"""What XLA is told."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.costs import xla_options
from pcbatch.runtime.lowering_platform import lowered_for
from tests.programs.classics import fib


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """XLA is asked anew."""
    xla_options._known.cache_clear()
    yield
    xla_options._known.cache_clear()


def test_small_kernels_stay_on_one_thread() -> None:
    assert xla_options.compiler_options(1.0, 10) == xla_options.ON_CPUS | xla_options.IN_PLACE | xla_options.ONE_THREAD
    assert xla_options.compiler_options(xla_options.WORTH_SPLITTING, 1) == xla_options.ON_CPUS | xla_options.IN_PLACE


@pytest.mark.parametrize("platform", ["rocm", "tpu"])
def test_none_for_other_platforms(platform: str) -> None:
    with lowered_for(platform):
        assert xla_options.compiler_options(1.0, 10) is None
        assert not xla_options.keeps_in_place()


def test_loops_are_in_graphs_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    with lowered_for("cuda"):
        options = xla_options.compiler_options(1.0, 10)
        assert options is not None and options["xla_gpu_enable_command_buffer"].endswith("CONDITIONAL,WHILE")
        monkeypatch.setenv("XLA_FLAGS", f"--xla_cpu_a=b {xla_options.GRAPHS}=")
        assert xla_options.compiler_options(1.0, 10) is None  # the user's word
        assert not xla_options.keeps_in_place()


def test_options_that_xla_does_not_know_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xla_options, "IN_PLACE", {"xla_no_such_option": True})
    assert xla_options.compiler_options(1.0, 10) == xla_options.ON_CPUS | xla_options.ONE_THREAD
    assert not xla_options.keeps_in_place()
    monkeypatch.setattr(xla_options, "ONE_THREAD", {"xla_no_such_option": 1})
    assert xla_options.compiler_options(1.0, 10) == (xla_options.ON_CPUS or None)


def test_asked_inside_a_trace() -> None:
    """There JAX takes no options; what is found out holds for calls outside."""
    asked: list[bool] = []
    jax.jit(lambda x: (asked.append(xla_options.keeps_in_place()), x)[1])(1.0)
    assert asked == [True] and xla_options.keeps_in_place()


def test_first_used_inside_jit() -> None:
    batched = pcbatch.batch(fib, max_depth=16)
    lanes = np.array([3, 7, 4], np.int32)
    assert jax.jit(batched)(lanes).tolist() == [3, 21, 5]
    assert xla_options.keeps_in_place()
    assert batched(lanes).tolist() == [3, 21, 5]


@pytest.mark.full_only
def test_the_same_without_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xla_options, "IN_PLACE", {"xla_no_such_option": True})
    for modes in (None, pcbatch.Few(2), pcbatch.Strips(1)):
        batched = pcbatch.batch(fib, plan=pcbatch.Plan(modes=modes))
        assert batched(jnp.arange(9)).tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_older_emitters_of_xla_get_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together with the option they overwrite registers that are still read."""
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
    assert not xla_options.keeps_in_place()
    assert xla_options.compiler_options(1.0, 2) == xla_options.ON_CPUS | xla_options.ONE_THREAD


def decayed_sums(n, x):
    """A `scan` reads a register that the block assigns after it, which XLA with `IN_PLACE` did first."""
    row = jnp.zeros(16)
    for _ in range(n):
        _, row = jax.lax.scan(lambda carry, pair: (carry, 0.5 * pair[0] + 0.25 * pair[1] + 0.1), 0.0, (row, x))
        x = 0.9 * x
    return row


def nearest_power(n, x):
    """The same with a `while_loop`."""
    row = jnp.zeros(16)
    for _ in range(n):
        first = jax.lax.while_loop(lambda s: s[1] < 3, lambda s: (s[0] + x[s[1]], s[1] + 1), (0.0, 0))[0]
        row = row + first
        x = 0.9 * x
    return row


def solved(n, x):
    """A primitive of which only the lowering has a loop."""
    row = jnp.zeros(16)
    for _ in range(n):
        row = row + jax.lax.linalg.lu_pivots_to_permutation(jnp.zeros(4, jnp.int32) + 1, 16) + x
        x = 0.9 * x
    return row


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("function", [decayed_sums, nearest_power, solved])
def test_what_a_loop_of_jax_reads_is_not_overwritten_before(function) -> None:
    batched = pcbatch.batch(function)
    lengths, x = np.array([3, 10, 30], np.int32), np.ones((3, 16), np.float32)
    plain = [batched.plain(n, each) for n, each in zip(lengths, x, strict=True)]
    np.testing.assert_allclose(batched(lengths, x), plain, rtol=1e-5)
    np.testing.assert_allclose(batched.map(lengths, x, lanes=2).value, plain, rtol=1e-5)
    assert xla_options.has_loops(batched.lower(lengths, x).stages.opt)


def reduced(x):
    t = x
    while abs(t) > 1.0:
        t = t / 2.0
    return t * x


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("options", [{}, {"checkpoints": 4}])
def test_another_program_inside_is_a_loop_of_jax(options) -> None:
    """Snapshots of a gradient are copies of what its loop goes on with, and were made after the loop."""
    other = pcbatch.batch(**options)(reduced)
    gradient = jex.jaxpr_as_fun(jax.make_jaxpr(jax.grad(lambda x: other(x[None])[0]))(jnp.float32(1)))

    def descended(n, x):
        for _ in range(n):
            x = x - 0.1 * gradient(x)[0]
        return x

    lengths, x = np.array([1, 0, 3, 2], np.int32), np.float32([0.5, 3.0, -9.0, np.nan])
    plain = x.copy()
    for lane, n in enumerate(lengths):
        for _ in range(n):
            plain[lane] -= 0.2 * reduced(plain[lane]) / plain[lane]
    batched = pcbatch.batch(descended)
    np.testing.assert_allclose(batched(lengths, x), plain, rtol=1e-5)
    assert xla_options.has_loops(batched.lower(lengths, x).stages.opt)
