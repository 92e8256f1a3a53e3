"""Queues of inputs of unequal cost: `python -m benchmarks.queues [--only ode]`

Every problem is a plain Python function of one example. Ours is that function, batched. The peers are the same loop by
hand: `jax.vmap` over all inputs, rounds of 32, 128 or 512 lanes under `jax.lax.map`, and `jax.lax.map` alone; and the
library of the field under `jax.vmap`, where one is installed. All take turns in one process, and all results are
compared before anything is timed.

XLA gets one thread unless NPROC says otherwise: the best peer of each problem is as fast or faster that way.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np

import pcbatch
from benchmarks.common import Curve, Row, interleaved_medians, report
from benchmarks.queue import ours, streams
from benchmarks.queues import fit, march, ode, ssa
from benchmarks.queues.peers import ROUNDS, peers, utilisation
from benchmarks.queues.problem import Problem

PROBLEMS = {module.PROBLEM.name: module.PROBLEM for module in (ode, ssa, march, fit)}
OURS = "pcbatch"
ALIKE = 0.99  # the share of inputs on which two ways must agree: rounding may send a few another way
ALMOST = 0.9  # the same for a library, which steps and ends by rules of its own


def agreement(found: Any, expected: Any, tolerance: float) -> float:
    """The share of inputs whose answers are the same."""
    a, b = (np.asarray(x).reshape(len(x), -1) for x in (found, expected))
    return float(np.isclose(a, b, rtol=tolerance, atol=tolerance).all(axis=1).mean())


def check(problem: Problem, results: dict[str, Any], least: float = ALIKE, same_steps: bool = True) -> None:
    """Stop if one way differs from ours."""
    answer, steps = results[OURS]
    for name, (other, other_steps) in results.items():
        same = agreement(other, answer, problem.tolerance)
        work = float(np.sum(other_steps)) / float(np.sum(steps))
        if same < least or (same_steps and abs(work - 1) > 1 - least):
            raise SystemExit(f"{problem.title}: {name} agrees on {same:.1%}, with {work:.3f} times our steps")


def library(problem: Problem) -> dict[str, Callable[..., Any]]:
    """The field's own solver, if it is installed."""
    if problem.library is None or find_spec(problem.library[0]) is None:
        return {}
    name, make = problem.library
    return {name: jax.jit(jax.vmap(make()))}


def measure(problem: Problem, count: int, repeats: int) -> tuple[list[Row], list[Curve]]:
    """Ours, the peers and the library on so many inputs."""
    inputs = problem.inputs(count)
    batched = pcbatch.batch(problem.solve)
    own = {OURS: ours(batched)}
    if streams(batched):
        own |= {f"{OURS}, {n} lanes": ours(batched, n) for n in ROUNDS if n < count}
    by_hand, theirs = peers(problem.loop, count), library(problem)
    results = {name: jax.block_until_ready(call(*inputs)) for name, call in (own | by_hand | theirs).items()}
    check(problem, {name: found for name, found in results.items() if name not in theirs})
    check(problem, {name: results[name] for name in (OURS, *theirs)}, ALMOST, same_steps=False)
    calls = {name: lambda call=call: call(*inputs) for name, call in (own | by_hand | theirs).items()}
    times = interleaved_medians(calls, repeats, warm_up=False)
    return _rows(problem, times, [*by_hand, *theirs], np.asarray(results[OURS][1]))


def _rows(
    problem: Problem, times: dict[str, float], rivals: Sequence[str], steps: np.ndarray
) -> tuple[list[Row], list[Curve]]:
    title, count = problem.title, len(steps)
    best = min(rivals, key=lambda name: times[name])
    ratio = times[best] / times[OURS]
    goal = problem.goal if count == problem.size else None
    rows = [Row(f"{title}: {name}", time * 1e3, "ms") for name, time in times.items()]
    rows += [
        Row(f"{title}: utilisation of rounds of {lanes}", utilisation(steps, lanes), "")
        for lanes in (*ROUNDS, count)
        if count % lanes == 0
    ]
    every = times["vmap of all"]
    rows += [
        Row(f"{title}: best peer / pcbatch", ratio, "x", goal, True, f"{best} (ms)", times[best] * 1e3),
        Row(f"{title}: vmap of all / pcbatch", every / times[OURS], "x", None, False, "vmap of all (ms)", every * 1e3),
    ]
    return rows, [
        Curve("queues", "best peer / pcbatch", [title], [ratio]),
        Curve("queues", "goal", [title], [problem.goal]),
    ]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PROBLEMS, action="append", help="one problem; may be given again")
    parser.add_argument("--inputs", type=int, help="how many; default: 4096, for the fit 1024")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    rows, curves = [], []
    for name in chosen.only or PROBLEMS:
        problem = PROBLEMS[name]
        more_rows, more_curves = measure(problem, chosen.inputs or problem.size, chosen.repeats)
        rows += more_rows
        curves += more_curves
    report("queues of inputs of unequal cost", rows, chosen.json, curves)


if __name__ == "__main__":
    main()
