"""The sampler as a program: same results as plain Python, the counts it promises, and the right distribution."""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples.nuts import stepsize
from examples.nuts.hamiltonian import Sample
from examples.nuts.run import Run, Settings, empty_trace, sample
from examples.nuts.sampler import nuts
from examples.nuts.targets import Target, gaussian

pytestmark = [pytest.mark.share(3), pytest.mark.long]

LOGIT_SIZE = 3


def logit_logp(q):
    """Independent standard logistic distributions: not normal, and with a known distribution function."""
    return -jnp.sum(q + 2 * jnp.logaddexp(0.0, -q))


def logit_start(seed: int, chains: int) -> np.ndarray:
    return np.random.default_rng(seed).logistic(size=(chains, LOGIT_SIZE))


LOGIT = Target("logit", logit_logp, ("a", "b", "c"), logit_start)
SHORT = Settings(chains=2, draws=3, warmup=0, step_size=0.5, adapt=False, max_tree_depth=3)
FLAT = Target("flat", lambda q: 0.0 * jnp.sum(q), ("a", "b"), lambda seed, chains: np.zeros((chains, 2)))


@functools.cache
def stationary_run() -> Run:
    """Many chains that start in the target distribution and take a few draws."""
    settings = Settings(chains=2000, draws=4, warmup=0, step_size=0.7, adapt=False, max_tree_depth=6, seed=5)
    return sample(LOGIT, settings)


def chains_of(target: Target, lanes: int, draws: int, seed: int = 3):
    q = jnp.asarray(target.start(seed, lanes), jnp.float32)
    state = Sample(q, *jax.vmap(target.logp_and_grad)(q))
    keys = jax.random.split(jax.random.key(seed), lanes)
    stepper = stepsize.adaptive(jnp.full(lanes, 0.5, jnp.float32))
    return keys, state, stepper, jnp.ones(target.size), empty_trace(q, draws), jnp.int32(draws)


@functools.cache
def adaptive_chain():
    return nuts(LOGIT.logp_and_grad, max_tree_depth=5).chain


@pytest.mark.full_only
@pytest.mark.parametrize("target", [lambda: gaussian(3), lambda: LOGIT], ids=["gaussian", "logit"])
def test_in_64_bits(target):
    """A target computes in the precision that JAX has, whether or not its own numbers are of that."""
    with jax.enable_x64(True):
        run = sample(target(), SHORT)
    assert run.trace.q.dtype == np.float64
    assert run.trace.accept.dtype == np.float64
    assert np.isfinite(run.trace.q).all()
    assert len(np.unique(run.trace.q[:, :, 0])) > 1


