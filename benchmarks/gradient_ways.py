"""Gradients of lanes together, of lanes one after the other, and what is chosen.

    NPROC=1 python -m benchmarks.gradient_ways [--lanes 16 256 4096] [--only ode loop] [--repeats 5]

Value and gradient of the mean of squares by all arguments, inside `jit`, CPU seconds of one thread, in turn. The small
programs are plain loops and recursions over numbers; the networks are those of `network_gradients.py`. Lanes together
have tapes as long as `f.tape` says.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks import network_gradients as networks
from benchmarks.common import interleaved_cpu_medians
from pcbatch import Plan

LANES = (16, 256, 4096)
WAYS: dict[str, Plan] = {
    "together": Plan(emitter="guard"),
    "one after the other": Plan(emitter="scalar"),
    "chosen": Plan(),
}


def loop(x, w, n):  # type: ignore[no-untyped-def]
    """A sine in each round, or half of it."""
    for k in range(n):
        x = jnp.sin(x * w[k % 3]) if x < 0.9 else 0.5 * x
    return x


def descent(x, w, n):  # type: ignore[no-untyped-def]
    """A recursion as deep as it is told."""
    if n <= 0:
        return x
    return jnp.sin(descent(x * w[n % 3], w, n - 1)) + 0.1 * x


def newton(x, w, n):  # type: ignore[no-untyped-def]
    """A root, by steps until they are small."""
    y = x
    for _ in range(n + 20):
        step = (y * y * y - x - w[0]) / (3.0 * y * y + w[1])
        y = y - step
        if abs(step) < 1e-10:
            break
    return y


def pendulum(x, w, n):  # type: ignore[no-untyped-def]
    """The angle when it first turns back, by small steps."""
    angle, speed, steps = x, 0.0, 0
    while steps < 20 * (n + 1) and (speed <= 0.0 or steps < 5):
        speed = speed - 0.05 * w[0] * jnp.sin(angle) - 0.01 * w[1] * speed
        angle = angle + 0.05 * w[2] * speed
        steps += 1
    return angle


def area(a, b, w, fa, fb, left):  # type: ignore[no-untyped-def]
    """The area below a curve, halved where it bends."""
    m = 0.5 * (a + b)
    fm = jnp.sin(w[0] * m * m)
    if left == 0 or abs(fm - 0.5 * (fa + fb)) < 1e-3:
        return 0.25 * (b - a) * (fa + 2.0 * fm + fb)
    return area(a, m, w, fa, fm, left - 1) + area(m, b, w, fm, fb, left - 1)


def quadrature(x, w, n):  # type: ignore[no-untyped-def]
    """The area from 0 on."""
    b = abs(x) + 0.1 * n
    return area(0.0 * x, b, w, 0.0 * x, jnp.sin(w[0] * b * b), 8)


SMALL = {f.__name__: f for f in (loop, descent, newton, pendulum, quadrature)}
PROGRAMS = (*SMALL, *(name for name in networks.PROGRAMS if name != "beam"))


def with_tape(f: Any, *args: Any) -> Any:
    """Return a function with the room that the tape of lanes together needs."""
    return f.with_options(max_tape=f.tape(*args).max_tape) if f.options.plan.emitter == "guard" else f


def call(name: str, lanes: int, plan: Plan) -> Callable[[], Any]:
    """Return a call of value and gradient."""
    if name in SMALL:
        rng = np.random.default_rng(0)
        x, n = jnp.asarray(rng.uniform(0.5, 2.0, lanes)), jnp.asarray(rng.integers(1, 30, lanes))
        w = jnp.array([1.1, 0.9, 1.3])
        f: Any = with_tape(pcbatch.batch(SMALL[name], in_axes=(0, None, 0), plan=plan), x, w, n)
        gradient = jax.jit(jax.value_and_grad(lambda x, w: jnp.mean(f(x, w, n) ** 2), argnums=(0, 1)))
        return lambda: gradient(x, w)
    both = networks.sides(name, lanes)
    ours = with_tape(both.ours.with_options(plan=plan), both.mine, both.weights)
    of_weights = jax.jit(jax.value_and_grad(lambda w, x: both.loss(ours(x, w))))
    return lambda: of_weights(both.weights, both.mine)


def measured(name: str, lanes: int, repeats: int) -> dict[str, float]:
    """Return the median milliseconds of each way, whose results agree."""
    calls = {way: call(name, lanes, plan) for way, plan in WAYS.items()}
    found = [jax.tree.leaves(made()) for made in calls.values()]
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    return {way: 1e3 * time for way, time in interleaved_cpu_medians(calls, repeats).items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each program and number of lanes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES)
    parser.add_argument("--only", nargs="*", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    print("| program | lanes | together, ms | one after the other, ms | chosen, ms | chosen over the best |")
    print("|---|---:|---:|---:|---:|---:|")
    losses = []
    for name in given.only:
        for lanes in given.lanes:
            times = measured(name, lanes, given.repeats)
            losses.append(times["chosen"] / min(times.values()))
            cells = " | ".join(f"{time:.3g}" for time in times.values())
            print(f"| {name} | {lanes} | {cells} | {losses[-1]:.2f} |", flush=True)
    print(f"chosen over the best: median {statistics.median(losses):.2f}, most {max(losses):.2f}")


if __name__ == "__main__":
    main()
