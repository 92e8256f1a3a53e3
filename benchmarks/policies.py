"""Learned schedules against fixed ones: `python -m benchmarks.policies [--episodes 300] [--encoding sort]`

The table of ED-Batch (ICML 2023): visits ("batches") on inputs that nothing was learned from, for the policy by depth
(TensorFlow Fold), the agenda (DyNet), our own and the learned one, beside the lower bound and what a search finds
to be the least. Once for graphs like those of the paper, and once for programs, in tasks or in lanes. `--only small`:
whether any schedule reaches the lower bound, by exhaustive search on few examples. Nothing is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import pcbatch
from benchmarks.policy_graphs import GRAPHS
from benchmarks.policy_models import PROGRAMS
from benchmarks.policy_optimum import least_visits
from pcbatch.api.learn_schedule import sampled
from pcbatch.learning import fixed, learn
from pcbatch.learning.learn import Task
from pcbatch.learning.q_learning import Training
from pcbatch.runtime.learned.policy import Learned
from pcbatch.runtime.learned.summary import Summary

LEARN, TEST = 32, 64  # examples
FEW = (1, 2, 4, 8, 16)
SEED = 0
POLICIES = ("by depth", "agenda", "earliest", "largest", "sweep", "drain", "learned")
Row = tuple[str, str, Summary, str]


def abstract(name: str, count: int, seed: int) -> Task:
    """A graph as something to learn about."""
    graph = GRAPHS[name](count, seed)
    order = range(len(graph.labels))
    sweep = {"sweep": lambda: fixed.sweep(order)}
    default = Learned("tasks", graph.labels, (), name, "", ())
    return Task(default, graph, ("",) * len(graph.labels), (1.0,) * len(graph.labels), count, sweep)


def graphs(training: Training) -> list[Row]:
    """The graphs of the paper."""
    found = []
    for name in GRAPHS:
        policy = learn.learn_task(name, abstract(name, LEARN, SEED), training)
        others = abstract(name, TEST, SEED + 1)
        summary = learn.summary(name, others, policy, training.encoding)
        found.append((name, "graph", summary, optimum(others)))
    return found


def programs(training: Training) -> list[Row]:
    """Programs, compiled; each is learned on some inputs and counted on others."""
    found = []
    for name, (f, inputs) in PROGRAMS.items():
        policy = pcbatch.learn_schedule(
            f, *inputs(LEARN, SEED), encoding=training.encoding, episodes=training.episodes, seed=training.seed
        )
        others = task(f, inputs(TEST, SEED + 1))
        found.append((name, policy.machine, learn.summary(name, others, policy, ""), optimum(others)))
    return found


def task(f: Any, args: tuple[Any, ...]) -> Task:
    """What there is to learn about a call."""
    return learn.task_of(f.fn, *sampled(f, args, {}))


def optimum(others: Task) -> str:
    """The visits of the best schedule, or how many it makes at least: always where a visit has no room for all."""
    graph = others.graph
    least, is_exact = least_visits(graph)
    fits = all(int((graph.types == k).sum()) <= width for k, width in enumerate(graph.widths))
    return str(least) if is_exact and fits else f">= {max(least, sum(graph.bounds()))}"


def small() -> str:
    """The least visits of the graphs that no learned schedule brings to the bound, for few examples, in Markdown."""
    lines = ["| graph | examples | least | bound | least / bound |", "|---" * 5 + "|"]
    for name in ("TreeLSTM, two types", "lattice LSTM"):
        for count in FEW:
            graph = abstract(name, count, SEED).graph
            least, is_exact = least_visits(graph, steps=20_000)
            bound = sum(graph.bounds())
            shown = f"{'' if is_exact else '>= '}{least}"
            lines.append(f"| {name} | {count} | {shown} | {bound} | {least / bound:.2f} |")
    return "\n".join(lines)


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    head = ("model", "machine", "blocks", *POLICIES, "best of all", "bound", "learned / bound", "by rule")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, machine, found, best in rows:
        counts: Mapping[str, int] = found.policies
        cells = [str(counts.get(policy, "")) for policy in POLICIES]
        ratio = f"{counts['learned'] / found.bound:.2f}"
        last = (best, str(found.bound), ratio, f"{found.unknown:.0%}")
        lines.append("| " + " | ".join((name, machine, str(len(found.blocks)), *cells, *last)) + " |")
    return "\n".join(lines)


def main() -> None:
    """Learn, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--encoding", choices=("base", "max", "sort"), default="sort")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("graphs", "programs", "small"))
    options = parser.parse_args()
    training = Training(options.encoding, options.episodes, options.seed)
    if options.only == "small":
        print(small())
        return
    print(f"{LEARN} examples to learn from, {TEST} others to count; `by rule`: visits in states that no table has\n")
    if options.only != "programs":
        print(table(graphs(training)), flush=True)
    if options.only != "graphs":
        print(f"\n{table(programs(training))}", flush=True)


if __name__ == "__main__":
    main()
