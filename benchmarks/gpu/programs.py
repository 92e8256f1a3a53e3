"""The programs of the benchmarks on GPUs, each for one example, with inputs for any number of lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks import recursions
from examples.networks import tree_lstm
from examples.nuts import targets
from pcbatch.mcmc.hamiltonian import Sample
from pcbatch.mcmc.mass_matrix import unit
from pcbatch.mcmc.nuts import nuts


@dataclass(frozen=True, slots=True)
class GpuProgram:
    """A batched function and its inputs.

    Attributes:
        function: The function, with a fixed `max_depth`.
        inputs: Number of lanes -> its arguments, NumPy arrays or those of JAX.
        work: A result -> the work that was done, by which programs are compared: calls, steps, leapfrogs.
        unit: The name of one piece of that work.
    """

    function: pcbatch.Batched[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    work: Callable[[Any], float]
    unit: str


def numbers(low: float, high: float, lanes: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Return uniform numbers, [lanes]."""
    drawn = np.random.default_rng(seed).uniform(low, high, lanes)
    return drawn.astype(dtype)


@pcbatch.batch(max_depth=32, plan=pcbatch.Plan(fork="never"))
def fib(n):
    """Compute a Fibonacci number by two calls."""
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


@pcbatch.batch
def gillespie(key, rate, end):
    """Simulate births and deaths by Gillespie's method; return the population at the end and the events."""
    population, t, events = 10, 0.0, 0
    while t < end and population > 0:
        births, deaths = rate * population, 0.02 * population * population
        key, when, which = jax.random.split(key, 3)
        t = t + jax.random.exponential(when) / (births + deaths)
        if t < end:
            if jax.random.uniform(which) * (births + deaths) < births:
                population = population + 1
            else:
                population = population - 1
            events = events + 1
    return population, events


@pcbatch.batch
def rays(x, y):
    """March a ray to a field of spheres, and on after each reflection; return its brightness and the steps."""
    px, py, pz = x, y, -3.0
    length = jnp.sqrt(x * x + y * y + 4.0)
    dx, dy, dz = x / length, y / length, 2.0 / length
    light, bounces, steps = 0.0, 0, 0
    far = 0.0
    while bounces < 4 and far < 20.0:
        cx, cy, cz = px - jnp.round(px), py - jnp.round(py), pz - jnp.round(pz)
        distance = jnp.sqrt(cx * cx + cy * cy + cz * cz) - 0.3
        if distance < 1e-3:
            size = jnp.sqrt(cx * cx + cy * cy + cz * cz)
            nx, ny, nz = cx / size, cy / size, cz / size
            along = 2.0 * (dx * nx + dy * ny + dz * nz)
            dx, dy, dz = dx - along * nx, dy - along * ny, dz - along * nz
            light = light + 0.5 ** (1.0 + bounces) * jnp.maximum(ny, 0.0)
            bounces = bounces + 1
            distance = 0.01
        px, py, pz = px + distance * dx, py + distance * dy, pz + distance * dz
        far = far + distance
        steps = steps + 1
    return light, steps


@pcbatch.batch
def ode(y, rate):
    """Integrate a stiff relaxation with adaptive steps (Heun with an embedded Euler step)."""
    t, h, steps = 0.0, 0.1, 0
    while t < 1.0:
        h = jnp.minimum(h, 1.0 - t)
        a = jnp.stack([y[1], -rate * y[0] - y[1]])
        mid = y + h * a
        b = jnp.stack([mid[1], -rate * mid[0] - mid[1]])
        error = jnp.max(jnp.abs(0.5 * h * (b - a)))
        if error < 1e-3:
            t, y = t + h, y + 0.5 * h * (a + b)
        h = h * jnp.clip(0.9 * jnp.sqrt(1e-3 / (error + 1e-12)), 0.2, 2.0)
        steps = steps + 1
    return y, steps


