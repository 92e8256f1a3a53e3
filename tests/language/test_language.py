"""What lane-by-lane comparison of programs cannot show: methods, static functions, inline helpers, what is refused."""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
from typing import Any
from unittest.mock import MagicMock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError, UsageError
from pcbatch.api.dump import dump
from tests.programs.language import RATES, Rates, clip, double, repeat, shifted

pytestmark = pytest.mark.promotion("standard")
X = np.linspace(-1, 4, 6).astype(np.float32)


def same(batched: Any, *args: Any) -> None:
    """A batched object equals its plain form in every lane."""
    got = batched(*args)
    want = [batched.plain(*(arg[k] for arg in args)) for k in range(len(args[0]))]
    np.testing.assert_allclose(got, np.array(want), rtol=1e-6)


class TestMethods:
    """`@pcbatch.batch` in a class."""

    def test_the_object_is_a_constant(self) -> None:
        same(RATES.shrink, X)
        same(Rates(0.5).shrink, X)
        same(RATES.climb, np.arange(5, dtype=np.int32))

    def test_run_and_options(self) -> None:
        assert RATES.shrink.run(X).status.tolist() == [0] * 6
        assert RATES.shrink.with_options(max_steps=2).run(X).status.tolist()[-1] == 2
        assert "climb" in RATES.climb.lower(np.zeros(2, np.int32)).as_text("cfg")

    def test_every_public_method_is_there(self) -> None:
        def names(value: object) -> set[str]:
            return {name for name in dir(value) if name[0] != "_"}

        assert names(RATES.shrink) - {"batched", "instance"} == names(Rates.shrink) - {"fn", "options"}
        assert RATES.shrink.tape(X[:2]).lanes == 2

    def test_one_compilation_for_an_object(self) -> None:
        rates = Rates(0.7)
        first = rates.shrink
        first(X)
        again = rates.shrink
        again(X)
        assert len(first.batched._programs.methods["constant"].cache) >= 1
        before = len(first.batched._programs.methods["constant"].cache)
        rates.shrink(X)
        assert len(first.batched._programs.methods["constant"].cache) == before

    def test_static_methods_either_way(self) -> None:
        class Tools:
            @staticmethod
            @pcbatch.batch
            def above(x):
                return x + 1 if x > 0 else x

            @pcbatch.batch
            @staticmethod
            def below(x):
                return x - 1 if x > 0 else x

            @pcbatch.batch
            def both(self, x):
                return self.above(x) + Tools.below(x)

        same(Tools.above, X)
        same(Tools.below, X)
        same(Tools().both, X)

    @pytest.mark.parametrize("order", ["above", "below"])
    def test_class_methods_either_way(self, order: str) -> None:
        if order == "above" and sys.version_info >= (3, 13):
            pytest.skip("Python 3.13 binds only plain functions there")

        def ascend(cls, x):
            return x if x > 2 else cls.climb(x + cls.step)

        class Tools:
            step = 1
            climb = classmethod(pcbatch.batch(ascend)) if order == "above" else pcbatch.batch(classmethod(ascend))

            @pcbatch.batch
            def twice(self, x):
                return self.climb(x) + Tools.climb(x + 1)

        class Steep(Tools):
            step = 3

        same(Tools.climb, X)
        same(Tools().climb, X)
        same(Steep.climb, X)
        same(Steep().twice, X)

    def test_an_argument_named_self(self) -> None:
        @pcbatch.batch
        def add(a, self):
            return a + self if a > 0 else a

        assert add(a=X, self=X).tolist() == add.run(a=X, self=X).value.tolist() == [add.plain(a=x, self=x) for x in X]
        assert add.lower(a=X, self=X).as_text("opt")

    def test_a_pytree_object_is_shared(self) -> None:
        @jax.tree_util.register_dataclass
        @dataclasses.dataclass
        class Model:
            weight: Any

            @pcbatch.batch
            def apply(self, x):
                while x < self.weight:
                    x = x * 2 + 1
                return x

        same(Model(jnp.float32(5)).apply, np.abs(X))


