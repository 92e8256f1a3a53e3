"""What XLA makes of it: no copy of a stack inside the loop, one matrix product for all lanes."""

from __future__ import annotations

import re

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.programs import REGISTRY
from tests.programs.classics import fib

DEPTH, LANES = 37, 53  # primes, so that a shape in the text can only be a stack


def compiled_text(batched: pcbatch.Batched, *args: object) -> str:
    """The optimised HLO."""
    return batched.lower(*args).compile().as_text()


def stack_copies(text: str) -> list[str]:
    """Copies of anything with both the depth and the lanes among its dimensions, inside loop bodies."""
    found, in_entry = [], False
    for line in text.splitlines():
        if line.startswith("ENTRY"):
            in_entry = True
        elif line.startswith("}"):
            in_entry = False
        shape = re.search(r"= \w+\[([\d,]*)\]\S* copy(?:-start)?\(", line)
        if shape and not in_entry:
            sizes = {int(size) for size in shape[1].split(",") if size}
            if LANES in sizes and sizes & set(range(DEPTH - 1, DEPTH + 2)):
                found.append(line.strip())
    return found


@pytest.mark.parametrize("schedule", ["earliest", "sweep"])
@pytest.mark.parametrize("emitter", ["guard", "port", "mask"])
def test_no_stack_is_copied_in_the_loop(schedule: str, emitter: str) -> None:
    batched = pcbatch.batch(fib, max_depth=DEPTH, emitter=emitter, schedule=schedule)
    text = compiled_text(batched, np.zeros(LANES, np.int32))
    assert str(LANES) in text
    assert stack_copies(text) == []


@pytest.mark.parametrize("name", ["catalan", "local_survives_call", "tree_sum", "array_through_recursion"])
def test_no_stack_of_other_recursive_programs_is_copied(name: str) -> None:
    program = REGISTRY[name]
    args = tuple(
        part if axis is None else np.resize(part, (LANES, *part.shape[1:]))
        for part, axis in zip(program.args(64), _axes(program), strict=True)
    )
    text = compiled_text(program.batched(max_depth=DEPTH), *args)
    assert stack_copies(text) == []


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
