"""Learned schedules against fixed ones: `python -m benchmarks.policies [--episodes 300] [--encoding sort]`

The table of ED-Batch (ICML 2023): visits ("batches") on inputs that nothing was learned from, for the policy by depth
(TensorFlow Fold), the agenda (DyNet), our own, the rule of the lemma and the table that are learned, beside the lower
bound and what a search finds to be the least. Once for graphs like those of the paper, and once for programs, in tasks
or in lanes. `--only small`: whether any schedule reaches the lower bound, by exhaustive search on few examples. Nothing
is timed; `benchmarks.learned` times what is deployed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from benchmarks.policy_graphs import GRAPHS
from benchmarks.policy_models import PROGRAMS
from benchmarks.policy_optimum import least_visits
from benchmarks.policy_others import agenda, by_depth
from pcbatch.api.learn_schedule import sampled
from pcbatch.learning import fixed, learn
from pcbatch.learning.learn import Task
from pcbatch.learning.q_learning import Training
from pcbatch.learning.task_graph import simulate
from pcbatch.runtime.learned.policy import Learned

LEARN, TEST = 32, 64  # examples
FEW = (1, 2, 4, 8, 16)
SEED = 0
POLICIES = ("by depth", "agenda", "earliest", "largest", "sweep", "drain", "lemma", "learned")
Row = tuple[str, str, Task, Mapping[str, int]]


def abstract(name: str, count: int, seed: int) -> Task:
    """A graph as something to learn about."""
    graph = GRAPHS[name](count, seed)
    order = range(len(graph.labels))
    sweep = {"sweep": lambda: fixed.sweep(order)}
    default = Learned("tasks", graph.labels, name, "")
    return Task(default, graph, ("",) * len(graph.labels), (1.0,) * len(graph.labels), sweep, "sweep")


def graphs(training: Training) -> list[Row]:
    """The graphs of the paper."""
    return [
        row(name, "graph", abstract(name, LEARN, SEED), abstract(name, TEST, SEED + 1), training) for name in GRAPHS
    ]


def programs(training: Training) -> list[Row]:
    """Programs, compiled; each is learned on some inputs and counted on others."""
    found = []
    for name, (f, inputs) in PROGRAMS.items():
        samples, others = task(f, inputs(LEARN, SEED)), task(f, inputs(TEST, SEED + 1))
        found.append(row(name, samples.default.machine, samples, others, training))
    return found


def row(name: str, machine: str, samples: Task, others: Task, training: Training) -> Row:
    """The visits of all policies on other inputs than those that they are learned from."""
    counts = {policy.deployed: others.outcome(policy).total for policy in learn.candidates(samples, training)}
    counts[samples.own] = counts["auto"]
    counts |= {"by depth": by_depth(others.graph), "agenda": simulate(others.graph, agenda(others.graph)).total}
    return name, machine, others, counts


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
    head = ("model", "machine", "blocks", *POLICIES, "best of all", "bound", "learned / bound", "lemma / bound")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, machine, others, counts in rows:
        bound = sum(others.graph.bounds())
        cells = [str(counts.get(policy, "")) for policy in POLICIES]
        ratios = [f"{counts[policy] / bound:.2f}" for policy in ("learned", "lemma")]
        last = (optimum(others), str(bound), *ratios)
        lines.append("| " + " | ".join((name, machine, str(len(others.times)), *cells, *last)) + " |")
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
    print(f"{LEARN} examples to learn from, {TEST} others to count\n")
    if options.only != "programs":
        print(table(graphs(training)), flush=True)
    if options.only != "graphs":
        print(f"\n{table(programs(training))}", flush=True)


if __name__ == "__main__":
    main()