def transition(target: targets.Target, step: float, deepest: int) -> GpuProgram:
    """Return one transition of NUTS on a target, from random places."""
    size = target.size

    def inputs(lanes: int) -> tuple[Any, ...]:
        rng = np.random.default_rng(0)
        noise, q = rng.normal(size=(2, lanes, size)).astype(np.float32)
        logp, grad = jax.jit(jax.vmap(target.logp_and_grad))(q)
        keys = rng.integers(0, 2**32, (lanes, 2), np.uint32)
        sample = Sample(jnp.stack([jnp.asarray(q), grad], axis=1), logp)
        steps = np.full(lanes, step, np.float32)
        return keys, noise, sample, steps, unit(size, False, np.dtype(np.float32)), jnp.int32(deepest), ()

    sampler = nuts(lambda q, *_: target.logp_and_grad(q), deepest=deepest)
    function = sampler.transition.with_options(max_depth=deepest + 4)
    return GpuProgram(function, inputs, lambda out: float(np.sum(np.asarray(out[0].leapfrogs))), "leapfrog")


HIDDEN = 64  # numbers in the state of a tree


def parses(lanes: int) -> tuple[dict[str, Any], list[Any]]:
    """Return weights of the TreeLSTM and random parse trees."""
    return tree_lstm.weights(np.random.default_rng(0), HIDDEN), tree_lstm.examples(np.random.default_rng(1), lanes)


def trees() -> GpuProgram:
    """Return the TreeLSTM on random parse trees."""

    def inputs(lanes: int) -> tuple[Any, ...]:
        weights, examples = parses(lanes)
        return weights, tree_lstm.gather([example.x for example in examples])

    function = tree_lstm.predict.with_options(max_depth=64, plan=pcbatch.Plan(fork="never"))
    return GpuProgram(function, inputs, lambda out: float(np.shape(out)[0]), "tree")


def board(lanes: int) -> tuple[Any, ...]:
    """Return empty boards of 4 to 8 columns."""
    nothing = np.zeros(lanes, np.int32)
    columns = np.random.default_rng(0).integers(4, 9, lanes)
    return ((1 << columns) - 1).astype(np.int32), nothing, nothing, nothing


def _calls(out: Any) -> float:
    """A call for each leaf and each inner node of the tree of calls."""
    return float(np.sum(2.0 * np.asarray(out, np.float64) - 1))


@cache
def program(name: str) -> GpuProgram:
    """Return a program of `NAMES`."""
    match name:
        case "fib":
            return GpuProgram(fib, lambda n: (numbers(0, 16, n, dtype=np.int32),), _calls, "call")
        case "gillespie":
            keys = lambda n: jax.random.split(jax.random.key(0), n)  # noqa: E731
            given = lambda n: (keys(n), numbers(0.5, 1.5, n), numbers(2.0, 10.0, n, 1))  # noqa: E731
            return GpuProgram(gillespie, given, lambda out: float(np.sum(out[1])), "event")
        case "rays":
            given = lambda n: (numbers(-1.0, 1.0, n), numbers(-1.0, 1.0, n, 1))  # noqa: E731
            return GpuProgram(rays, given, lambda out: float(np.sum(out[1])), "step")
        case "ode":
            given = lambda n: (np.stack([numbers(-1, 1, n), numbers(-1, 1, n, 1)], 1), 10 ** numbers(0, 3, n, 2))  # noqa: E731
            return GpuProgram(ode, given, lambda out: float(np.sum(out[1])), "step")
        case "nuts-20":
            return transition(targets.gaussian(20), 0.3, 6)
        case "nuts-100":
            return transition(targets.gaussian(100), 0.1533, 6)
        case "logistic":
            return transition(targets.logistic(), 0.02, 6)
        case "trees":
            return trees()
        case "queens":
            queens = pcbatch.batch(recursions.queens, max_depth=16, plan=pcbatch.Plan(fork="never"))
            return GpuProgram(queens, board, lambda out: float(np.sum(out)), "solution")
    raise ValueError(f"unknown program {name!r}: one of {', '.join(NAMES)}")


NAMES = ("fib", "gillespie", "rays", "ode", "nuts-20", "nuts-100", "logistic", "trees", "queens")
