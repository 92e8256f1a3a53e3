"""Inputs per second of `f.map` over the number of lanes: `python -m benchmarks.map_widths [--only ode]`

For each program the rate at every width from 16 to 4096 lanes, relative to the width that `f.map` has by itself, and
what that loses to the best. CPU seconds, one XLA thread; all widths of a program take turns in one process, and their
results are compared.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import interleaved_cpu_medians
from benchmarks.queues import fit, march, ode, ssa
from benchmarks.recursions import queens
from examples.gallery import slice_sampling
from pcbatch.mcmc.hamiltonian import LogpAndGrad, Mass, Sample
from pcbatch.mcmc.nuts import nuts

WIDTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
INPUTS = 20_000
DIMENSION = 10
NEAR, ALIKE = 5e-2, 0.98  # the error of a number, and the share of inputs on which two widths must agree
Call = Callable[[int | None], Any]  # runs all inputs through so many lanes; None: as `f.map` does by itself


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU seconds of one program, by width, and those of the width that is not named."""

    name: str
    inputs: int
    seconds: dict[int, float]
    unnamed: float
    compiling: float  # CPU seconds of a first run less those of a later one, the median over widths

    @property
    def loss(self) -> float:
        """The share of the time that the best width would save."""
        return 1 - min(self.seconds.values()) / self.unnamed


@pcbatch.batch
def collatz(n):
    """Steps of 3n + 1 until 1."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def funnel(q: jax.Array) -> jax.Array:
    """Log density of Neal's funnel."""
    v, rest = q[0], q[1:]
    return -(v**2) / 18 - 0.5 * jnp.sum(rest**2) * jnp.exp(-v) - 0.5 * len(rest) * v


def nuts_draws(inputs: int) -> Call:
    """One draw of the No-U-Turn Sampler from each of many places of a funnel."""
    logp_and_grad: LogpAndGrad = jax.value_and_grad(funnel)
    draw = nuts(logp_and_grad).transition
    draw = draw.with_options(max_depth=13)
    keys = jax.random.key_data(jax.random.split(jax.random.key(0), inputs))
    normal = jax.random.normal(jax.random.key(1), (3, inputs, DIMENSION))
    q = normal[0].at[:, 0].multiply(3.0)
    q = q.at[:, 1:].multiply(jnp.exp(q[:, :1] / 2))
    logp, gradient = jax.vmap(logp_and_grad)(q)
    sample = Sample(jnp.stack([q, gradient], axis=1), logp)
    step = jnp.full((inputs,), 0.1)
    mass = Mass(jnp.ones(DIMENSION), jnp.ones(DIMENSION))
    return lambda lanes: draw.map(keys, normal[1], sample, step, mass, 10, (), lanes=lanes).value


def programs(inputs: int) -> dict[str, Callable[[], Call]]:
    """The programs, by name, each made when it is measured."""
    random = np.random.default_rng(0)

    def mapped(f: Any, *args: Any) -> Callable[[], Call]:
        return lambda: lambda lanes: f.map(*args, lanes=lanes).value

    numbers = jnp.asarray(random.integers(1, 100_000, inputs), jnp.int32)
    draws = jnp.asarray(random.integers(1, 40, inputs), jnp.int32)
    keys = jax.random.split(jax.random.key(0), inputs)
    start = jnp.full((inputs,), 3.0)
    boards = jnp.asarray(2 ** random.integers(4, 8, inputs) - 1, jnp.int32)
    solvers = {
        p.name: mapped(pcbatch.batch(p.solve), *p.inputs(inputs)) for p in (ode.PROBLEM, ssa.PROBLEM, march.PROBLEM)
    }
    fits = fit.PROBLEM.inputs(inputs // 8)
    return {
        "collatz": mapped(collatz, numbers),
        "slice sampling": mapped(slice_sampling.sample, keys, start, draws),
        **solvers,
        "fit": mapped(pcbatch.batch(fit.PROBLEM.solve), *fits),
        "queens": mapped(pcbatch.batch(queens), boards, *jnp.zeros((3, inputs), jnp.int32)),
        "nuts": lambda: nuts_draws(inputs),
    }


def check(name: str, lanes: str, found: Any, expected: Any) -> None:
    """Stop if the results at one width are others. XLA rounds as it vectorises, and that may send a few another way."""
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if np.issubdtype(a.dtype, np.inexact):
            same = np.isclose(a, b, rtol=NEAR, atol=NEAR, equal_nan=True).reshape(len(a), -1).all(axis=1).mean()
        else:  # numbers of steps: one more or less for a few
            same = 1 - abs(int(a.sum()) - int(b.sum())) / int(b.sum())
        if same < ALIKE:
            raise SystemExit(f"{name}: {lanes} lanes agree on {same:.1%}")


def measure(name: str, call: Call, inputs: int, widths: Sequence[int], repeats: int) -> Measured:
    """Run one program at all widths, in turns."""
    calls: dict[str, Callable[[], Any]] = {str(width): lambda width=width: call(width) for width in widths}
    calls["by itself"] = lambda: call(None)
    first: dict[str, float] = {}
    expected: Any = None
    for key, run in calls.items():
        began = time.process_time()
        found = jax.tree.map(np.asarray, jax.block_until_ready(run()))
        first[key] = time.process_time() - began
        expected = found if expected is None else expected
        check(name, key, found, expected)
    times = interleaved_cpu_medians(calls, repeats)
    compiling = [first[str(width)] - times[str(width)] for width in widths]
    return Measured(name, inputs, {w: times[str(w)] for w in widths}, times["by itself"], float(np.median(compiling)))


def table(rows: Sequence[Measured], widths: Sequence[int]) -> str:
    """Rates as a table, relative to that of the width that `f.map` has by itself."""
    lines = [
        f"| | {' | '.join(map(str, widths))} | inputs/s by itself | the best saves | compiling |",
        f"|---|{'---:|' * (len(widths) + 3)}",
    ]
    for row in rows:
        rates = [f"{row.unnamed / row.seconds[width]:.2f}" for width in widths]
        rate = row.inputs / row.unnamed
        lines.append(
            f"| {row.name} | {' | '.join(rates)} | {rate:,.0f} | {max(0.0, row.loss):.0%} | {row.compiling:.1f} s |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", help="one program; may be given again")
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    rows = []
    for name, make in programs(chosen.inputs).items():
        if name in (chosen.only or [name]):
            inputs = chosen.inputs // 8 if name == "fit" else chosen.inputs
            rows.append(measure(name, make(), inputs, chosen.widths, chosen.repeats))
            print(table(rows[-1:], chosen.widths), flush=True)
    print(table(rows, chosen.widths))


if __name__ == "__main__":
    main()
