"""The surface that users touch: batch, Batched, Result, lower, in_axes, composition with JAX."""

from __future__ import annotations

import copy
import inspect
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, Status, UsageError
from tests.oracles.plans import planned
from tests.programs.classics import WEIGHT, fib, pea_nuts

pytestmark = pytest.mark.share(3)


def i32(*values: int) -> np.ndarray:
    """A vector of int32."""
    return np.array(values, np.int32)


@pcbatch.batch
def weave(n, step=2, *, bonus=1):
    """Docstring of weave."""
    if n <= 0:
        return bonus
    return weave(n - step, bonus=bonus + 1) + step


class TestDecorator:
    """The ways to write it."""

    def test_bare(self) -> None:
        @pcbatch.batch
        def double(n):
            return n * 2

        assert np.asarray(double(i32(1, 2))).tolist() == [2, 4]

    def test_with_options(self) -> None:
        @pcbatch.batch(strategy="local", max_depth=9)
        def double(n):
            return n * 2 if n > 0 else n

        assert double.options.strategy == "local" and double.options.max_depth == 9
        assert np.asarray(double(i32(1, -2))).tolist() == [2, -2]

    def test_as_a_function_on_a_recursive_one(self) -> None:
        assert np.asarray(pcbatch.batch(fib)(i32(3, 7, 4, 5))).tolist() == [3, 21, 5, 8]
        assert fib(7) == 21, "the plain function still works"

    def test_it_looks_like_the_function(self) -> None:
        assert weave.__name__ == "weave" and weave.__doc__ == "Docstring of weave."
        assert weave.__module__ == __name__
        assert list(inspect.signature(weave).parameters) == ["n", "step", "bonus"]
        assert weave.fn.__name__ == "weave" and "weave" in repr(weave)

    def test_it_is_copied_and_pickled_by_name(self) -> None:
        weave(i32(3))
        assert copy.deepcopy(weave) is copy.copy(weave) is pickle.loads(pickle.dumps(weave)) is weave

    def test_with_options_gives_a_new_one(self) -> None:
        other = weave.with_options(strategy="local")
        assert other.options.strategy == "local" and weave.options.strategy == "pc"
        np.testing.assert_array_equal(other(i32(1, 2, 5)), weave(i32(1, 2, 5)))

    def test_with_options_gives_the_same_one_again(self) -> None:
        axes = {"step": None, "bonus": None}
        other = weave.with_options(in_axes=axes, max_steps=99)
        assert weave.with_options(max_steps=99, in_axes=dict(axes)) is other is not weave
        assert weave.with_options(in_axes=axes, max_steps=98) is not other
        assert weave.with_options() is not weave.with_options()
        for k in range(100, 120):
            weave.with_options(max_steps=k)
        assert weave.with_options(in_axes=axes, max_steps=99) is not other, "only the last ones are kept"

    @pytest.mark.parametrize(
        "options",
        [{"strategy": "both"}, {"schedule": "random"}, {"emitter": "switch"}, {"max_depth": 0}, {"max_steps": -1}],
    )
    def test_unknown_options(self, options: dict) -> None:
        with pytest.raises(UsageError, match="PCB401"):
            pcbatch.batch(fib, **planned(**options))

    def test_public_names(self) -> None:
        for name in ("batch", "Batched", "Result", "Status", "CompileError", "UsageError", "BatchRuntimeError"):
            assert name in pcbatch.__all__ and hasattr(pcbatch, name)


class TestPlain:
    """One example in plain Python."""

    def test_recursive(self) -> None:
        assert weave.plain(5) == 4 + 2 + 2 + 2
        assert weave.plain(2, step=1, bonus=3) == 5 + 2 + 1

    def test_callees_run_plainly_too(self) -> None:
        batched = pcbatch.batch(pea_nuts, in_axes=(0, 0, 0, None))
        expected = batched.plain(1, 1, jnp.ones(4), WEIGHT)
        assert expected.shape == (4,)
        actual = batched(i32(1), i32(1), np.ones((1, 4), np.float32), WEIGHT)
        np.testing.assert_allclose(actual[0], expected, rtol=1e-5)

    def test_after_an_exception_batching_works_again(self) -> None:
        @pcbatch.batch
        def picky(n):
            return n.missing_attribute

        with pytest.raises(AttributeError):
            picky.plain(3)
        assert weave(i32(2)).shape == (1,)


