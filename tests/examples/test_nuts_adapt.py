"""Warm-up: its schedule, the step size it finds, the mass matrix it learns."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples.nuts import stepsize
from examples.nuts.adapt import pooled_variance, step_finder, windows
from examples.nuts.hamiltonian import Sample
from examples.nuts.run import Settings, sample
from examples.nuts.targets import Target

pytestmark = [pytest.mark.share(3), pytest.mark.long]

SCALES = np.array([0.01, 1.0, 30.0], np.float32)
SCALED = Target(
    "scaled",
    lambda q: -0.5 * jnp.sum((q / SCALES) ** 2),
    ("small", "one", "large"),
    lambda seed, chains: np.random.default_rng(seed).normal(size=(chains, 3)) * SCALES,
)


@pytest.mark.parametrize("warmup", [1, 5, 24, 25, 60, 149, 150, 300, 1000, 1234])
def test_windows_add_up(warmup):
    stretches = list(windows(warmup))
    assert sum(w.draws for w in stretches) == warmup
    assert all(w.draws > 0 for w in stretches)
    assert not stretches[-1].estimates


def test_windows_of_stan():
    assert [w.draws for w in windows(1000)] == [75, 25, 50, 100, 200, 500, 50]


def test_dual_averaging_finds_the_step_that_is_accepted_as_often_as_asked():
    def accept(step):
        return jnp.exp(-step)

    stepper = stepsize.adaptive(jnp.float32(0.01))
    for _ in range(300):
        stepper = stepsize.adjust(stepper, accept(stepper.step))
    np.testing.assert_allclose(accept(stepsize.settled(stepper)), stepsize.TARGET_ACCEPT, atol=0.02)


def test_fixed_step_stays():
    stepper = stepsize.fixed(jnp.float32(0.3))
    assert stepsize.adjust(stepper, jnp.float32(0.1)) == stepper


def test_pooled_variance():
    q = np.random.default_rng(0).normal(size=(8, 200, 3)) * SCALES
    np.testing.assert_allclose(pooled_variance(q)[1:], SCALES[1:] ** 2, rtol=0.1)


def test_first_step_has_the_right_magnitude():
    q = jnp.asarray(SCALED.start(0, 5), jnp.float32)
    state = Sample(q, *jax.vmap(SCALED.logp_and_grad)(q))
    keys = jax.random.split(jax.random.key(0), 5)
    step = step_finder(SCALED.logp_and_grad)(keys, state, jnp.ones(5), jnp.ones(3))
    assert np.all((np.asarray(step) > 0.001) & (np.asarray(step) < 0.1))


@pytest.mark.full_only
def test_warm_up_learns_scale_and_step():
    run = sample(SCALED, Settings(chains=16, draws=100, warmup=160, max_tree_depth=6, seed=2))
    assert 0.65 < run.trace.accept.mean() < 0.95
    assert run.trace.leapfrogs.mean() < 12  # with a unit mass matrix a trajectory across `large` takes thousands
    spread = run.trace.q.std((0, 1)) / SCALES
    np.testing.assert_allclose(spread, 1.0, atol=0.2)
