"""Derivatives of every differentiable program are those of the plain function, lane by lane.

In both modes, of arguments per lane and of shared ones, in 64 bits, under `jit` and `vmap`, however the machine runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import pytest

import pcbatch
from tests.oracles.derivatives import Call, check_elements, check_forward, check_reverse, is_inexact, leaf_axes, widened
from tests.programs import PROGRAMS, Program
from tests.programs.differentiable import DIFFERENTIABLE

pytestmark = [pytest.mark.long, pytest.mark.promotion("standard")]

LANES = 5
# They take floating numbers, and give none.
NOT = {
    *("fib_f32", "fib_f64", "mandelbrot", "shared_condition", "constant_results_on_paths"),
}
NARROW = {"half_precision": 2e-2}  # plain Python rounds after every operation
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"schedule": "earliest", "emitter": "port", "modes": pcbatch.Few(2)},
    {"schedule": "largest", "emitter": "guard", "modes": pcbatch.Strips(2)},
    {"schedule": "sweep", "emitter": "port"},
    {"schedule": "drain", "modes": pcbatch.Dense(2)},
    {"modes": pcbatch.Few(1), "stats": True, "max_steps": 100_000},
    {"modes": pcbatch.Dense(), "max_depth": 64},
)


def _has_floats(program: Program) -> bool:
    with program.mode():
        return any(is_inexact(x) for x in jax.tree.leaves(program.args(1)))


CHOSEN = (*(p for p in PROGRAMS if p.name not in NOT and _has_floats(p)), *DIFFERENTIABLE)
every_program = pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.name)


def call_of(program: Program, lanes: int = LANES, wide: bool = False) -> Call:
    """So many lanes of a program."""
    args = program.args(lanes)
    return Call(
        program.batched(),
        widened(args) if wide else args,
        program.in_axes,
        lanes,
        program.raises,
        None if wide else NARROW.get(program.name),
    )


def shared_call(program: Program) -> Call | None:
    """Lanes share the floating arguments of the first, as far as others remain; None if that is nothing new."""
    call = call_of(program)
    axes = list(call.in_axes) if isinstance(call.in_axes, tuple) else [call.in_axes] * len(call.args)
    args = list(call.args)
    for k, (axis, arg) in enumerate(zip(axes, args, strict=True)):
        others = [a for j, a in enumerate(axes) if j != k and jax.tree.leaves(args[j])]
        leaves = jax.tree.leaves(arg)
        if axis == 0 and leaves and all(map(is_inexact, leaves)) and any(a is not None for a in others):
            axes[k], args[k] = None, jax.tree.map(lambda x: x[0], arg)
    if axes.count(None) == leaf_axes(call.in_axes, call.args).count(None):
        return None
    return replace(
        call, batched=program.batched().with_options(in_axes=tuple(axes)), args=tuple(args), in_axes=tuple(axes)
    )


SHARED = tuple(p for p in CHOSEN if len(p.args(1)) > 1 and not isinstance(p.in_axes, dict))


def way(program: Program) -> dict[str, Any]:
    """A way to run it, another for each program."""
    return WAYS[CHOSEN.index(program) % len(WAYS)]


@pytest.mark.share(80)
@every_program
def test_cotangents(program: Program) -> None:
    with program.mode():
        check_reverse(call_of(program))


@pytest.mark.share(140)
@every_program
def test_cotangents_however_it_runs(program: Program) -> None:
    with program.mode():
        check_reverse(call_of(program), **way(program))


@pytest.mark.share(80)
@pytest.mark.parametrize("program", SHARED, ids=lambda program: program.name)
def test_cotangents_of_what_lanes_share(program: Program) -> None:
    with program.mode():
        call = shared_call(program)
        if call is not None:
            check_reverse(call)


@pytest.mark.share(140)
@every_program
def test_cotangents_under_jit(program: Program) -> None:
    with program.mode():
        check_reverse(call_of(program), jit=True, **{**way(program), "max_depth": 64, "max_tape": 3000})


@pytest.mark.share(140)
@every_program
def test_tangents(program: Program) -> None:
    with program.mode():
        check_forward(call_of(program), jit=CHOSEN.index(program) % 2 == 0, **way(program))


@pytest.mark.share(140)
@every_program
def test_in_64_bits(program: Program) -> None:
    with jax.enable_x64(True):
        call = call_of(program, wide=True)
        check_reverse(call)
        check_forward(call)


@pytest.mark.share(70)
@every_program
def test_elements_of_vmap(program: Program) -> None:
    with program.mode():
        check_elements(call_of(program, 3), jit=CHOSEN.index(program) % 2 == 0, max_tape=3000, max_depth=64)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", sorted(NOT))
def test_the_others_give_no_floating_numbers(name: str) -> None:
    program = next(p for p in PROGRAMS if p.name == name)
    with program.mode():
        assert not call_of(program).outs
