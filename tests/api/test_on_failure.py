"""Inside `jit` nothing can be raised: lanes that fail, and tapes that are full, are told by a callback."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.options import Options
from pcbatch.transforms.failure_callback import VARIABLE, failure_mode

NS, XS = jnp.array([3, 100]), jnp.ones(2)


@pcbatch.batch(on_failure="warn")
def down(n: Any, x: Any) -> Any:
    if n <= 0:
        return x
    return 1.0 + down(n - 1, x)


CALL = down.fn.__code__.co_firstlineno + 4


@pcbatch.batch(on_failure="warn", max_steps=20)
def limited(n: Any, x: Any) -> Any:
    assert x > 0.0, f"x is {x}"
    while n > 0:
        x = jnp.sin(x)
        n -= 1
    return x


@pcbatch.batch(on_failure="warn", max_tape=3, plan=pcbatch.Plan(unroll=1, emitter="guard"))
def sines(n: Any, x: Any) -> Any:
    while n > 0:
        x = jnp.sin(x)
        n -= 1
    return x


@pcbatch.batch(on_failure="warn")
def straight(x: Any) -> Any:
    return 2.0 * x if x > 0.0 else x


def told(call: Callable[[], Any]) -> tuple[Any, list[warnings.WarningMessage]]:
    """What it gives, and the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        out = jax.block_until_ready(call())
        jax.effects_barrier()  # type: ignore[no-untyped-call]
    return out, [w for w in found if "PCB" in str(w.message)]


def primitives(fn: Any, *args: Any) -> list[str]:
    return [eqn.primitive.name for eqn in jax.make_jaxpr(fn)(*args).jaxpr.eqns]


class TestWarning:
    def test_a_full_stack_once(self) -> None:
        f = jax.jit(down.with_options(max_depth=6))
        out, (warning,) = told(lambda: f(NS, XS))
        assert out[0] == 4.0 and np.isnan(out[1])
        text = str(warning.message)
        assert warning.category is UserWarning and (warning.filename, warning.lineno) == (__file__, CALL)
        assert text.startswith("warning[PCB901]: 1 of 2 lanes ran out of stack (depth 6)") and "max_depth=12" in text
        assert told(lambda: f(NS, XS))[1] == []

    def test_where_the_value_is_dropped(self) -> None:
        """JAX drops what nobody uses, and the value of a function whose gradient is asked for is such a thing."""
        f = down.with_options(max_depth=5)
        out, found = told(lambda: jax.jit(jax.grad(lambda x: jnp.sum(f(NS, x))))(XS))
        assert out[0] == 1.0 and np.isnan(out[1]) and ["PCB901" in str(w.message) for w in found] == [True]

    def test_elements_of_vmap(self) -> None:
        f = down.with_options(max_depth=4)
        _, (warning,) = told(lambda: jax.jit(jax.vmap(f))(jnp.stack([NS, NS, 0 * NS]), jnp.stack([XS] * 3)))
        assert "2 of 6 lanes" in str(warning.message)

    def test_a_full_tape_and_the_number_that_helps(self) -> None:
        def gradient(f: Any) -> Any:
            return jax.jit(jax.grad(lambda x: jnp.sum(f(jnp.array([2, 9]), x))))(XS)

        out, (warning,) = told(lambda: gradient(sines.with_options(on_failure="warn")))
        text = str(warning.message)
        assert np.all(np.isnan(out)) and warning.filename == __file__ and "PCB423" in text
        (needed,) = [n for n in range(30) if f"`max_tape={n}`" in text]
        assert needed == sines.with_options(max_tape=None).tape(jnp.array([2, 9]), XS).max_tape
        out, found = told(lambda: gradient(sines.with_options(max_tape=needed)))
        assert np.all(np.isfinite(out)) and found == []
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"max_tape={needed}"):
            np.asarray(gradient(sines.with_options()))

    def test_every_kind_of_failure(self) -> None:
        ns, xs = jnp.array([1, 1, 90, 1]), jnp.array([1.0, -2.0, 1.0, -3.0])
        out, found = told(lambda: jax.jit(limited.with_options())(ns, xs))
        texts = [str(w.message) for w in found]
        assert [text[:15] for text in texts] == ["warning[PCB902]", "warning[PCB903]"]
        assert (
            "1: x is -2.0" in texts[1] and "3: x is -3.0" in texts[1] and list(np.isfinite(out)) == [True] + 3 * [False]
        )

    def test_each_place_once(self) -> None:
        @pcbatch.batch(on_failure="warn")
        def f(n: Any) -> Any:
            assert n != 1, "one"
            assert n != 2, "two"
            return 2 * n

        g = jax.jit(f)
        texts = [[str(w.message) for w in told(lambda ns=ns: g(jnp.array(ns)))[1]] for ns in ([0, 1], [0, 2], [1, 2])]
        assert [len(found) for found in texts] == [1, 1, 0]
        assert texts[0][0].split("\n")[0].endswith("one") and texts[1][0].split("\n")[0].endswith("two")

    def test_on_each_device_of_a_shard_map(self) -> None:
        mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        lanes = jax.P("d")
        f = jax.shard_map(limited.with_options(), mesh=mesh, in_specs=(lanes, lanes), out_specs=lanes)
        _, (warning,) = told(lambda: jax.jit(f)(jnp.array([1, 90]), XS))
        assert "PCB902" in str(warning.message)


