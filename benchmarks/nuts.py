"""NUTS on the correlated Gaussian: gradients per second, side by side. `python -m benchmarks.nuts`

Three programs take turns in one process: the batched leapfrog steps alone (the ceiling of any sampler), pcbatch on the
textbook sampler of `examples/nuts`, and, if it is installed, BlackJAX's hand-written sampler under `jax.vmap`. Useful
gradients are those that a chain's own trajectory asked for; a batched gradient serves every chain, wanted or not.

XLA gets one thread unless NPROC says otherwise, which suits all three: their kernels are small, and passing them
between threads costs more than it gains.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.common import Row, interleaved_medians, report
from examples.nuts.run import GRADIENT, Settings, empty_trace, start
from examples.nuts.sampler import nuts
from examples.nuts.targets import gaussian

STEP, TREE_DEPTH, SIZE = 0.1533, 10, 100


class Chains:
    """pcbatch: all draws of all chains in one batched call."""

    def __init__(self, chains: int, draws: int) -> None:
        target = gaussian(SIZE)
        state = start(target, Settings(chains=chains, step_size=STEP, adapt=False))
        self.args = (*state, jnp.ones(SIZE, jnp.float32), empty_trace(state.sample.q, draws), jnp.int32(draws))
        chain = nuts(target.logp_and_grad, TREE_DEPTH).chain
        self.call = chain.with_options(max_depth=TREE_DEPTH + 3).run
        began = time.perf_counter()
        jax.block_until_ready(self.run())
        self.compile_seconds = time.perf_counter() - began
        counted = chain.with_options(max_depth=TREE_DEPTH + 3, stats=True).run(*self.args)
        self.gradients = np.asarray(counted.value[-1].leapfrogs).sum(axis=1)
        self.batches = int(counted.stats.visits(GRADIENT))

    def run(self) -> Any:
        """The whole work."""
        return self.call(*self.args).value


def ceiling(chains: int, steps: int) -> Callable[[], Any]:
    """Leapfrog steps of all chains and nothing else."""
    target = gaussian(SIZE)
    gradient = jax.vmap(target.logp_and_grad)
    q = jnp.asarray(target.start(0, chains), jnp.float32)

    @jax.jit
    def run(q: jax.Array) -> jax.Array:
        def body(_: int, s: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
            q, p, g = s
            p = p + 0.5 * STEP * g
            q = q + STEP * p
            _, g = gradient(q)
            return q, p + 0.5 * STEP * g, g

        return jax.lax.fori_loop(0, steps, body, (q, jnp.zeros_like(q), gradient(q)[1]))[0]

    return lambda: run(q)


def blackjax_chains(chains: int, draws: int) -> tuple[Callable[[], Any], np.ndarray]:
    """BlackJAX under vmap: chains wait for each other at every draw. Also its gradients, [draws, chains]."""
    import blackjax

    target = gaussian(SIZE)
    kernel = blackjax.nuts(
        target.logp, step_size=STEP, inverse_mass_matrix=jnp.ones(SIZE), max_num_doublings=TREE_DEPTH
    )

    @jax.jit
    def run(keys: jax.Array, q: jax.Array) -> Any:
        def one(state: Any, key: jax.Array) -> Any:
            state, info = jax.vmap(kernel.step)(jax.random.split(key, chains), state)
            return state, info.num_integration_steps

        return jax.lax.scan(one, jax.vmap(kernel.init)(q), keys)

    keys = jax.random.split(jax.random.key(1), draws)
    q = jnp.asarray(target.start(0, chains), jnp.float32)
    return lambda: run(keys, q), np.asarray(run(keys, q)[1])


def rows(chains: int, draws: int, repeats: int) -> list[Row]:
    """Measure one number of chains."""
    ours = Chains(chains, draws)
    steps = 100_000 // chains
    calls = {"pcbatch": ours.run, "ceiling": ceiling(chains, steps)}
    if find_spec("blackjax"):
        calls["blackjax"], their_steps = blackjax_chains(chains, draws)
    times = interleaved_medians(calls, repeats)
    longest, useful = int(ours.gradients.max()), int(ours.gradients.sum())
    rate = useful / times["pcbatch"]
    first = chains == 100
    out = [
        Row(f"{chains} chains: compile and first call", ours.compile_seconds, "s", goal=10.0),
        Row(f"{chains} chains: gradient batches", ours.batches, ""),
        Row(f"{chains} chains: gradients of the longest chain", longest, ""),
        Row(f"{chains} chains: batches / longest", ours.batches / longest, "x", goal=1.01),
        Row(f"{chains} chains: utilisation", useful / (chains * ours.batches), ""),
        Row(f"{chains} chains: useful gradients", rate, "1/s", goal=300_000 if first else None, at_least=True),
        Row(f"{chains} chains: the ceiling", chains * steps / times["ceiling"], "1/s"),
    ]
    if "blackjax" in times:
        their_rate = float(their_steps.sum()) / times["blackjax"]
        busy = float(their_steps.sum()) / (chains * float(their_steps.max(axis=1).sum()))
        out.append(Row(f"{chains} chains: BlackJAX, vmapped", their_rate, "1/s"))
        out.append(Row(f"{chains} chains: BlackJAX's utilisation", busy, ""))
        out.append(Row(f"{chains} chains: pcbatch / BlackJAX", rate / their_rate, "x"))
    return out


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="OUT")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    found = [row for chains in chosen.chains for row in rows(chains, chosen.draws, chosen.repeats)]
    report(f"NUTS, {SIZE}-d Gaussian, step {STEP}, {chosen.draws} draws", found, chosen.json)


if __name__ == "__main__":
    main()
