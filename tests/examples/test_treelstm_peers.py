"""What `benchmarks.trees` compares computes the same. Nothing is timed here."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from benchmarks import trees as benchmark
from examples.treelstm import by_hand, data, model

pytestmark = [pytest.mark.long, pytest.mark.promotion("standard")]


@pytest.fixture
def small(monkeypatch):
    """Two batches of two trees."""
    monkeypatch.setattr(benchmark, "WIDTHS", (4,))
    monkeypatch.setattr(benchmark, "BATCHES", 2)
    monkeypatch.setattr(benchmark, "TORCH_TREES", 3)
    monkeypatch.setattr(benchmark, "generate", lambda count, seed: data.generate(count, seed, most=6))
    return benchmark.case(lanes=2, hidden=4)


@pytest.mark.full_only
def test_all_ways_to_the_classes_agree(small):
    ways = benchmark.inference(small)
    benchmark.check_inference(ways)
    count = {name: len(np.concatenate(way.run())) for name, way in ways.items()}
    assert count == {name: way.trees for name, way in ways.items()}
    assert {benchmark.OURS, benchmark.MAP, "by hand, rows of 4"} <= set(count)


@pytest.mark.full_only
def test_results_that_differ_are_not_measured(small):
    ways = benchmark.inference(small)
    wrong = benchmark.Way(lambda: [np.zeros((4, 5))], 4)
    with pytest.raises(SystemExit, match="peer: wrong results"):
        benchmark.check_inference({benchmark.OURS: ways[benchmark.OURS], "peer": wrong})


@pytest.mark.full_only
@pytest.mark.parametrize("width", [2, 16])
def test_the_backward_pass_by_hand(width):
    weights = model.initial_weights(6, seed=1)
    todo = by_hand.plan(data.generate(7, seed=2, most=8), width, multiple=2)
    expected, found = (jax.jit(function)(weights, todo) for function in benchmark.BY_HAND.values())
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_the_recursion_in_pytorch(small):
    pytest.importorskip("torch")
    from benchmarks import tree_torch

    some = small.batches[0]
    value, slope = tree_torch.gradient(small.weights, tree_torch.listed(some))
    expected = jax.jit(benchmark.BY_HAND[benchmark.HAND])(small.weights, by_hand.plan(some, 4))
    np.testing.assert_allclose(value, expected[0], rtol=1e-5)
    for name in slope:
        np.testing.assert_allclose(slope[name], expected[1][name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.full_only
def test_all_ways_to_train_agree(small):
    pytest.importorskip("optax")
    benchmark.check_gradients(small)
    ways = benchmark.training(small)
    losses = {name: np.asarray(way.run()).ravel() for name, way in ways.items()}
    expected = losses[benchmark.OURS]
    for name, found in losses.items():
        if name != benchmark.TORCH:  # goes through other trees, and on from step to step
            np.testing.assert_allclose(found, expected, rtol=1e-4, err_msg=name)


def test_ways_that_differ_in_their_rows_alone_are_one():
    names = ["pcbatch", "by hand, rows of 4", "by hand, backward too, rows of 4", "by hand, rows of 8"]
    families = benchmark._families(names)
    assert families == [["pcbatch"], ["by hand, rows of 4", "by hand, rows of 8"], [names[2]]]
