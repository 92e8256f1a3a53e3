"""Where the time of a first call goes, by stage: `NPROC=1 python -m benchmarks.compile_stages`

The gallery, the programs of `benchmarks/fifty_lines`, the gradients of those whose results are floats, and programs
with classes (`benchmarks/object_programs`), each from its source to the end of its first run with few lanes. All is
measured in time of the processor, that of XLA's threads included, so that other programs on the machine count little.
`JAX_COMPILATION_CACHE_DIR` must not be set.
"""

from __future__ import annotations

import argparse
import gc
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.monitoring
import jax.numpy as jnp

import pcbatch
from benchmarks.common import Row, report
from benchmarks.compile_time import Stages, watched
from benchmarks.fifty_lines import PROGRAMS
from benchmarks.first_call import NAMES, first_call
from benchmarks.object_programs import PROGRAMS as OBJECTS
from tests.strangers.rows import argument

LANES = 8
GOALS = {  # median and worst
    "gallery": (3.0, 6.0),
    "fifty lines": (3.0, 6.0),
    "gradients": (5.0, 8.0),
    "objects": (5.0, 10.0),
}
LOWERED, COMPILED = "/jax/core/compile/jaxpr_to_mlir_module_duration", "/jax/core/compile/backend_compile_duration"
FRONT, TYPES, PASSES, MACHINE, LOWERING, XLA, RUN = (
    "front end",
    "types",
    "passes",
    "machine, traced",
    "StableHLO",
    "XLA",
    "run",
)
STAGES = (FRONT, TYPES, PASSES, MACHINE, LOWERING, XLA, RUN)
FUSION = re.compile(r" fusion\(")


@dataclass(slots=True)
class Events:
    """What JAX says while it compiles: processor seconds of StableHLO and of XLA, and the modules that XLA was given.

    JAX reports each stage where it ends; what the processor has spent since the report before that is the stage.
    """

    seconds: dict[str, float] = field(default_factory=lambda: {LOWERED: 0.0, COMPILED: 0.0})
    modules: list[str] = field(default_factory=list)
    last: float = field(default_factory=time.process_time)

    def __call__(self, event: str, duration: float, **about: Any) -> None:
        """Add one report of JAX."""
        now = time.process_time()
        if event in self.seconds:
            self.seconds[event] += now - self.last
        if event == COMPILED:
            self.modules.append(str(about.get("fun_name", "")))
        self.last = now


@contextmanager
def events() -> Iterator[Events]:
    """Listen to JAX while this lasts."""
    found = Events()
    jax.monitoring.register_event_duration_secs_listener(found)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(found)


@dataclass(frozen=True, slots=True)
class Spent:
    """One first call.

    Attributes:
        seconds: by stage.
        modules: how many programs XLA has compiled.
    """

    seconds: Mapping[str, float]
    modules: int

    @property
    def total(self) -> float:
        """All stages."""
        return sum(self.seconds.values())


def spent(call: Callable[[], Any]) -> Spent:
    """Measure the first call of a function that nobody has compiled."""
    jax.clear_caches()
    gc.collect()
    stages = Stages()
    with events() as heard, watched(stages):
        start = time.process_time()
        jax.block_until_ready(call())
        whole = time.process_time() - start
    start = time.process_time()
    jax.block_until_ready(call())
    run = time.process_time() - start
    found = {
        FRONT: stages.seconds.pop("frontend", 0.0),
        TYPES: stages.seconds.pop("primitives, by JAX", 0.0) + stages.seconds.pop("infer", 0.0),
        PASSES: sum(stages.seconds.values()),
        LOWERING: heard.seconds[LOWERED],
        XLA: heard.seconds[COMPILED],
        RUN: run,
    }
    found[MACHINE] = max(whole - sum(found.values()), 0.0)
    return Spent({stage: found[stage] for stage in STAGES}, len(heard.modules))


def gallery(name: str) -> Callable[[], Any]:
    """The first batched call of a program of the gallery."""
    function, args = first_call(name)
    return lambda: function(*args)


