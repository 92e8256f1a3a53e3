"""How compile time grows with the program: `python -m benchmarks.compile_time`

Programs of K statements (or K functions that call one another) for growing K, each with a text of its own, so that
nothing is known from an earlier one. A stage that takes time in proportion to K ** p has the exponent p. Our own
stages are measured in time of the processor, so that other programs on the machine count little; XLA's by the clock.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import linecache
import math
import pkgutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from types import FunctionType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp

import pcbatch
from benchmarks.common import Row, report
from pcbatch import frontend, lowering
from pcbatch.compiler import pipeline, typed_program

SIZES = (10, 20, 40, 80, 160)
OURS = 1.15  # the greatest exponent that we want
_numbers = count()

IF = "    if y > {i}:\n        y = y * 3 - {i}\n    else:\n        y = y + {i}\n"
WHILE = "    while y > {i}:\n        y = y // 2 - {i}\n    y = y + 3 * {i}\n"
NESTED = "    if y > {i}:\n        z = y + {i}\n        while z > 9:\n            z, y = z // 2, y + z\n"
VARIABLES = "    v{i} = x + {i}\n    while v{i} > y:\n        v{i} = v{i} - 1\n    y = y + v{i}\n"
CALL = "    y = g(y + {i})\n"
GUARD = "    if y == {i}:\n        while x > {i}:\n            x = x // 2\n        return x\n    y = y + x\n"
FLAGS = "    if y > {i} and x != {i} or not x > {i} + 1:\n        return {i}\n"
CHECK = "    assert y != -{i}, f'{{y}} is {i}'\n    if y > {i}:\n        print(f'{{y}}')\n    y = y + 1\n"
TUPLE = "    for v in ({i}, x):\n        y = y * 3 + v\n"
RECURSIVE = "    if y > {i}:\n        y = f0(y - {i} - 1) + y\n"
INLINED = "    y = clip(y, {i})\n"
ONCE = "    y = h{i}(y)\n"
HELPER = "@pcbatch.batch\ndef g(x):\n    if x > 99:\n        return x - 1\n    return g(x * 2 + 1) + 1\n"
CLIP = "@pcbatch.inline\ndef clip(x, i):\n    if x > i:\n        return i\n    return x\n"
CALLED_ONCE = "@pcbatch.batch\ndef h{i}(x):\n    while x > {i}:\n        x = x // 2\n    return x\n"
STATEMENTS = {
    "if": IF,
    "while": WHILE,
    "nested": NESTED,
    "variables": VARIABLES,
    "call": CALL,
    "guards": GUARD,
    "flags": FLAGS,
    "checks": CHECK,
    "tuples": TUPLE,
    "recursive": RECURSIVE,
    "inlined": INLINED,
    "once": ONCE,
}
FUNCTION = "@pcbatch.batch\ndef f{i}(x):\n    if x > {i}:\n        return x - 1\n    return f{next}(x + 1) + 1\n"
LAST = "@pcbatch.batch\ndef f{i}(x):\n    return x\n"
KINDS = (*STATEMENTS, "functions")


def source(kind: str, size: int) -> str:
    """The text of a program, whose entry is `f0`."""
    if kind == "functions":
        parts = [FUNCTION.format(i=i, next=i + 1) for i in range(size)]
        return "".join([*parts, LAST.format(i=size)])
    body = "".join(STATEMENTS[kind].format(i=i) for i in range(size))
    helpers = "".join(CALLED_ONCE.format(i=i) for i in range(size if kind == "once" else 0))
    return f"{HELPER}{CLIP}{helpers}@pcbatch.batch\ndef f0(x):\n    y = x\n{body}    return y\n"


def program(kind: str, size: int) -> Any:
    """The batched function, of a text that nobody has seen before."""
    name = f"<{kind} {size}: {next(_numbers)}>"
    text = f"# {name}\n{source(kind, size)}"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {"pcbatch": pcbatch}
    exec(compile(text, name, "exec"), names)
    return names["f0"]


class Stages:
    """Seconds by stage; what runs inside another stage counts once, for itself."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.inside = [0.0]

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, measured."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            self.inside.append(0.0)
            start = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent = time.thread_time() - start
                self.seconds[name] = self.seconds.get(name, 0.0) + spent - self.inside.pop()
                self.inside[-1] += spent

        return run


