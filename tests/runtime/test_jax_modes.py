"""Modes of JAX that users switch on: pcbatch works in each as the plain function does."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.oracles.plans import planned

pytestmark = pytest.mark.share(3)


def halved(x, w):
    steps = 0
    while x > 1.0:
        x = x / w
        steps = steps + 1
    return x, steps


def tree(n):
    if n <= 1:
        return n
    return tree_batched(n - 1) + tree_batched(n - 2)


tree_batched = pcbatch.batch(tree)
XS = np.array([1.0, 5.0, 300.0], np.float32)
NS = np.array([2, 5, 7], np.int32)


def fresh(**options: Any) -> pcbatch.Batched:
    made: pcbatch.Batched = pcbatch.batch(halved, **planned(in_axes=(0, None), **options))
    return made


def check(got: Any, dtype: Any = np.float32) -> None:
    x, steps = got
    assert x.dtype == dtype
    np.testing.assert_allclose(x, [1.0, 0.625, 300 / 512])
    np.testing.assert_array_equal(steps, [0, 3, 9])


@pytest.mark.parametrize("strategy", ["pc", "local"])
def test_disable_jit(strategy: str) -> None:
    with jax.disable_jit():
        check(fresh(strategy=strategy)(XS, 2.0))
        np.testing.assert_array_equal(tree_batched.with_options(strategy=strategy)(NS), [1, 5, 13])


@pytest.mark.full_only
def test_disable_jit_inside_jit_and_map() -> None:
    f = fresh()
    with jax.disable_jit():
        check(jax.jit(f)(XS, 2.0))
        check(f.map(XS, 2.0, lanes=2).value)


@pytest.mark.full_only
@pytest.mark.parametrize("strategy", ["pc", "local"])
def test_checking_leaks(strategy: str) -> None:
    with jax.checking_leaks():
        f = fresh(strategy=strategy)
        check(f(XS, 2.0))
        check(jax.jit(f)(XS, 2.0))
        np.testing.assert_array_equal(pcbatch.batch(tree).with_options(strategy=strategy)(NS), [1, 5, 13])


@pytest.mark.full_only
def test_checking_leaks_in_map_and_jvp() -> None:
    with jax.checking_leaks():
        f = fresh()
        check(f.map(XS, 2.0, lanes=2).value)
        _, tangent = jax.jvp(lambda x: f(x, 2.0)[0], (jnp.asarray(XS),), (jnp.ones(3),))
        np.testing.assert_allclose(tangent, [1.0, 1 / 8, 1 / 512])


@pytest.mark.full_only
def test_default_device() -> None:
    f = fresh()
    first, second = jax.devices()
    for device in (first, second, first):
        with jax.default_device(device):
            for x in (*f(XS, 2.0), *f.map(XS, 2.0).value, tree_batched(NS), tree_batched(NS + 15)):
                assert x.devices() == {device}
    assert f(jax.device_put(XS, second), 2.0)[0].devices() == {second}  # arguments may say it as well


@pytest.mark.parametrize("flag", [jax.debug_nans, jax.debug_infs], ids=["nans", "infs"])
def test_debugging_flags_see_what_lanes_compute(flag: Any) -> None:
    def reciprocal(x, y):
        return y / x

    with flag(True):
        check(fresh()(XS, 2.0))
        with pytest.raises(pcbatch.BatchRuntimeError, match="PCB910") as info:
            pcbatch.batch(reciprocal)(XS - 1.0, XS - (flag is jax.debug_nans))
        assert isinstance(info.value, FloatingPointError)


def test_enable_x64() -> None:
    f = fresh()
    check(f(XS, 2.0))
    with jax.enable_x64(True):
        check(f(XS.astype(np.float64), 2.0), np.float64)
        check(f(XS, jnp.float32(2)))
        assert f(XS.astype(np.float64), 2.0)[1].dtype == np.int64
        np.testing.assert_array_equal(tree_batched(NS.astype(np.int64)), [1, 5, 13])
    check(f(XS, 2.0))


@pytest.mark.parametrize("mode", ["strict", "standard"])
def test_dtype_promotion(mode: str) -> None:
    """What the plain function may do in a mode, lanes may; what it may not is refused at its line."""

    def mixed(x, n):
        while n > 0:
            x = x + n
            n = n - 1
        return x

    with jax.numpy_dtype_promotion(mode):
        check(fresh()(XS, 2.0))
        if mode == "standard":
            np.testing.assert_allclose(pcbatch.batch(mixed)(XS, NS), XS + NS * (NS + 1) // 2)
        else:
            with pytest.raises(jax.errors.TypePromotionError if hasattr(jax.errors, "x") else Exception):
                mixed(jnp.float32(1), jnp.int32(1))
            with pytest.raises(pcbatch.CompileError, match="x = x \\+ n"):
                pcbatch.batch(mixed)(XS, NS)


def test_rank_promotion() -> None:
    def shifted(x, w):
        return x + w

    x, w = jnp.ones((2, 3)), jnp.ones((2, 4, 3))
    with jax.numpy_rank_promotion("raise"), pytest.raises(pcbatch.CompileError, match="x \\+ w"):
        pcbatch.batch(shifted)(x, w)
    with jax.numpy_rank_promotion("allow"):
        assert pcbatch.batch(shifted)(x, w).shape == (2, 4, 3)


def test_matmul_precision_is_part_of_the_program() -> None:
    def product(x):
        return x @ x

    f = pcbatch.batch(product)
    x = jnp.ones((2, 3, 3))
    for precision in ("float32", "bfloat16"):
        with jax.default_matmul_precision(precision):
            assert precision.upper().removesuffix("16").removesuffix("32")[:2] in f.lower(x).as_text("jaxpr").upper()
    assert len(f._programs.cache) == 2
