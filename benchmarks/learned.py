"""Deployed schedules against the best fixed one, on inputs that neither learning nor judging has seen.

    NPROC=1 python -m benchmarks.learned [--quick] [--only lattice] [--measure 60] [--repeats 9]

Twelve programs, seven of lanes (together: the emitter is "guard") and five of tasks. `visits` are counted by the
machines themselves, times are CPU seconds of the process, in turn. `loss` is the time of what `learn_schedule` deploys
over that of the fastest fixed schedule, less 1; 0 where that is the one deployed. With `--measure` schedules are judged
by measured time, for so many seconds each. Then ED-Batch's own models (ICML 2023), as graphs: batches of what is
deployed, over those of ED-Batch's automaton, and beside those of its rule for graphs that are known as a whole.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks import heavy_rounds, overflow
from benchmarks.common import interleaved_cpu_medians
from benchmarks.policies import abstract
from benchmarks.policy_graphs import GRAPHS
from benchmarks.policy_models import PROGRAMS, Inputs
from benchmarks.policy_others import seen_shares, table_alone
from pcbatch.learning import learn
from pcbatch.learning.q_learning import Training

# Inputs to learn and judge by, twice as many as a call has lanes; others; and all that there are of some programs.
SAMPLES, FRESH, MOST = 128, 64, 256
QUICK = ("two loops", "queens", "tree, three types")
IN_LANES = {
    "queens": "queens by bits, 4 to 7",
    "slices": "slice_chain",
    "trust region": "trust_region",
    "interpreter": "virtual_machine",
    "connectionist loss": "connectionist loss, two loops",
}


def two_loops(x, n):
    """A loop in a loop, and a recursion."""
    total = x
    while n > 0:
        k = n
        while k > 2:
            total = jnp.sin(total) * x
            k = k // 2
        n = n - 1 if total > 0.5 else n - 2
    return total + (two_loops(x * 0.5, n + 2) if x > 0.3 else x)


def loops(count: int, seed: int) -> tuple[Any, ...]:
    """Arguments of `two_loops`."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.uniform(0.1, 1, count), jnp.float32), jnp.asarray(rng.integers(2, 14, count))


def programs() -> dict[str, tuple[Any, Inputs]]:
    """Functions of one example, each with its inputs, by their number and a seed."""
    together = pcbatch.Plan(emitter="guard", fork="never")
    found: dict[str, tuple[Any, Inputs]] = {"two loops": (pcbatch.batch(two_loops, plan=together), loops)}
    others = overflow.programs(MOST) | heavy_rounds.programs(MOST)
    for name, key in IN_LANES.items():
        function, columns = others[key]
        found[name] = pcbatch.batch(function, plan=together), partial(_rows, columns)
    for name, (f, inputs) in PROGRAMS.items():
        plan = together if f.options.plan.fork != "always" else f.options.plan
        found[name] = f.with_options(plan=plan), inputs
    return found


def _rows(columns: tuple[Any, ...], count: int, seed: int) -> tuple[Any, ...]:
    """Some rows of columns; those of different seeds are different ones."""
    start = SAMPLES * seed
    return jax.tree.map(lambda x: x[start : start + count], columns)  # type: ignore[no-any-return]