@contextmanager
def watched(stages: Stages) -> Iterator[None]:
    """Measure every pass while this lasts."""
    places: list[tuple[ModuleType, str, str]] = [
        (frontend, "compile_functions", "frontend"),
        (typed_program, "verify", "verifier"),
        (importlib.import_module("pcbatch.lowering.typing.infer"), "trace", "primitives, by JAX"),
    ]
    for found in pkgutil.walk_packages(lowering.__path__, f"{lowering.__name__}."):
        module = importlib.import_module(found.name)
        runs = [name for name, value in vars(module).items() if name.startswith("run") and _is_of(value, module)]
        places += [(module, name, found.name.rpartition(".")[2]) for name in runs]
    old = [(module, name, getattr(module, name)) for module, name, _ in places]
    new = {function: stages.timed(label, function) for (_, _, label), (_, _, function) in zip(places, old, strict=True)}
    lists = [(name, value) for name, value in vars(pipeline).items() if isinstance(value, tuple) and value]
    try:
        for module, name, function in old:
            setattr(module, name, new[function])
        for name, passes in lists:
            setattr(pipeline, name, tuple(new.get(run, run) for run in passes))
        yield
    finally:
        for module, name, value in [*old, *((pipeline, *item) for item in lists)]:
            setattr(module, name, value)


def _is_of(value: Any, module: ModuleType) -> bool:
    return isinstance(value, FunctionType) and value.__module__ == module.__name__


def measure(kind: str, size: int, xla: bool) -> dict[str, float]:
    """Seconds of every stage, and the size of what comes out, for one program."""
    batched, x, stages = program(kind, size), jnp.arange(16, dtype=jnp.int32), Stages()
    gc.collect()  # what earlier programs left must not count for this one
    start = time.thread_time()
    with watched(stages):
        lowered = batched.lower(x)
    whole = time.thread_time() - start
    out = dict(stages.seconds)
    out["all passes"] = whole - out["primitives, by JAX"]
    start = time.thread_time()
    batched.lower(x).as_text("stablehlo")
    out["the machine, to StableHLO"] = time.thread_time() - start
    if xla:
        start = time.perf_counter()
        lowered.compile()
        out["to machine code, by XLA"] = time.perf_counter() - start
    out["blocks"] = len(lowered.stages.opt.blocks)
    out["equations"] = equations(
        jax.make_jaxpr(batched.with_options(max_depth=8, plan=pcbatch.Plan(fork="never")))(x).jaxpr
    )
    return out


def equations(jaxpr: Any) -> int:
    """All equations of a jaxpr and of those inside it."""
    inner = [v for eqn in jaxpr.eqns for value in eqn.params.values() for v in jax.tree.leaves(value, is_leaf=_jaxpr)]
    return len(jaxpr.eqns) + sum(equations(getattr(v, "jaxpr", v)) for v in inner if _jaxpr(v))


def _jaxpr(value: Any) -> bool:
    return hasattr(getattr(value, "jaxpr", value), "eqns")


def exponent(values: Mapping[int, float]) -> float:
    """The slope of the logarithms, by least squares."""
    points = [(math.log(size), math.log(max(value, 1e-6))) for size, value in values.items()]
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    across = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / across


def rows(kind: str, sizes: Sequence[int], repeats: int, xla: bool) -> list[Row]:
    """The least of several times for every stage: those at the greatest size, and all exponents that matter."""
    found: dict[int, dict[str, float]] = {}
    for size in sizes:
        runs = [measure(kind, size, xla and not again) for again in range(repeats)]
        found[size] = {stage: min(run[stage] for run in runs if stage in run) for stage in runs[0]}
    top = sizes[-1]
    out = []
    for stage, value in found[top].items():
        unit, shown = ("", value) if stage in ("blocks", "equations") else ("ms", value * 1e3)
        out.append(Row(f"{kind} x {top}: {stage}", shown, unit))
    wanted = {"all passes": OURS, "the machine, to StableHLO": OURS, "equations": OURS}
    for stage in (s for s in found[top] if s in wanted or s.endswith("XLA")):
        slope = exponent({size: values[stage] for size, values in found.items()})
        out.append(Row(f"{kind}: exponent of {stage}", slope, "", goal=wanted.get(stage)))
    return out


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-xla", action="store_true", help="leave out what XLA does, which takes longest")
    parser.add_argument("--json", metavar="OUT")
    chosen = parser.parse_args(arguments)
    for kind in chosen.kinds:  # what the first program of a process pays for
        measure(kind, 3, False)
    found = [row for kind in chosen.kinds for row in rows(kind, chosen.sizes, chosen.repeats, not chosen.no_xla)]
    report(f"compile time, K = {', '.join(map(str, chosen.sizes))}", found, chosen.json)


if __name__ == "__main__":
    main()
