"""Adaptive ODE solving: the van der Pol oscillator from mild to stiff, Tsitouras' pair of orders 5 and 4.

Coefficients: Tsitouras 2011, "Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying assumption".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.queues.problem import Loop, Problem

END, FIRST_STEP, LIMIT = 20.0, 1e-3, 20_000
ABSOLUTE, RELATIVE = 1e-6, 1e-4
START = np.array([2.0, 0.0], np.float32)
STAGES = (
    (0.161,),
    (-0.008480655492356989, 0.335480655492357),
    (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
    (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
    (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
    (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774),
)
ERROR = (
    -0.00178001105222577714,
    -0.0008164344596567469,
    0.007880878010261995,
    -0.1447110071732629,
    0.5823571654525552,
    -0.45808210592918697,
    0.015151515151515152,
)


def van_der_pol(y: jax.Array, mu: jax.Array) -> jax.Array:
    """The derivative."""
    return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


def tsit5(y: jax.Array, slope: jax.Array, h: jax.Array, mu: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A step of length `h`: where it leads, the slope there, and its error in units of what is allowed."""
    slopes = [slope]
    for row in STAGES:
        new = y + h * sum(a * k for a, k in zip(row, slopes, strict=True))
        slopes.append(van_der_pol(new, mu))
    error = h * sum(e * k for e, k in zip(ERROR, slopes, strict=True))
    allowed = ABSOLUTE + RELATIVE * jnp.maximum(jnp.abs(y), jnp.abs(new))
    return new, slopes[-1], jnp.sqrt(jnp.mean((error / allowed) ** 2))


def growth(error: jax.Array) -> jax.Array:
    """How much longer the next step may be."""
    return jnp.clip(0.9 * jnp.maximum(error, 1e-9) ** -0.2, 0.2, 10.0)


def solve(mu):
    """Integrate to END; a step whose error is too large is taken again, shorter."""
    t, h, y, steps = 0.0, FIRST_STEP, START, 0
    slope = van_der_pol(y, mu)
    while t < END and steps < LIMIT:
        h = jnp.minimum(h, END - t)
        y_new, slope_new, error = tsit5(y, slope, h, mu)
        if error < 1:
            t, y, slope = t + h, y_new, slope_new
        h = h * growth(error)
        steps += 1
    return y, steps


class State(NamedTuple):
    """The variables of `solve`."""

    t: jax.Array
    h: jax.Array
    y: jax.Array
    slope: jax.Array
    steps: jax.Array
    mu: jax.Array


def init(mu: jax.Array) -> State:
    """Before the first step."""
    y = jnp.asarray(START)
    return State(jnp.float32(0), jnp.float32(FIRST_STEP), y, van_der_pol(y, mu), jnp.int32(0), mu)


def step(s: State) -> State:
    """One step, taken or not."""
    h = jnp.minimum(s.h, END - s.t)
    y, slope, error = tsit5(s.y, s.slope, h, s.mu)
    ok = error < 1
    return State(
        jnp.where(ok, s.t + h, s.t),
        h * growth(error),
        jnp.where(ok, y, s.y),
        jnp.where(ok, slope, s.slope),
        s.steps + 1,
        s.mu,
    )


def inputs(count: int) -> tuple[Any, ...]:
    """Stiffness from 1 to 100."""
    return (jnp.asarray(10 ** np.random.default_rng(0).uniform(0, 2, count), jnp.float32),)


def diffrax_solver() -> Callable[..., Any]:
    """The same equation and tolerances by Diffrax, for one example."""
    import diffrax

    def one(mu: jax.Array) -> Any:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, mu: van_der_pol(y, mu)),
            diffrax.Tsit5(),
            0.0,
            END,
            FIRST_STEP,
            jnp.asarray(START),
            args=mu,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.PIDController(rtol=RELATIVE, atol=ABSOLUTE),
            max_steps=LIMIT,
            throw=False,
        )
        return found.ys[0], found.stats["num_steps"]

    return one


PROBLEM = Problem(
    "ode",
    "adaptive ODE",
    solve,
    inputs,
    Loop(init, lambda s: (s.t < END) & (s.steps < LIMIT), step, lambda s: (s.y, s.steps)),
    size=4096,
    goal=3.0,
    tolerance=2e-2,
    library=("diffrax", diffrax_solver),
)
