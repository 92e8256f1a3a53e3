"""Recursive functions whose lanes nest differently: `python -m benchmarks.recursion [--devices 4]`

The peer is the same computation with a stack by hand under `jax.vmap`, for all lanes or in rounds of 512: what a user
of JAX has to write instead. With `--devices 4`, Fibonacci alone, its lanes split over so many devices of the CPU.

XLA gets one thread per device unless NPROC says otherwise: a trip is a chain of small kernels.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import pcbatch
from benchmarks.common import Row, interleaved_medians, report, seconds
from benchmarks.devices import split, use
from benchmarks.queues.peers import in_rounds, together
from benchmarks.recursions import RECURSIONS, Recursion

OURS, ROUND = "pcbatch", 512
GOALS = {("fib", 1): 0.25, ("fib", 4): 0.07}  # seconds for 16384 lanes


def check(name: str, found: Any, expected: Any) -> None:
    """Stop at a wrong result."""
    if not np.array_equal(np.asarray(found), np.asarray(expected)):
        raise SystemExit(f"{name}: wrong results, nothing to measure")


def compare(title: str, calls: dict[str, Callable[[], Any]], repeats: int, goal: float | None) -> list[Row]:
    """Ours among its peers."""
    first = seconds(calls[OURS])
    expected = calls[OURS]()
    for name, call in calls.items():
        check(f"{title}, {name}", call(), expected)
    times = interleaved_medians(calls, repeats)
    best = min((name for name in calls if name != OURS), key=lambda name: times[name])
    return [
        Row(f"{title}: {OURS}, compile and first call", first, "s"),
        *(Row(f"{title}: {name}", time, "s", goal if name == OURS else None) for name, time in times.items()),
        Row(f"{title}: best peer / pcbatch", times[best] / times[OURS], "x", None, False, f"{best} (s)", times[best]),
    ]


def on_one(name: str, lanes: int | None, repeats: int) -> list[Row]:
    """One program on one device."""
    program = RECURSIONS[name]
    count = lanes or program.lanes
    inputs = program.inputs(count)
    batched = pcbatch.batch(program.solve, max_depth=program.depth, plan=pcbatch.Plan(fork="never"))
    title = f"{program.title}, {count} lanes"
    peers = {f"by hand, {how}": make for how, make in _by_hand(program, count).items()}
    calls = {key: lambda f=f: f(*inputs) for key, f in {OURS: lambda *x: batched.run(*x).value, **peers}.items()}
    rows = compare(title, calls, repeats, GOALS.get((name, 1)) if count == program.lanes else None)
    result = batched.run(*inputs)
    check(f"{title}, status", result.status, np.zeros(count))
    return [*rows, Row(f"{title}: trips", int(result.stats.trips), "")]


def _by_hand(program: Recursion, count: int) -> dict[str, Callable[..., Any]]:
    ways = {"vmap": together(program.by_hand)}
    return ways | ({f"rounds of {ROUND}": in_rounds(program.by_hand, ROUND)} if count % ROUND == 0 else {})


def on_several(name: str, devices: int, lanes: int | None, repeats: int) -> list[Row]:
    """One program, its lanes split over devices."""
    program = RECURSIONS[name]
    count = lanes or program.lanes
    inputs = program.inputs(count)
    batched = pcbatch.batch(program.solve, max_depth=program.depth, devices=devices, plan=pcbatch.Plan(fork="never"))
    ways = {f"by hand, {how}": make for how, make in _by_hand(program, count // devices).items()}
    title = f"{program.title}, {count} lanes on {devices} devices"
    calls = {OURS: lambda: batched.run(*inputs).value}
    calls |= {key: split(f, inputs, devices) for key, f in ways.items()}
    rows = compare(title, calls, repeats, GOALS.get((name, devices)) if count == program.lanes else None)
    check(f"{title}, status", batched.run(*inputs).status, np.zeros(count))
    return rows


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=RECURSIONS, action="append", help="one program; may be given again")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--lanes", type=int, help="default: 16384 for fib, else 1024")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    use(chosen.devices)
    if chosen.devices > 1:
        names = chosen.only or ["fib"]
        rows = [row for name in names for row in on_several(name, chosen.devices, chosen.lanes, chosen.repeats)]
    else:
        rows = [row for name in chosen.only or RECURSIONS for row in on_one(name, chosen.lanes, chosen.repeats)]
    report(f"recursion, {jax.device_count()} device(s)", rows, chosen.json)


if __name__ == "__main__":
    main()
