"""The parts of the sampler: random numbers, the recursion, windows, estimates, convergence, checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.mcmc import adaptation, convergence, mass_matrix, sample, step_size
from pcbatch.mcmc.adaptation import rounds, windows
from pcbatch.mcmc.hamiltonian import Mass, Sample
from pcbatch.mcmc.machine import Piece
from pcbatch.mcmc.nuts import DIVERGED, LEAPFROGS, NUMBERS, Trace, nuts
from pcbatch.mcmc.random import threefry, uniform
from tests.mcmc.densities import logistic, normal


def test_threefry_is_that_of_the_paper() -> None:
    """Known answers of the authors' Random123, for 20 rounds."""
    for key, counter, want in [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]:
        got = threefry(jnp.array(key, jnp.uint32), jnp.uint32(counter[0]), jnp.uint32(counter[1]))
        assert tuple(map(int, got)) == want


def test_uniform_numbers_are_uniform() -> None:
    key = jnp.array([1, 2], jnp.uint32)
    x = np.asarray(jax.vmap(lambda n: uniform(key, 0, n, np.dtype(np.float32)))(jnp.arange(4000)))
    assert 0 < x.min() and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.02
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.05


@pytest.mark.share(2)
@pytest.mark.parametrize("dense", [False, True])
def test_lane_equals_plain_python(dense: bool) -> None:
    def logp_and_grad(q: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(logistic)(q)

    lanes, draws, size = 4, 2, 3
    rng = np.random.default_rng(3)
    q = jnp.asarray(rng.normal(size=(lanes, size)), jnp.float32)
    logp, grad = jax.vmap(logp_and_grad)(q)
    state = Sample(jnp.stack([q, grad], axis=1), logp)
    stepper = step_size.adaptive(np.full(lanes, 0.5, np.float32), 0.8)
    inverse = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 2.0]]) if dense else np.array([1.0, 0.5, 2.0])
    mass = mass_matrix.mass_of(inverse, dense, np.dtype(np.float32))
    keys = jnp.asarray(rng.integers(0, 2**32, (lanes, draws, 2)), jnp.uint32)
    noise = jnp.asarray(rng.normal(size=(lanes, draws, size)), jnp.float32)
    trace = Trace(jnp.zeros((lanes, draws, size)), jnp.zeros((lanes, draws, NUMBERS)))
    chain = nuts(logp_and_grad, deepest=5).chain
    _, _, got = chain(state, stepper, mass, keys, noise, trace, jnp.int32(draws), jnp.int32(5), ())
    for lane in range(2):
        one = jax.tree.map(lambda a, i=lane: jnp.asarray(a[i]), (state, stepper))
        own = (keys[lane], noise[lane], jax.tree.map(lambda a, i=lane: a[i], trace))
        _, _, want = chain.plain(*one, mass, *own, draws, 5, ())
        np.testing.assert_array_equal(got.numbers[lane, :, LEAPFROGS], want.numbers[:, LEAPFROGS])
        np.testing.assert_allclose(got.q[lane], want.q, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(got.numbers[lane], want.numbers, rtol=1e-3, atol=1e-3)


def test_momenta_have_the_mass_as_covariance() -> None:
    inverse = np.array([[2.0, 0.5], [0.5, 1.0]])
    mass = mass_matrix.mass_of(inverse, True, np.dtype(np.float32))
    np.testing.assert_allclose(mass.root @ mass.root.T, np.linalg.inv(inverse), rtol=1e-5)
    assert isinstance(mass, Mass)


def test_dual_averaging_finds_the_step_that_is_accepted_as_often_as_asked() -> None:
    def accept(step: jax.Array) -> jax.Array:
        return jnp.exp(-step)

    stepper = step_size.adaptive(np.float32(0.01), 0.8)
    for _ in range(300):
        stepper = step_size.adjust(stepper, accept(stepper.step))
    np.testing.assert_allclose(accept(step_size.settled(stepper)), 0.8, atol=0.02)


def test_a_fixed_step_stays() -> None:
    stepper = step_size.fixed(np.array([0.3], np.float32))
    one = step_size.Stepper(jnp.asarray(stepper.numbers[0]))
    np.testing.assert_array_equal(step_size.adjust(one, jnp.float32(0.1)).numbers, one.numbers)


@pytest.mark.parametrize("warmup", [20, 24, 25, 60, 149, 150, 300, 1000, 1234])
def test_windows_add_up(warmup: int) -> None:
    stretches = list(windows(warmup))
    assert sum(w.draws for w in stretches) == warmup
    assert all(w.draws > 0 and sum(rounds(w.draws, w.early)) == w.draws for w in stretches)
    assert not stretches[-1].estimates


def test_windows_of_stan() -> None:
    assert [w.draws for w in windows(1000)] == [75, 25, 50, 100, 200, 500, 50]


def test_pooled_estimates_leave_lost_chains_out() -> None:
    q = np.random.default_rng(0).normal(size=(8, 50, 2))
    q[3] += 1e4
    assert mass_matrix.near(q).tolist() == [True] * 3 + [False] + [True] * 4
    np.testing.assert_allclose(mass_matrix.pooled(q, False), 1.0, rtol=0.3)
    np.testing.assert_allclose(mass_matrix.pooled(q, True), np.eye(2), atol=0.3)


def test_convergence_is_that_of_arviz() -> None:
    arviz = pytest.importorskip("arviz")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 101))
    for t in range(1, x.shape[1]):
        x[:, t] += 0.6 * x[:, t - 1]
    x[1] += 0.5
    for ours, theirs, kind in [
        (convergence.rhat, arviz.rhat, "rank"),
        (convergence.ess_bulk, arviz.ess, "bulk"),
        (convergence.ess_tail, arviz.ess, "tail"),
        (convergence.ess_mean, arviz.ess, "mean"),
    ]:
        near = 0.1 if kind == "tail" else 1e-4  # quantiles are defined otherwise there
        assert float(ours(x)) == pytest.approx(float(theirs(x, method=kind)), rel=near)
    assert convergence.bfmi(x) == pytest.approx(_bfmi(x))


