"""The kernel of the sampler at a fixed step size: the counts that it promises, and the right distribution."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest

from examples.nuts.targets import gaussian
from pcbatch.mcmc import Posterior, SamplingWarning, sample
from tests.mcmc.densities import flat, logistic, normal

pytestmark = [pytest.mark.share(3), pytest.mark.long]

SIZE = 3
SHORT = {"draws": 3, "warmup": 0, "step_size": 0.7, "max_tree_depth": 4}


def starts(chains: int) -> np.ndarray:
    """Draws of the logistic distribution."""
    return np.random.default_rng(5).logistic(size=(chains, SIZE)).astype(np.float32)


def fixed(logp: Any, start: np.ndarray, **options: Any) -> Posterior:
    """A run without warm-up, too short for any advice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return sample(logp, start, stats=True, **(SHORT | options))


@functools.cache
def gaussian_run() -> Posterior:
    target = gaussian(40, 0.9)
    start = target.start(1, 100).astype(np.float32)
    return fixed(target.logp, start, draws=40, step_size=0.2, max_tree_depth=8)


def test_nothing_is_adapted_without_a_warm_up() -> None:
    posterior = fixed(logistic, starts(4))
    assert posterior.draws.shape == (4, 3, SIZE)
    assert (posterior.statistics.step_size == np.float32(0.7)).all() and (posterior.step_size == np.float32(0.7)).all()
    np.testing.assert_array_equal(posterior.inverse_mass, 1.0)
    assert posterior.warmup.energy.shape == (4, 0)
    assert set(posterior.seconds) == {"compile", "warmup", "draws"}


@pytest.mark.full_only
def test_flat_target_never_turns() -> None:
    posterior = fixed(flat, np.zeros((3, 2), np.float32), draws=5)
    statistics = posterior.statistics
    np.testing.assert_array_equal(statistics.leapfrogs, 2**4 - 1)
    np.testing.assert_array_equal(statistics.tree_depth, 4)
    np.testing.assert_allclose(statistics.acceptance, 1.0, rtol=1e-5)
    assert not statistics.diverging.any()
    assert posterior.gradients_computed == (statistics.leapfrogs + 1).sum()  # the first doubling computes a second one
    assert posterior.utilisation == 15 / 16


@pytest.mark.full_only
def test_kernel_keeps_the_target_distribution() -> None:
    """Dvoretzky-Kiefer-Wolfowitz: draws of independent chains stay within the band around the exact distribution."""
    chains = 2000
    q = fixed(logistic, starts(chains), draws=4, max_tree_depth=6).draws
    band = np.sqrt(np.log(2 / 1e-6) / (2 * chains))
    below = np.arange(chains + 1) / chains
    for j in range(SIZE):
        exact = np.sort(1 / (1 + np.exp(-q[:, -1, j].astype(np.float64))))
        assert max(np.max(below[1:] - exact), np.max(exact - below[:-1])) < band
    moved = np.abs(q[:, -1] - q[:, -2]).max(axis=1) > 0
    assert moved.mean() > 0.9


@pytest.mark.full_only
def test_no_chain_waits_at_a_trajectory() -> None:
    """The batch takes as many gradients as the chain that needs most."""
    posterior = gaussian_run()
    leapfrogs = posterior.statistics.leapfrogs
    computed = (leapfrogs + 1).sum(axis=1)  # the first doubling computes a second one
    batches = posterior.gradients_computed / len(computed)
    assert computed.max() <= batches <= 1.01 * computed.max()
    assert posterior.utilisation == pytest.approx(leapfrogs.sum(axis=1).mean() / batches)


@pytest.mark.full_only
def test_gaussian_moments() -> None:
    """Draws of one chain are correlated: the error is that of one independent draw in every eight."""
    posterior, index = gaussian_run(), np.arange(40)
    q = posterior.draws.astype(np.float64)
    error = 1 / np.sqrt(q.shape[0] * q.shape[1] / 8)
    assert np.abs(q.mean((0, 1))).max() < 5 * error
    assert (
        np.abs(np.cov(q.reshape(-1, q.shape[2]).T) - 0.9 ** np.abs(index[:, None] - index)).max()
        < 5 * np.sqrt(2) * error
    )


@pytest.mark.full_only
@pytest.mark.parametrize("depth", [1, 3])
def test_divergence_ends_a_trajectory(depth: int) -> None:
    """A step far too large: the first point of each trajectory is beyond repair, and the chain stays where it is."""
    posterior = fixed(normal, np.ones((2, 3), np.float32), step_size=1e4, max_tree_depth=depth)
    assert posterior.statistics.diverging.all()
    np.testing.assert_array_equal(posterior.statistics.leapfrogs, 1)
    np.testing.assert_array_equal(posterior.draws[:, 0], posterior.draws[:, -1])


@pytest.mark.full_only
def test_devices_do_not_change_a_chain() -> None:
    one, two = (fixed(logistic, starts(4), devices=devices) for devices in (None, 2))
    np.testing.assert_array_equal(one.statistics.leapfrogs, two.statistics.leapfrogs)
    np.testing.assert_allclose(one.draws, two.draws, rtol=1e-5, atol=1e-6)
    assert two.utilisation >= one.utilisation  # chains of two devices do not wait for each other


def test_other_chains_do_not_matter() -> None:
    """A chain is the same beside others that are somewhere else."""
    start = starts(4)
    other = np.concatenate([start[:1], 3 * start[1:]])
    np.testing.assert_array_equal(fixed(logistic, start).draws[0], fixed(logistic, other).draws[0])


def test_a_fixed_run_goes_on_from_its_file(tmp_path: Any) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    path, start = tmp_path / "run.npz", starts(4)
    with pytest.raises(KeyboardInterrupt):
        fixed(logistic, start, save_to=path, progress=interrupt)
    again, whole = fixed(logistic, start, save_to=path), fixed(logistic, start)
    np.testing.assert_array_equal(again.draws, whole.draws)
    assert again.gradients_computed >= whole.statistics.leapfrogs.sum()
