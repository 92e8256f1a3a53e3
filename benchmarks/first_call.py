"""The parts of a first call, from source to machine code: `python -m benchmarks.first_call`

Each program of the gallery is compiled for its first call with few lanes. All is measured in time of the processor,
that of XLA's threads included, so that other programs on the machine count little.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import pkgutil
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import pcbatch
from benchmarks.common import Row, report
from benchmarks.compile_time import Stages, watched
from examples import gallery

LANES = 8
OURS = {
    "frontend": "front end",
    "primitives, by JAX": "primitives, traced by JAX",
    "infer": "rest of type inference",
    "verifier": "verifier",
}
PASSES, JAXPR, XLA = "passes", "machine to StableHLO", "XLA"
COLUMNS = (*OURS.values(), PASSES, JAXPR, XLA)
NAMES = tuple(found.name for found in pkgutil.iter_modules(gallery.__path__) if not found.name.startswith("_"))
BATCHED = type(pcbatch.batch(lambda x: x))


class Found(Exception):
    """Ends a program at its first call of a batched function, and holds that call."""

    def __init__(self, batched: Any, args: tuple[Any, ...]) -> None:
        super().__init__()
        self.batched, self.args_of_call = batched, args


@contextlib.contextmanager
def ended_by_calls() -> Iterator[None]:
    """Let calls of batched functions raise `Found` within the context."""

    def found(batched: Any, *args: Any, **_: Any) -> None:
        raise Found(batched, args)

    old = {name: getattr(BATCHED, name) for name in ("__call__", "map")}
    for name in old:
        setattr(BATCHED, name, found)
    try:
        yield
    finally:
        for name, method in old.items():
            setattr(BATCHED, name, method)


def first_call(name: str) -> tuple[Any, tuple[Any, ...]]:
    """The first call of a batched function that a program of the gallery makes: the function and its arguments."""
    module = importlib.import_module(f"{gallery.__name__}.{name}")
    try:
        with ended_by_calls(), contextlib.redirect_stdout(io.StringIO()):
            module.main(lanes=LANES)
    except Found as found:
        return found.batched, found.args_of_call
    raise LookupError(f"{name} calls no batched function")


def parts(batched: Any, args: tuple[Any, ...]) -> dict[str, float]:
    """Seconds of each part of a first call."""
    stages = Stages()
    gc.collect()  # what was compiled before must not count for this one
    start = time.process_time()
    with watched(stages):
        lowered = batched.lower(*args)
    whole = time.process_time() - start
    found = {column: stages.seconds.get(stage, 0.0) for stage, column in OURS.items()}
    found[PASSES] = whole - sum(found.values())
    for part, run in ((JAXPR, lambda: lowered.as_text("stablehlo")), (XLA, lowered.compile)):
        start = time.process_time()
        run()
        found[part] = time.process_time() - start
    return found


def table(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The lines of a table in Markdown, with a program in each, in milliseconds."""
    lines = [f"| ms | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    return lines + [
        f"| {name} | {' | '.join(f'{1e3 * seconds[column]:.0f}' for column in COLUMNS)} |"
        for name, seconds in found.items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--json", metavar="OUT")
    chosen = parser.parse_args(arguments)
    parts(pcbatch.batch(lambda x: jnp.where(x > 0, x, -x)), (jnp.arange(LANES),))  # what any first program pays for
    found: dict[str, dict[str, float]] = {}
    for name in chosen.only:
        call = first_call(name)
        jax.clear_caches()
        found[name] = parts(*call)
    print("\n".join(table(found)))
    rows = [Row(f"{name}: {part}", 1e3 * value, "ms") for name, spent in found.items() for part, value in spent.items()]
    report("parts of a first call", rows, chosen.json)


if __name__ == "__main__":
    main()
