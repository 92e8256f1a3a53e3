"""The targets: densities as written down, finite everywhere chains start, and posteriors as NumPyro finds them."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples.nuts import targets
from examples.nuts.run import sample
from pcbatch.mcmc.convergence import ess_mean

pytestmark = [pytest.mark.share(3), pytest.mark.long]


@pytest.fixture(params=["gaussian", "eight-schools", "breast-cancer"])
def target(request):
    if request.param == "breast-cancer":
        pytest.importorskip("sklearn")
    return targets.TARGETS[request.param]()


def test_starts_are_finite_and_overdispersed(target):
    q = jnp.asarray(target.start(0, 8), jnp.float32)
    assert q.shape == (8, target.size)
    logp, grad = jax.vmap(target.logp_and_grad)(q)
    assert np.isfinite(logp).all() and np.isfinite(grad).all()
    assert np.all(q.std(axis=0) > 0)


def test_gradient_is_the_slope(target):
    q = jnp.asarray(target.start(1, 1)[0], jnp.float32)
    _, grad = target.logp_and_grad(q)
    direction = grad / jnp.linalg.norm(grad)
    small = 1e-2
    slope = (target.logp(q + small * direction) - target.logp(q - small * direction)) / (2 * small)
    np.testing.assert_allclose(slope, jnp.dot(grad, direction), rtol=0.05)


def test_gaussian_covariance():
    target = targets.gaussian(6, 0.5)
    precision = -jax.hessian(target.logp)(jnp.zeros(6))
    index = np.arange(6)
    np.testing.assert_allclose(np.linalg.inv(precision), 0.5 ** np.abs(index[:, None] - index), atol=1e-5)


def test_eight_schools_density():
    q = np.array([1.0, 0.5, *np.linspace(-1, 1, 8)])
    mu, tau, eta = q[0], np.exp(q[1]), q[2:]
    effect, error = [28, 8, -3, 7, -1, 1, 18, 12], np.array([15, 10, 16, 11, 9, 11, 10, 18])
    want = -0.5 * (mu / 5) ** 2 - 0.5 * np.sum(eta**2) - np.log(1 + (tau / 5) ** 2) + q[1]
    want -= 0.5 * np.sum(((effect - mu - tau * eta) / error) ** 2)
    got = targets.eight_schools().logp(jnp.asarray(q, jnp.float32))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_logistic_shapes():
    target = targets.logistic(points=50, regressors=4)
    logp, grad = target.logp_and_grad(jnp.zeros(4))
    np.testing.assert_allclose(logp, 50 * np.log(0.5), rtol=1e-5)
    assert grad.shape == (4,)


@pytest.mark.full_only
@pytest.mark.filterwarnings("ignore")
@pytest.mark.promotion("standard")
def test_breast_cancer_posterior_agrees_with_numpyro():
    infer = pytest.importorskip("numpyro.infer")
    target = targets.breast_cancer()
    ours = sample(target, chains=16, draws=250, warmup=200, seed=4).q.astype(np.float64)
    kernel = infer.NUTS(potential_fn=lambda q: -target.logp(q))
    theirs = infer.MCMC(kernel, num_warmup=300, num_samples=500, num_chains=4, chain_method="vectorized")
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.simplefilter("ignore")
        theirs.run(jax.random.key(1), init_params=jnp.asarray(target.start(9, 4), jnp.float32))
    theirs = np.asarray(theirs.get_samples(group_by_chain=True), np.float64)
    for j in range(target.size):
        error = [x[..., j].std() / np.sqrt(float(ess_mean(x[..., j]))) for x in (ours, theirs)]
        distance = abs(ours[..., j].mean() - theirs[..., j].mean())
        assert distance < 5 * np.hypot(*error), target.names[j]
