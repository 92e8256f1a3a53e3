"""The measurements of one program in a process of its own: `python -m benchmarks.gpu.measure PROGRAM`

Reads a JSON list of cases from the standard input, and writes a line of JSON before and behind each: where the process
dies, its parent knows at which case.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

import pcbatch
from benchmarks.gpu import peers
from benchmarks.gpu.programs import program
from pcbatch.runtime.costs.xla_options import GRAPHS, LOOPS_IN_GRAPHS

LEAST, MOST = 3, 25  # calls that are timed
SECONDS = 1.0  # of them all, if they are not fewer than `LEAST`
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


def main() -> None:
    """Measure what is asked for."""
    name = sys.argv[1]
    answer(json.load(sys.stdin), lambda case: measured(name, case))


def answer(asked: Sequence[dict[str, Any]], measure: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Measure each case, with a line before and behind it."""
    for case in asked:
        _say({"begins": case})
        _say({"ends": case, **_attempt(measure, case)})


def _say(line: dict[str, Any]) -> None:
    print("gpu-bench:" + json.dumps(line), flush=True)


def _attempt(measure: Callable[[dict[str, Any]], dict[str, Any]], case: dict[str, Any]) -> dict[str, Any]:
    try:
        return measure(case)
    except Exception as error:  # out of memory, a program that is refused: the other cases go on
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}


def measured(name: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds and the work of a case: `emitter` (or `peer`), `lanes`, `graphs`."""
    lanes, graphs = case["lanes"], case["graphs"]
    if "peer" in case:
        peer = next(each for each in peers.peers(name) if each.name == case["peer"])
        made = peer.prepare(lanes)
        if made is None:
            return {"error": f"left out: more than {peers.WIDEST_CHAINS:,} chains"}
        on_gpu = jax.default_backend() != "cpu"
        call, arguments = jax.jit(made[0], compiler_options=LOOPS_IN_GRAPHS if graphs and on_gpu else None), made[1]
        work = peer.work
    else:
        of = program(name)
        emitter = pcbatch.Kernel(**case["sizes"]) if case.get("sizes") else case["emitter"]
        call = of.function.with_options(plan=replace(of.function.options.plan, emitter=emitter))
        # XLA has read its flags by now: this one is for pcbatch, which does not ask for graphs where it is set.
        os.environ["XLA_FLAGS"] = "" if graphs else f"{GRAPHS}="
        arguments, work = of.inputs(lanes), of.work
    arguments = jax.device_put(arguments) if "peer" in case or name != "trees" else arguments
    first, out = timed(lambda: call(*arguments))
    found = {"first_s": first, "work": work(out), "check": _summary(out)}
    taken = times(lambda: call(*arguments))
    found |= {"seconds": statistics.median(taken), "calls": len(taken)}
    if case.get("trace"):
        with jax.profiler.trace(case["trace"]):
            timed(lambda: call(*arguments))
    if (folder := case.get("save")) is not None:
        leaves = [np.asarray(x) for x in jax.tree.leaves(out)]
        np.savez(os.path.join(folder, "out.npz"), *leaves)
    return found


def times(call: Callable[[], Any], wait: Callable[[Any], Any] = jax.block_until_ready) -> list[float]:
    """Return the seconds of some calls."""
    began, found = time.perf_counter(), [timed(call, wait)[0]]
    while len(found) < MOST and (len(found) < LEAST or time.perf_counter() - began < SECONDS):
        found.append(timed(call, wait)[0])
    return found


def timed(call: Callable[[], Any], wait: Callable[[Any], Any] = jax.block_until_ready) -> tuple[float, Any]:
    """Return the seconds of a call until its result is there, and the result."""
    began = time.perf_counter()
    out = wait(call())
    return time.perf_counter() - began, out


def _summary(out: Any) -> list[float]:
    """Numbers by which results of two emitters are compared: the sum of each leaf, NaN left out."""
    return [float(np.nansum(np.asarray(x, np.float64))) for x in jax.tree.leaves(out)]


if __name__ == "__main__":
    main()
