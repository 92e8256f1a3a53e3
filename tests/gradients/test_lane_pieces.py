"""Pullbacks that are cut before shifts of what is costly."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.lowering_platform import lowered_for
from pcbatch.runtime.vm.operands import Batch, Common
from pcbatch.transforms.tape import lane_pieces

SIZE, LANES = 6, 5
X = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (LANES, SIZE)), jnp.float32)


def neighbours(x, n):
    """Three ways to the next value of each place, as in the recursion of CTC."""
    for _ in range(n):
        y = jnp.concatenate([jnp.full(2, -1e5), x])
        x = 0.5 * jnp.logaddexp(jnp.logaddexp(y[2:], y[1:-1]), y[:-2]) + jnp.tanh(x)
    return jnp.sum(x * jnp.arange(SIZE, dtype=x.dtype))


def differences(x):
    return [jnp.pad(jnp.exp(x[1:] - x[:-1]), (1, 0)) * x]


def total(x):
    return [jnp.sum(jnp.exp(x))]


class TestGradients:
    """They are those of the plain function."""

    @pytest.mark.parametrize("lanes", [1, LANES])
    def test_values(self, lanes: int) -> None:
        f, n = pcbatch.batch(neighbours), jnp.arange(lanes, dtype=jnp.int32)
        plain = jax.vmap(lambda x, k: jax.lax.switch(k, [lambda x, k=k: neighbours(x, k) for k in range(LANES)], x))
        for wrap in (lambda g: g, jax.jit):
            got = wrap(jax.grad(lambda x: jnp.sum(f(x, n))))(X[:lanes])
            np.testing.assert_allclose(got, jax.grad(lambda x: jnp.sum(plain(x, n)))(X[:lanes]), rtol=1e-4, atol=1e-6)

    def test_of_second_order(self) -> None:
        f, n = pcbatch.batch(neighbours), jnp.arange(LANES, dtype=jnp.int32)
        gradient = jax.grad(lambda x: jnp.sum(f(x, n)))
        _, got = jax.jvp(gradient, (X,), (X,))
        step = 1e-2
        np.testing.assert_allclose(
            got, (gradient(X + step * X) - gradient(X - step * X)) / (2 * step), rtol=0.05, atol=0.02
        )

    def test_the_first_piece_has_a_loop_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def loops() -> int:
            f, n = pcbatch.batch(neighbours, max_tape=8), jnp.arange(LANES, dtype=jnp.int32)
            text: str = jax.jit(jax.grad(lambda x: jnp.sum(f(x, n)))).lower(X).compile().as_text()
            return text.count(" while(")

        cut = loops()
        monkeypatch.setattr("pcbatch.transforms.tape.backward_machine.BackwardContext.in_pieces", False)
        assert cut > loops()


class TestEvaluation:
    """One function for many records."""

    def run(self, fn: Any, **more: Any) -> lane_pieces.Evaluated:
        return lane_pieces.evaluated(fn, [Batch(X)], LANES, **more)

    def test_a_shift_of_what_is_costly_is_a_cut(self) -> None:
        found = self.run(differences)
        assert found.outs is not None
        (out,) = found.outs
        assert isinstance(out, Batch)
        got = np.asarray(out.array).T if out.lanes_are_last else np.asarray(out.array)
        np.testing.assert_allclose(got, jax.vmap(lambda x: differences(x)[0])(X), rtol=1e-6)
        assert found.costly == [False]

    def test_other_functions_are_left_to_vmap(self) -> None:
        found = self.run(total)
        assert found.outs is None and found.costly == [True]

    def test_costly_operands_count(self) -> None:
        assert self.run(lambda x: [x[1:]]).outs is None
        closed = jax.make_jaxpr(lambda x: [x[1:]])(X[0])
        first, last = lane_pieces._cut(closed, (0,)).parts
        assert first.jaxpr.outvars == closed.jaxpr.invars == last.jaxpr.invars, "the operand passes through a loop"

    def test_shared_operands(self) -> None:
        found = lane_pieces.evaluated(lambda x, w: [jnp.pad(jnp.exp(x * w), (1, 0))], [Batch(X), Common(X[0])], LANES)
        assert found.outs is not None
        (out,) = found.outs
        assert isinstance(out, Batch)
        got = np.asarray(out.array).T if out.lanes_are_last else np.asarray(out.array)
        np.testing.assert_allclose(got[:, 1:], np.exp(np.asarray(X) * np.asarray(X[0])), rtol=1e-6)

    def test_only_on_a_cpu(self) -> None:
        with lowered_for("cuda"):
            assert self.run(differences).outs is None
