"""What it costs to look after a run: `python -m benchmarks.long_runs [--repeats 11]`

A run with `progress=` (or `timeout=`, or `save_to=`) is many programs of a fraction of a second each instead of one.
Both take turns in one process on the same arguments; a row is the median of the ratios of pairs. Some runs take
seconds, as those do that one looks after, and some are as short as a few hundredths of a second.

XLA gets one thread unless NPROC says otherwise.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import Row, paired, report, seconds
from benchmarks.queues import ode
from benchmarks.recursions import fib
from benchmarks.samplers import chain, correlated

GOAL = 1.02
Call = Callable[..., Any]


def _numbers(low: int, high: int, count: int) -> tuple[Any, ...]:
    return (jnp.asarray(np.random.default_rng(0).integers(low, high + 1, count).astype(np.int32)),)


def cases(quick: bool) -> dict[str, tuple[Any, tuple[Any, ...], bool]]:
    """Functions, their arguments, and whether they go through `f.map`."""
    setting = correlated()
    solver = pcbatch.batch(ode.solve)
    small: dict[str, tuple[Any, tuple[Any, ...], bool]] = {
        "fib, n in 0..15, 1000 lanes": (
            pcbatch.batch(fib, max_depth=32, plan=pcbatch.Plan(fork="never")),
            _numbers(0, 15, 1000),
            False,
        ),
        "ODE, 512 lanes": (solver, ode.inputs(512), False),
        "NUTS, 100 chains, 10 draws": (*chain(setting, 100, 10), False),
    }
    if quick:
        return small
    return small | {
        "fib, n in 0..22, 1000 lanes": (
            pcbatch.batch(fib, max_depth=32, plan=pcbatch.Plan(fork="never")),
            _numbers(0, 22, 1000),
            False,
        ),
        "fib, n in 0..22, 16384 inputs by map": (
            pcbatch.batch(fib, max_depth=32, plan=pcbatch.Plan(fork="never")),
            _numbers(0, 20, 16384),
            True,
        ),
        "ODE, 65536 inputs by map": (solver, ode.inputs(65536), True),
        "NUTS, 100 chains, 50 draws": (*chain(setting, 100, 50), False),
    }


def digest(tree: Any) -> list[bytes]:
    """The bits of all leaves, keys included."""
    leaves = jax.tree.leaves(tree)
    raw = [jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in leaves]
    return [np.asarray(x).tobytes() for x in raw]


def compare(name: str, f: Any, args: tuple[Any, ...], mapped: bool, repeats: int) -> list[Row]:
    """One program, and many."""
    run: Call = f.map if mapped else f.run
    told: list[int] = []

    def alone() -> Any:
        return run(*args)

    def watched() -> Any:
        return run(*args, progress=lambda done, total: told.append(done))

    if digest(alone().value) != digest(watched().value):
        raise SystemExit(f"{name}: the results differ")
    seconds(watched)  # which learns how many trips take how long
    told.clear()
    seconds(watched)
    programs = len(told)
    one, many, ratio = paired(alone, watched, repeats)
    return [
        Row(f"{name}: one program", one, "s"),
        Row(f"{name}: {programs} reports", ratio, "x", GOAL, False, "one program (s)", one),
        Row(f"{name}: more than one program", 1e3 * (many - one), "ms"),
    ]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="the short ones only")
    parser.add_argument("--only", help="those with this text in their names")
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    rows: list[Row] = []
    for name, (f, args, mapped) in cases(chosen.quick).items():
        if chosen.only is None or chosen.only in name:
            rows += compare(name, f, args, mapped, chosen.repeats)
    report("Looking after a run", rows, chosen.json)


if __name__ == "__main__":
    main()