class TestArguments:
    """Signatures and axes."""

    def test_keywords_and_defaults(self) -> None:
        n = i32(1, 2, 5)
        want = [weave.plain(int(k)) for k in n]
        assert np.asarray(weave(n)).tolist() == want
        assert np.asarray(weave(n=n)).tolist() == want
        want = [weave.plain(int(k), 3, bonus=int(k)) for k in n]
        assert np.asarray(weave(n, i32(3, 3, 3), bonus=n)).tolist() == want

    def test_in_axes_forms(self) -> None:
        def scaled(x, tree):
            while x[0] < tree["a"]:
                x = x * 2 + tree["b"]
            return x

        x = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
        a, b = np.float32(9), np.full((2,), 0.5, np.float32)
        batched = pcbatch.batch(scaled, in_axes=(0, None))
        want = np.asarray(batched(x, {"a": a, "b": b}))
        np.testing.assert_allclose(want[0], batched.plain(x[0], {"a": a, "b": b}))
        prefix = pcbatch.batch(scaled, in_axes=(0, {"a": 0, "b": None}))
        np.testing.assert_array_equal(prefix(x, {"a": np.full(3, a), "b": b}), want)
        for axis in (1, -1):
            other = pcbatch.batch(scaled, in_axes=(axis, None))
            np.testing.assert_array_equal(other(x.T, {"a": a, "b": b}), want)

    def test_list_as_in_axes(self) -> None:
        batched = pcbatch.batch(add_up, in_axes=[0, None])
        assert np.asarray(batched(i32(1, 2), np.int32(5))).tolist() == [6, 7]

    def test_static_argument(self) -> None:
        @pcbatch.batch(static_argnames=("mode",))
        def modal(n, mode):
            if mode == "double":
                return n * 2
            while n > 10:
                n -= 3
            return n

        assert np.asarray(modal(i32(1, 20), mode="double")).tolist() == [2, 40]
        assert np.asarray(modal(i32(1, 20), mode="wrap")).tolist() == [1, 8]
        assert np.asarray(modal(i32(1, 20), "double")).tolist() == [2, 40]

    def test_static_argument_reassigned(self) -> None:
        @pcbatch.batch(static_argnames=("k",))
        def count(x, k):
            while x > 0:
                x -= 1
                k = k + 1
            return k

        assert np.asarray(count(i32(1, 2, 5), 3)).tolist() == [4, 5, 8]

    def test_sizes_must_agree(self) -> None:
        with pytest.raises(UsageError) as info:
            pcbatch.batch(add_up)(i32(1, 2, 3), i32(1, 2, 3, 4, 5))
        text = str(info.value)
        assert "PCB4" in text
        for word in ("`left`", "`right`", "3", "5"):
            assert word in text, text

    def test_a_size_of_one_does_not_broadcast(self) -> None:
        with pytest.raises(UsageError, match="PCB4"):
            pcbatch.batch(add_up)(i32(1, 2, 3), i32(1))

    def test_a_scalar_does_not_broadcast(self) -> None:
        for scalar in (3, np.int32(3), jnp.int32(3)):
            with pytest.raises(UsageError) as info:
                pcbatch.batch(add_up)(i32(1, 2, 3), scalar)
            assert "`right`" in str(info.value)
            assert "in_axes" in str(info.value)

    def test_wrong_number_of_arguments(self) -> None:
        batched = pcbatch.batch(add_up)
        for args, kwargs in [((i32(1),), {}), ((i32(1),) * 3, {}), ((i32(1), i32(2)), {"other": i32(1)})]:
            with pytest.raises((UsageError, TypeError)):
                batched(*args, **kwargs)

    def test_nothing_mapped(self) -> None:
        with pytest.raises(UsageError, match="PCB4"):
            pcbatch.batch(add_up, in_axes=None)(np.int32(1), np.int32(2))

    def test_in_axes_that_do_not_fit(self) -> None:
        with pytest.raises((UsageError, ValueError)):
            pcbatch.batch(add_up, in_axes=(0, 0, 0))(i32(1), i32(2))

    def test_arguments_that_are_no_arrays(self) -> None:
        with pytest.raises((UsageError, TypeError)):
            pcbatch.batch(add_up)(i32(1), "two")

    def test_lists_of_numbers_are_pytrees_as_in_vmap(self) -> None:
        def total(pair):
            return pair[0] + pair[1]

        assert np.asarray(pcbatch.batch(total)([i32(1, 2), i32(3, 4)])).tolist() == [4, 6]


