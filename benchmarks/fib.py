"""Recursive Fibonacci: does time grow with the depth of the stacks? `python -m benchmarks.fib`

Time per trip comes from two runs of the same executable, a long one and one whose lanes all return at once:
what every run pays (the zero fill of the stacks, the call itself) cancels in the difference.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import Row, interleaved_medians, median_seconds, report, seconds
from benchmarks.recursions import fib

SHALLOW, DEEP = 32, 1024


class Case:
    """One executable with its inputs on the device."""

    def __init__(self, lanes: int, depth: int, top: int, **fields: str) -> None:
        batched = pcbatch.batch(fib, max_depth=depth, plan=pcbatch.Plan(fork="never", **fields))
        rng = np.random.default_rng(0)
        self.long = jnp.asarray(rng.integers(0, top + 1, lanes).astype(np.int32))
        self.short = jnp.zeros(lanes, jnp.int32)
        self._run = batched.run
        self.compile_seconds = seconds(lambda: self._run(self.short))
        result = self.run()
        self.all_trips = int(result.stats.trips)
        self.trips = self.all_trips - int(self.idle().stats.trips)
        _check(self.long, result)

    def run(self) -> pcbatch.Result:
        """The whole work."""
        return self._run(self.long)

    def idle(self) -> pcbatch.Result:
        """A run in which every lane returns at once."""
        return self._run(self.short)


def _check(n: jax.Array, result: pcbatch.Result) -> None:
    table = [1, 1]
    while len(table) <= int(n.max()):
        table.append(table[-1] + table[-2])
    if not np.array_equal(np.asarray(result.value), np.array(table)[np.asarray(n)]):
        raise SystemExit("wrong results: nothing to measure")


def depth_rows(lanes: int, top: int, repeats: int, **fields: str) -> list[Row]:
    """The same work with shallow and with deep stacks."""
    cases = {depth: Case(lanes, depth, top, **fields) for depth in (SHALLOW, DEEP)}
    calls = {f"run {d}": case.run for d, case in cases.items()} | {f"idle {d}": c.idle for d, c in cases.items()}
    times = interleaved_medians(calls, repeats)
    per_trip = {depth: (times[f"run {depth}"] - times[f"idle {depth}"]) / case.trips for depth, case in cases.items()}
    rows = [Row("trips", cases[DEEP].all_trips, "")]
    for depth, case in cases.items():
        rows.append(Row(f"depth {depth}: compile and first call", case.compile_seconds, "s", goal=1.0))
        rows.append(Row(f"depth {depth}: whole run", times[f"run {depth}"] * 1e3, "ms"))
        rows.append(Row(f"depth {depth}: per trip", per_trip[depth] * 1e6, "us"))
    rows.append(Row("time per trip, deep / shallow", per_trip[DEEP] / per_trip[SHALLOW], "x", goal=1.2))
    rows.append(Row("whole run, deep / shallow", times[f"run {DEEP}"] / times[f"run {SHALLOW}"], "x", goal=2.5))
    return rows


def compare_rows(lanes: int, top: int, repeats: int) -> list[Row]:
    """Every schedule with every emitter, for choosing the defaults."""
    rows = []
    for schedule in ("earliest", "largest", "sweep"):
        for emitter in ("guard", "port"):
            case = Case(lanes, SHALLOW, top, schedule=schedule, emitter=emitter)
            whole = median_seconds(case.run, repeats) * 1e3
            rows.append(Row(f"{schedule}, {emitter}: {case.all_trips} trips", whole, "ms"))
    return rows


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--top", type=int, default=15, help="n is uniform in 0..TOP")
    parser.add_argument("--schedule", default="auto")
    parser.add_argument("--emitter", default="auto")
    parser.add_argument("--compare", action="store_true", help="also time every schedule with every emitter")
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    options = {"schedule": chosen.schedule, "emitter": chosen.emitter}
    rows = depth_rows(1024, chosen.top, chosen.repeats, **options)
    if chosen.compare:
        rows += compare_rows(1024, chosen.top, chosen.repeats)
    report(f"recursive fib, n in 0..{chosen.top}, {options}", rows, chosen.json)


if __name__ == "__main__":
    main()
