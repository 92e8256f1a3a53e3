"""What is compiled once stays compiled: in the process, and in JAX's persistent cache for the next one.

The key of that cache is the text of the program. A name that depends on the order of a set, an address or the history
of the process would make it another text each time.
"""

from __future__ import annotations

import json
import linecache
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from tests.programs.classics import fib

pytestmark = pytest.mark.share(3)

ROOT = Path(__file__).parents[2]
BACKEND = "/jax/core/compile/backend_compile_duration"  # also for a program that the persistent cache gives
TRACE = "/jax/core/compile/jaxpr_trace_duration"


class Counted:
    """How often JAX says that it does something."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}
        self.on = False
        jax.monitoring.register_event_duration_secs_listener(self._note)

    def _note(self, event: str, _: float, **__: Any) -> None:
        if self.on:
            self.times[event] = self.times.get(event, 0) + 1

    def __call__(self, event: str, call: Callable[[], Any]) -> int:
        """How often in one call."""
        self.times, self.on = {}, True
        try:
            jax.block_until_ready(call())
        finally:
            self.on = False
        return self.times.get(event, 0)


counted = Counted()  # listeners cannot be taken away again, so there is one for all tests


@pcbatch.batch
def downward(n):
    if n <= 0:
        return 0
    return 1 + downward(n - 1)


def batches(*sizes: int, dtype: Any = np.int32) -> list[jax.Array]:
    return [jax.numpy.asarray(np.arange(size) % 4 + 1, dtype) for size in sizes]


def test_a_signature_is_compiled_once() -> None:
    f = pcbatch.batch(fib)
    (ints,), (floats,) = batches(3), batches(3, dtype=np.float32)
    f(ints), f(floats)  # with what JAX compiles for itself
    f = pcbatch.batch(fib)
    assert [counted(BACKEND, lambda x=x: f.run(x)) for x in (ints, floats, ints, floats)] == [1, 1, 0, 0]
    assert [counted(TRACE, lambda x=x: f.run(x)) for x in (ints, floats + 1)] == [0, 0]
    assert counted(BACKEND, lambda: f(ints)) == 0  # nor does the other way to call


def test_each_number_of_lanes_is_compiled_once() -> None:
    f = pcbatch.batch(fib)
    three, five, one = batches(3, 5, 1)
    assert [counted(BACKEND, lambda x=x: f.run(x)) for x in (three, five, one, three, five, one)] == [1, 1, 1, 0, 0, 0]


def test_lanes_that_share_a_value_are_another_signature() -> None:
    def scaled(x, w):
        while x < 10.0:
            x = x * w
        return x

    x, w = batches(3, 3, dtype=np.float32)
    f = pcbatch.batch(scaled, in_axes=(0, None))
    assert [counted(BACKEND, lambda w=w: f.run(x, w)) for w in (w[0] + 1, w[1] + 1, w[2] + 1)] == [1, 0, 0]


def test_a_stack_that_grew_stays() -> None:
    """Once for each time that it grows, by much at a time; what follows uses these programs again."""
    warmed = downward.with_options(max_depth=10)
    f = downward.with_options()
    shallow, deep, deeper = (jax.numpy.asarray(np.array([1, top], np.int32)) for top in (5, 200, 2000))
    warmed.run(shallow)  # with what JAX compiles for itself
    calls = (shallow, shallow, deep, deep, shallow, deeper, deeper, deep, shallow)
    assert [counted(BACKEND, lambda x=x: f.run(x)) for x in calls] == [1, 0, 1, 0, 0, 1, 0, 0, 0]
    assert [int(f.run(x).value[1]) for x in (shallow, deep, deeper)] == [5, 200, 2000]
    other = jax.numpy.asarray(np.array([1, 2, 1000], np.int32))
    assert [counted(BACKEND, lambda: f.run(other)) for _ in range(2)] == [1, 0]


@pytest.mark.share(6)
@pytest.mark.parametrize(
    "how", [{}, {"timeout": 600}, {"lanes": 2}, {"lanes": 2, "timeout": 600}, {"chunk": 3}], ids=str
)
def test_an_identical_call_compiles_nothing(how: dict[str, Any]) -> None:
    """Also where a stack grew in the first, whoever looks after the run."""
    f = downward.with_options()
    ns = np.array([3, 40, 0, 300, 7], np.int32)
    call = f.map if {"lanes", "chunk"} & how.keys() else f.run
    first = counted(BACKEND, lambda: call(ns, **how).value)
    assert first > 0
    assert [counted(BACKEND, lambda: call(ns, **how).value) for _ in range(2)] == [0, 0]
    assert call(ns, **how).value.tolist() == ns.tolist()


def ring(size: int) -> pcbatch.Batched:
    """Mutually recursive functions, each of which calls the next."""
    lines = ["import pcbatch"]
    for k in range(size):
        call = f"f{(k + 1) % size}(n - 1) + {k}"
        lines += ["@pcbatch.batch", f"def f{k}(n):", "    if n <= 0:", f"        return {k}", f"    return {call}"]
    found: dict[str, Any] = {}
    text = "\n".join(lines)
    linecache.cache["<ring>"] = (len(text), None, [line + "\n" for line in text.splitlines()], "<ring>")
    exec(compile(text, "<ring>", "exec"), found)
    batched: pcbatch.Batched = found["f0"]
    return batched


@pytest.mark.full_only
def test_mutually_recursive_functions() -> None:
    ns = jax.numpy.asarray(np.array([5, 200, 40, 7], np.int32))
    warm = ring(2)
    warm(ns)  # with what JAX compiles for itself
    f = ring(8)
    assert [counted(BACKEND, lambda: f.run(ns)) for _ in range(3)] == [2, 0, 0]
    assert f(ns).tolist() == [f.plain(int(n)) for n in ns]


@pytest.mark.full_only
def test_options_have_caches_of_their_own() -> None:
    f = pcbatch.batch(fib, plan=pcbatch.Plan(fork="never"))
    (x,) = batches(3)
    counted(BACKEND, lambda: f.run(x))
    assert counted(BACKEND, lambda: f.with_options(stats=True).run(x)) == 1
    assert counted(BACKEND, lambda: f.run(x)) == 0


PROGRAMS = """
import hashlib, json, random, sys
import jax, jax.numpy as jnp, numpy as np
import pcbatch
from tests.programs import REGISTRY

