"""Log densities with control flow, compared with the same ones as a user of JAX writes them by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.mcmc import sample
from pcbatch.mcmc.machine import ChainMachine
from pcbatch.mcmc.saved import fingerprint
from pcbatch.mcmc.settings import Settings
from pcbatch.mcmc.target import MOST_FORWARD, make_target

FIXED = {"chains": 4, "draws": 12, "warmup": 0, "step_size": 0.3}
Y = np.random.default_rng(0).normal(3.0, 0.5, size=12).astype(np.float32)


def robust(p: Any, y: Any) -> Any:
    """A truncated location and a scale: an early return, a loop over data with a branch in it, a number of Python."""
    if p["mu"] > 5.0 or p["mu"] < 0:
        return -math.inf
    total = 0.0
    for v in y:
        z = (v - p["mu"]) / jnp.exp(p["log_scale"])
        if abs(z) < 2.0:
            total += -0.5 * z * z - p["log_scale"]
        else:
            total += -2.0 * abs(z) + 2.0 - p["log_scale"]
    return total - 0.5 * p["log_scale"] ** 2


def robust_by_hand(p: Any, y: Any) -> Any:
    def step(total: Any, v: Any) -> Any:
        z = (v - p["mu"]) / jnp.exp(p["log_scale"])
        near = -0.5 * z * z - p["log_scale"]
        return total + jnp.where(jnp.abs(z) < 2.0, near, -2.0 * jnp.abs(z) + 2.0 - p["log_scale"]), None

    total = jax.lax.scan(step, jnp.zeros((), p["mu"].dtype), y)[0]
    return jnp.where((p["mu"] > 5) | (p["mu"] < 0), -jnp.inf, total - 0.5 * p["log_scale"] ** 2)


def halved(x: Any) -> Any:
    """A `while` of another length at each position."""
    k, t = 0, x
    while abs(t) > 1.0 and k < 20:
        t = t / 2.0
        k += 1
    return -0.5 * x * x - 0.1 * k - 0.1 * t * t


def halved_by_hand(x: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        t, k = carry
        go = jnp.abs(t) > 1
        return jnp.where(go, t / 2.0, t), jnp.where(go, k + 1, k)

    t, k = jax.lax.fori_loop(0, 20, step, (x, jnp.zeros_like(x)))
    return -0.5 * x * x - 0.1 * k - 0.1 * t * t


def _penalty(x: Any) -> Any:
    if x < -1:
        return 2.0 * (x + 1)
    if x > 1:
        return -3.0 * (x - 1)
    return 0.0


def _tail(x: Any, n: int) -> Any:
    if n == 0 or abs(x) < 0.1:
        return 0.0
    return -0.1 * x * x + _tail(0.5 * x, n - 1)


def helpers(q: Any) -> Any:
    """Helpers with early returns, and one that calls itself."""
    return -0.5 * jnp.sum(q**2) + _penalty(q[0]) + _tail(q[1], 10)


def helpers_by_hand(q: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        x, total = carry
        return 0.5 * x, total + jnp.where(jnp.abs(x) < 0.1, 0.0, -0.1 * x * x)

    x = q[0]
    penalty = jnp.where(x < -1, 2.0 * (x + 1), jnp.where(x > 1, -3.0 * (x - 1), 0.0))
    return -0.5 * jnp.sum(q**2) + penalty + jax.lax.fori_loop(0, 10, step, (q[1], jnp.zeros_like(x)))[1]


def wide(q: Any) -> Any:
    """More coordinates than forward mode is for."""
    total = 0.0
    for i in range(len(q)):
        if q[i] > 0:
            total -= 0.5 * q[i] ** 2
        else:
            total -= 2.0 * q[i] ** 2
    return total


def wide_by_hand(q: Any) -> Any:
    return jnp.sum(jnp.where(q > 0, -0.5 * q**2, -2.0 * q**2))


STARTS: dict[str, tuple[Any, Any, Any, tuple[Any, ...]]] = {
    "robust": (robust, robust_by_hand, {"mu": 3.0, "log_scale": 0.0}, (Y,)),
    "halved": (halved, halved_by_hand, 1.5, ()),
    "helpers": (helpers, helpers_by_hand, np.zeros(3, np.float32), ()),
    "wide": (wide, wide_by_hand, np.zeros(MOST_FORWARD + 1, np.float32), ()),
}


@pytest.mark.parametrize("name", STARTS)
def test_values_and_gradients_are_those_of_the_one_by_hand(name: str) -> None:
    logp, by_hand, start, data = STARTS[name]
    start, data = jax.tree.map(jnp.float32, start), jax.tree.map(jnp.asarray, data)
    ours, theirs = (make_target(f, start, data) for f in (logp, by_hand))
    assert theirs.compiled is None
    assert theirs.logp is by_hand
    assert make_target(logp, start, data) == ours  # so the programs of an earlier call are found
    q = 2 * np.random.default_rng(1).normal(size=(16, ours.size)).astype(np.float32)
    axes = (0, *[None] * len(data))
    for one, other in zip(*(jax.jit(jax.vmap(t.logp_and_grad, axes))(q, *data) for t in (ours, theirs)), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.share(3)
@pytest.mark.filterwarnings("ignore::pcbatch.mcmc.SamplingWarning")
@pytest.mark.parametrize("name", ["robust", "halved", "helpers", "wide"])
def test_draws_are_those_of_the_one_by_hand(name: str) -> None:
    logp, by_hand, start, data = STARTS[name]
    ours, theirs = (sample(f, start, data=data, **FIXED) for f in (logp, by_hand))
    for one, other in zip(jax.tree.leaves(ours.draws), jax.tree.leaves(theirs.draws), strict=True):
        np.testing.assert_allclose(one[:, :4], other[:, :4], rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(ours.statistics.leapfrogs[:, :2], theirs.statistics.leapfrogs[:, :2])


@pytest.mark.full_only
@pytest.mark.filterwarnings("ignore::pcbatch.mcmc.SamplingWarning")
@pytest.mark.parametrize("chains", [1, 4])
def test_in_64_bits(chains: int) -> None:
    with jax.enable_x64(True):
        start = {"mu": np.float64(3.0), "log_scale": np.float64(0.0)}
        ours, theirs = (
            sample(f, start, data=(Y.astype(float),), **(FIXED | {"chains": chains})) for f in (robust, robust_by_hand)
        )
    assert ours.draws["mu"].dtype == np.float64
    np.testing.assert_allclose(ours.draws["mu"], theirs.draws["mu"], rtol=1e-9)


@pytest.mark.filterwarnings("ignore::pcbatch.mcmc.SamplingWarning")
def test_a_saved_run_goes_on_with_the_same_draws_and_is_told_from_another(tmp_path: Path) -> None:
    options = FIXED | {"chains": 3}
    whole = sample(halved, 1.5, **options)
    sample(halved, 1.5, **(options | {"draws": 5}), save_to=tmp_path / "run")
    again = sample(halved, 1.5, **options, save_to=tmp_path / "run")
    np.testing.assert_array_equal(again.draws, whole.draws)
    with pytest.raises(pcbatch.StateError, match="another run"):
        sample(lambda x: helpers(jnp.stack([x, x])), 1.5, **options, save_to=tmp_path / "run")


def test_a_run_is_of_the_program_that_lanes_run() -> None:
    def shorter(x: Any) -> Any:
        k, t = 0, x
        while abs(t) > 1.0 and k < 19:
            t = t / 2.0
            k += 1
        return -0.5 * x * x - 0.1 * k - 0.1 * t * t

    settings = Settings(3, 5, 0, 0.8, 10, "diag", "pooled", 0, None, 0.3, False)
    hashes = {
        fingerprint(make_target(f, np.float32(1), ()), settings, 1.5, ())["the log density"] for f in (halved, shorter)
    }
    assert len(hashes) == 2


class Model:
    """A density that is a method."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    @pcbatch.batch
    def logp(self, x, weight):  # type: ignore[no-untyped-def]
        if x > 0:
            return -x * x * self.scale * weight
        return -x * x * weight


