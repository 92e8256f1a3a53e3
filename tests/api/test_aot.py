"""Ahead of time: tracing, lowering and compiling by hand, exported programs, copies, and threads."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import pcbatch
from pcbatch.lowering.typing.jax_types import is_symbolic
from tests.api.test_usage import refused
from tests.oracles.plans import replanned
from tests.programs import PROGRAMS, Program
from tests.programs.classics import fib as plain_fib

pytestmark = pytest.mark.share(3)

ROOT = Path(__file__).parents[2]


@pcbatch.batch
def fib(n):
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


@pcbatch.batch
def downward(n):
    if n <= 0:
        return 0
    return 1 + downward(n - 1)


def shrink(x, w, *, kind):
    steps = 0
    while jnp.sum(x["a"]) > 1.0:
        x = {"a": x["a"] / w}
        steps += 1
    return x, steps if kind == "steps" else -steps


shrunk = pcbatch.batch(shrink, in_axes=(0, None), static_argnames="kind")
faster = replanned(fib, schedule="sweep", max_depth=40)


class Machine:
    """Has batched methods."""

    def __init__(self, top: int) -> None:
        self.top = top

    @pcbatch.batch
    def climb(self, n):
        while n < self.top:
            n = n + 1
        return n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and other.top == self.top

    def __hash__(self) -> int:
        return hash(self.top)


def ns(lanes: int) -> np.ndarray:
    return (np.arange(lanes) % 9).astype(np.int32)


def xs(lanes: int) -> dict[str, jax.Array]:
    return {"a": jnp.arange(3.0 * lanes).reshape(lanes, 3)}


def same(got: Any, want: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)


class TestStages:
    """`f.trace`, `f.lower` and `compile` are those of `jax.jit`."""

    def test_types_are_told_at_every_stage(self) -> None:
        args = xs(4), jnp.float32(2)
        traced = shrunk.trace(*args, kind="steps")
        lowered = traced.lower()
        compiled = lowered.compile()
        want = jax.jit(jax.vmap(lambda x, w: ({"a": x["a"] / w}, jnp.int32(1)), (0, None))).trace(*args)
        for stage in (traced, lowered, compiled):
            assert stage.in_tree == want.lower().in_tree
            assert stage.out_tree == jax.tree.structure(want.out_info)
            assert [x.shape for x in jax.tree.leaves(stage.out_info)] == [(4, 3), (4,)]
            assert [(x.shape, x.dtype) for x in stage.in_avals] == [((4, 3), jnp.float32), ((), jnp.float32)]
            assert jax.tree.leaves(stage.out_info) == list(stage.out_avals)
            assert jax.tree.structure(stage.args_info) == stage.in_tree
        assert traced.fun_name == "shrink"

    def test_the_types_are_those_that_a_call_gives(self) -> None:
        found = shrunk.trace(xs(2), 2.0, kind="steps").out_info
        for aval, value in zip(jax.tree.leaves(found), jax.tree.leaves(shrunk(xs(2), 2.0, kind="steps")), strict=True):
            assert (aval.shape, aval.dtype, aval.weak_type) == (value.shape, value.dtype, value.weak_type)

    def test_types_are_enough(self) -> None:
        traced = fib.trace(jax.ShapeDtypeStruct((8,), jnp.int32))
        np.testing.assert_array_equal(traced.lower().compile()(ns(8)), fib(ns(8)))

    def test_a_jaxpr_gives_the_result_first(self) -> None:
        jaxpr = fib.trace(ns(4)).jaxpr
        (out,) = [v.aval for v in jaxpr.jaxpr.outvars][:1]
        assert (out.shape, out.dtype) == ((4,), jnp.int32)
        np.testing.assert_array_equal(jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, ns(4))[0], fib(ns(4)))

    def test_the_compiled_form(self) -> None:
        compiled = shrunk.lower(xs(4), 2.0, kind="steps").compile()
        same(compiled(xs(4), 2.0, kind="steps"), shrunk(xs(4), 2.0, kind="steps"))
        assert "HloModule" in compiled.as_text()
        assert compiled.cost_analysis()["flops"] > 0
        assert compiled.memory_analysis().argument_size_in_bytes >= 4 * 4 * 3
        refused("PCB413", lambda: compiled(xs(5), 2.0, kind="steps"))

    def test_a_cost_before_xla_has_optimised(self) -> None:
        assert fib.lower(ns(4)).cost_analysis()["flops"] > 0

    def test_without_types_there_is_nothing_to_tell(self) -> None:
        from pcbatch.api.stages import Lowered

        untyped = Lowered.untyped(plain_fib, lambda obj: None)
        refused("PCB410", lambda: untyped.out_info)
        refused("PCB410", untyped.jaxpr)

    def test_transformations_of_a_method(self) -> None:
        class Model:
            @pcbatch.batch
            def doubled(self, x):
                while x < 10.0:
                    x = x + x
                return x

        model, x = Model(), jnp.array([1.0, 2.0, 3.0])
        assert jax.jit(model.doubled)(x).tolist() == [16.0, 16.0, 12.0]
        assert jax.grad(lambda x: model.doubled(x).sum())(x).tolist() == [16.0, 8.0, 4.0]

    def test_a_method(self) -> None:
        traced = Machine(4).climb.trace(ns(6))
        assert traced.out_tree == jax.tree.structure(0)
        np.testing.assert_array_equal(traced.lower().compile()(Machine(4), ns(6)), Machine(4).climb(ns(6)))


def symbolic(*shape: int | str, dtype: Any = jnp.int32, scope: str = "b") -> jax.ShapeDtypeStruct:
    """A type with lanes left open: `symbolic("b", 3)`."""
    sizes = dict(zip(scope.split(","), export.symbolic_shape(scope), strict=True))
    return jax.ShapeDtypeStruct(tuple(sizes[n] if isinstance(n, str) else n for n in shape), dtype)


def exported(f: Callable[..., Any], *types: Any) -> Any:
    """Exported, written and read."""
    return export.deserialize(export.export(jax.jit(f))(*types).serialize())


OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"emitter": "port"},
    {"schedule": "largest"},
    {"schedule": "drain"},
    {"modes": pcbatch.Few(2)},
    {"modes": pcbatch.Strips(4)},
    {"max_steps": 4},
)


class TestExport:
    """`jax.export` with any number of lanes."""

    @pytest.mark.full_only
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_symbolic(self, options: dict[str, Any]) -> None:
        f = replanned(fib, **options)
        call = exported(lambda n: f.run(n).value, symbolic("b")).call
        for lanes in (1, 33) if options else (1, 7, 1500):
            same(call(ns(lanes)), f.run(ns(lanes)).value)

    def test_the_function_itself(self) -> None:
        call = exported(fib, symbolic("b")).call
        same(call(ns(7)), fib(ns(7)))

    def test_shared_arguments_and_pytrees(self) -> None:
        def f(x: Any, w: Any) -> Any:
            return shrunk(x, w, kind="steps")

        call = exported(f, {"a": symbolic("b", 3, dtype=jnp.float32)}, jax.ShapeDtypeStruct((), jnp.float32)).call
        for lanes in (2, 5):
            same(call(xs(lanes), jnp.float32(2)), f(xs(lanes), jnp.float32(2)))

    @pytest.mark.full_only
    @pytest.mark.parametrize("lanes", [None, 4])
    def test_a_map(self, lanes: int | None) -> None:
        call = exported(lambda n: fib.map(n, lanes=lanes).value, symbolic("b")).call
        for inputs in (2, 700):
            same(call(ns(inputs)), fib(ns(inputs)))

    @pytest.mark.full_only
    def test_a_whole_result(self) -> None:
        counted = replanned(fib, stats=True, fork="never")  # of any number of lanes none runs by tasks
        for type_ in (symbolic("b"), jax.ShapeDtypeStruct((5,), jnp.int32)):
            result = exported(counted.run, type_).call(ns(5))
            want = jax.jit(counted.run)(ns(5))
            same(result.value, want.value)
            assert result.stats.blocks == want.stats.blocks
            assert result.stats.lanes == (None if is_symbolic(type_.shape[0]) else 5)

    def test_the_local_strategy(self) -> None:
        local = shrunk.with_options(strategy="local")

        def f(x: Any) -> Any:
            return local(x, 2.0, kind="steps")

        same(exported(f, {"a": symbolic("b", 3, dtype=jnp.float32)}).call(xs(5)), f(xs(5)))

    def test_only_lanes_may_be_left_open(self) -> None:
        @pcbatch.batch
        def total(x):
            return jnp.sum(x)

        wrong = symbolic("a", "b", dtype=jnp.float32, scope="a,b")
        error = refused("PCB430", lambda: export.export(jax.jit(total))(wrong))
        assert "(a, b)" in str(error)
        call = exported(total.with_options(in_axes=1), symbolic(3, "b", dtype=jnp.float32)).call
        same(call(jnp.ones((3, 4))), jnp.full(4, 3.0))

    def test_numbers_of_lanes_that_may_differ(self) -> None:
        @pcbatch.batch
        def add(x, y):
            return x + y

        a, b = (jax.ShapeDtypeStruct((size,), jnp.int32) for size in export.symbolic_shape("a, b"))
        refused("PCB407", lambda: export.export(jax.jit(add))(a, b))

    @pytest.mark.share(24)
    @pytest.mark.promotion("standard")  # types alone do not tell weak ones
    @pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
    def test_every_program(self, program: Program) -> None:
        (b,) = export.symbolic_shape("b")

        def type_of(x: Any) -> jax.ShapeDtypeStruct:
            x = x if isinstance(x, jax.Array) else jnp.asarray(x)
            return jax.ShapeDtypeStruct((b, *x.shape[1:]), x.dtype)

        with program.mode():
            shared = isinstance(program.in_axes, tuple) and None in program.in_axes
            if shared or program.in_axes != 0:
                pytest.skip("not all arguments have the lanes in front")
            types = [jax.tree.map(type_of, x) for x in program.args(2)]
            export.export(jax.jit(program.batched(max_depth=8)))(*types)


READER = """
import json, sys
import jax, numpy as np
from jax import export
found = export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
assert "pcbatch" not in sys.modules
out = [np.asarray(found.call((np.arange(lanes) % 9).astype(np.int32))).tolist() for lanes in (1, 4, 33)]
print(json.dumps(out))
"""


@pytest.mark.full_only
def test_export_read_in_a_fresh_process(tmp_path: Path) -> None:
    """The process that runs it needs JAX alone."""
    for name, f in (("call", fib), ("value", lambda n: fib.run(n).value)):
        file = tmp_path / name
        file.write_bytes(export.export(jax.jit(f))(symbolic("b")).serialize())
        run = subprocess.run(
            [sys.executable, "-c", READER, str(file)], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout) == [np.asarray(fib(ns(lanes))).tolist() for lanes in (1, 4, 33)]


class TestCopies:
    """Batched functions are copied and pickled by name; results by value."""

    def test_a_function_is_itself(self) -> None:
        for f in (fib, faster, shrunk, fib.with_options(stats=True)):
            assert copy.copy(f) is f and copy.deepcopy({"f": [f]})["f"][0] is f
        assert pickle.loads(pickle.dumps(fib)) is fib
        assert pickle.loads(pickle.dumps(Machine.climb)) is Machine.climb

    @pytest.mark.parametrize("f", [faster, shrunk, fib.with_options(stats=True)], ids=["options", "other name", "here"])
    def test_a_function_with_options(self, f: pcbatch.Batched) -> None:
        back = pickle.loads(pickle.dumps(f))
        assert (back.fn, back.options) == (f.fn, f.options)

    def test_a_method(self) -> None:
        bound = pickle.loads(pickle.dumps(Machine(5).climb))
        np.testing.assert_array_equal(bound(ns(8)), Machine(5).climb(ns(8)))
        assert copy.deepcopy(Machine(5).climb).batched is Machine.climb

    def test_a_local_function_has_no_name(self) -> None:
        local = pcbatch.batch(lambda x: x + 1)
        with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
            pickle.dumps(local)
        assert copy.deepcopy(local) is local

    def test_results(self) -> None:
        @pcbatch.batch(stats=True)
        def keys(key, n):
            while n > 0:
                key, n = jax.random.split(key)[0], n - 1
            return key, n

        result = keys.run(jax.random.split(jax.random.key(0), 3), ns(3))
        for back in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
            assert back.stats.blocks == result.stats.blocks
            same(jax.random.key_data(back.value[0]), jax.random.key_data(result.value[0]))
            same((back.value[1], back.status), (result.value[1], result.status))

    @pytest.mark.full_only
    def test_profiles_and_explanations(self) -> None:
        profile = fib.profile(ns(4))
        for back in (pickle.loads(pickle.dumps(profile)), copy.deepcopy(profile)):
            assert str(back) == str(profile) and back.to_json() == profile.to_json()
        assert pickle.loads(pickle.dumps(profile.schedule)) == profile.schedule

    def test_errors(self) -> None:
        with pytest.raises(pcbatch.BatchRuntimeError) as info:
            fib.with_options(max_depth=2)(ns(9))
        for back in (pickle.loads(pickle.dumps(info.value)), copy.deepcopy(info.value)):
            assert type(back) is pcbatch.BatchRuntimeError
            assert back.diagnostics == info.value.diagnostics and str(back) == str(info.value)


SENDER = """
import concurrent.futures, multiprocessing, sys
import numpy as np
sys.path.insert(0, {root!r})
if __name__ == "__main__":
    from tests.api.test_aot import fib, faster
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        ns = np.arange(5, dtype=np.int32)
        print([np.asarray(pool.submit(f, ns).result()).tolist() for f in (fib, faster)])
