"""The runs of the command: fixed and adaptive, in both precisions, on devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples.nuts.run import fixed_chain, sample, start
from examples.nuts.targets import Target, gaussian
from pcbatch.mcmc.nuts import GRADIENT, LEAF, LEAPFROGS

pytestmark = [pytest.mark.share(3), pytest.mark.long]

SCALES = np.array([0.01, 1.0, 30.0], np.float32)
SCALED = Target(
    "scaled",
    lambda q: -0.5 * jnp.sum((q / SCALES) ** 2),
    ("small", "one", "large"),
    lambda seed, chains: np.random.default_rng(seed).normal(size=(chains, 3)) * SCALES,
)


def test_a_fixed_run_drops_its_first_draws() -> None:
    run = sample(gaussian(3), chains=2, draws=3, warmup=2, adapt=False, step_size=0.5, max_tree_depth=3)
    assert run.q.shape == (2, 3, 3)
    assert run.posterior.draws.shape == (2, 5, 3)
    assert run.step_size == np.float32(0.5)
    assert run.gradients.max() <= run.batches


@pytest.mark.full_only
def test_in_64_bits() -> None:
    with jax.enable_x64(True):
        run = sample(gaussian(3), chains=2, draws=3, warmup=0, adapt=False, step_size=0.5, max_tree_depth=3)
    assert run.q.dtype == np.float64
    assert run.posterior.statistics.acceptance.dtype == np.float64
    assert len(np.unique(run.q[:, :, 0])) > 1


@pytest.mark.full_only
def test_warm_up_learns_scale_and_step() -> None:
    run = sample(SCALED, chains=16, draws=100, warmup=160, max_tree_depth=6, seed=2, devices=2)
    statistics = run.posterior.statistics
    assert 0.65 < statistics.acceptance.mean() < 0.95
    assert statistics.leapfrogs.mean() < 12  # with a unit mass matrix a trajectory across `large` takes thousands
    np.testing.assert_allclose(run.q.std((0, 1)) / SCALES, 1.0, atol=0.2)


def test_the_chain_by_itself() -> None:
    chain, arguments = fixed_chain(gaussian(3), start(gaussian(3), 4), step=0.5, draws=3, max_tree_depth=3)
    result = chain.with_options(stats=True).run(*arguments)
    wanted = np.asarray(result.value[-1].numbers)[..., LEAPFROGS].sum(axis=1)
    assert wanted.max() <= LEAF * result.stats.visits(GRADIENT) <= LEAF * wanted.sum()