def forward(name: str) -> Callable[[], Any]:
    """A call of a program of fifty lines."""
    program = PROGRAMS[name]
    function, args = pcbatch.batch(program.function), program.arguments(LANES)
    return lambda: function(*args)


def gradient(name: str) -> Callable[[], Any]:
    """A value and gradient of a program of fifty lines, inside of `jax.jit`, as a training step has it."""
    program = PROGRAMS[name]
    function, args = pcbatch.batch(program.function), program.arguments(LANES)
    step = jax.jit(jax.value_and_grad(lambda *args: jnp.sum(function.with_options(max_tape=256)(*args))))
    return lambda: step(*args)


def of_objects(name: str) -> Callable[[], Any]:
    """A call of a program with classes."""
    function, examples = OBJECTS[name]
    args = [argument(list(column)) for column in zip(*examples, strict=True)]
    batched = pcbatch.batch(function)
    return lambda: batched(*args)


GROUPS: Mapping[str, tuple[Callable[[str], Callable[[], Any]], tuple[str, ...]]] = {
    "gallery": (gallery, NAMES),
    "fifty lines": (forward, tuple(PROGRAMS)),
    "gradients": (gradient, tuple(name for name, program in PROGRAMS.items() if program.smooth)),
    "objects": (of_objects, tuple(OBJECTS)),
}


def fusions(text: str) -> int:
    """How many fused kernels a compiled module has, by its text: XLA's time follows their number."""
    return len(FUSION.findall(text))


def table(group: str, found: Mapping[str, Spent]) -> list[str]:
    """The lines of a table in Markdown with a program in each, and medians and the worst below."""
    lines = [f"| {group}, s | all | {' | '.join(STAGES)} | modules |", "|---" + "|---:" * (len(STAGES) + 2) + "|"]
    for name, one in found.items():
        lines.append(_line(f"`{name}`", one.total, [one.seconds[stage] for stage in STAGES], one.modules))
    for word, take in (("median", statistics.median), ("worst", max)):
        columns = [take([one.seconds[stage] for one in found.values()]) for stage in STAGES]
        totals, modules = [one.total for one in found.values()], [one.modules for one in found.values()]
        lines.append(_line(word, take(totals), columns, math.ceil(take(modules))))
    return lines


def _line(name: str, total: float, seconds: Sequence[float], modules: int) -> str:
    return f"| {name} | {total:.2f} | {' | '.join(f'{one:.2f}' for one in seconds)} | {modules} |"


def rows(group: str, found: Mapping[str, Spent]) -> list[Row]:
    """Medians and worst with their goals, and each stage of each program."""
    totals = [one.total for one in found.values()]
    goals = GOALS[group]
    out = [
        Row(f"{group}: median", statistics.median(totals), "s", goal=goals[0]),
        Row(f"{group}: worst", max(totals), "s", goal=goals[1]),
    ]
    for name, one in found.items():
        out += [Row(f"{group}, {name}: {stage}", seconds, "s") for stage, seconds in one.seconds.items()]
    return out


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", nargs="+", default=tuple(GROUPS), choices=tuple(GROUPS))
    parser.add_argument("--only", nargs="+", help="programs; default: all of each group")
    parser.add_argument("--json", metavar="OUT")
    chosen = parser.parse_args(arguments)
    warm = pcbatch.batch(lambda x: jnp.where(x > 0, x, -x))
    spent(lambda: jax.grad(lambda x: jnp.sum(warm(x)))(jnp.arange(8.0)))  # what any first program pays for
    out: list[Row] = []
    for group in chosen.groups:
        make, names = GROUPS[group]
        found = {name: spent(make(name)) for name in names if chosen.only is None or name in chosen.only}
        if found:
            print("\n".join(table(group, found)), flush=True)
            out += rows(group, found)
    shown = [row for row in out if row.goal is not None]
    report("first calls by stage", out if chosen.json else shown, chosen.json)


if __name__ == "__main__":
    main()
