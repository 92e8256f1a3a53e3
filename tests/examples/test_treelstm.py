"""The TreeLSTM: trees as promised, and the same numbers and gradients however they are batched."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples.treelstm import by_hand, data, model
from pcbatch import Plan

pytestmark = [pytest.mark.share(3), pytest.mark.long]

MOST, HIDDEN = 8, 6


@functools.cache
def trees(everywhere: bool = True) -> data.Trees:
    """A few small ones, the smallest and the largest among them."""
    found = data.generate(200, seed=3, most=MOST, everywhere=everywhere)
    size = found.nodes()
    return found.pick(np.concatenate([[size.argmin(), size.argmax()], np.arange(3)]))


@functools.cache
def weights() -> dict[str, jax.Array]:
    return model.initial_weights(HIDDEN, seed=1)


def chain(leaves: int) -> data.Trees:
    """One tree as high as can be: every phrase is a word and a phrase."""
    inner = np.arange(0, 2 * leaves - 2, 2)
    left, right = np.full((2, 1, 2 * leaves - 1), -1, np.int32)
    left[0, inner], right[0, inner] = inner + 1, inner + 2
    word = np.where(left < 0, np.arange(2 * leaves - 1)[None], -1).astype(np.int32)
    return data.Trees(left, right, word, np.zeros_like(left), np.full(left.shape, 0.25, np.float32))


def plain_loss(w, of: data.Trees):
    """The mean over the trees, each by plain recursion."""
    return sum(model.loss.plain(w, of.pick(k)) for k in range(len(of.left))) / len(of.left)


def close(found, expected, tolerance=1e-5):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = float(np.max(np.abs(np.asarray(other)))) + 1e-30
        np.testing.assert_allclose(np.asarray(one) / scale, np.asarray(other) / scale, atol=tolerance)


class TestData:
    def test_sentences_are_as_long_as_those_of_the_treebank(self):
        leaves = (data.generate(4000, seed=0).nodes() + 1) // 2
        assert leaves.min() == 2 and leaves.max() == 50
        assert leaves.mean() == pytest.approx(19, abs=0.5)

    @pytest.mark.parametrize("most", [2, 3, 12])
    def test_every_node_has_one_parent_before_it(self, most):
        found = data.generate(50, seed=1, most=most)
        assert found.left.shape == (50, 2 * most - 1)
        for k, nodes in enumerate(found.nodes()):
            tree = found.pick(k)
            inner = np.flatnonzero(tree.inner)
            children = np.concatenate([tree.left[inner], tree.right[inner]])
            assert sorted(children) == list(range(1, nodes))
            assert np.all(tree.left[inner] == inner + 1) and np.all(tree.right[inner] > tree.left[inner])
            np.testing.assert_array_equal(tree.word[:nodes] >= 0, ~tree.inner[:nodes])
            assert np.all(tree.word[nodes:] < 0) and np.all(tree.right[nodes:] < 0)

    def test_the_weights_of_a_tree_add_up_to_one(self):
        for everywhere in (True, False):
            np.testing.assert_allclose(trees(everywhere).weight.sum(axis=1), 1, rtol=1e-6)
        assert np.all(trees(False).weight[:, 0] == 1)

    def test_classes_follow_from_the_rule(self):
        found = trees()

        def value(tree, node):
            if tree.left[node] < 0:
                return data.POLARITY[tree.word[node]]
            sides = tree.left[node], tree.right[node]
            for one, other in (sides, sides[::-1]):
                if tree.left[one] < 0 and data.ROLE[tree.word[one]] != data.ADDS:
                    times = {data.NEGATES: -1, data.DOUBLES: 2}[data.ROLE[tree.word[one]]]
                    return int(np.clip(times * value(tree, other), -4, 4))
            return int(np.clip(sum(value(tree, side) for side in sides), -4, 4))

        for k, nodes in enumerate(found.nodes()):
            tree = found.pick(k)
            assert tree.label[:nodes].tolist() == [data.label_of(np.array(value(tree, n))) for n in range(nodes)]

    def test_classes_are_signs_and_whether_beyond_two(self):
        assert data.label_of(np.arange(-4, 5)).tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4]

    def test_the_same_seed_gives_the_same_trees(self):
        for one, other in zip(data.generate(20, 7), data.generate(20, 7), strict=True):
            np.testing.assert_array_equal(one, other)
        assert not np.array_equal(data.generate(20, 7).word, data.generate(20, 8).word)

    def test_heights(self):
        assert data.heights(chain(4)).tolist() == [[3, 0, 2, 0, 1, 0, 0]]
        assert data.highest(chain(50)) == 49


class TestModel:
    @pytest.mark.share(2)
    @pytest.mark.parametrize("function", [model.loss, model.sentiment], ids=lambda f: f.__name__)
    def test_lanes_equal_the_plain_recursion(self, function):
        of = trees()
        expected = np.stack([function.plain(weights(), of.pick(k)) for k in range(len(of.left))])
        close(function(weights(), of), expected)

    def test_the_loss_of_the_root_is_that_of_its_class(self):
        of = trees(everywhere=False)
        scores = model.sentiment(weights(), of)
        expected = jax.nn.logsumexp(scores, axis=1) - scores[np.arange(len(scores)), of.label[:, 0]]
        close(model.loss(weights(), of), expected)

    @pytest.mark.full_only
    def test_the_highest_tree_fits_the_depth_that_training_gives(self):
        of = chain(12)
        depth = data.highest(of) + 1
        for function in (model.sentiment, model.loss):
            result = jax.jit(function.with_options(max_depth=depth).run)(weights(), of)
            assert np.asarray(result.status).tolist() == [0]

    @pytest.mark.full_only
    def test_as_many_leaf_visits_as_the_largest_tree_has_leaves(self):
        """Lanes at the same place of the recursion run together, however deep each is."""
        of = trees()
        result = model.sentiment.with_options(stats=True, plan=Plan(fork="never")).run(weights(), of)
        most = int((of.nodes().max() + 1) // 2)
        assert most <= int(result.stats.visits("leaf(")) < 2 * most


class TestByHand:
    @pytest.mark.parametrize(("width", "multiple"), [(1, 1), (4, 1), (16, 3)])
    def test_it_equals_the_recursion(self, width, multiple):
        of = trees()
        todo = by_hand.plan(of, width, multiple)
        assert len(todo.word) % (width * multiple) == 0 and len(todo.left) % multiple == 0
        close(jax.jit(by_hand.sentiments)(weights(), todo), model.sentiment(weights(), of))
        close(jax.jit(by_hand.mean_loss)(weights(), todo), jnp.mean(model.loss(weights(), of)))

    @pytest.mark.full_only
    def test_its_gradient_is_that_of_the_plain_recursion(self):
        of = trees()
        expected = jax.grad(plain_loss)(weights(), of)
        close(jax.jit(jax.grad(by_hand.mean_loss))(weights(), by_hand.plan(of, 4)), expected)

    def test_children_come_before_their_parents(self):
        todo = by_hand.plan(trees(), 4)
        first = len(todo.word) + 4 * np.arange(len(todo.left))[:, None]
        assert np.all(todo.left < first) and np.all(todo.right < first)


@pytest.mark.full_only
@pytest.mark.parametrize("everywhere", [True, False])
def test_the_gradient_of_the_batched_recursion(everywhere):
    of = trees(everywhere)
    expected = jax.grad(plain_loss)(weights(), of)
    found = jax.grad(lambda w: jnp.mean(model.loss(w, of)))(weights())
    close(found, expected)
    batched = model.loss.with_options(max_depth=MOST)
    close(jax.jit(jax.grad(lambda w: jnp.mean(batched(w, of))))(weights()), expected)


@pytest.mark.full_only
def test_every_lane_has_its_own_gradient():
    of = trees()
    found = jax.jacrev(lambda w: model.loss(w, of))(weights())
    for k in range(len(of.left)):
        expected = jax.grad(lambda w, k=k: model.loss.plain(w, of.pick(k)))(weights())
        close(jax.tree.map(lambda a, k=k: a[k], found), expected)
