"""A TreeLSTM on sentences of 2 to 50 words: `python -m benchmarks.trees [--lanes 64 256] [--hidden 64]`

The model and the trees of `examples.treelstm`. Ours is the recursion of one tree, batched; its peers are the same
recursion run by PyTorch, tree by tree, and the same model batched by hand in JAX, level by level over all trees of a
batch (`examples/treelstm/by_hand.py`; the width of its rows that suits it best), its gradient by `jax.grad` or by hand
too (`benchmarks/tree_backward.py`). Inference is the root's classes; training is a step on a minibatch: forward,
backward and Adam. The plans of the batches by hand are made beforehand; what that takes has a row of its own. All
results are compared before anything is timed.

XLA and PyTorch get one thread unless NPROC says otherwise.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks import tree_backward
from benchmarks.common import Row, interleaved_medians, median_seconds, report
from examples.treelstm import by_hand
from examples.treelstm.data import Trees, generate, highest
from examples.treelstm.model import initial_weights, sentiment
from pcbatch import Plan

PARTS = ("inference", "training")
OURS, MAP, TORCH = "pcbatch", "pcbatch, f.map", "PyTorch, tree by tree"
HAND, BACKWARD = "by hand", "by hand, backward too"  # in rows of some width
BATCHES = 4  # minibatches in a call
TORCH_TREES = 64  # in a call of PyTorch: as quick or slow for a tree as for many
WIDTHS = (16, 32, 64, 128)
BY_HAND = {HAND: jax.value_and_grad(by_hand.mean_loss), BACKWARD: tree_backward.value_and_grad}
CLOSE = {"rtol": 2e-3, "atol": 2e-5}


class Case(NamedTuple):
    """Some batches of trees of equal number."""

    lanes: int
    weights: dict[str, Any]
    batches: list[Trees]
    height: int

    def gradient(self) -> Any:
        """The mean loss of trees and its gradient, by pcbatch."""
        from examples.treelstm.train import recursive

        return recursive(self.height)

    @property
    def trees(self) -> Trees:
        """Of all batches."""
        return Trees(*(np.concatenate(arrays) for arrays in zip(*self.batches, strict=True)))


class Way(NamedTuple):
    """A call, and how many trees it goes through."""

    run: Callable[[], Any]
    trees: int


def case(lanes: int, hidden: int) -> Case:
    """Random weights and trees."""
    trees = generate(lanes * BATCHES, seed=1)
    batches = [trees.pick(slice(k * lanes, (k + 1) * lanes)) for k in range(BATCHES)]
    return Case(lanes, initial_weights(hidden, 0), batches, highest(trees))


def has_torch() -> bool:
    """Is PyTorch installed?"""
    return importlib.util.find_spec("torch") is not None


def inference(of: Case) -> dict[str, Way]:
    """Every way to the classes of the roots of all trees."""
    ours = sentiment.with_options(max_depth=of.height + 1, plan=Plan(fork="never"))
    count = of.lanes * BATCHES
    on_device, trees = [jax.device_put(batch) for batch in of.batches], jax.device_put(of.trees)
    ways = {
        OURS: Way(lambda: [ours(of.weights, batch) for batch in on_device], count),
        MAP: Way(lambda: [ours.map(of.weights, trees, lanes=of.lanes).value], count),
    }
    run = jax.jit(by_hand.sentiments)
    for width in WIDTHS:
        todo = _plans(of, width)
        ways[_in_rows(HAND, width)] = Way(lambda todo=todo: [run(of.weights, plan) for plan in todo], count)
    if has_torch():
        from benchmarks import tree_torch

        few = tree_torch.listed(of.trees.pick(slice(0, TORCH_TREES)))
        call = tree_torch.inference(of.weights, few)
        ways[TORCH] = Way(lambda: [call()], len(few))
    return ways


def _in_rows(name: str, width: int) -> str:
    return f"{name}, rows of {width}"


def _plans(of: Case, width: int) -> list[by_hand.Plan]:
    return [jax.device_put(by_hand.plan(batch, width, multiple=8)) for batch in of.batches]


def training(of: Case) -> dict[str, Way]:
    """Every way to make a step on each batch, from the same weights."""
    from examples.treelstm.train import CLIP, Gradient, Settings, start, stepper

    settings = Settings(hidden=of.weights["head"].shape[0])
    optimiser = start(settings).optimiser

    def way(gradient: Gradient, batches: Sequence[Any]) -> Way:
        step = stepper(settings.rate, gradient)
        return Way(lambda: [step(of.weights, optimiser, batch)[2] for batch in batches], of.lanes * BATCHES)

    ways = {OURS: way(of.gradient(), [jax.device_put(batch) for batch in of.batches])}
    for width in WIDTHS:
        plans = _plans(of, width)
        for name, function in BY_HAND.items():
            ways[_in_rows(name, width)] = way(Gradient(lambda plan: plan, function), plans)
    if has_torch():
        from benchmarks import tree_torch

        few = tree_torch.listed(of.batches[0].pick(slice(0, TORCH_TREES)))
        ways[TORCH] = Way(tree_torch.training(of.weights, few, settings.rate, CLIP), len(few))
    return ways


def check_inference(ways: dict[str, Way]) -> None:
    """Stop at results that differ."""
    expected = np.concatenate(ways[OURS].run())
    for name, way in ways.items():
        found = np.concatenate(way.run())
        _compare(name, found, expected[: len(found)])


def check_gradients(of: Case) -> None:
    """Of the first trees; stop where they differ."""
    few = of.batches[0].pick(slice(0, 8))
    expected = jax.jit(of.gradient().value_and_grad)(of.weights, few)
    found = {name: jax.jit(function)(of.weights, by_hand.plan(few, 8)) for name, function in BY_HAND.items()}
    if has_torch():
        from benchmarks import tree_torch

        found[TORCH] = tree_torch.gradient(of.weights, tree_torch.listed(few))
    for name, each in found.items():
        for one, other in zip(jax.tree.leaves(each), jax.tree.leaves(expected), strict=True):
            _compare(name, one, other)


def _compare(name: str, found: Any, expected: Any) -> None:
    if not np.allclose(found, expected, **CLOSE):
        raise SystemExit(f"{name}: wrong results, nothing to measure")


def measure(part: str, of: Case, repeats: int) -> list[Row]:
    """Trees per second of every way; of those by hand, only the best widths are shown."""
    if part == "inference":
        ways = inference(of)
        check_inference(ways)
    else:
        ways = training(of)
        check_gradients(of)
    times = interleaved_medians({name: way.run for name, way in ways.items()}, repeats)
    rates = {name: ways[name].trees / time for name, time in times.items()}
    best = [max(names, key=rates.__getitem__) for names in _families(rates)]
    title = f"{part}, {of.lanes} lanes, hidden {of.weights['head'].shape[0]}"
    return [Row(f"{title}: {name}", rates[name], "trees/s") for name in best] + [
        Row(f"{title}: {OURS} / {name}", rates[OURS] / rates[name], "x", None, False, f"{name} (trees/s)", rates[name])
        for name in best
        if not name.startswith(OURS)
    ]


def _families(names: Iterable[str]) -> list[list[str]]:
    """Names that differ in the width of rows alone stand together."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.partition(", rows of")[0], []).append(name)
    return list(found.values())


def planning(of: Case, repeats: int) -> Row:
    """What the host does for the batches by hand before each of them."""
    seconds = median_seconds(lambda: by_hand.plan(of.batches[0], 32), repeats)
    return Row(f"plan of a batch by hand, {of.lanes} lanes", 1e3 * seconds, "ms")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="one part; may be given again")
    parser.add_argument("--lanes", type=int, nargs="+", default=[64, 256], help="trees in a batch")
    parser.add_argument("--hidden", type=int, default=64, help="size of a node's state")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    os.environ.setdefault("NPROC", "1")  # read by XLA at its first computation
    rows = []
    for lanes in chosen.lanes:
        of = case(lanes, chosen.hidden)
        rows += [row for part in chosen.only or PARTS for row in measure(part, of, chosen.repeats)]
        rows.append(planning(of, chosen.repeats))
    report("TreeLSTM", rows, chosen.json)


if __name__ == "__main__":
    main()