"""


@pytest.mark.full_only
def test_functions_are_sent_to_other_processes(tmp_path: Path) -> None:
    script = tmp_path / "sender.py"
    script.write_text(SENDER.format(root=str(ROOT)))
    settings = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, env={**os.environ, **settings}
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[[1, 1, 2, 3, 5], [1, 1, 2, 3, 5]]"


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What calls in a thread each give, started at the same moment."""
    found: list[Any] = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def go(k: int) -> None:
        start.wait()
        try:
            found[k] = calls[k]()
        except BaseException as error:
            found[k] = error

    threads = [threading.Thread(target=go, args=(k,)) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


class TestThreads:
    """Eight threads and one function that nobody has called yet."""

    def test_one_signature(self) -> None:
        from tests.compiler.test_persistent_cache import BACKEND, counted

        f, args, found = pcbatch.batch(plain_fib), jnp.asarray(ns(9)), []
        at_once(lambda: downward(args))  # with what JAX compiles for itself, in a thread without this one's settings
        compiled = counted(BACKEND, lambda: found.extend(at_once(*[lambda: f.run(args).value] * 8)))
        assert compiled == 1  # all wait for the first
        for got in found:
            same(got, fib(ns(9)))

    @pytest.mark.full_only
    def test_several_signatures(self) -> None:
        f = pcbatch.batch(plain_fib)
        args = [ns(3 + k % 3).astype((np.int32, np.float32, np.uint8)[k % 3]) for k in range(8)]
        for got, n in zip(at_once(*[lambda n=n: f(n) for n in args]), args, strict=True):
            np.testing.assert_array_equal(got, np.asarray(fib(n.astype(np.int32))))

    @pytest.mark.full_only
    def test_several_functions_and_ways_to_call(self) -> None:
        f, machine = pcbatch.batch(plain_fib), Machine(5)
        calls = [
            lambda: f(ns(5)),
            lambda: f.map(ns(5), lanes=2).value,
            lambda: jax.jit(f)(ns(5)),
            lambda: f.lower(ns(5)).compile()(ns(5)),
            lambda: f.with_options(stats=True).run(ns(5)).value,
            lambda: f.profile(ns(5)).result.value,
        ]
        climbs = [lambda: machine.climb(ns(5)), lambda: machine.climb.run(ns(5)).value]
        found = at_once(*calls, *climbs)
        for got in found[:6]:
            same(got, fib(ns(5)))
        for got in found[6:]:
            np.testing.assert_array_equal(got, [5, 5, 5, 5, 5])

    def test_stacks_that_grow(self) -> None:
        f = downward.with_options()
        deep = [np.array([1, 20 * (k + 1)], np.int32) for k in range(8)]
        for got, n in zip(at_once(*[lambda n=n: f(n) for n in deep]), deep, strict=True):
            np.testing.assert_array_equal(got, n)
        (compiled,) = f._programs.cache.values()
        assert compiled.executable.depth >= 160

    def test_failures_stay_with_their_thread(self) -> None:
        @pcbatch.batch
        def checked(n):
            assert n < 5, f"{n} is too large"
            return n

        calls = [lambda k=k: checked(np.array([k, 2 * k], np.int32)) for k in range(8)]
        for k, got in enumerate(at_once(*calls)):
            if k < 3:
                np.testing.assert_array_equal(got, [k, 2 * k])
            else:
                assert isinstance(got, pcbatch.BatchRuntimeError) and f"{2 * k} is too large" in str(got)
