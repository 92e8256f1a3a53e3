"""Ways to use the API that are right but rare, and ways that are wrong: those get their code and a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError, UsageError
from pcbatch.api.dump import dump
from pcbatch.runtime.vm.status import Site
from tests.programs.classics import fib


def i32(*values: int) -> np.ndarray:
    """A vector of int32."""
    return np.array(values, np.int32)


def add_up(left, right):
    return left + right


def scaled(x, factor):
    while x > 10:
        x = x - factor
    return x


def refused(code: str, call: Callable[[], Any]) -> pcbatch.PcbatchError:
    """The error that `call` raises, which has this code and says what to do."""
    with pytest.raises((UsageError, CompileError)) as info:
        call()
    assert [d.code for d in info.value.diagnostics] == [code], str(info.value)
    return info.value


class TestInAxes:
    """Every form that `jax.vmap` has, and by name."""

    def test_by_name(self) -> None:
        batched = pcbatch.batch(scaled, in_axes={"factor": None})
        assert np.asarray(batched(i32(9, 25), np.int32(7))).tolist() == [9, 4]

    def test_unknown_name(self) -> None:
        error = refused("PCB404", lambda: pcbatch.batch(scaled, in_axes={"speed": 0})(i32(1), i32(1)))
        assert "`speed`" in str(error)

    def test_something_else(self) -> None:
        refused("PCB404", lambda: pcbatch.batch(scaled, in_axes="x")(i32(1), i32(1)))

    def test_that_does_not_fit_a_pytree(self) -> None:
        def first(pair):
            return pair[0]

        refused("PCB404", lambda: pcbatch.batch(first, in_axes=((0, 0, 0),))((i32(1), i32(2))))
        refused("PCB404", lambda: pcbatch.batch(first, in_axes=(("0", 0),))((i32(1), i32(2))))

    def test_per_leaf(self) -> None:
        def total(pair, n):
            a, b = pair
            while n > 0:
                a = a + b
                n -= 1
            return a

        batched = pcbatch.batch(total, in_axes=((0, None), 0))
        assert np.asarray(batched((i32(1, 2), np.int32(10)), i32(0, 3))).tolist() == [1, 32]

    def test_shared_shape_is_enough_for_lowering(self) -> None:
        batched = pcbatch.batch(scaled, in_axes=(0, None))
        shapes = (jax.ShapeDtypeStruct((5,), jnp.int32), jax.ShapeDtypeStruct((), jnp.int32))
        assert "factor: i32[] shared" in batched.lower(*shapes).as_text("opt")

    def test_dump_knows_what_is_shared(self) -> None:
        from pcbatch.lowering.typing.jax_types import from_aval

        scalar = from_aval(jnp.int32(0))
        for in_axes in ((0, None), {"factor": None}):
            text = dump(pcbatch.batch(scaled, in_axes=in_axes), "opt", {"x": scalar, "factor": scalar}, 3)
            assert "factor: i32[] shared" in text


class TestOptions:
    """Options and what they are given."""

    def test_unknown_option(self) -> None:
        error = refused("PCB401", lambda: pcbatch.batch(speed=3))
        assert "max_depth" in str(error)

    def test_batching_what_is_batched(self) -> None:
        again = pcbatch.batch(pcbatch.batch(fib), plan=pcbatch.Plan(schedule="sweep"))
        assert again.fn is fib and again.options.plan.schedule == "sweep"

    def test_one_static_name(self) -> None:
        batched = pcbatch.batch(scaled, static_argnames="factor")
        assert np.asarray(batched(i32(9, 25), 7)).tolist() == [9, 4]

    def test_static_name_that_is_no_parameter(self) -> None:
        refused("PCB403", lambda: pcbatch.batch(scaled, static_argnames=("speed",)))

    def test_static_argument_that_cannot_be_hashed(self) -> None:
        error = refused("PCB403", lambda: pcbatch.batch(scaled, static_argnames="factor")(i32(1), [7]))
        assert "hashable" in str(error)


class TestLowered:
    """What `lower` and `compile` give."""

    def test_stages_without_types_end_at_the_stack(self) -> None:
        from pcbatch.api.stages import Lowered
        from pcbatch.frontend.source.callee import Target

        lowered = Lowered.untyped(fib, lambda value: Target(fib) if value is fib else None)
        assert "push n" in lowered.as_text("opt")
        refused("PCB410", lambda: lowered.as_text("jaxpr"))
        refused("PCB410", lowered.compile)

    def test_other_arguments_than_compiled_for(self) -> None:
        compiled = pcbatch.batch(fib, max_depth=16).lower(i32(0, 0)).compile()
        refused("PCB413", lambda: compiled(i32(1, 2, 3)))
        refused("PCB413", lambda: compiled(np.ones(2, np.float32)))

    def test_analyses_of_xla(self) -> None:
        compiled = pcbatch.batch(fib, max_depth=16).lower(i32(0, 0)).compile()
        assert compiled.memory_analysis() is not None
        assert compiled.cost_analysis()


class TestStats:
    """Asking for counts that are not there."""

    def test_not_collected(self) -> None:
        stats = pcbatch.batch(fib).run(i32(3)).stats
        for ask in (lambda: stats.blocks, lambda: stats.visits("+")):
            with pytest.raises(ValueError, match="stats=True"):
                ask()

    def test_text_that_no_primitive_has(self) -> None:
        stats = pcbatch.batch(fib, stats=True).run(i32(3)).stats
        with pytest.raises(ValueError, match="no primitive contains 'sqrt'"):
            stats.visits("sqrt")


class TestHiddenCalls:
    """A batched function that a lane reaches other than by its own name."""

    @pytest.mark.parametrize("strategy", ["pc", "local"])
    def test_through_a_helper(self, strategy: str) -> None:
        inner = pcbatch.batch(scaled)

        def helper(n):
            return inner(n, n)

        def outer(n):
            return helper(n) + 1

        assert np.asarray(pcbatch.batch(outer, strategy=strategy)(i32(4, 25))).tolist() == [5, 1]

    @pytest.mark.parametrize("strategy", ["pc", "local"])
    def test_through_jax(self, strategy: str) -> None:
        inner = pcbatch.batch(scaled)

        def helper(k):
            return inner(k, k)

        def outer(n):
            return jax.lax.map(helper, n + jnp.arange(2))

        error = refused("PCB412", lambda: pcbatch.batch(outer, strategy=strategy)(i32(1, 2)))
        assert "batched function `" in str(error)


def test_failures_name_lanes_but_not_shared_arguments() -> None:
    def spin(x, step):
        while x != 1:
            x = x + step
        return x

    with pytest.raises(pcbatch.BatchRuntimeError) as info:
        pcbatch.batch(spin, in_axes=(0, None), max_steps=20)(i32(1, 5), np.int32(1))
    assert "1 (x=5)" in str(info.value) and "step=" not in str(info.value)


def test_status_of_a_lane_that_ended_is_no_place() -> None:
    local, _ = pcbatch.batch(fib, strategy="local")._compiled((i32(3),), {})
    assert local.executable.where(-1, None) == Site()