events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event.rpartition("/")[2]))

def program(name):
    return REGISTRY[name].batched(max_depth=8), REGISTRY[name].args(3)

def sampler():
    from examples.nuts.run import fixed_chain, start
    from examples.nuts.targets import gaussian

    return fixed_chain(gaussian(3), start(gaussian(3), 2), step=0.1, draws=3, max_tree_depth=3)

made = {name: sampler() if name == "nuts" else program(name) for name in NAMES}
order = list(made)
random.Random(SEED).shuffle(order)  # what was compiled before must not matter
out = {}
for name in order:
    batched, args = made[name]
    lowered = batched.lower(*args)
    text = {stage: lowered.as_text(stage) for stage in ("cfg", "stack", "opt", "jaxpr", "stablehlo")}
    events.clear()
    if name in COMPILED:
        lowered.compile()
    text["hits"], text["misses"] = events.count("cache_hits"), events.count("cache_misses")
    out[name] = {k: v if isinstance(v, int) else hashlib.sha256(v.encode()).hexdigest() for k, v in text.items()}
print(json.dumps(out))
"""


# Recursion, mutual recursion, loops, dicts, closures, values that lanes share, messages.
NAMES = ("fib", "is_even", "countdown", "catalan", "nested_ifs", "helper_reductions", "destructuring_nested", "nuts")
COMPILED = ("fib", "is_even", "countdown", "nuts")


def fresh_process(seed: int, cache: Path, names: Sequence[str], compiled: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Compile the programs in a process of their own, where strings have other hashes."""
    settings = {
        "PYTHONHASHSEED": str(seed),
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    head = f"NAMES, COMPILED, SEED = {names!r}, {compiled!r}, {seed}\n"
    run = subprocess.run(
        [sys.executable, "-c", head + PROGRAMS],
        env={**os.environ, **settings},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, dict[str, Any]] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def processes(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What two processes make of all programs; of few, if nothing more is compared."""
    cache, asked = tmp_path_factory.mktemp("cache"), {item.name for item in request.session.items}
    compiled = [name for name in COMPILED if f"test_the_next_process_finds_what_was_compiled[{name}]" in asked]
    names = NAMES if any(name.startswith("test_every_process") for name in asked) else compiled
    return fresh_process(1, cache, names, compiled), fresh_process(2, cache, names, compiled)


@pytest.mark.full_only
@pytest.mark.parametrize("stage", ["cfg", "stack", "opt", "jaxpr", "stablehlo"])
def test_every_process_makes_the_same_program(stage: str, processes: tuple[Any, Any]) -> None:
    first, second = processes
    assert [name for name in first if first[name][stage] != second[name][stage]] == []


@pytest.mark.share(4, 0, 2)
@pytest.mark.parametrize("name", COMPILED)
def test_the_next_process_finds_what_was_compiled(name: str, processes: tuple[Any, Any]) -> None:
    first, second = processes
    assert (first[name]["hits"], first[name]["misses"]) == (0, 1)
    assert (second[name]["hits"], second[name]["misses"]) == (1, 0)
