"""Functions are copied for the shared values that they are called with; values of shared values are computed ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.cfg_passes import clone_shared
from pcbatch.lowering.left_out import without
from pcbatch.lowering.tasks import pipeline

RNG = np.random.default_rng(0)
SIZE = 16


def matrix(*shape: int) -> Any:
    """Random numbers that keep vectors about as long as they are."""
    return jnp.asarray(RNG.normal(size=shape) * shape[-1] ** -0.5, jnp.float32)


@pcbatch.batch
def down(w, x, n):
    """A recursion that hands its weight on."""
    if n <= 0:
        return x
    return jnp.tanh(w @ down(w, x, n - 1))


@pcbatch.batch
def turned(w, u, x, n):
    """A recursion that hands its weights on in turn."""
    if n <= 0:
        return x
    return jnp.tanh(w @ turned(u, w, x, n - 1))


@pcbatch.batch
def through(w, x, n):
    """Hands its weight to another function, and what is computed of it."""
    return down(w, x, n) + down(w.T * 2, x, 1)


@pcbatch.batch
def fork(w, x, n):
    """A recursion with two calls."""
    if n <= 0:
        return jnp.tanh(w @ x)
    return jnp.tanh(w @ (fork(w, x * 0.5, n - 1) + fork(w, x + 1, n - 2)))


def two(v, w, x, n):
    return down(v, x, n) + down(w, x, n)


def by_another(v, w, x, n):
    return through(v, x, n) + through(w, x, n)


def of_one(v, w, x, n):
    return down(v, x, n) + down(v, x + 1, n)


def of_a_lane(v, w, x, n):
    return down(v, x, n) + down(v + x[0], x, n)


def in_turn(v, w, x, n):
    return turned(v, w, x, n) + turned(w, v, x, n)


def side_by_side(v, w, x, n):
    return fork(v, x, n) - fork(w.T, x, n)


ARGS = (matrix(SIZE, SIZE), matrix(SIZE, SIZE), matrix(3, SIZE), jnp.array([0, 3, 2], jnp.int32))
AXES = (None, None, 0, 0)


def cfg(fn: Callable[..., Any], *, cloned: bool = True) -> CfgProgram:
    """The program of a function before calls are lowered."""
    f = pcbatch.batch(fn, in_axes=AXES)
    if cloned:
        return f.lower(*ARGS).stages.inlined_cfg
    with without("clone_shared"):
        return f.lower(*ARGS).stages.inlined_cfg


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (two, ["two", "down", "down.2"]),
        (by_another, ["by_another", "down", "down.2", "down.3", "down.4"]),
        (of_one, ["of_one", "down"]),
        (of_a_lane, ["of_a_lane", "down", "down.2"]),
        (in_turn, ["in_turn", "turned"]),
        (side_by_side, ["side_by_side", "fork", "fork.2"]),
    ],
)
def test_which_functions_are_copied(fn: Callable[..., Any], names: list[str]) -> None:
    """For each set of shared values, through other functions; not where a recursion changes them."""
    program = cfg(fn)
    assert verify(program) == ()
    assert [f.name.rpartition("@")[2] for f in program.functions] == names
    assert len(cfg(fn, cloned=False).functions) <= len(names)


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", [two, by_another, of_a_lane, in_turn])
def test_results_stay(fn: Callable[..., Any]) -> None:
    """Lanes are equal with copies and without them."""
    found = pcbatch.batch(fn, in_axes=AXES, plan=pcbatch.Plan(fork="never"))(*ARGS)
    with without("clone_shared"):
        want = pcbatch.batch(fn, in_axes=AXES, plan=pcbatch.Plan(fork="never"))(*ARGS)
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)


def test_weights_of_copies_are_no_registers() -> None:
    """Each copy has a weight that all lanes share; without copies each lane had its own."""
    text = pcbatch.batch(two, in_axes=AXES).lower(*ARGS).as_text("opt")
    assert "two.v, two.w: f32[16,16] shared" in text
    assert "f32[16,16] reg" not in text
    with without("clone_shared"):
        assert "f32[16,16] reg" in pcbatch.batch(two, in_axes=AXES).lower(*ARGS).as_text("opt")


def test_at_most_four_copies() -> None:
    """A fifth value is a parameter as any other."""

    def five(v, w, x, n):
        return down(v, x, n) + down(w, x, n) + down(v.T, x, n) + down(w.T, x, n) + down(v + 1, x, n) + down(w + 1, x, n)

    assert len(cfg(five).functions) == 6


def test_tasks_compute_values_of_shared_values_once() -> None:
    """Before all tasks: `w.T`, which each call hands on, is in no record."""
    program = cfg(side_by_side)
    tasks = pipeline.run(program, frozenset(("v", "w")))
    assert tasks is not None
    text = print_program(tasks)
    assert "prologue:" in text
    assert all("w" not in block.params and "fork_2.w" not in block.params for block in tasks.blocks), text
    with without("shared_values"):
        left = pipeline.run(program, frozenset(("v", "w")))
    assert left is not None
    assert any("fork_2.w" in block.params for block in left.blocks)


def test_tasks_equal_plain_python() -> None:
    """With weights of the prologue."""
    f = pcbatch.batch(side_by_side, in_axes=AXES)
    v, w, x, n = ARGS
    found, want = (
        f.with_options(plan=pcbatch.Plan(fork="always"))(*ARGS),
        [f.plain(v, w, *one) for one in zip(x, n, strict=True)],
    )
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)


def test_a_program_without_shared_values_stays() -> None:
    """There is nothing to copy for."""
    with without("clone_shared"):
        program = pcbatch.batch(two).lower(*(jnp.broadcast_to(a, (3, *a.shape[-2:])) for a in ARGS[:2]), *ARGS[2:])
    assert clone_shared.run(program.stages.inlined_cfg, ()) is program.stages.inlined_cfg


def test_explanations_name_what_is_shared() -> None:
    """Weights of functions that were copied, too."""
    plan = pcbatch.batch(two, in_axes=AXES).explain_schedule(*ARGS)
    assert plan.shared == ("two.v: f32[16,16]", "two.w: f32[16,16]")
    assert "  shared   two.v: f32[16,16], two.w: f32[16,16]\n" in str(plan)