def _bfmi(x: np.ndarray) -> np.ndarray:
    return np.asarray([np.square(np.diff(row)).mean() / row.var() for row in x])


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        (lambda: sample(lambda q: q, np.zeros(3, np.float32), chains=2), "PCB460", r"shape \(3,\)"),
        (lambda: sample(lambda q: (q, q), 0.0, chains=2), "PCB460", "gives a tuple"),
        (lambda: sample(lambda q: 1, 0.0, chains=2), "PCB460", "must give a float"),
        (lambda: sample(3, 0.0, chains=2), "PCB460", "must be a function"),
        (lambda: sample(normal, {"k": np.arange(3)}, chains=2), "PCB461", "`k` is of type int"),
        (lambda: sample(normal, {}, chains=2), "PCB461", "no parameters"),
        (lambda: sample(normal, np.zeros(3, np.float16), chains=2), "PCB461", "float16"),
        (lambda: sample(normal, np.zeros((4, 3), np.float32), chains=4), "PCB461", "4 rows"),
        (lambda: sample(normal, 0.0), "PCB461", "leading axis of chains"),
        (lambda: sample(normal, "a", chains=2), "PCB461", "is of type str"),
        (lambda: sample(jnp.log, -10.0, chains=2), "PCB462", "not finite where all chains start"),
        (lambda: sample(jnp.log, np.array([1.0, -1.0], np.float32)), "PCB462", "1 of 2 chains"),
        (lambda: sample(normal, 0.0, chains=0), "PCB463", "`chains`"),
        (lambda: sample(normal, 0.0, chains=2, warmup=3), "PCB463", "`warmup`"),
        (lambda: sample(normal, 0.0, chains=2, warmup=3, step_size=0.1), "PCB463", "`warmup`"),
        (lambda: sample(normal, 0.0, chains=2, warmup=0), "PCB463", "`warmup`"),
        (lambda: sample(normal, 0.0, chains=2, step_size=0), "PCB463", "`step_size`"),
        (lambda: sample(normal, 0.0, chains=2, step_size="0.1"), "PCB463", "`step_size`"),
        (lambda: sample(normal, 0.0, chains=2, draws=2.5), "PCB463", "`draws`"),
        (lambda: sample(normal, 0.0, chains=2, target_accept=1.0), "PCB463", "`target_accept`"),
        (lambda: sample(normal, 0.0, chains=2, mass="full"), "PCB463", "`mass`"),
        (lambda: sample(normal, 0.0, chains=2, adapt="all"), "PCB463", "`adapt`"),
        (lambda: sample(normal, 0.0, chains=2, data=np.zeros(3)), "PCB463", "`data`"),
        (lambda: sample(normal, np.zeros((2, 1), np.float32), jitter=1.0), "PCB463", "`jitter`"),
    ],
)
def test_wrong_arguments_are_told(call: Callable[[], Any], code: str, said: str) -> None:
    with pytest.raises(pcbatch.UsageError, match=said) as info:
        call()
    assert [d.code for d in info.value.diagnostics] == [code]
    assert all(d.helps for d in info.value.diagnostics)


def test_the_share_of_divergences_is_that_of_the_last_draws() -> None:
    def piece(diverged: np.ndarray) -> Piece:
        numbers = np.zeros((*diverged.shape, NUMBERS), np.float32)
        numbers[..., DIVERGED] = diverged
        return Piece(np.zeros((*diverged.shape, 1), np.float32), numbers, 0)

    none = np.zeros((10, adaptation.RECENT))
    once = none.copy()
    once[3, 0] = 1
    lost = none.copy()
    lost[5] = 1  # counts for no more than `MOST_OF_A_CHAIN` of its draws
    share = adaptation.diverging
    assert share([]) == 0
    assert share([piece(once)]) == pytest.approx(0.1 / adaptation.RECENT)
    assert share([piece(lost), piece(once)]) == pytest.approx(0.1 / adaptation.RECENT)  # the older piece is forgotten
    assert share([piece(lost)]) == pytest.approx(0.1 * adaptation.MOST_OF_A_CHAIN)