def add_up(left, right):
    return left + right


class TestResult:
    """run() and what it gives back."""

    def test_a_pytree(self) -> None:
        result = pcbatch.batch(fib).run(i32(3, 4))
        leaves, structure = jax.tree.flatten(result)
        again = jax.tree.unflatten(structure, leaves)
        np.testing.assert_array_equal(again.value, result.value)
        np.testing.assert_array_equal(again.status, result.status)

    def test_through_jit_and_scan(self) -> None:
        batched = pcbatch.batch(fib, max_depth=12)

        @jax.jit
        def both(xs):
            return jax.lax.scan(lambda c, x: (c + 1, batched.run(x).value), 0, xs)[1]

        xs = np.arange(8, dtype=np.int32).reshape(2, 4)
        np.testing.assert_array_equal(both(xs), [[1, 1, 2, 3], [5, 8, 13, 21]])

    def test_jit_of_the_batched_function(self) -> None:
        batched = pcbatch.batch(fib, max_depth=12)
        assert np.asarray(jax.jit(batched)(i32(3, 7))).tolist() == [3, 21]
        assert np.asarray(jax.jit(lambda x: batched(x) + 1)(i32(3, 7))).tolist() == [4, 22]

    def test_status_names(self) -> None:
        assert int(Status.OK) == 0
        assert {status.name for status in Status} >= {"OK", "STACK_FULL", "STEP_LIMIT"}

    def test_errors_survive_pickling(self) -> None:
        with pytest.raises(BatchRuntimeError) as info:
            pcbatch.batch(fib, max_depth=2)(i32(3, 9))
        again = pickle.loads(pickle.dumps(info.value))
        assert str(again) == str(info.value)

    def test_result_dtype_and_order(self) -> None:
        value = pcbatch.batch(fib)(i32(3, 7, 4, 5))
        assert value.dtype == jnp.int32 and value.shape == (4,)


class TestLower:
    """f.lower(...)"""

    @pytest.mark.parametrize("stage", ["ast", "cfg", "stack", "opt", "jaxpr", "stablehlo"])
    def test_every_stage_has_a_text(self, stage: str) -> None:
        text = pcbatch.batch(fib).lower(i32(3, 7)).as_text(stage)
        assert isinstance(text, str) and len(text) > 50
        landmarks = {
            "ast": "FunctionDef",
            "cfg": "call @fib",
            "stack": "push",
            "opt": "call bb1 ret=bb2",
            "jaxpr": "while",
            "stablehlo": "stablehlo.while",
        }
        assert landmarks[stage] in text

    def test_unknown_stage(self) -> None:
        with pytest.raises((UsageError, ValueError)):
            pcbatch.batch(fib).lower(i32(3)).as_text("assembly")

    def test_shapes_are_enough(self) -> None:
        lowered = pcbatch.batch(fib).lower(jax.ShapeDtypeStruct((5,), jnp.int32))
        assert "tensor<5xi32>" in lowered.as_text("stablehlo")

    def test_compile_and_call(self) -> None:
        compiled = pcbatch.batch(fib, max_depth=16).lower(i32(0, 0)).compile()
        result = compiled(i32(3, 7))
        value = result.value if isinstance(result, pcbatch.Result) else result
        assert np.asarray(value).tolist() == [3, 21]
        assert "while" in compiled.as_text()

    def test_printing_is_deterministic(self) -> None:
        one, two = (pcbatch.batch(fib).lower(i32(3, 7)).as_text("opt") for _ in range(2))
        assert one == two
