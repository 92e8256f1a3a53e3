"""Policies of other systems, to compare with: those of TensorFlow Fold, DyNet and ED-Batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pcbatch.learning import fixed
from pcbatch.learning.learn import Task
from pcbatch.learning.q_learning import Learner, Training, chooser
from pcbatch.learning.task_graph import Choose, Ints, Simulation, TaskGraph, simulate


def depths(graph: TaskGraph) -> Ints:
    """int[executions]: the length of the longest chain of executions that each needs."""
    found = np.zeros(len(graph), np.int64)
    for v, needed in enumerate(graph.needs):
        if needed:
            found[v] = 1 + max(found[p] for p in needed)
    return found


def by_depth(graph: TaskGraph) -> int:
    """The visits where each holds executions of one block and one depth, as in TensorFlow Fold."""
    pairs = depths(graph) * len(graph.labels) + graph.types
    kinds, numbers = np.unique(pairs, return_counts=True)
    return sum(
        -(-int(n) // graph.widths[int(pair) % len(graph.labels)]) for pair, n in zip(kinds, numbers, strict=True)
    )


def agenda(graph: TaskGraph) -> Choose:
    """The block whose executions that are left have the least mean depth, as DyNet does."""
    depth = depths(graph)

    def choose(run: Simulation) -> int:
        left = run.missing[:-1] > 0
        left[np.concatenate(run.ready)] = True
        return min((int(k) for k in run.choices()), key=lambda k: float(depth[left & (graph.types == k)].mean()))

    return choose


def table_alone(task: Task, training: Training) -> Callable[[TaskGraph], int]:
    """The visits of ED-Batch's automaton: a table by Q-learning alone, and nothing for states that it has not met."""

    def largest(waiting: Ints) -> int:
        return int(np.argmax(waiting))

    learner = Learner(task.graph, np.ones(len(task.times)), largest, replace(training, trials=0))
    learner.learn()
    return lambda graph: simulate(graph, chooser(training.encoding, learner.table(), largest)).total


def seen_shares(graph: TaskGraph) -> int:
    """The visits of ED-Batch's rule for graphs that are known as a whole: the largest share, as the lemma says."""
    return simulate(graph, fixed.shares).total
