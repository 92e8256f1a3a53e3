"""Random programs for as long as you like: `python -m tests.fuzz --seconds 600 --seed 0`, or `make fuzz`.

A seed stands for a batch of programs, which Hypothesis draws from it alone; so a failing seed can be run again by
itself (`--seed 17 --batches 1`). What fails is shrunk to a smallest program before it is printed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax

from tests import (
    conftest,  # noqa: F401  (the same flags as in the suite, before JAX starts)
    fuzz_python,
    shares,
)
from tests.oracles.interpreters import MODES, SCHEDULES, VARIANTS, check_jax, check_stages, prepare
from tests.oracles.smooth import Derivative, check_smooth, derivatives
from tests.programs.census import census
from tests.programs.random_programs import RandomProgram, programs
from tests.programs.smooth import SmoothProgram, smooth_programs

STAGES_PER_SEED = 100
JAX_PER_SEED = 10
GRADIENTS_PER_SEED = 10
STAGE_LANES = 3
PYTHON_PER_SEED = 20
KINDS = ("interpreters", "jax", "gradients", "python")
JAX_LANES = 5

SETTINGS: dict[str, Any] = {
    "database": None,
    "deadline": None,
    "derandomize": False,
    "report_multiple_bugs": False,
    "suppress_health_check": list(hypothesis.HealthCheck),
}


def draw_programs(seed: int, count: int, check: Callable[..., None], *more: Any) -> None:
    """Call `check` with so many programs (and values of other strategies) that follow from the seed alone.

    Raises what `check` raises, for the smallest program that Hypothesis finds; the program is the first note on it.
    """
    draw(seed, count, check, programs(), *more)


def draw(seed: int, count: int, check: Callable[..., None], *strategies: Any) -> None:
    """The same for values of any strategies."""

    def noted(drawn: tuple[Any, ...]) -> None:
        try:
            check(*drawn)
        except Exception as error:
            error.add_note("\n".join(map(str, drawn)))
            raise

    given = hypothesis.given(st.tuples(*strategies))(noted)
    hypothesis.seed(seed)(hypothesis.settings(max_examples=count, **SETTINGS)(given))()


def through_interpreters(program: RandomProgram) -> bool:
    """Four oracles: plain Python and the interpreters of all stages; gives whether calls may run side by side."""
    return "tasks" in check_stages(prepare(program, zlib.crc32(program.text.encode()), STAGE_LANES))


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a program."""

    options: dict[str, Any]
    lanes: int | None = None  # of a machine that all inputs go through
    jit: bool = False  # inside a program of the user's


def ways() -> st.SearchStrategy[Way]:
    """Any way, and more often than not one of those that users choose."""
    chosen = st.builds(Way, st.sampled_from(VARIANTS))
    options = st.fixed_dictionaries(
        {"schedule": st.sampled_from(SCHEDULES), "modes": st.sampled_from(MODES)},
        optional={"stats": st.just(True), "max_steps": st.just(100_000)},
    )
    lanes = st.one_of(st.none(), st.integers(1, JAX_LANES))
    return st.one_of(chosen, st.builds(Way, options, lanes, st.booleans()))


def through_jax(program: RandomProgram, way: Way) -> None:
    """The fifth: what JAX runs, in one of the ways to run it."""
    check_jax(prepare(program, zlib.crc32(program.text.encode()), JAX_LANES), way.options, way.lanes, way.jit)


def interpreters_batch(seed: int, count: int = STAGES_PER_SEED) -> int:
    """The programs of one seed through the interpreters; gives how many have calls that may run side by side."""
    forking = 0

    def check(program: RandomProgram) -> None:
        nonlocal forking
        forking += through_interpreters(program)

    gc.collect()
    gc.disable()  # a sixth of the time goes into looking at what JAX keeps; a batch leaves little garbage
    try:
        draw_programs(seed, count, check)
    finally:
        gc.enable()
    return forking


def forget(count: int) -> None:
    """Empty JAX's caches after a batch of so many, but not in a usual run of the suite, whose tests share them."""
    if count > 1 or shares.full:
        jax.clear_caches()


def jax_batch(seed: int, count: int = JAX_PER_SEED) -> None:
    """The programs of one seed through JAX."""

    try:
        draw_programs(seed, count, through_jax, ways())
    finally:
        forget(count)


