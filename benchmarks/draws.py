"""Random draws as JAX compiles them and unrolled, in a loop as a machine's: `python -m benchmarks.draws`

One thread of XLA unless NPROC says otherwise.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from benchmarks.common import Row, interleaved_medians, report
from pcbatch.lowering.jaxpr_passes.unroll_threefry import unrolled

NUMBERS = 4_000_000  # to draw in a call, about
DRAWS: dict[str, tuple[int, Callable[[Any], Any]]] = {  # how many numbers, and the draw of a lane
    "split": (4, lambda key: jax.random.key_data(jax.random.split(key))),
    "fold_in": (2, lambda key: jax.random.key_data(jax.random.fold_in(key, 3))),
    "uniform": (1, jax.random.uniform),
    "normal": (1, jax.random.normal),
    "normal of 100": (100, lambda key: jax.random.normal(key, (100,))),
}


def loop(draw: jex.ClosedJaxpr, words: jax.Array, steps: int) -> tuple[Callable[[], Any], float]:
    """Draws of all lanes, one after the other, each with other keys, and how long it took to compile that."""

    def one(words: jax.Array) -> Any:
        return jex.jaxpr_as_fun(draw)(jax.random.wrap_key_data(words))[0]

    @jax.jit
    def run(words: jax.Array) -> Any:
        def body(step: jax.Array, state: Any) -> Any:
            words, _ = state
            return words.at[:, 1].add(step.astype(words.dtype)), jax.vmap(one)(words)

        out = jax.eval_shape(jax.vmap(one), words)
        return jax.lax.fori_loop(0, steps, body, (words, jnp.zeros(out.shape, out.dtype)))

    began = time.perf_counter()
    compiled = run.lower(words).compile()
    return lambda: compiled(words), time.perf_counter() - began


def rows(name: str, lanes: int, repeats: int) -> list[Row]:
    """Measure one draw on one number of lanes."""
    numbers, draw = DRAWS[name]
    keys = jax.random.split(jax.random.key(0), lanes)
    closed = jax.make_jaxpr(draw)(keys[0])
    steps = max(2, NUMBERS // (lanes * numbers * 10))
    made = {"JAX": closed, "unrolled": unrolled(closed)}
    loops = {form: loop(c, jax.random.key_data(keys), steps) for form, c in made.items()}
    times = interleaved_medians({form: run for form, (run, _) in loops.items()}, repeats)
    title = f"{name}, {lanes} lanes"
    return [
        *(Row(f"{title}: {form}", 1e6 * times[form] / steps, "us") for form in loops),
        *(Row(f"{title}: {form}, compile", compiling, "s") for form, (_, compiling) in loops.items()),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, nargs="+", default=[32, 100, 1000, 10000])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", metavar="OUT")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    found = [row for name in DRAWS for lanes in chosen.lanes for row in rows(name, lanes, chosen.repeats)]
    report("random draws, per draw of all lanes", found, chosen.json)


if __name__ == "__main__":
    main()
