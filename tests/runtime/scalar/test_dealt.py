"""Lanes one after the other, dealt to cores: each lane gives what it gives in a run on one core, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.execute import direct_run
from pcbatch.runtime.execute.dealt_program import DealtProgram, dealt
from pcbatch.runtime.scalar import worth
from tests.oracles.plans import planned

LANES = 101  # comes out even for no number of chunks


def walk(x, n, table):
    steps = 0
    while n > 0:
        x = x * 1.1 + table[n % 3]
        n -= 1
        steps += 1
    return x, steps


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


def halves(n):
    total = 0
    while n > 1:
        if n == 45:
            raise ValueError("forty-five")
        n //= 2
        total += n
    return total


def squares(n):
    found = []
    for k in range(n):
        found.append(k * k)
    return found


def drawn(key, n):
    total = 0.0
    for _ in range(n):
        key, now = jax.random.split(key)
        total += jax.random.uniform(now)
    return total


NUMBERS = np.arange(LANES, dtype=np.int32) % 40


@pytest.fixture(params=[2, 3, 7])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of cores that calls in the test have, however little they do."""
    monkeypatch.setattr(direct_run, "cores", lambda: request.param)
    monkeypatch.setattr(worth, "DEALT", 0.0)
    monkeypatch.setattr(worth, "LEAST_DEALT", 8)
    return int(request.param)


def on_one_core(fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct_run, "cores", lambda: 1)
        return pcbatch.batch(fn, **planned(**options))(*args)


def dealt_programs(f: Any) -> list[DealtProgram]:
    runs = [plan.direct for plan in f._programs.repeated.plans.values() if plan is not None and plan.direct]
    return [run.program for run in runs if isinstance(run.program, DealtProgram)]


def same(a: Any, b: Any) -> bool:
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(a)] == [
        np.asarray(x).tobytes() for x in jax.tree.leaves(b)
    ]


CALLS = [
    (walk, (np.linspace(0, 1, LANES, dtype=np.float32), NUMBERS, np.array([0.5, 1.5, 2.5], np.float32)), (0, 0, None)),
    (walk, (jnp.linspace(0, 1, LANES), jnp.asarray(NUMBERS), jnp.array([0.5, 1.5, 2.5])), (0, 0, None)),
    (depth, (NUMBERS,), 0),
    (squares, (NUMBERS,), 0),
    (drawn, (jax.random.split(jax.random.key(0), LANES), NUMBERS), 0),
]


@pytest.mark.parametrize(("fn", "args", "in_axes"), CALLS)
def test_results_are_those_of_one_core(cores: int, fn: Callable[..., Any], args: tuple[Any, ...], in_axes: Any) -> None:
    f = pcbatch.batch(fn, in_axes=in_axes)
    want = on_one_core(fn, *args, in_axes=in_axes)
    for _ in range(3):
        assert same(f(*args), want)
    programs = dealt_programs(f)
    assert programs and all(len(program.starts) == cores for program in programs)


def test_failures_name_the_lanes_of_the_call(cores: int) -> None:
    f = pcbatch.batch(halves)
    for _ in range(2):
        with pytest.raises(pcbatch.BatchRuntimeError) as info:
            f(np.arange(LANES, dtype=np.int32))
        assert "forty-five" in str(info.value) and "45" in str(info.value) and "90" in str(info.value)
    found = pcbatch.batch(halves, on_failure="ignore").run(np.arange(LANES, dtype=np.int32))
    assert np.flatnonzero(np.asarray(found.status) != 0).tolist() == [45, 90, 91]


def test_stacks_grow(cores: int) -> None:
    f = pcbatch.batch(depth)
    deep = NUMBERS.copy()
    deep[-1] = 3000
    assert f(NUMBERS).tolist() == NUMBERS.tolist()
    for _ in range(2):
        assert f(deep).tolist() == deep.tolist()


def test_small_calls_run_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_run, "cores", lambda: 16)
    f = pcbatch.batch(depth)
    f(NUMBERS[:8])
    assert not dealt_programs(f)
    assert f._programs.repeated.plans


def test_arrays_keep_their_device(cores: int) -> None:
    f, there = pcbatch.batch(depth), jax.devices()[-1]
    for args in (jax.device_put(NUMBERS, there), jnp.asarray(NUMBERS)):
        for _ in range(2):
            found = f(args)
            assert found.devices() == args.devices() and found.committed == args.committed


def test_chunks_overlap_where_they_do_not_come_out_even() -> None:
    program = dealt(jax.jit(lambda x, y: ((x * y,), jnp.stack([x, -x]))), 10, 4, [True, False])
    assert program.starts == (0, 4, 6)
    (values,), rows = program(np.arange(10), np.int32(3))
    assert values.tolist() == list(range(0, 30, 3)) and rows.tolist() == [list(range(10)), [-k for k in range(10)]]


def test_an_error_of_a_chunk_is_that_of_the_call(cores: int) -> None:
    def fails(*_: Any) -> None:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED")

    program = dealt(jax.jit(lambda x: (x, x[None])), 4, 2, [True])
    program(np.arange(4))
    for key in program._compiled:
        program._compiled[key] = fails
    with pytest.raises(jax.errors.JaxRuntimeError):
        program(np.arange(4))


@pytest.mark.parametrize("of", [np.asarray, jnp.asarray])
def test_numbers_of_64_bits_in_threads_that_have_settings_of_their_own(cores: int, of: Callable[..., Any]) -> None:
    """`jax.enable_x64` holds in the thread of the call alone."""
    with jax.enable_x64(True):
        x, n, table = of(np.linspace(0, 1, LANES)), of(NUMBERS.astype(np.int64)), of(np.array([0.5, 1.5, 2.5]))
        f = pcbatch.batch(walk, in_axes=(0, 0, None))
        want = on_one_core(walk, x, n, table, in_axes=(0, 0, None))
        assert want[0].dtype == np.float64 and want[1].dtype == np.int64
        for _ in range(2):
            assert same(f(x, n, table), want)
        assert dealt_programs(f)


@pytest.mark.parametrize(("most", "chunks"), [(1, 0), (2, 2), (64, 0)])
def test_a_plan_says_how_many_cores_at_most(cores: int, most: int, chunks: int) -> None:
    f = pcbatch.batch(depth, plan=pcbatch.Plan(cores=most))
    want = on_one_core(depth, NUMBERS)
    for _ in range(3):
        assert same(f(NUMBERS), want)
    chunks = chunks or min(most, cores)
    assert [len(program.starts) for program in dealt_programs(f)] == ([chunks] if chunks > 1 else [])


@pytest.mark.parametrize("cores", [0, -1, 1.5, True, "2"])
def test_a_number_of_cores_is_positive(cores: Any) -> None:
    with pytest.raises(pcbatch.UsageError, match="PCB401.*cores must be a positive integer or None"):
        pcbatch.Plan(cores=cores)
