"""What XLA makes of it: no copy of a stack inside the loop, one matrix product for all lanes."""

from __future__ import annotations

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from examples.nuts.run import fixed_chain
from examples.nuts.targets import gaussian
from tests.programs import REGISTRY
from tests.programs.classics import fib
from tests.programs.recursion import ackermann

pytestmark = [pytest.mark.share(3), pytest.mark.long]

DEPTH, LANES = 37, 53  # primes, so that a shape in the text can only be a stack


def compiled_text(batched: pcbatch.Batched, *args: object) -> str:
    """The optimised HLO."""
    return batched.lower(*args).compile().as_text()


def copies(text: str, least: int = 3) -> list[str]:
    """Shapes of what is copied inside loops, of so many elements per lane (registers of less are cheap)."""
    found, in_entry = [], False
    for line in text.splitlines():
        if line.startswith("ENTRY"):
            in_entry = True
        elif line.startswith("}"):
            in_entry = False
        shape = re.search(r"= \w+\[([\d,]*)\]\S* copy(?:-start)?\(", line)
        if shape and not in_entry and math.prod(int(size) for size in shape[1].split(",") if size) >= least * LANES:
            found.append(shape[1])
    return found


LANE = np.zeros(LANES, np.int32)
VECTOR = np.zeros((LANES, 61), np.float32)
MODES = [None, pcbatch.Dense(), pcbatch.Dense(always=True), pcbatch.Few(4), pcbatch.Strips(8)]
every_mode = pytest.mark.parametrize("modes", MODES, ids=str)


def quicksort(xs, low, high):
    if low >= high:
        return xs
    pivot, i, j = xs[high], low, low
    while j < high:
        if xs[j] < pivot:
            a, b = xs[i], xs[j]
            xs = xs.at[i].set(b).at[j].set(a)
            i = i + 1
        j = j + 1
    a, b = xs[i], xs[high]
    xs = xs.at[i].set(b).at[high].set(a)
    xs = quicksort(xs, low, i - 1)
    return quicksort(xs, i + 1, high)


def carries(v, n):
    """The vector is not touched in the loop."""
    x = 0.0
    while n > 0:
        x = jnp.sin(x) + 1.0
        n = n - 1
    return v * x


RECURSIVE = {
    "fib": (fib, (LANE,)),
    "ackermann": (ackermann, (LANE, LANE)),
    "quicksort": (quicksort, (VECTOR, LANE, LANE)),
}
ROOM = (DEPTH + 2) * LANES  # rows of frames


@pytest.mark.share(8)
@pytest.mark.promotion("standard")
@every_mode
@pytest.mark.parametrize("name", RECURSIVE)
def test_neither_frames_nor_arrays_are_copied_in_the_loop(name: str, modes: pcbatch.options.Mode | None) -> None:
    fn, args = RECURSIVE[name]
    text = compiled_text(pcbatch.batch(fn, max_depth=DEPTH, plan=pcbatch.Plan(modes=modes, fork="never")), *args)
    assert f"u32[{ROOM}," in text
    assert copies(text) == []


@pytest.mark.promotion("standard")
@every_mode
def test_a_register_that_the_loop_does_not_touch_is_not_copied(modes: pcbatch.options.Mode | None) -> None:
    text = compiled_text(pcbatch.batch(carries, plan=pcbatch.Plan(modes=modes)), VECTOR, LANE)
    assert f"f32[{LANES},61]" in text
    assert copies(text) == []


@pytest.mark.share(2)
@pytest.mark.promotion("standard")
@every_mode
@pytest.mark.parametrize("name", ["fib", "ackermann"])
def test_frames_are_not_copied_in_a_program_of_the_users(name: str, modes: pcbatch.options.Mode | None) -> None:
    """There XLA's options are not ours: reads are kept apart from writes."""
    fn, args = RECURSIVE[name]
    batched = pcbatch.batch(fn, max_depth=DEPTH, plan=pcbatch.Plan(modes=modes, fork="never", emitter="guard"))
    text = jax.jit(lambda *args: batched(*args)).lower(*args).compile().as_text()
    assert f"u32[{ROOM}," in text
    assert copies(text) == []


@pytest.mark.full_only
@pytest.mark.promotion("standard")
@every_mode
def test_a_sampler_copies_no_frames(modes: pcbatch.options.Mode | None) -> None:
    chain, args = fixed_chain(gaussian(size=3), np.zeros((LANES, 3), np.float32), step=0.5, draws=71, max_tree_depth=5)
    text = compiled_text(chain.with_options(plan=pcbatch.Plan(modes=modes), max_depth=DEPTH), *args)
    assert f"u32[{ROOM}," in text
    wide = [shape for shape in copies(text) if shape.startswith(str(ROOM)) or "71" in shape.split(",")]
    assert wide == []


def record(x, n, trace):
    k = 0
    while k < n:
        x = jnp.sin(x) + 0.1
        trace = trace.at[k].set(x)
        k = k + 1
    return trace


@every_mode
def test_writing_a_row_touches_one_row(modes: pcbatch.options.Mode | None) -> None:
    x, trace = np.zeros((LANES, 4), np.float32), np.zeros((LANES, 211, 4), np.float32)
    text = compiled_text(pcbatch.batch(record, plan=pcbatch.Plan(modes=modes)), x, LANE, trace)
    made = re.findall(rf"= f32\[{LANES},211,4\]\S* ([\w-]+)\(", inside_loops(text))
    assert made and set(made) <= {"parameter", "get-tuple-element", "dynamic-update-slice", "fusion", "call", "scatter"}