def gradients_batch(seed: int, count: int = GRADIENTS_PER_SEED) -> None:
    """The programs over floating numbers of one seed: their derivatives."""

    def check(program: SmoothProgram, way: Derivative) -> None:
        with jax.numpy_dtype_promotion("standard"):
            check_smooth(program, way, zlib.crc32(program.text.encode()))

    try:
        draw(seed, count, check, smooth_programs(), derivatives())
    finally:
        forget(count)


def python_batch(seed: int, count: int = PYTHON_PER_SEED) -> None:
    """Small programs over Python's own data through the interpreters; what fails is printed."""
    failing = fuzz_python.explore(seed * count, count, "interpreters", as_is=False, grammar="small").failing
    if failing:
        raise AssertionError(f"failing seeds of tests.fuzz_python: {failing}")


def explore(first: int, seconds: float, batches: int | None, kinds: Sequence[str]) -> int:
    """Run batches until the time is over; gives the number of failing ones."""
    started, done, failures = time.monotonic(), Counter[str](), 0
    run: dict[str, Callable[[int], int | None]]
    run = {"interpreters": interpreters_batch, "jax": jax_batch, "gradients": gradients_batch, "python": python_batch}
    sizes = dict(zip(KINDS, (STAGES_PER_SEED, JAX_PER_SEED, GRADIENTS_PER_SEED, PYTHON_PER_SEED), strict=True))
    seed, forking = first, 0
    while time.monotonic() - started < seconds and (batches is None or seed < first + batches):
        for kind in kinds:
            try:
                forking += run[kind](seed) or 0
            except Exception as error:
                failures += 1
                notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("program with")]
                shown = [f"{type(error).__name__}: {error}", *notes[:1]]
                print(f"\nseed {seed}, {kind}:", *shown, sep="\n", flush=True)
            done[kind] += sizes[kind]
        seed += 1
        counts = ", ".join(f"{done[kind]:,} programs through {kind}" for kind in kinds)
        counts += f", {forking:,} of them with forks" if forking else ""
        progress = f"seeds {first} to {seed - 1}: {counts}, {failures} failures, {time.monotonic() - started:,.0f} s"
        print(f"\r{progress}", end="", flush=True)
    print()
    return failures


def table(seed: int, count: int) -> None:
    """Print how often each construct occurs, and how many blocks are run by some lane."""
    total, holding, blocks = Counter[str](), Counter[str](), Counter[bool]()

    def check(program: RandomProgram) -> None:
        found = census(program)
        total.update(found)
        holding.update(name for name, times in found.items() if times)
        case = prepare(program, zlib.crc32(program.text.encode()), STAGE_LANES)
        traces, cfg = check_stages(case), case.entry.lower(*case.args).stages.cfg
        labels = [f"{f.name}:{b.label}" for f in cfg.functions for b in f.blocks]
        blocks.update(label in traces["cfg"] for label in labels)

    draw_programs(seed, count, check)
    print(f"{'construct':48}{'per 1,000':>10}{'programs':>10}")
    for name, times in sorted(total.items()):
        print(f"{name:48}{times * 1000 / count:>10,.0f}{holding[name] * 1000 / count:>10,.0f}")
    print(f"blocks that some lane runs: {blocks[True] / blocks.total():.1%} of {blocks.total():,}")


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long (default: until interrupted)")
    parser.add_argument("--batches", type=int, help="how many seeds at most")
    parser.add_argument("--only", choices=KINDS, help="one kind of check alone")
    parser.add_argument("--as-is", action="store_true", help="print what fails at once, as it was drawn")
    parser.add_argument("--table", type=int, metavar="N", help="count the constructs of N programs instead")
    options = parser.parse_args(words)
    warnings.simplefilter("error")
    if options.as_is:
        SETTINGS["phases"] = [hypothesis.Phase.generate]
    if options.table:
        table(options.seed, options.table)
        return 0
    kinds = (options.only,) if options.only else KINDS
    try:
        return int(explore(options.seed, options.seconds, options.batches, kinds) > 0)
    except KeyboardInterrupt:
        print()
        return 130


if __name__ == "__main__":
    sys.exit(main())
