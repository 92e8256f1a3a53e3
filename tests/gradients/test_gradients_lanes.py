"""Gradients of a lane do not know the other lanes, failures are never numbers, and a tape that is full says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, UsageError
from tests.differential.test_independence import replaced
from tests.oracles.derivatives import Call, assert_all_close, is_inexact, masked, plain_pullback, random_like
from tests.oracles.plans import replanned
from tests.programs import REGISTRY, Program
from tests.programs.differentiable import DIFFERENTIABLE

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]

LANES = 6
PROGRAMS = {p.name: p for p in (*REGISTRY.values(), *DIFFERENTIABLE)}
NAMES = (
    *("pea_nuts", "array_through_recursion", "sieve_of_floats", "stores_through_recursion", "tree_of_words"),
    *("early_returns", "not_looked_at", "fib_with_weights", "matrix_power", "large_vectors_change_places"),
)
LIMITS = {"max_steps": 400, "max_depth": 32}  # lanes that hold nonsense need not end by themselves


def call_of(program: Program, args: Any) -> Call:
    return Call(program.batched(**LIMITS), args, program.in_axes, LANES, program.raises)


@pytest.mark.share(20)
@pytest.mark.parametrize("options", [{}, {"schedule": "largest", "modes": pcbatch.Few(2)}], ids=["", "few"])
@pytest.mark.parametrize("name", NAMES)
def test_lanes_without_cotangents_change_nothing(name: str, options: dict[str, Any]) -> None:
    """Whatever others hold (NaN, infinities, what makes them fail), they take no part in any gradient."""
    program = PROGRAMS[name]
    args = program.args(LANES)
    others = np.array([True, False, True, False, False, True])
    call = call_of(program, args)
    cts = masked(others, [random_like(x) for x in call.outs])
    want = plain_pullback(call, cts, others)
    odd = replace(call, args=replaced(program, args, ~others))
    values, pull = jax.vjp(odd.function(**options), *odd.floats)
    found = pull(cts)
    assert_all_close(found, want, name)
    rows = jax.vmap(pull)([jnp.stack([ct, 2 * ct]) for ct in cts])  # no lane stays out of these
    for k, scale in enumerate((1, 2)):
        assert_all_close([x[k] for x in rows], [scale * x for x in want], name)


@pytest.mark.full_only
@pytest.mark.parametrize("name", NAMES)
def test_a_lane_alone(name: str) -> None:
    program = PROGRAMS[name]
    call = replace(call_of(program, program.args(1)), lanes=1)
    cts = [random_like(x) for x in call.outs]
    found = jax.vjp(call.function(), *call.floats)[1](cts)
    assert_all_close(found, plain_pullback(call, cts, np.array([False])), name)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", ["pea_nuts", "sieve_of_floats", "tree_of_words", "trees_of_weights"])
def test_no_lanes(name: str) -> None:
    program = PROGRAMS[name]
    call = replace(call_of(program, program.args(0)), lanes=0)
    for wrap in (lambda f: f, jax.jit):
        outs, pull = jax.vjp(wrap(call.function()), *call.floats)
        found = pull([jnp.zeros_like(x) for x in outs])
        assert [x.shape for x in found] == [x.shape for x in call.floats]
        assert not any(jnp.any(x != 0) for x in found)


X = jnp.array([0.5, 0.9, 0.7])
N = jnp.array([1, 60, 3])


@pcbatch.batch
def sines(x, n):
    while n > 0:
        x = jnp.sin(x)
        n = n - 1
    return x


@pcbatch.batch(in_axes=(0, 0, None))
def picky(x, n, w):
    while n > 0:
        assert n < 50, f"{x} is too long"
        x = jnp.sin(x) * w
        n = n - 1
    return x


def plain_gradient(x: Any, n: Any) -> list[float]:
    return [float(jax.grad(lambda x, k=k: sines.plain(x, int(n[k])))(x[k])) for k in range(len(n))]


LIMITED = {"step limit": sines.with_options(max_steps=20), "assertion": picky}


@pytest.mark.share(2)
@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
@pytest.mark.parametrize("name", LIMITED)
def test_a_lane_that_fails_has_no_gradient(name: str, jit: bool) -> None:
    f, more = LIMITED[name], () if name == "step limit" else (jnp.float32(1),)
    wrap = jax.jit if jit else lambda f: f
    found = wrap(jax.grad(lambda x: f.run(x, N, *more).value.sum()))(X)
    want = plain_gradient(X, N)
    np.testing.assert_allclose(found, [want[0], np.nan, want[2]], rtol=1e-5)
    tangents = wrap(lambda x: jax.jvp(lambda x: f.run(x, N, *more).value, (x,), (x,)))(X)[1]
    np.testing.assert_allclose(tangents, found * X, rtol=1e-5)
    second = wrap(jax.hessian(lambda x: f.run(x, N, *more).value.sum()))(X)
    assert np.isnan(second[1]).all() and np.isfinite(second[0, 0]) and np.isfinite(second[2, 2])
    both = wrap(lambda x: jax.jvp(lambda x: jax.jvp(lambda x: f.run(x, N, *more).value, (x,), (x,))[1], (x,), (x,)))(X)
    assert np.isnan(both[1]).tolist() == [False, True, False]


@pytest.mark.parametrize("jit", [False, True], ids=["", "jit"])
def test_a_lane_that_fails_does_not_disturb_who_leaves_it_out(jit: bool) -> None:
    def total(x: Any, w: Any) -> Any:
        result = picky.run(x, N, w)
        return jnp.where(result.status == 0, result.value, 0).sum()

    derivative = jax.grad(total, (0, 1))
    of_x, of_w = (jax.jit(derivative) if jit else derivative)(X, jnp.float32(0.9))
    plain = jax.grad(lambda x, w: picky.plain(x[0], 1, w) + picky.plain(x[2], 3, w), (0, 1))(X, jnp.float32(0.9))
    np.testing.assert_allclose(of_x, plain[0], rtol=1e-5)
    np.testing.assert_allclose(of_w, plain[1], rtol=1e-5)
    everyone = jax.grad(lambda w: picky.run(X, N, w).value.sum())(jnp.float32(0.9))
    assert np.isnan(everyone), "a failed lane has a part in what all share"


def test_failures_are_reported_while_jax_differentiates() -> None:
    with pytest.raises(BatchRuntimeError, match=r"1 \(x=0\.9, n=60\): 0\.89\d* is too long"):
        jax.grad(lambda x: picky(x, N, 1.0).sum())(X)
    with pytest.raises(BatchRuntimeError, match="1 of 3 lanes failed an assertion"):
        jax.jvp(lambda x: picky(x, N, 1.0), (X,), (X,))


@pcbatch.batch
def talking(x, n):
    while n > 0:
        print("at", n)
        x = jnp.sin(x)
        n = n - 1
    return x


@pytest.mark.full_only
def test_lanes_print_once(capfd: pytest.CaptureFixture[str]) -> None:
    """Also where the tape was too short for the first try."""

    def total(x: Any) -> Any:
        return talking(x, N).sum()

    want = sorted(f"[lane {k}] at {i}" for k, n in enumerate(N.tolist()) for i in range(1, n + 1))
    ways = [
        lambda: jax.grad(total)(X),
        lambda: jax.jit(jax.grad(total))(X),
        lambda: jax.jvp(total, (X,), (X,)),
        lambda: jax.jvp(jax.grad(total), (X,), (X,)),
    ]
    for way in ways:
        way()
        jax.effects_barrier()
        assert sorted(capfd.readouterr().out.splitlines()) == want


class TestTape:
    """Its length: grown outside `jit`, `max_tape` records for each lane otherwise."""

    def value_and_grad(self, x: Any, n: Any, **options: Any) -> Any:
        return jax.value_and_grad(lambda x: replanned(sines, **options)(x, n).sum())(x)

    def test_it_grows_outside_jit(self) -> None:
        n = jnp.array([5, 3000, 0])
        value, found = self.value_and_grad(X, n)
        np.testing.assert_allclose(found, plain_gradient(X, n), rtol=1e-4)
        assert np.isfinite(value)

    @pytest.mark.tape
    def test_a_full_one_gives_nan_in_jit_and_right_values(self) -> None:
        n = jnp.array([5, 300, 0])
        value, found = jax.jit(lambda x: self.value_and_grad(x, n, max_tape=50, unroll=1))(X)
        assert np.isnan(found).all(), "some records are lost, and whose they were is not told"
        np.testing.assert_allclose(value, sines(X, n).sum(), rtol=1e-6)
        value, found = jax.jit(lambda x: self.value_and_grad(x, n, max_tape=102, unroll=1))(X)
        np.testing.assert_allclose(found, plain_gradient(X, n), rtol=1e-4)

    @pytest.mark.tape
    def test_one_that_is_too_short_outside_jit_is_refused_and_the_number_it_says_is_enough(self) -> None:
        n = jnp.array([5, 300, 0])
        with pytest.raises(UsageError) as info:
            self.value_and_grad(X, n, max_tape=7)
        (said,) = info.value.diagnostics
        assert said.code == "PCB423" and "max_tape=7 " in said.title and "`sines`" in said.notes[0]
        needed = int(said.helps[0].partition("max_tape=")[2].partition("`")[0])
        np.testing.assert_allclose(self.value_and_grad(X, n, max_tape=needed)[1], plain_gradient(X, n), rtol=1e-4)
        with pytest.raises(UsageError):
            self.value_and_grad(X, n, max_tape=needed - 1)

    def test_forward_mode_needs_none(self) -> None:
        n = jnp.array([5, 300, 0])
        f = sines.with_options(max_tape=1)
        tangents = jax.jvp(lambda x: f(x, n), (X,), (jnp.ones(3),))[1]
        np.testing.assert_allclose(tangents, plain_gradient(X, n), rtol=1e-4)

    @pytest.mark.full_only
    def test_one_run_that_outgrows_the_next(self) -> None:
        for n in (jnp.array([5, 300, 0]), jnp.array([1, 2, 3]), jnp.array([900, 0, 700])):
            np.testing.assert_allclose(self.value_and_grad(X, n)[1], plain_gradient(X, n), rtol=1e-4)


@pcbatch.batch
def deep(x, n):
    if n <= 0:
        return x
    return jnp.sin(deep(x * 1.01, n - 1))


def test_stacks_grow() -> None:
    n = jnp.array([0, 200, 3])
    found = jax.grad(lambda x: deep(x, n).sum())(X)
    want = [float(jax.grad(lambda x, k=k: deep.plain(x, int(n[k])))(X[k])) for k in range(3)]
    np.testing.assert_allclose(found, want, rtol=1e-3)
    shallow = deep.with_options(max_depth=8)
    found = jax.jit(jax.grad(lambda x: shallow.run(x, n).value.sum()))(X)
    np.testing.assert_allclose(found, [want[0], np.nan, want[2]], rtol=1e-3)


def test_empty_trees_and_none() -> None:
    f = pcbatch.batch(lambda x, extra, n: ({"y": x * 2 if n > 1 else x, "none": None}, ()))
    given = {"a": None, "b": ()}
    value, pull = jax.vjp(lambda x, extra: f(x, extra, N), X, given)
    assert jax.tree.structure(value) == jax.tree.structure(({"y": 0, "none": None}, ()))
    of_x, of_extra = pull(({"y": jnp.ones(3), "none": None}, ()))
    assert of_x.tolist() == [1, 2, 2] and of_extra == given
    assert all(map(is_inexact, jax.tree.leaves(of_x)))
