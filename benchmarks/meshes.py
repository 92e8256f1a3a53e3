"""Lanes on several devices, in the ways that JAX knows: `python -m benchmarks.meshes [--devices 4] [--lanes 16384]`

One device; `devices=` and `mesh=`; arrays that lie on the devices already; the same inside `jax.jit`, inside
`jax.shard_map`, and on a mesh with explicit axes. Besides times, the collectives in the program that XLA makes: in the
loop of a machine each of them would be one per trip.

XLA gets one thread per device unless NPROC says otherwise.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType

import pcbatch
from benchmarks.common import Row, interleaved_medians, report, seconds
from benchmarks.devices import use
from benchmarks.recursions import RECURSIONS

COLLECTIVE = re.compile(r"= \S+ ((?:all|collective|reduce-scatter)[a-z-]*)\(")


def ways(f: Any, ns: np.ndarray, devices: int) -> dict[str, tuple[Callable[[], Any], Any]]:
    """By name: a call, and what tells the program of XLA (None: not one program)."""
    mesh = jax.make_mesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    typed = jax.make_mesh((devices,), ("x",), axis_types=(AxisType.Explicit,))
    spec = jax.P("x")
    here, there = jax.device_put(ns), jax.device_put(ns, jax.NamedSharding(mesh, spec))
    known = jax.device_put(ns, jax.NamedSharding(typed, spec))
    inside = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec))
    jitted = jax.jit(f)
    asked = jax.jit(lambda ns: f(ns, mesh=mesh))
    return {
        "one device": (lambda: f(here), None),
        "devices=": (lambda: f(ns, devices=devices), None),
        "arrays that lie on them": (lambda: f(there), None),
        "explicit axes": (lambda: f(known), None),
        "in jit, sharded": (lambda: jitted(there), jitted.lower(there)),
        "in jit, mesh=": (lambda: asked(here), asked.lower(here)),
        "in jit, explicit axes": (lambda: jitted(known), jitted.lower(known)),
        "in shard_map": (lambda: inside(there), inside.lower(there)),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--lanes", type=int, default=16384)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", metavar="OUT")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("NPROC", str(chosen.devices))  # read by XLA at its first computation
    use(chosen.devices)
    program = RECURSIONS["fib"]
    (ns,) = program.inputs(chosen.lanes)
    made = ways(
        pcbatch.batch(program.solve, max_depth=program.depth, plan=pcbatch.Plan(fork="never")),
        np.asarray(ns),
        chosen.devices,
    )
    expected = np.asarray(made["one device"][0]())
    first = {name: seconds(call) for name, (call, _) in made.items()}
    for name, (call, _) in made.items():
        if not np.array_equal(np.asarray(call()), expected):
            raise SystemExit(f"{name}: wrong results, nothing to measure")
    times = interleaved_medians({name: call for name, (call, _) in made.items()}, chosen.repeats)
    rows = [Row(f"{name}: compile and first call", time, "s") for name, time in first.items()]
    for name, (_, lowered) in made.items():
        rows.append(Row(name, times[name], "s", None, False, "one device (s)", times["one device"]))
        if lowered is not None:
            rows.append(Row(f"{name}: collectives", len(COLLECTIVE.findall(lowered.compile().as_text())), ""))
    report(f"{program.title}, {chosen.lanes} lanes, {jax.device_count()} devices", rows, chosen.json)


if __name__ == "__main__":
    main()
