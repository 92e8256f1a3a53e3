"""Independent calls as tasks or in turn, on one CPU: `python -m benchmarks.tasks [--repeats 25]`

Fibonacci is called for one example and for 1024; `fork="always"` runs the calls of an activation side by side. CPU
seconds of the process, medians, all ways in turn. "sums" is the program whose results are added up without frames.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import cpu_seconds
from benchmarks.recursions import fib
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions
from tests.runtime import task_programs

Ways = Mapping[str, Callable[[], Any]]


def ways(n: jax.Array, widths: Sequence[int | None]) -> dict[str, Callable[[], Any]]:
    """The ways to compute Fibonacci's numbers."""
    lanes = pcbatch.batch(fib, max_depth=32, fork="never")
    found: dict[str, Callable[[], Any]] = {"in turn": lambda: lanes(n)}
    for name, program in {"frames": task_programs.fib_frames(), "sums": task_programs.fib_sums()}.items():
        for width in widths:
            run = TaskExecutable(program, TaskOptions(width=width)).run
            label = name if width is None else f"{name}, {width} wide"
            found[label] = lambda run=run: run({"n": n}, n.shape[0]).raw.values[0]
    return found


def table(title: str, ways: Ways, repeats: int) -> None:
    """Print the medians; all ways must agree."""
    wanted = np.asarray(ways["in turn"]())
    for name, call in ways.items():
        assert np.array_equal(np.asarray(call()), wanted), name
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, call in ways.items():
            times[name].append(cpu_seconds(call))
    base = statistics.median(times["in turn"])
    print(f"\n{title}\n| way | ms | times as fast as in turn |\n|---|---|---|")
    for name, some in times.items():
        median = statistics.median(some)
        print(f"| {name} | {1e3 * median:.2f} | {base / median:.1f} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--widths", type=int, nargs="*", default=[256, 1024])
    options = parser.parse_args()
    widths = (None, *options.widths)
    table("fib(24), one example", ways(jnp.array([24], jnp.int32), widths), options.repeats)
    many = jnp.asarray(np.random.default_rng(0).integers(0, 16, 1024), jnp.int32)
    table("fib, 1024 examples of 0 to 15", ways(many, widths), options.repeats)


if __name__ == "__main__":
    main()
