"""Tables of states, learned by trying: tabular Q-learning over simulated runs, and a local search afterwards.

The value of a block in a state is the reward that is expected from its visit to the end of the run. As in ED-Batch
(ICML 2023) the reward of a visit is `-1 + alpha * share`, where `share` is how much of what could still wait for the
block waits already (`Simulation.share`), and values take in the rewards of several steps. Where visits have weights, -1
and the share are multiplied by that of the block. Unlike there, the table that is kept is the best of those seen on all
samples, and it is improved by changing the choice of one state at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pcbatch.learning.task_graph import Choose, Ints, Simulation, TaskGraph
from pcbatch.runtime.learned import encodings

State = tuple[int, ...]
MOST_STATES = 2048  # of a table


@dataclass(frozen=True, slots=True)
class Training:
    """The settings with which a table is learned.

    Attributes:
        encoding: the encoding of states.
        episodes: simulated runs to learn from.
        seed: of all choices at random.
        alpha: the weight of the share in the reward.
        steps: visits whose rewards a value takes in before it asks the table.
        rate: how far a value moves towards what was found.
        first, last: the share of choices at random at the beginning and at the end; it falls exponentially.
        every: episodes between two looks at how good the table is.
        trials: changes of one state that are tried afterwards.
    """

    encoding: str = "sort"
    episodes: int = 300
    seed: int = 0
    alpha: float = 0.5
    steps: int = 8
    rate: float = 0.2
    first: float = 0.5
    last: float = 0.02
    every: int = 10
    trials: int = 400


@dataclass
class Learner:
    """Learns one table from one graph.

    Attributes:
        graph: the graph.
        weights: float[blocks]: what a visit of each block counts.
        default: chooses in states that the table does not have.
        training: how it learns.
    """

    graph: TaskGraph
    weights: Ints
    default: Callable[[Ints], int]
    training: Training
    values: dict[State, np.ndarray] = field(default_factory=dict)
    best: dict[State, int] = field(default_factory=dict)
    best_cost: float = math.inf

    def learn(self) -> None:
        """Find the best table."""
        t, rng = self.training, np.random.default_rng(self.training.seed)
        names = np.unique(self.graph.examples)
        self._keep({})
        for episode in range(t.episodes):
            done = episode / max(1, t.episodes - 1)
            chance = t.first * (t.last / t.first) ** done
            # Every other run has some of the samples alone: states of fewer examples are learned as well.
            some = rng.permutation(names)[: int(rng.integers(1, len(names) + 1))] if episode % 2 else None
            self._episode(chance, some, rng)
            if episode % t.every == t.every - 1 or episode == t.episodes - 1:
                self._keep(self._greedy())
        self._search(rng)

    def _episode(self, chance: float, some: Ints | None, rng: np.random.Generator) -> None:
        t, run = self.training, Simulation(self.graph, some)
        seen: list[tuple[np.ndarray, int, float]] = []
        while run.live:
            choices = run.choices()
            value = self._value(encodings.digits(t.encoding, run.waiting), choices)
            block = int(rng.choice(choices)) if rng.random() < chance else int(np.argmax(value))
            seen.append((value, block, self.weights[block] * (-1.0 + t.alpha * run.share(block))))
            run.visit(block)
        rewards = np.concatenate([[0.0], np.cumsum([reward for _, _, reward in seen])])
        for k in range(len(seen) - 1, -1, -1):
            end = min(k + t.steps, len(seen))
            beyond = float(np.max(seen[end][0])) if end < len(seen) else 0.0
            value, block, _ = seen[k]
            value[block] += t.rate * (rewards[end] - rewards[k] + beyond - value[block])

    def _value(self, state: State, choices: Ints) -> np.ndarray:
        value = self.values.get(state)
        if value is None:
            value = np.full(len(self.graph.labels), -np.inf)
            value[choices] = 0.0  # better than any run, so that each choice is tried
            self.values[state] = value
        return value

    def _greedy(self) -> dict[State, int]:
        return {state: int(np.argmax(value)) for state, value in self.values.items()}

    def cost(self, table: dict[State, int], seen: set[State] | None = None) -> float:
        """Return the weighted visits of a table on all samples; `seen` takes in its states."""
        run = Simulation(self.graph)
        choose = chooser(self.training.encoding, table, self.default, seen)
        while run.live:
            run.visit(choose(run))
        return float(self.weights @ run.visits)

    def _keep(self, table: dict[State, int]) -> None:
        cost = self.cost(table)
        if cost < self.best_cost:
            self.best, self.best_cost = table, cost

    def _search(self, rng: np.random.Generator) -> None:
        """Try another block in one state at a time, and keep what makes fewer visits."""
        floor = float(self.weights @ np.array(self.graph.bounds()))
        tried: set[tuple[State, int]] = set()
        for _ in range(self.training.trials):
            if self.best_cost <= floor:
                return
            seen: set[State] = set()
            self.cost(self.best, seen)
            moves = [(s, k) for s in sorted(seen) for k, d in enumerate(s) if d and self.best.get(s) != k]
            moves = [move for move in moves if move not in tried]
            if not moves:
                return
            state, block = moves[int(rng.integers(len(moves)))]
            tried.add((state, block))
            candidate = {**self.best, state: block}
            cost = self.cost(candidate)
            if cost < self.best_cost:
                self.best, self.best_cost, tried = candidate, cost, set()

    def table(self) -> dict[State, int]:
        """Return the best table, without the states that were met least often if there are too many."""
        seen: set[State] = set()
        self.cost(self.best, seen)
        order = sorted(self.best, key=lambda state: (state not in seen, state))
        return {state: self.best[state] for state in order[:MOST_STATES]}


def chooser(
    encoding: str, table: dict[State, int], default: Callable[[Ints], int], seen: set[State] | None = None
) -> Choose:
    """Return the policy of a table."""

    def choose(run: Simulation) -> int:
        state = encodings.digits(encoding, run.waiting)
        if seen is not None:
            seen.add(state)
        block = table.get(state)
        return default(run.waiting) if block is None or not run.waiting[block] else block

    return choose