@pytest.mark.parametrize("logp", [Model(2.0).logp, pcbatch.batch(lambda x, w: -x * x * w if x < 0 else -2 * x * x * w)])
def test_a_batched_function_may_be_given(logp: Any) -> None:
    target = make_target(logp, np.float32(1), (jnp.float32(0.5),))
    value, gradient = jax.vmap(target.logp_and_grad, (0, None))(jnp.float32([[2.0], [-3.0]]), jnp.float32(0.5))
    np.testing.assert_allclose(value, [-4.0, -4.5])
    np.testing.assert_allclose(gradient, [[-4.0], [3.0]])


def _two(x: Any) -> Any:
    return (x, x) if x > 0 else (-x, x)


def _whole(x: Any) -> Any:
    return 1 if x > 0 else 0


def _opens(x: Any) -> Any:
    if x > 0:
        with open("file"):
            return 1.0
    return 0.0


@pytest.mark.parametrize(
    ("logp", "code", "said"),
    [(_two, "PCB460", "gives a tuple"), (_whole, "PCB460", "must give a float"), (_opens, "PCB102", "`with`")],
)
def test_wrong_ones_are_told(logp: Any, code: str, said: str) -> None:
    with pytest.raises(pcbatch.PcbatchError, match=said) as info:
        sample(logp, 0.5, chains=2)
    assert [d.code for d in info.value.diagnostics] == [code]


def test_a_failure_at_a_start_is_told() -> None:
    def positive(x: Any) -> Any:
        assert x > 0
        return -x

    with pytest.warns(UserWarning, match="PCB903"), pytest.raises(pcbatch.UsageError, match="not finite"):
        sample(pcbatch.batch(on_failure="warn")(positive), jnp.float32([1.0, -1.0]), draws=2, warmup=0, step_size=0.1)


def test_the_compiled_density_is_one_machine_in_the_sampler() -> None:
    target = make_target(halved, np.float32(1), ())
    machine = ChainMachine(target, Settings(3, 5, 0, 0.8, 10, "diag", "pooled", 0, None, 0.3, False), ())
    q = np.float32([[0.5], [3.0], [-9.0]])
    text = str(jax.make_jaxpr(jax.vmap(machine.target.logp_and_grad))(q))
    assert "run[lanes=3]" in text