class TestModes:
    def test_error(self) -> None:
        f = limited.with_options(on_failure="error")
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"PCB903(.|\n)*x is -1"):
            jax.block_until_ready(jax.jit(f)(NS, -XS))

    def test_who_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(VARIABLE, raising=False)
        cached: Any = jax.config
        before = cached.jax_compilation_cache_dir
        try:
            jax.config.update("jax_compilation_cache_dir", None)
            assert failure_mode(Options()) == "warn"
            jax.config.update("jax_compilation_cache_dir", "somewhere")
            assert failure_mode(Options()) == "ignore" and failure_mode(Options(on_failure="warn")) == "warn"
        finally:
            jax.config.update("jax_compilation_cache_dir", before)
        monkeypatch.setenv(VARIABLE, "error")
        assert failure_mode(Options()) == "error" and failure_mode(Options(on_failure="ignore")) == "ignore"
        monkeypatch.setenv(VARIABLE, "loud")
        with pytest.raises(pcbatch.UsageError, match=f"PCB401(.|\n)*{VARIABLE}"):
            failure_mode(Options())

    def test_a_wrong_option(self) -> None:
        with pytest.raises(pcbatch.UsageError, match=r"on_failure 'raise'(.|\n)*'warn', 'error', 'ignore'"):
            pcbatch.batch(on_failure="raise")(down.fn)


class TestCost:
    def test_it_stands_behind_the_machine(self) -> None:
        assert primitives(down, NS, XS)[-2:] == ["pcbatch", "pcbatch_told"]
        text = jax.jit(down).lower(NS, XS).as_text()
        assert text.count("callback") == 1
        assert text.rindex("stablehlo.case") < text.index("callback") and "stablehlo.while" not in _behind(text)

    def test_nobody_is_called_where_it_is_not_asked_for(self) -> None:
        quiet = down.with_options(on_failure="ignore")
        assert "callback" not in jax.jit(quiet).lower(NS, XS).as_text()
        assert "callback" not in down.lower(NS, XS).as_text("stablehlo")

    def test_nor_where_nothing_can_fail_or_the_status_is_seen(self) -> None:
        assert "pcbatch_told" not in primitives(straight, XS)
        assert "pcbatch_told" not in primitives(lambda n, x: down.run(n, x).value, NS, XS)

    def test_programs_without_it(self) -> None:
        """Exported ones can hold no callback, and those that XLA spreads would need a collective."""
        assert "callback" not in jax.export.export(jax.jit(down))(NS, XS).mlir_module()
        mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        spread = [jax.device_put(x, jax.NamedSharding(mesh, jax.P("d"))) for x in (NS, XS)]
        assert "callback" not in jax.jit(down).lower(*spread).as_text()


def _behind(text: str) -> str:
    """The conditional that the callback stands in."""
    return text[text.rindex("stablehlo.case") : text.index("callback")]


class TestDebugNans:
    def test_lanes_that_failed_are_named(self) -> None:
        f = down.with_options(max_depth=3, on_failure="ignore")
        with jax.debug_nans(True), pytest.raises(pcbatch.BatchRuntimeError, match="PCB901"):
            jax.jit(f)(NS, XS)

    @pytest.mark.full_only
    def test_by_the_depth_that_there_was_inside_jit(self) -> None:
        """JAX runs what it has compiled once more, without `jit`, where stacks grow and nothing would fail."""
        f = down.with_options(on_failure="ignore")
        with jax.debug_nans(True):
            with pytest.raises(pcbatch.NonFiniteError, match="depth 64"):
                jax.jit(jax.vmap(f))(NS[None], XS[None])
            assert jax.vmap(f)(NS[None], XS[None])[0, 1] == 101.0

    def test_a_full_tape_is_named(self) -> None:
        f = sines.with_options(on_failure="ignore")
        with jax.debug_nans(True), pytest.raises(pcbatch.NonFiniteError, match="PCB423"):
            jax.jit(jax.grad(lambda x: jnp.sum(f(NS, x))))(XS)
