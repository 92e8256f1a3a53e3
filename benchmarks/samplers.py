"""NUTS by pcbatch, by BlackJAX and by NumPyro, and the leapfrog step alone, on one target with one step size.

What a sampler needs is prepared outside of what is timed: states at the first positions, with their gradients. Every
array has a leading axis of chains, results too, so that all of them can be split over devices alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examples.nuts.run import fixed_chain
from examples.nuts.targets import Target, gaussian, logistic
from pcbatch.mcmc.nuts import GRADIENT, LEAF, LEAPFROGS

TREE_DEPTH, SIZE, POINTS = 10, 100, 10_000
Draws = tuple[jax.Array, jax.Array]  # positions [chains, draws, size], gradients [chains, draws]


@dataclass(frozen=True)
class Setting:
    """A target, the step size that suits it, and where its chains start: in the distribution, so nobody warms up."""

    name: str
    target: Target
    step: float
    start: Callable[[int], np.ndarray]

    def arguments(self, chains: int) -> tuple[jax.Array, jax.Array]:
        """Keys and positions."""
        return jax.random.split(jax.random.key(1), chains), jnp.asarray(self.start(chains), jnp.float32)


@dataclass(frozen=True)
class Sampler:
    """`run(*arguments)` gives the draws."""

    run: Callable[..., Draws]
    arguments: tuple[Any, ...]


def correlated(size: int = SIZE) -> Setting:
    """The Gaussian with covariance 0.9^|i-j|."""
    target = gaussian(size)
    return Setting("Gaussian", target, 0.1533, lambda chains: target.start(0, chains))


def regression(points: int = POINTS, size: int = SIZE) -> Setting:
    """Bayesian logistic regression on synthetic data; chains start in the normal approximation at the mode."""
    target = logistic(points, size)
    mode, covariance = laplace(target)
    factor = np.linalg.cholesky(covariance)

    def start(chains: int) -> np.ndarray:
        return np.asarray(mode + np.random.default_rng(0).normal(size=(chains, size)) @ factor.T)

    # half a standard deviation: the step that adaptation to an acceptance of 0.8 finds
    return Setting("logistic regression", target, 0.5 * float(np.sqrt(np.diag(covariance)).mean()), start)


def laplace(target: Target, steps: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """The mode by Newton's method, and the inverse of minus the second derivative there."""
    gradient, curvature = jax.jit(jax.grad(target.logp)), jax.jit(jax.hessian(target.logp))
    q = np.zeros(target.size, np.float32)
    for _ in range(steps):
        q = q - np.linalg.solve(np.asarray(curvature(q)), np.asarray(gradient(q)))
    return q, np.linalg.inv(-np.asarray(curvature(q), np.float64))


def chain(setting: Setting, chains: int, draws: int, **options: Any) -> tuple[Any, tuple[Any, ...]]:
    """The textbook sampler of pcbatch.mcmc for this target, batched, and its arguments."""
    q = np.asarray(setting.start(chains), np.float32)
    batched, arguments = fixed_chain(setting.target, q, setting.step, draws, TREE_DEPTH)
    return batched.with_options(**options), jax.device_put(arguments)


def draws_of(result: Any) -> Draws:
    """Positions and gradients of what the batched chain gives."""
    trace = result.value[-1]
    return trace.q, trace.numbers[..., LEAPFROGS].astype(jnp.int32)


def pcbatch_sampler(setting: Setting, chains: int, draws: int, devices: int = 1) -> Sampler:
    """Ours; it splits its chains over the devices itself."""
    batched, arguments = chain(setting, chains, draws, devices=devices)
    return Sampler(lambda *arguments: draws_of(batched.run(*arguments)), arguments)


def batches(setting: Setting, chains: int, draws: int, **options: Any) -> tuple[int, np.ndarray]:
    """How many gradients ours evaluated for all chains at once, and how many each chain wanted of each draw."""
    batched, arguments = chain(setting, chains, draws, stats=True, **options)
    result = batched.run(*arguments)
    if np.any(np.asarray(result.status)):
        raise SystemExit("a chain did not finish: nothing to measure")
    return LEAF * int(result.stats.visits(GRADIENT)), np.asarray(draws_of(result)[1])


def blackjax_sampler(setting: Setting, chains: int, draws: int) -> Sampler:
    """BlackJAX under vmap: chains wait for each other at every draw."""
    import blackjax

    kernel = blackjax.nuts(
        setting.target.logp,
        step_size=setting.step,
        inverse_mass_matrix=jnp.ones(setting.target.size),
        max_num_doublings=TREE_DEPTH,
    )

    def run(keys: jax.Array, states: Any) -> Draws:
        def one(states: Any, key: jax.Array) -> Any:
            states, info = jax.vmap(kernel.step)(key, states)
            return states, (states.position, info.num_integration_steps)

        each = jax.vmap(lambda key: jax.random.split(key, draws), out_axes=1)(keys)
        return _chains_first(jax.lax.scan(one, states, each)[1])

    keys, q = setting.arguments(chains)
    return Sampler(run, (keys, jax.jit(jax.vmap(kernel.init))(q)))


def numpyro_sampler(setting: Setting, chains: int, draws: int) -> Sampler:
    """NumPyro's kernel, vectorised over chains: they too wait at every draw."""
    from numpyro.infer import NUTS

    kernel = NUTS(
        potential_fn=lambda q: -setting.target.logp(q),
        step_size=setting.step,
        adapt_step_size=False,
        adapt_mass_matrix=False,
        max_tree_depth=TREE_DEPTH,
    )

    def run(states: Any) -> Draws:
        def one(states: Any, _: None) -> Any:
            states = kernel.sample(states, (), {})
            return states, (states.z, states.num_steps)

        return _chains_first(jax.lax.scan(one, states, None, length=draws)[1])

    keys, q = setting.arguments(chains)
    return Sampler(run, (kernel.init(keys, 0, q, (), {}),))


def ceiling(setting: Setting, chains: int, steps: int) -> Sampler:
    """Leapfrog steps of all chains and nothing else: what no sampler can pass."""
    gradient = jax.vmap(setting.target.logp_and_grad)

    def run(q: jax.Array, p: jax.Array, g: jax.Array) -> Draws:
        def body(_: int, s: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
            q, p, g = s
            p = p + 0.5 * setting.step * g
            q = q + setting.step * p
            _, g = gradient(q)
            return q, p + 0.5 * setting.step * g, g

        q = jax.lax.fori_loop(0, steps, body, (q, p, g))[0]
        return q[:, None], jnp.full((q.shape[0], 1), steps)

    keys, q = setting.arguments(chains)
    p = jax.vmap(lambda key: jax.random.normal(key, q.shape[1:], q.dtype))(keys)
    return Sampler(run, (q, p, jax.jit(gradient)(q)[1]))


def _chains_first(draws: Any) -> Any:
    return jax.tree.map(lambda a: a.swapaxes(0, 1), draws)


PEERS: dict[str, Callable[[Setting, int, int], Sampler]] = {"blackjax": blackjax_sampler, "numpyro": numpyro_sampler}


def peers() -> dict[str, Callable[[Setting, int, int], Sampler]]:
    """Those that are installed."""
    return {name: make for name, make in PEERS.items() if find_spec(name)}


def utilisation(gradients: np.ndarray) -> float:
    """The share of batched gradients that are of use when chains wait for each other at every draw."""
    return float(gradients.sum() / (gradients.shape[0] * gradients.max(axis=0).sum()))
