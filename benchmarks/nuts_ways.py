"""NUTS on Gaussians: chains together, one chain after the other, what is chosen, and BlackJAX where it is installed.

    NPROC=1 python -m benchmarks.nuts_ways [--sizes 10x64 24x64 100x100 100x1000] [--repeats 5]

CPU seconds of the process, in turn. A size is coordinates x chains. Gradients are those that a chain's own trajectory
asked for.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

os.environ.setdefault("NPROC", "1")

import jax
import numpy as np

from benchmarks.common import interleaved_cpu_medians, timed
from benchmarks.samplers import Sampler, chain, correlated, draws_of, peers
from pcbatch import Plan

SIZES = ("10x64", "24x64", "100x100", "100x1000")
WORK = 100_000  # gradients of a call, about
WAYS = {"together": Plan(emitter="guard"), "one after the other": Plan(emitter="scalar"), "chosen": Plan()}


def measure(size: int, chains: int, repeats: int) -> dict[str, tuple[float, float]]:
    """Return microseconds of a gradient, and seconds of the first call, for each way."""
    setting, draws = correlated(size), max(4, WORK // (chains * 30))
    samplers = {}
    for name, plan in WAYS.items():
        batched, arguments = chain(setting, chains, draws, plan=plan)
        samplers[name] = Sampler(lambda *args, f=batched: draws_of(f.run(*args)), arguments)
    for name, make in peers().items():
        made = make(setting, chains, draws)
        samplers[name] = Sampler(jax.jit(made.run), made.arguments)
    calls = {name: (lambda s=s: jax.block_until_ready(s.run(*s.arguments))) for name, s in samplers.items()}
    first = {name: timed(call) for name, call in calls.items()}
    medians = interleaved_cpu_medians(calls, repeats)
    gradients = {name: float(np.asarray(found[1]).sum()) for name, (_, found) in first.items()}
    return {name: (1e6 * medians[name] / gradients[name], first[name][0]) for name in calls}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each size and way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="coordinates x chains")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args(arguments)
    print("| coordinates | chains | way | us a gradient | over chains together | first call s |")
    print("|---:|---:|---|---:|---:|---:|")
    for size, chains in (map(int, text.split("x")) for text in given.sizes):
        found = measure(size, chains, given.repeats)
        for name, (time, first) in found.items():
            ratio = found["together"][0] / time
            print(f"| {size} | {chains} | {name} | {time:.2f} | {ratio:.2f} | {first:.1f} |", flush=True)


if __name__ == "__main__":
    main()