def test_lane_equals_plain_python():
    draws, lanes = 3, 4
    arguments = chains_of(LOGIT, lanes, draws)
    keys, state, stepper, inv_mass, trace, count = arguments
    _, _, got_stepper, got = adaptive_chain()(*arguments)
    for lane in range(2):
        one = jax.tree.map(lambda a, i=lane: a[i], (keys, state, stepper))
        _, _, want_stepper, want = adaptive_chain().plain(
            *one, inv_mass, jax.tree.map(lambda a, i=lane: a[i], trace), draws
        )
        np.testing.assert_array_equal(got.leapfrogs[lane], want.leapfrogs)
        np.testing.assert_array_equal(got.diverged[lane], want.diverged)
        np.testing.assert_allclose(got.q[lane], want.q, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(got_stepper.step[lane], want_stepper.step, rtol=1e-4)


def test_same_key_same_chain_and_other_lanes_do_not_matter():
    keys, state, stepper, inv_mass, trace, count = chains_of(LOGIT, 4, 3)
    once = adaptive_chain()(keys, state, stepper, inv_mass, trace, count)[3]
    order = jnp.array([2, 0, 3, 1])
    keys, state, stepper = jax.tree.map(lambda a: a[order], (keys, state, stepper))
    again = adaptive_chain()(keys, state, stepper, inv_mass, trace, count)[3]
    for a, b in zip(jax.tree.leaves(once), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a[order], b)


@pytest.mark.full_only
def test_flat_target_never_turns():
    depth = 4
    run = sample(FLAT, Settings(chains=3, draws=5, warmup=0, step_size=0.1, adapt=False, max_tree_depth=depth))
    np.testing.assert_array_equal(run.trace.leapfrogs, 2**depth - 1)
    np.testing.assert_allclose(run.trace.accept, 1.0, rtol=1e-5)
    assert not run.trace.diverged.any()
    assert run.meter.batches.tolist() == [5 * (2**depth - 1)]
    assert run.utilisation == 1.0


@pytest.mark.full_only
def test_kernel_keeps_the_target_distribution():
    """Dvoretzky-Kiefer-Wolfowitz: draws of independent chains stay within the band around the exact distribution."""
    run = stationary_run()
    chains = run.settings.chains
    band = np.sqrt(np.log(2 / 1e-6) / (2 * chains))
    below = np.arange(chains + 1) / chains
    for j in range(LOGIT_SIZE):
        exact = np.sort(1 / (1 + np.exp(-run.trace.q[:, -1, j].astype(np.float64))))
        assert max(np.max(below[1:] - exact), np.max(exact - below[:-1])) < band
    moved = np.abs(run.trace.q[:, -1] - run.trace.q[:, -2]).max(axis=1) > 0
    assert moved.mean() > 0.9


@functools.cache
def gaussian_run() -> Run:
    settings = Settings(chains=100, draws=40, warmup=0, step_size=0.2, adapt=False, max_tree_depth=8, seed=1)
    return sample(gaussian(40, 0.9), settings)


@pytest.mark.full_only
def test_no_chain_waits_at_a_trajectory():
    """The batch takes as many gradients as the chain that needs most."""
    run = gaussian_run()
    longest = run.gradients.max()
    assert longest <= run.meter.batches.max() <= 1.01 * longest
    assert run.utilisation == pytest.approx(run.gradients.mean() / run.meter.batches.max())


@pytest.mark.full_only
def test_gaussian_moments():
    """Draws of one chain are correlated: the error is that of one independent draw in every eight."""
    run = gaussian_run()
    size = run.target.size
    error = 1 / np.sqrt(run.settings.chains * run.settings.draws / 8)
    q = run.trace.q.astype(np.float64)
    index = np.arange(size)
    assert np.abs(q.mean((0, 1))).max() < 5 * error
    covariance = np.cov(q.reshape(-1, size).T)
    assert np.abs(covariance - 0.9 ** np.abs(index[:, None] - index)).max() < 5 * np.sqrt(2) * error


@pytest.mark.full_only
@pytest.mark.parametrize("depth", [1, 3])
def test_divergence_ends_a_trajectory(depth):
    """A step far too large: the first point of each trajectory is beyond repair, and the chain stays where it is."""
    settings = Settings(chains=2, draws=3, warmup=0, step_size=1e4, adapt=False, max_tree_depth=depth)
    run = sample(gaussian(3), settings)
    assert run.trace.diverged.all()
    np.testing.assert_array_equal(run.trace.leapfrogs, 1)
    np.testing.assert_array_equal(run.trace.q[:, 0], run.trace.q[:, -1])


@pytest.mark.full_only
def test_devices_do_not_change_a_chain():
    settings = Settings(chains=4, draws=3, warmup=0, step_size=0.7, adapt=False, max_tree_depth=4)
    one, two = sample(LOGIT, settings), sample(LOGIT, replace(settings, devices=2))
    assert two.meter.batches.shape == (2,)
    np.testing.assert_array_equal(one.trace.leapfrogs, two.trace.leapfrogs)
    np.testing.assert_allclose(one.trace.q, two.trace.q, rtol=1e-5, atol=1e-6)
    assert one.gradients.sum() == pytest.approx(two.utilisation * two.meter.batches.sum() * 2)
