"""The gain of each mechanism that makes a trip of lanes together cheaper.

    NPROC=1 python -m benchmarks.wide_mechanisms [--only collatz] [--without groups] [--repeats 7]

Lanes run together (emitter "guard"), on programs that are faster so: cheap loops of thousands of lanes, samplers,
networks. Each is compiled with all mechanisms, and then with one of them left out. Numbers are multiples of the time
with all, CPU seconds of the process, least of several calls, all ways in turn: 1.30 means that without the mechanism a
call takes 1.3 times as long. The column "again", the same once more, shows how far the numbers can be trusted. Results
are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

os.environ.setdefault("NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks import network_gradients as networks
from benchmarks.cheap_loops import LOOPS
from benchmarks.common import interleaved_cpu_seconds
from benchmarks.programs import collatz
from benchmarks.samplers import chain, correlated, draws_of
from benchmarks.unrolling import loops
from examples.gallery.mandelbrot import escape
from pcbatch.plan import Dense, Mode
from pcbatch.runtime.costs import plan_modes
from pcbatch.runtime.vm import block_body, register_groups

Way = Callable[[], contextlib.AbstractContextManager[Any]]


@contextlib.contextmanager
def _planned(change: Callable[[Mode], Mode]) -> Iterator[None]:
    """Change the mode that is planned for each block."""
    choices = plan_modes.Costs.choices

    def planned(self: Any, lanes: int) -> Any:
        return tuple((change(mode), why) for mode, why in choices(self, lanes))

    with patch.object(plan_modes.Costs, "choices", planned):
        yield


def _no_mode(kind: type) -> contextlib.AbstractContextManager[Any]:
    """Plan no block in this mode."""
    return _planned(lambda mode: Dense() if isinstance(mode, kind) else mode)


def _no_dense(**fields: Any) -> contextlib.AbstractContextManager[Any]:
    """Plan dense blocks with these fields."""
    return _planned(lambda mode: replace(mode, **fields) if isinstance(mode, Dense) else mode)


@contextlib.contextmanager
def _lanes_first() -> Iterator[None]:
    """Keep all registers with the lanes first."""
    nothing = lambda *args: frozenset()  # noqa: E731
    with (
        patch.object(block_body, "lanes_last_registers", nothing),
        patch.object(plan_modes, "lanes_last_registers", nothing),
        patch.object(block_body, "_by_lanes_last", nothing),
    ):
        yield


WITHOUT: dict[str, Way] = {
    "again": contextlib.nullcontext,
    "groups": lambda: patch.object(register_groups, "ENABLED", False),
    "narrower": lambda: patch.object(plan_modes.Costs, "narrower", lambda self, lanes, wanted=None: ()),
    "few": lambda: _no_mode(pcbatch.Few),
    "strips": lambda: _no_mode(pcbatch.Strips),
    "spins": lambda: _no_dense(spins=0),
    "always": lambda: _no_dense(always=False),
    "lanes last": _lanes_first,
    "left behind": lambda: patch.object(plan_modes.Costs, "left_behind", lambda self, lanes: 0.0),
}


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions of options that give a call, and its arguments."""
    rng = np.random.default_rng(0)

    def plain(fn: Any, *args: Any, **options: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return lambda **more: pcbatch.batch(fn, **options, **more), jax.device_put(args)

    def nuts(size: int, chains: int, draws: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        def make(**more: Any) -> Callable[..., Any]:
            batched, _ = chain(correlated(size), chains, draws, **more)
            return lambda *args: draws_of(batched.run(*args))

        return make, chain(correlated(size), chains, draws)[1]

    c = rng.uniform(-2, 1, 2048) + 1j * rng.uniform(-1, 1, 2048)
    cheap = {f"{name} 2,048": plain(each.solve, *each.inputs(2048)) for name, each in LOOPS.items() if name != "fib"}
    rounds = {f"{name} 4,096": each for name, each in loops(4096).items() if name in ("loop", "rare block")}
    x, w = networks.exit_inputs(512, stacked=True)
    t, u = networks.ode_inputs(512)
    return {
        "collatz 4,096": plain(collatz, rng.integers(1, 10_000, 4096).astype(np.int32)),
        "mandelbrot 2,048": plain(escape.fn, jnp.asarray(c, jnp.complex64)),
        **cheap,
        **rounds,
        "nuts 24 x 1,000": nuts(24, 1000, 8),
        "nuts 100 x 1,000": nuts(100, 1000, 4),
        "early exit 512": plain(networks.exit_stacked, x, w, in_axes=(0, None)),
        "neural ODE 512": plain(networks.ode, t, u, in_axes=(0, None)),
    }


def row(make: Callable[..., Any], args: tuple[Any, ...], ways: Sequence[str], repeats: int) -> list[float]:
    """Return the time without each mechanism over that with all."""

    def call(f: Callable[..., Any], way: Way) -> Callable[[], Any]:
        def run() -> Any:
            with way():
                return jax.block_until_ready(f(*args))

        return run

    calls = {"all": call(make(plan=pcbatch.Plan(emitter="guard")), contextlib.nullcontext)}
    calls |= {name: call(make(plan=pcbatch.Plan(emitter="guard")), WITHOUT[name]) for name in ways}
    first = {name: each() for name, each in calls.items()}
    for name, found in first.items():
        for a, b in zip(jax.tree.leaves(first["all"]), jax.tree.leaves(found), strict=True):
            agree = np.isclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True).mean()
            if agree < 0.98:  # rounding may send a few lanes another way
                raise SystemExit(f"without {name}: another result, {agree:.2%} agree")
    seconds = interleaved_cpu_seconds(calls, repeats)
    return [min(seconds[name]) / min(seconds["all"]) for name in ways]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each program, and the greatest number of each column."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="the programs with this in their name")
    parser.add_argument("--without", nargs="+", default=list(WITHOUT), choices=list(WITHOUT))
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args(arguments)
    print("| program, lanes |", " | ".join(given.without), "|")
    print("|---|" + "---:|" * len(given.without))
    rows = []
    for name, (make, args) in programs().items():
        if given.only in name:
            rows.append(row(make, args, given.without, given.repeats))
            print(f"| {name} |", " | ".join(f"{ratio:.2f}" for ratio in rows[-1]), "|", flush=True)
            jax.clear_caches()
    if rows:
        print("| greatest |", " | ".join(f"{max(column):.2f}" for column in zip(*rows, strict=True)), "|")


if __name__ == "__main__":
    main()
