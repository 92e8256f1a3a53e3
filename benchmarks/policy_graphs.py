"""The graphs of ED-Batch (ICML 2023) at random, with the types of operations that it counts: no program is behind them.

Leaves, embeddings and the like have types of their own. A word of a lattice goes from a character to a later one, whose
cell needs it; trees are those of `examples.treelstm`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from examples.treelstm.data import generate
from pcbatch.learning.task_graph import TaskGraph

WIDTH = 1 << 20  # operations of one batch


class Builder:
    """Collects the operations of examples."""

    def __init__(self, *labels: str) -> None:
        self.labels = labels
        self.types: list[int] = []
        self.examples: list[int] = []
        self.needs: list[tuple[int, ...]] = []
        self.example = 0

    def add(self, label: str, *needs: int) -> int:
        """Return the number of an operation that needs these."""
        self.types.append(self.labels.index(label))
        self.examples.append(self.example)
        self.needs.append(needs)
        return len(self.types) - 1

    def graph(self) -> TaskGraph:
        """The graph of all examples."""
        types, examples = (np.array(x, np.int64) for x in (self.types, self.examples))
        return TaskGraph(self.labels, types, examples, self.needs, (WIDTH,) * len(self.labels))


def tree(count: int, seed: int, kinds: int = 1, matrices: bool = False) -> TaskGraph:
    """TreeLSTM with an output at each node, and a sum of all outputs; inner nodes of several kinds; MV-RNN."""
    rng, trees = np.random.default_rng(seed), generate(count, seed)
    inner = [f"inner{k}" for k in range(kinds)]
    made = Builder("leaf", *inner, *(["matrix leaf", "matrix"] if matrices else []), "output", "sum")

    def node(k: int, outputs: list[int]) -> tuple[int, ...]:
        left, right = (int(x[made.example, k]) for x in (trees.left, trees.right))
        if left < 0:
            state = (made.add("leaf"), *([made.add("matrix leaf")] if matrices else []))
        else:
            a, b = node(left, outputs), node(right, outputs)
            state = (made.add(inner[int(rng.integers(kinds))], *a, *b),)
            state += (made.add("matrix", *a[1:], *b[1:]),) if matrices else ()
        outputs.append(made.add("output", state[0]))
        return state

    for made.example in range(count):
        outputs: list[int] = []
        node(0, outputs)
        made.add("sum", *outputs)
    return made.graph()


def tagger(count: int, seed: int) -> TaskGraph:
    """A bidirectional LSTM with an output at each word."""
    rng, made = np.random.default_rng(seed), Builder("embedding", "forward", "backward", "output")
    for made.example in range(count):
        words = [made.add("embedding") for _ in range(int(rng.integers(5, 30)))]
        forward: list[int] = []
        backward: list[int] = []
        for word in words:
            forward.append(made.add("forward", word, *forward[-1:]))
        for word in reversed(words):
            backward.append(made.add("backward", word, *backward[-1:]))
        for a, b in zip(forward, reversed(backward), strict=True):
            made.add("output", a, b)
    return made.graph()


def translation(count: int, seed: int) -> TaskGraph:
    """An encoder, a decoder that begins where it ends, and an output for each word."""
    rng, made = np.random.default_rng(seed), Builder("embedding", "encoder", "decoder", "output")
    for made.example in range(count):
        state: tuple[int, ...] = ()
        for _ in range(int(rng.integers(5, 30))):
            state = (made.add("encoder", made.add("embedding"), *state),)
        for _ in range(int(rng.integers(5, 30))):
            state = (made.add("decoder", *state),)
            made.add("output", *state)
    return made.graph()


def lattice(count: int, seed: int) -> TaskGraph:
    """A lattice LSTM: a cell for each character, and one for each word, which the character at its end needs."""
    rng, made = np.random.default_rng(seed), Builder("character", "word", "output")
    for made.example in range(count):
        length = int(rng.integers(10, 40))
        ends: dict[int, list[int]] = {}
        before: tuple[int, ...] = ()
        for k in range(length):
            before = (made.add("character", *before, *ends.get(k, ())),)
            for size in (1, 2, 3):
                if k + size < length and rng.random() < 0.25:
                    ends.setdefault(k + size, []).append(made.add("word", *before))
            made.add("output", *before)
    return made.graph()


GRAPHS: Mapping[str, Callable[[int, int], TaskGraph]] = {
    "BiLSTM tagger": tagger,
    "LSTM translation": translation,
    "TreeLSTM": tree,
    "MV-RNN": lambda count, seed: tree(count, seed, matrices=True),
    "TreeLSTM, two types": lambda count, seed: tree(count, seed, kinds=2),
    "TreeLSTM, three types": lambda count, seed: tree(count, seed, kinds=3),
    "lattice LSTM": lattice,
}