class TestFunctionsAsValues:
    """Batched functions that are arguments or stand in tables."""

    def test_static_argument_of_the_entry(self) -> None:
        twice = pcbatch.batch(lambda f, x: f(f(x)), static_argnames="f")
        np.testing.assert_allclose(twice(double, X), double(double(X)))
        np.testing.assert_allclose(twice(RATES.shrink, X), RATES.shrink(RATES.shrink(X)))
        part = functools.partial(shifted, by=2.0)
        np.testing.assert_allclose(twice(part, X), [part.func.plain(shifted.plain(x, 2.0), by=2.0) for x in X])

    def test_one_copy_for_each_function(self) -> None:
        @pcbatch.batch
        def entry(x, n):
            return repeat(double, x, n) + repeat(double, x, n + 1) + repeat(clip_half, x, n)

        names = [f.name for f in entry.lower(X, np.arange(6, dtype=np.int32)).stages.cfg.functions]
        assert [name.split("_")[0] for name in names].count("repeat") == 2

    def test_a_function_that_a_lane_chooses(self) -> None:
        @pcbatch.batch
        def choose(x):
            f = double if x > 0 else clip_half
            return f(x)

        @pcbatch.batch
        def give(x):
            f = double if x > 0 else clip_half
            return (f, 1)[0](x)

        np.testing.assert_allclose(choose(X), [choose.plain(x) for x in X])
        np.testing.assert_allclose(give(X), choose(X))

    def test_a_parameter_that_is_assigned_is_that_of_the_lane(self) -> None:
        functions = {"double": double, "half": clip_half}

        def chosen(mode, x):
            return functions[mode](x)

        def other(mode, x):
            mode = "half"
            return functions[mode](x)

        np.testing.assert_allclose(pcbatch.batch(chosen, static_argnames="mode")("double", X), double(X))
        np.testing.assert_allclose(pcbatch.batch(other, static_argnames="mode")("double", X), clip_half(X))

    def test_what_tables_and_modules_lack_is_told_at_its_line(self) -> None:
        functions = {"double": double}
        odd = types.ModuleType("odd")

        def fail(name: str) -> Any:
            raise RuntimeError(f"no {name} here")

        odd.__getattr__ = fail  # type: ignore[method-assign]
        for fn, says in ((lambda x: functions["half"](x), "KeyError: 'half'"), (lambda x: odd.half(x), "no half here")):
            with pytest.raises(CompileError, match=says) as info:
                pcbatch.batch(fn)(X)
            assert {d.code for d in info.value.diagnostics} == {"PCB303"}

    def test_looking_for_functions_runs_nothing_of_the_user(self) -> None:
        table = MagicMock()
        table.__getitem__.return_value = jnp.sin

        def from_table(x):
            return table["sin"](x)

        dump(pcbatch.batch(from_table), "cfg", None, 1)
        assert not table.__getitem__.called
        same(pcbatch.batch(from_table), X)


@pcbatch.batch
def clip_half(x):
    """Another function to pass."""
    return clip(x, 0.5)


class TestInline:
    """`@pcbatch.inline`."""

    def test_it_stays_plain(self) -> None:
        assert clip(3, 2) == 2 and "clip" in repr(clip)

    def test_no_call_is_left(self) -> None:
        text = clip_half.lower(X).as_text("cfg")
        assert "call" not in text and "func @clip(" not in text

    def test_recursion_is_refused(self) -> None:
        @pcbatch.inline
        def endless(x):
            return endless(x)

        with pytest.raises(CompileError) as info:
            pcbatch.batch(lambda x: endless(x))(X)
        assert [d.code for d in info.value.diagnostics] == ["PCB213"]

    def test_only_functions(self) -> None:
        with pytest.raises(UsageError):
            pcbatch.inline(3)  # type: ignore[arg-type]


class TestUnrolling:
    """Loops over Python objects."""

    def test_loops_over_arrays_stay_loops(self) -> None:
        def over(xs, ys):
            t = 0.0
            for i, (x, y) in enumerate(zip(xs, ys)):
                t += x * y * i
            return t

        rows = np.ones((3, 50), np.float32)
        assert len(pcbatch.batch(over).lower(rows, rows).stages.opt.blocks) <= 3

    def test_a_set_of_numbers_has_the_order_of_python(self) -> None:
        def over(x):
            total = 0
            for v in {5, 1, x, -7}:
                total = total * 3 + v
            return total

        lanes = [0, 1, 2, 9]
        assert pcbatch.batch(over)(jnp.array(lanes)).tolist() == [over(x) for x in lanes]

    def test_too_many_copies(self) -> None:
        def over(x):
            for v in tuple(range(6000)):
                x += v
            return x

        with pytest.raises(CompileError) as info:
            pcbatch.batch(over)(X)
        assert [d.code for d in info.value.diagnostics] == ["PCB316"]

    def test_unequal_lengths(self) -> None:
        def over(x):
            for a, b in zip((x, x), (1, 2, 3), strict=True):
                x += a * b
            return x

        with pytest.raises(CompileError, match="different lengths"):
            pcbatch.batch(over)(X)

    def test_a_length_that_differs_between_lanes(self) -> None:
        def over(x, n):
            for a, b in zip((1, 2, 3), range(n)):
                x += a * b
            return x

        ns = np.arange(6, dtype=np.int32)
        expected = [over(x, int(n)) for x, n in zip(X, ns, strict=True)]
        np.testing.assert_allclose(pcbatch.batch(over)(X, ns), expected, rtol=1e-6)

    def test_such_a_length_of_elements_that_no_list_holds(self) -> None:
        def over(x, n):
            for ys, b in zip((jnp.ones(1), jnp.ones(2), jnp.ones(3)), range(n)):
                x += jnp.sum(ys) * b
            return x

        with pytest.raises(CompileError) as info:
            pcbatch.batch(over)(X, np.arange(6, dtype=np.int32))
        assert [d.code for d in info.value.diagnostics] == ["PCB315"]

    def test_plain_unroll(self) -> None:
        assert pcbatch.unroll(range(3)) == (0, 1, 2)


def test_any_number_of_arguments_of_the_entry() -> None:
    @pcbatch.batch
    def total(x, *rest, **more):
        for r in rest:
            x = x + r
        return x * more["scale"]

    np.testing.assert_allclose(total(X, X, 2 * X, scale=X), 4 * X * X, rtol=1e-6)
    shared = total.with_options(in_axes=(0, None, 0))
    np.testing.assert_allclose(shared(X, 1.0, X, scale=X), (2 * X + 1) * X, rtol=1e-6)
