"""`pcbatch.mcmc.sample` end to end: distributions with known moments, pytrees, data, files, precision."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.mcmc import Posterior, SamplingWarning, sample

SCALES = np.array([0.01, 1.0, 30.0], np.float32)
SMALL = {"chains": 16, "draws": 200, "warmup": 200}


def scaled(p: Any, scales: Any) -> jax.Array:
    """Independent normal distributions of very different scales around 0 and 2."""
    return -0.5 * jnp.sum(jnp.square(p["a"] / scales)) - 0.5 * (p["b"] - 2.0) ** 2


def correlated(q: jax.Array) -> jax.Array:
    """Two normal coordinates with correlation 0.9."""
    return -0.5 * (q[0] ** 2 - 1.8 * q[0] * q[1] + q[1] ** 2) / (1 - 0.81)


@functools.cache
def pooled() -> Posterior:
    return sample(scaled, {"a": np.zeros(3, np.float32), "b": 0.0}, data=(SCALES,), **SMALL)


def test_draws_of_a_pytree_have_the_moments_of_the_target() -> None:
    posterior = pooled()
    assert posterior.draws["a"].shape == (16, 200, 3)
    assert posterior.draws["b"].shape == (16, 200)
    assert posterior.draws["b"].dtype == np.float32
    summary = posterior.summary()
    assert list(summary) == ["a[0]", "a[1]", "a[2]", "b"]
    assert abs(summary["b"].mean - 2) < 0.15
    for name, scale in zip(summary, [*SCALES, 1.0], strict=True):
        assert abs(summary[name].sd / scale - 1) < 0.1
        assert summary[name].rhat < 1.05
        assert summary[name].ess_bulk > 400
    assert "r_hat" in str(summary)


def test_what_was_learned_is_told() -> None:
    posterior = pooled()
    np.testing.assert_allclose(posterior.inverse_mass, [*SCALES**2, 1.0], rtol=0.5)
    assert len(set(posterior.step_size)) == 1
    assert 0.65 < posterior.statistics.acceptance.mean() < 0.95
    assert posterior.statistics.leapfrogs.mean() < 12
    assert posterior.warmup.leapfrogs.shape == (16, 200)
    np.testing.assert_array_equal(posterior.statistics.step_size[:, 0], posterior.step_size)
    assert posterior.warnings == ()


@pytest.mark.share(2)
@pytest.mark.parametrize("adapt", ["pooled", "per-chain"])
@pytest.mark.parametrize("mass", ["dense", "diag"])
def test_correlated_target(mass: Any, adapt: Any) -> None:
    posterior = sample(correlated, np.zeros(2, np.float32), mass=mass, adapt=adapt, step_size=1e-3, **SMALL)
    each = (16,) if adapt == "per-chain" else ()
    assert posterior.inverse_mass.shape == (*each, 2, 2) if mass == "dense" else (*each, 2)
    covariance = np.cov(posterior.draws.reshape(-1, 2).T)
    np.testing.assert_allclose(covariance, [[1, 0.9], [0.9, 1]], atol=0.2)


def test_a_seed_gives_the_same_draws_and_other_data_other_ones() -> None:
    start = {"a": np.zeros(3, np.float32), "b": 0.0}
    again = sample(scaled, start, data=(SCALES,), **SMALL)
    np.testing.assert_array_equal(again.draws["b"], pooled().draws["b"])
    other = sample(scaled, start, data=(2 * SCALES,), **SMALL)
    assert 1.5 < other.draws["a"].std((0, 1))[1] < 2.5


def test_saved_runs_go_on_with_the_same_draws(tmp_path: Path) -> None:
    path, arguments = tmp_path / "run.npz", (scaled, {"a": np.zeros(3, np.float32), "b": 0.0})
    seen: list[int] = []

    def interrupt(done: int, total: int | None) -> None:
        seen.append(done)
        assert total == 400
        if done > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(*arguments, data=(SCALES,), save_to=path, progress=interrupt, **SMALL)
    assert path.exists()
    went_on: list[int] = []
    got = sample(*arguments, data=(SCALES,), save_to=path, progress=lambda done, _: went_on.append(done), **SMALL)
    assert went_on[0] > 200
    np.testing.assert_array_equal(got.draws["a"], pooled().draws["a"])
    np.testing.assert_array_equal(got.warmup.energy, pooled().warmup.energy)
    with pytest.raises(pcbatch.StateError, match="PCB443"):
        sample(*arguments, data=(2 * SCALES,), save_to=path, **SMALL)


@pytest.mark.share(2)
def test_in_64_bits() -> None:
    with jax.enable_x64(True):
        posterior = sample(correlated, np.zeros(2), **SMALL)
    assert posterior.draws.dtype == np.float64
    assert posterior.statistics.energy.dtype == np.float64
    assert abs(posterior.draws.std() - 1) < 0.1


def test_a_start_for_each_chain_is_where_it_starts() -> None:
    start = np.array([[1.0, 2.0]] * 8, np.float32)
    posterior = sample(correlated, start, draws=20, warmup=60)
    assert posterior.draws.shape == (8, 20, 2)
    assert posterior.warmup.logp[:, 0].max() <= 0


@pytest.mark.share(2)
def test_devices_share_the_chains() -> None:
    posterior = sample(scaled, {"a": np.zeros(3, np.float32), "b": 0.0}, data=(SCALES,), devices=2, **SMALL)
    np.testing.assert_allclose(posterior.step_size, pooled().step_size, rtol=0.1)
    np.testing.assert_allclose(posterior.draws["b"].mean(), pooled().draws["b"].mean(), atol=0.1)


def test_arviz() -> None:
    arviz = pytest.importorskip("arviz")
    tree = pooled().to_arviz()
    assert tree.posterior["a"].shape == (16, 200, 3)
    assert tree.sample_stats["diverging"].shape == (16, 200)
    ours = pooled().summary()["b"]
    assert ours.ess_bulk == pytest.approx(float(arviz.ess(pooled().draws["b"])), rel=1e-3)


def test_divergences_are_told_in_the_words_of_stan() -> None:
    """Neal's funnel: no step size is right for all of it."""

    def funnel(q: jax.Array) -> jax.Array:
        return -0.5 * q[0] ** 2 / 9 - 0.5 * jnp.sum(q[1:] ** 2) * jnp.exp(-q[0]) - 4.5 * q[0]

    with pytest.warns(SamplingWarning) as told:
        posterior = sample(funnel, np.zeros(10, np.float32), chains=16, draws=100, warmup=100, max_tree_depth=4)
    texts = [str(warning.message) for warning in told]
    assert posterior.warnings == tuple(texts)
    assert any("divergent transitions after warmup" in text for text in texts)
    assert any("exceeded the maximum treedepth" in text for text in texts)
    assert any("chains have not mixed" in text for text in texts)


def test_a_run_that_has_ended_goes_on(tmp_path: Path) -> None:
    table = jnp.array([1.0, 2.0])

    def logp(p, scale):
        return -jnp.sum((p["y"] / scale) ** 2)

    def draw(draws, path, density=logp, **options):
        settings = {"chains": 4, "warmup": 20, "data": (SCALES,)} | options
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = sample(density, {"y": jnp.zeros(SCALES.shape)}, draws=draws, save_to=path, **settings)
        return np.asarray(posterior.draws["y"])

    path = tmp_path / "run.npz"
    first, longer, whole = draw(10, path), draw(25, path), draw(25, None)
    assert np.array_equal(longer, whole) and np.array_equal(first, whole[:, :10])
    assert np.array_equal(draw(7, path), whole[:, :7]) and np.array_equal(draw(25, path), whole)
    for options, what in (
        ({"seed": 1}, "`seed` was 0, and is 1 now"),
        ({"data": (2 * SCALES,)}, "the data is not that of the file"),
        ({"density": lambda p, scale: logp(p, scale) * table[0]}, "the log density is not that of the file"),
    ):
        with pytest.raises(pcbatch.StateError, match=f"PCB443[\\s\\S]*{what}"):
            draw(25, path, **options)
