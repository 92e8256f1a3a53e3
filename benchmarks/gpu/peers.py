"""The programs of `programs.py` as others write them: `vmap` of a loop with a stack by hand, and two samplers.

Those in PyTorch are in `torch_peers.py`, which only their own processes import; here are their names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import networks_by_hand, recursions, samplers
from benchmarks.gpu.programs import HIDDEN, GpuProgram, program
from examples.networks.run import Settings, Task

DRAWS = 5  # of a peer's chain in one call
WIDEST_CHAINS = 10_000
TORCH = {"eager": "PyTorch", "compiled": "PyTorch, compiled"}  # ways to run what `torch_peers` has, with their names
IN_TORCH = ("fib", "gillespie", "rays", "ode", "trees", "queens")


@dataclass(frozen=True, slots=True)
class Peer:
    """Another way to do the work of a program.

    Attributes:
        name: Its name in tables.
        prepare: Number of lanes -> a function and its arguments; None for too many lanes.
        work: A result -> the work that was done.
    """

    name: str
    prepare: Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]] | None]
    work: Callable[[Any], float]


def gillespie(key: jax.Array, rate: jax.Array, end: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Simulate births and deaths in one loop: the last event, which comes too late, is taken back."""

    def body(s: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        key, population, t, events = s
        births, deaths = rate * population, 0.02 * population * population
        key, when, which = jax.random.split(key, 3)
        t = t + jax.random.exponential(when) / (births + deaths)
        happens = t < end
        born = jax.random.uniform(which) * (births + deaths) < births
        change = jnp.where(happens, jnp.where(born, 1, -1), 0)
        return key, population + change, t, events + happens

    start = (key, jnp.int32(10), jnp.float32(0), jnp.int32(0))
    found = jax.lax.while_loop(lambda s: (s[2] < end) & (s[1] > 0), body, start)
    return found[1], found[3]


def rays(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """March a ray in one loop; a reflection is a selection."""

    def body(s: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        p, d, light, bounces, far, steps = s
        c = p - jnp.round(p)
        size = jnp.sqrt(jnp.sum(c * c))
        hit, n = size - 0.3 < 1e-3, c / size
        away = jnp.where(hit, d - 2.0 * jnp.sum(d * n) * n, d)
        light = light + jnp.where(hit, 0.5 ** (1.0 + bounces) * jnp.maximum(n[1], 0.0), 0.0)
        distance = jnp.where(hit, 0.01, size - 0.3)
        return p + distance * away, away, light, bounces + hit, far + distance, steps + 1

    d = jnp.stack([x, y, jnp.full_like(x, 2.0)]) / jnp.sqrt(x * x + y * y + 4.0)
    start = (jnp.stack([x, y, jnp.full_like(x, -3.0)]), d, jnp.float32(0), jnp.int32(0), jnp.float32(0), jnp.int32(0))
    found = jax.lax.while_loop(lambda s: (s[3] < 4) & (s[4] < 20.0), body, start)
    return found[2], found[5]


def ode(y: jax.Array, rate: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Integrate in one loop; a step that is refused is a selection."""

    def body(s: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        y, t, h, steps = s
        h = jnp.minimum(h, 1.0 - t)
        a = jnp.stack([y[1], -rate * y[0] - y[1]])
        mid = y + h * a
        b = jnp.stack([mid[1], -rate * mid[0] - mid[1]])
        error = jnp.max(jnp.abs(0.5 * h * (b - a)))
        taken = error < 1e-3
        y, t = jnp.where(taken, y + 0.5 * h * (a + b), y), jnp.where(taken, t + h, t)
        return y, t, h * jnp.clip(0.9 * jnp.sqrt(1e-3 / (error + 1e-12)), 0.2, 2.0), steps + 1

    found = jax.lax.while_loop(lambda s: s[1] < 1.0, body, (y, jnp.float32(0), jnp.float32(0.1), jnp.int32(0)))
    return found[0], found[3]


LOOPS: dict[str, Callable[..., Any]] = {
    "fib": recursions.fib_by_hand,
    "gillespie": gillespie,
    "rays": rays,
    "ode": ode,
    "queens": recursions.queens_by_hand,
}
SETTINGS: dict[str, Callable[[], samplers.Setting]] = {
    "nuts-20": lambda: samplers.correlated(20),
    "nuts-100": samplers.correlated,
    "logistic": samplers.regression,
}


@cache
def peers(name: str) -> tuple[Peer, ...]:
    """Return the other ways to do the work of a program; none for some."""
    if name in LOOPS:
        return (_loop(LOOPS[name], program(name)),)
    if name == "trees":
        return (Peer("levels by hand", _levels, lambda out: float(np.shape(out)[0])),)
    if name not in SETTINGS:
        return ()
    setting = SETTINGS[name]()
    return tuple(_sampler(each, make, setting) for each, make in samplers.peers().items())


def _loop(one: Callable[..., Any], of: GpuProgram) -> Peer:
    return Peer("vmap of a loop", lambda lanes: (jax.vmap(one), of.inputs(lanes)), of.work)


def _levels(lanes: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The TreeLSTM level by level, in the widest rows; the plan of the levels is made beforehand."""
    task = Task("tree_lstm", Settings(hidden=HIDDEN, batch=lanes))
    way = list(networks_by_hand.ways(task).values())[-1]
    return way.predict, (task.weights,)


def _sampler(name: str, make: Callable[..., samplers.Sampler], setting: samplers.Setting) -> Peer:
    def prepare(lanes: int) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        if lanes > WIDEST_CHAINS:
            return None
        sampler = make(setting, lanes, DRAWS)
        return sampler.run, sampler.arguments

    return Peer(name, prepare, lambda draws: float(np.sum(np.asarray(draws[1]))))