def fixed_schedules(f: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """The function under each fixed schedule; calls side by side have one of their own."""
    names = ("auto",) if f.options.plan.fork == "always" else ("earliest", "largest", "sweep", "drain")
    own = f.explain_schedule(*args).policy
    under = {name: f.with_options(plan=replace(f.options.plan, schedule=name)) for name in names}
    return under if "auto" in under else {**under, own: f}  # the same program, and as it is what is deployed as "auto"


def visits(f: Any, args: tuple[Any, ...]) -> int:
    """The visits of all blocks, as the machine counts them."""
    return sum(int(block.visits) for block in f.with_options(stats=True).run(*args).stats.blocks)


def row(name: str, f: Any, inputs: Inputs, options: argparse.Namespace) -> tuple[str, float]:
    """A line of the table, and the loss; none where there is nothing to choose."""
    fresh = inputs(options.fresh, 1)
    try:
        policy = pcbatch.learn_schedule(f, *inputs(SAMPLES, 0), episodes=options.episodes, seconds=options.measure)
    except pcbatch.UsageError as error:
        if "nothing to choose" not in str(error):
            raise
        return f"| {name} | never more than one block can run: nothing is deployed |" + " |" * 8, 0.0
    fixed = fixed_schedules(f, fresh)
    deployed = (
        f.explain_schedule(*fresh).policy if policy.deployed == "auto" and "auto" not in fixed else policy.deployed
    )
    under = dict(fixed)
    if deployed not in under:
        under[deployed] = f.with_options(plan=replace(f.options.plan, schedule=policy))
    calls: dict[str, Callable[[], Any]] = {key: partial(g, *fresh) for key, g in under.items()}
    times = interleaved_cpu_medians(calls, options.repeats)
    best = min(fixed, key=lambda key: times[key])
    made = {key: visits(g, fresh) for key, g in under.items()}
    loss = times[deployed] / times[best] - 1
    cells = (
        name, policy.machine, deployed, best, str(made[deployed]), str(made[best]), f"{min(made[k] for k in fixed)}",
        f"{1e3 * times[deployed]:.2f}", f"{1e3 * times[best]:.2f}", f"{loss:+.1%}",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |", loss


def model(name: str, episodes: int) -> tuple[str, float]:
    """A line about a model of ED-Batch's, and batches of what is deployed over those of its automaton."""
    training = Training(episodes=episodes)
    samples, others = abstract(name, SAMPLES, 0), abstract(name, FRESH, 1)
    policy = learn.learn_task(name, samples, training)
    mine, theirs = others.outcome(policy).total, table_alone(samples, training)(others.graph)
    bound = sum(others.graph.bounds())
    counts = (mine, theirs, seen_shares(others.graph), bound)
    cells = (name, policy.deployed, *map(str, counts), f"{mine / bound:.2f}", f"{mine / theirs:.2f}")
    return "| " + " | ".join(cells) + " |", mine / theirs


def _print(head: tuple[str, ...]) -> None:
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|", flush=True)


def main() -> None:
    """Learn, count, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three programs and few inputs")
    parser.add_argument("--only", default="", help="the programs and models with this in their name")
    parser.add_argument("--measure", type=int, default=0, help="seconds; 0: judge by estimated time")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    options.fresh = 16 if options.quick else FRESH
    if options.quick:
        options.episodes, options.repeats = min(options.episodes, 50), min(options.repeats, 3)
    _print(
        ("program", "machine", "deployed", "best fixed", "visits", "of the best fixed", "fewest of a fixed one", "ms")
        + ("of the best fixed", "loss")
    )
    losses: dict[str, float] = {}
    for name, (f, inputs) in programs().items():
        if options.only in name and not (options.quick and name not in QUICK):
            line, losses[name] = row(name, f, inputs, options)
            print(line, flush=True)
            jax.clear_caches()
    print(f"\nworst loss: {_worst(losses)}\n")
    _print(("model", "deployed", "batches", "ED-Batch's", "its rule", "bound", "of the bound", "of ED-Batch's"))
    ratios: dict[str, float] = {}
    for name in GRAPHS:
        if options.only in name:
            line, ratios[name] = model(name, options.episodes)
            print(line, flush=True)
    print(f"\nworst batch count ratio: {max(ratios.values(), default=0.0):.2f}")


def _worst(losses: Mapping[str, float]) -> str:
    if not losses:
        return "none"
    name = max(losses, key=lambda key: losses[key])
    return f"{losses[name]:+.1%} ({name}); programs with more than 2%: {sum(x > 0.02 for x in losses.values())}"


if __name__ == "__main__":
    main()
