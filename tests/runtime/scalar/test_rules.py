"""Operations as loops for one lane give what JAX's own give, also inside one native function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.data.sequences.merge_sort import is_less, merge_order
from pcbatch.runtime.scalar.native import in_one_function
from pcbatch.runtime.scalar.reductions import reduced
from pcbatch.runtime.scalar.rules import ForOneLane, _Alike

pytestmark = pytest.mark.promotion("standard")
DRAWN = np.random.default_rng(0)


def check(fn: Callable[..., Any], *args: Any, replaced: bool = True) -> None:
    """Compare a function with its form for one lane, as a native function."""
    closed = jax.make_jaxpr(fn)(*args)
    rewritten = ForOneLane().inner(closed)
    assert (rewritten is not closed) == replaced
    for name in ("sort", "top_k", *(f"scatter{kind}" for kind in ("", "-add", "-mul", "-min", "-max"))):
        assert f" {name}[" not in str(rewritten)
    run = in_one_function(lambda *args: [*jex.jaxpr_as_fun(rewritten)(*args[:-1]), args[-1]])
    for found, wanted in zip(jax.jit(run)(*args, jnp.int32(0)), jax.tree.leaves(fn(*args)), strict=False):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


class TestSorts:
    @pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 40, 100])
    def test_order_is_stable_and_nan_comes_last(self, size: int) -> None:
        keys = DRAWN.integers(-3, 3, size).astype(np.float32)
        keys[size // 2] = np.nan
        keys[size // 3] = -0.0
        check(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.argsort(-x)), keys)

    @pytest.mark.parametrize("count", [0, 1, 31, 33, 64, 90])
    def test_the_first_keys_alone(self, count: int) -> None:
        keys = DRAWN.integers(-9, 9, 90).astype(np.int32)
        order = merge_order([keys], is_less, count).tolist()
        assert order == [*np.argsort(keys[:count], kind="stable"), *range(count, 90)]

    def test_no_elements(self) -> None:
        check(lambda x: (jnp.sort(x[:0]), jnp.argsort(x[:0])), jnp.ones(4))

    def test_several_keys_and_operands(self) -> None:
        a, b = DRAWN.integers(0, 3, (2, 50)).astype(np.int32)
        check(lambda a, b: jax.lax.sort((a, b, jnp.arange(50.0)), num_keys=2), a, b)

    def test_rows_columns_bools_and_complex_numbers(self) -> None:
        x = DRAWN.normal(size=(5, 3, 4)).astype(np.float32)
        check(lambda x: (jnp.sort(x, 0), jnp.sort(x, 1), jnp.sort(x > 0, 2)), x)
        check(lambda x: jnp.sort(jnp.round(x[0]) + 1j * x[1]), x)

    def test_largest_elements(self) -> None:
        x = np.array([[1, 5, np.nan, 5, 2], [-0.0, 0.0, -1, 3, 3]], np.float32)
        check(lambda x: jax.lax.top_k(x, 3), x)
        check(lambda n: jax.lax.top_k(n, 2), np.array([3, 9, 9, 1], np.int32))


NOWHERE: Any = {"mode": "drop", "wrap_negative_indices": False}  # a window that does not fit is dropped


class TestStores:
    @pytest.mark.parametrize("index", [0, 4, 29, -1, -31, 30, 99])
    @pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
    def test_one_element(self, index: int, mode: str) -> None:
        if mode == "promise_in_bounds" and not 0 <= index < 30:
            pytest.skip("undefined")
        check(lambda x, i: x.at[i].set(7.0, mode=mode), jnp.arange(30.0), np.int32(index))

    @pytest.mark.parametrize("kind", ["add", "multiply", "min", "max"])
    def test_many_that_meet(self, kind: str) -> None:
        index = np.array([1, 1, 5, -1, 99, 3], np.int32)
        check(lambda x, i, v: getattr(x.at[i], kind)(v), jnp.arange(30.0), index, jnp.arange(6.0))

    def test_functions_of_elements(self) -> None:
        index = np.array([0, 2, 2, -9, 99], np.int32)
        check(lambda x, i: x.at[i].apply(lambda v: v * 3), jnp.ones(40), index)
        check(lambda x: x.at[3].apply(jnp.exp), jnp.ones(40))

    def test_weak_operands(self) -> None:
        check(lambda x: (jnp.sort(jnp.full(20, 3.0) * 2.0), x.at[2].set(jnp.full((), 2.0))), jnp.full(20, 1.0))

    def test_windows_columns_and_rows_of_a_map(self) -> None:
        x, columns = jnp.arange(30.0).reshape(5, 6), np.array([1, 3], np.int32)
        check(lambda x, i: x.at[:, i].set(jnp.arange(10.0).reshape(5, 2)), x, columns)
        check(lambda x, i: x.at[i, i].max(30.0), x, np.array([1, 4, -1, 9], np.int32))
        check(lambda x, i: jax.vmap(lambda x, i: x.at[i].set(7.0))(x, i), x, np.arange(5, dtype=np.int32) * 2)
        check(lambda x: x.at[:].set(1.0), x)

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int64"])
    def test_indices_of_any_integer_type(self, dtype: str) -> None:
        index = np.array([3, 100], dtype)
        check(lambda x, i: x.at[i].set(7.0), jnp.arange(120.0), index)
        check(lambda x, i: x.at[i].set(7.0), jnp.arange(50.0), index)

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float16", "float8_e4m3fn", "complex64"])
    @pytest.mark.parametrize("index", [2, -1, 40])
    def test_elements_of_any_type(self, dtype: str, index: int) -> None:
        x = jnp.arange(40).astype(dtype)
        check(
            lambda x, i: x.at[i].set(jnp.asarray(1, dtype), mode="drop", wrap_negative_indices=False),
            x,
            np.int32(index),
        )

    @pytest.mark.parametrize("index", [3, -1, 4, 9])
    @pytest.mark.parametrize("kind", ["set", "add", "max"])
    def test_windows_that_do_not_fit(self, index: int, kind: str) -> None:
        for width in (2, 6):
            x = jnp.arange(4.0 * width).reshape(4, width)
            check(
                lambda x, i: getattr(x.at[i], kind)(
                    jnp.full(x.shape[1], 7.0), mode="drop", wrap_negative_indices=False
                ),
                x,
                np.int32(index),
            )


class TestLoads:
    def test_a_load_is_isolated(self) -> None:
        check(lambda x, i: x[i], jnp.arange(30.0), np.int32(-2))
        check(lambda x, i: jax.lax.dynamic_slice(x, (i,), (3,)), jnp.arange(30.0), np.int32(29))

    def test_a_small_array_is_left(self) -> None:
        check(lambda x, i: x[i], jnp.arange(4.0), np.int32(2), replaced=False)

    @pytest.mark.parametrize("shape", [(40,), (1, 40), (40, 1), (1, 20, 2), (20, 1, 1)])
    @pytest.mark.parametrize("index", ["int32", "uint8"])
    def test_axes_of_one_element_and_narrow_indices(self, shape: tuple[int, ...], index: str) -> None:
        """A native function whose parameter nothing uses would end the process."""
        x, i = jnp.asarray(DRAWN.integers(0, 9, shape), jnp.int16), jnp.asarray(1, index)

        def loads(x: jax.Array, i: jax.Array) -> Any:
            sliced = jax.lax.dynamic_slice(x, [i] * x.ndim, [min(n, 2) for n in x.shape])
            whole = jax.lax.dynamic_slice(x, [i] * x.ndim, x.shape)
            return x[i], x[..., i], x.at[i].get(mode="fill"), sliced, whole, x.at[i].set(-x[i])

        check(loads, x, i)


class TestProducts:
    @pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "bij,bkj->kbi", "ij,kl->ikjl"])
    def test_matrices(self, subscripts: str) -> None:
        left, right = subscripts.partition("->")[0].split(",")
        sizes = dict(zip("bijkl", (3, 4, 5, 6, 2), strict=True))
        args = [DRAWN.normal(size=[sizes[c] for c in part]).astype(np.float32) for part in (left, right)]
        check(lambda a, b: jnp.einsum(subscripts, a, b), *args)

    def test_a_matrix_and_a_vector_are_left(self) -> None:
        check(lambda a, b: a @ b, jnp.ones((4, 5)), jnp.ones(5), replaced=False)


def test_equal_operations_share_a_trace_under_the_same_settings_alone() -> None:
    """With `jax_enable_x64` the loops of a sort have other counters."""
    (eqn,) = jax.make_jaxpr(lambda x: jax.lax.sort(x))(jnp.zeros(9, jnp.int32)).eqns
    here = _Alike(eqn)
    assert here == _Alike(eqn) and hash(here) == hash(_Alike(eqn))
    with jax.enable_x64(True):
        assert here != _Alike(eqn)


class TestReductions:
    """XLA refuses those of thousands of floating numbers in a native function."""

    @pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (0, 2), (1, 2)], ids=str)
    def test_along_axes(self, axis: Any) -> None:
        x = DRAWN.normal(size=(17, 20, 23)).astype(np.float32)
        check(lambda x: (jnp.sum(x, axis), jnp.max(x, axis), jnp.min(x, axis)), x)

    @pytest.mark.parametrize("size", [2048, 4096, 5000, 4096 * 4 + 1])
    def test_vectors(self, size: int) -> None:
        x = DRAWN.normal(size=size).astype(np.float32)
        check(lambda x: (jnp.sum(x), jnp.max(x), x @ x, jax.nn.softmax(x), jax.nn.logsumexp(x)), x)

    def test_nan_is_the_largest_and_the_smallest(self) -> None:
        x = np.ones(5000, np.float32)
        x[4321] = np.nan
        assert np.isnan(reduced("reduce_max", x, axes=(0,))) and np.isnan(reduced("reduce_min", x, axes=(0,)))

    def test_few_numbers_and_integers_stay(self) -> None:
        check(lambda x: jnp.sum(x[:1000]), np.ones(5000, np.float32), replaced=False)
        check(lambda x: (jnp.sum(x), jnp.max(x)), np.ones(5000, np.int32), replaced=False)

    def test_products_of_rows(self) -> None:
        x = DRAWN.normal(size=(3, 5000)).astype(np.float32)
        check(lambda x: (jnp.einsum("ij,ij->i", x, x), x[0] @ x.T), x)