def inside_loops(text: str) -> str:
    """Without the entry computation, and what it calls."""
    start = text.index("\nENTRY")
    called = set(re.findall(r"(?:calls|to_apply)=%?([\w.-]+)", text[start:]))
    parts = text[:start].split("\n\n")
    return "\n\n".join(part for part in parts if part.strip().split(" ")[0].lstrip("%") not in called)


@pytest.mark.parametrize("schedule", ["earliest", "sweep"])
@pytest.mark.parametrize("emitter", ["guard", "port"])
def test_no_stack_is_copied_in_the_loop(schedule: str, emitter: str) -> None:
    batched = pcbatch.batch(fib, max_depth=DEPTH, plan=pcbatch.Plan(emitter=emitter, schedule=schedule))
    text = compiled_text(batched, LANE)
    assert f"u32[{ROOM}," in text
    assert copies(text) == []


@pytest.mark.parametrize("name", ["catalan", "local_survives_call", "tree_sum", "array_through_recursion"])
def test_no_stack_of_other_recursive_programs_is_copied(name: str) -> None:
    program = REGISTRY[name]
    args = tuple(
        part if axis is None else np.resize(part, (LANES, *part.shape[1:]))
        for part, axis in zip(program.args(64), _axes(program), strict=True)
    )
    text = compiled_text(program.batched(max_depth=DEPTH), *args)
    assert f"u32[{ROOM}," in text
    assert [shape for shape in copies(text) if shape.startswith(str(ROOM))] == []


def _axes(program) -> tuple[int | None, ...]:
    count = len(program.args(1))
    return program.in_axes if isinstance(program.in_axes, tuple) else (program.in_axes,) * count


SIZE = 41
MATRIX = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)


def iterate(x, n, weight):
    while n > 0:
        x = jnp.tanh(weight @ x)
        n -= 1
    return x


def recurse(x, n, weight):
    if n <= 0:
        return x
    return jnp.tanh(weight @ recurse(x, n - 1, weight))


def recurse_closed(x, n):
    if n <= 0:
        return x
    return jnp.tanh(jnp.asarray(MATRIX) @ recurse_closed(x, n - 1))


def assert_one_gemm(text: str) -> None:
    """Products (HLO or StableHLO) have no batch dimensions, and no matrix exists once per lane."""
    assert re.search(r"\bdot(_general)?\b|matmul", text), "no matrix product in the program"
    batched = re.search(r"lhs_batch_dims=\{\d.*|batching_dims = \[\d.*", text)
    assert batched is None, batched
    sizes = rf"{LANES},{SIZE},{SIZE}|{SIZE},{LANES},{SIZE}|{SIZE},{SIZE},{LANES}"
    per_lane = re.search(rf"f32\[(?:{sizes})\]|tensor<(?:{sizes.replace(',', 'x')})xf32>", text)
    assert per_lane is None, per_lane


@pytest.mark.parametrize("modes", [pcbatch.Few(4), pcbatch.Strips(8)], ids=str)
@pytest.mark.parametrize("fn", [iterate, recurse])
def test_shared_matrix_is_one_gemm_for_a_few_lanes(fn, modes: pcbatch.options.Mode) -> None:
    batched = pcbatch.batch(fn, in_axes=(0, 0, None), plan=pcbatch.Plan(modes=modes), max_depth=DEPTH)
    args = (np.ones((LANES, SIZE), np.float32), np.arange(LANES, dtype=np.int32), MATRIX)
    text = compiled_text(batched, *args)
    assert_one_gemm(text)
    assert re.search(rf"f32\[{modes.width},{SIZE},{SIZE}\]", text) is None


@pytest.mark.parametrize("fn", [iterate, recurse])
@pytest.mark.parametrize("strategy", ["pc", "local"])
def test_shared_matrix_is_one_gemm(fn, strategy: str) -> None:
    if fn is recurse and strategy == "local":
        pytest.skip("the local strategy keeps recursion on the host: no single program to look at")
    batched = pcbatch.batch(fn, in_axes=(0, 0, None), strategy=strategy, max_depth=DEPTH)
    args = (np.ones((LANES, SIZE), np.float32), np.arange(LANES, dtype=np.int32), MATRIX)
    assert_one_gemm(batched.lower(*args).as_text("stablehlo"))
    assert_one_gemm(compiled_text(batched, *args))


def test_closed_over_matrix_is_one_gemm() -> None:
    batched = pcbatch.batch(recurse_closed, max_depth=DEPTH)
    args = (np.ones((LANES, SIZE), np.float32), np.arange(LANES, dtype=np.int32))
    assert_one_gemm(compiled_text(batched, *args))


def test_small_arrays_have_the_lanes_last() -> None:
    """But not what a matrix product reads, nor arrays whose elements are looked up one by one."""

    @pcbatch.batch
    def walk(x, y, z, big, n):
        while n > 0:
            x = x * 0.5 + x @ x
            y = jnp.tanh(jnp.eye(3, dtype=y.dtype) @ y)
            z = z.at[n].add(1.0)
            big = big + 1.0
            n = n - 1
        return x, y, z, big

    def ones(*shape: int) -> np.ndarray:
        return np.ones((LANES, *shape), np.float32)

    args = ones(5), ones(3), ones(17), ones(33), np.arange(LANES, dtype=np.int32)
    lowered = walk.lower(*args)
    state = walk._compiled(args, {})[0].executable.machine.layout.lanes_last
    assert {key.removeprefix("reg:") for key in state} == {"x"}
    carried = lowered.as_text("stablehlo")
    assert f"tensor<5x{LANES}xf32>" in carried and f"tensor<33x{LANES}xf32>" not in carried
