"""Semantic relatedness of two sentences by a child-sum TreeLSTM (Tai et al., 2015), for JIT dynamic batching.

One function for one pair, which the compiler batches; and the same in host code that asks for each node (`f.ask`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from examples.networks import data, nary_tree_lstm
from examples.networks.nary_tree_lstm import Node

GRADES, CHILDREN = 5, 9  # grades of relatedness; children of a node at most
NODES = 16.5  # of a tree in the mean: table 1 counts 148,681 in 9,000 sentences


class Pair(NamedTuple):
    """Two parse trees."""

    left: Node
    right: Node


@pcbatch.batch(in_axes=(None, 0))
def graded(w, states):
    """The logarithms of the probabilities of all grades, from the states of both sentences."""
    (left, _), (right, _) = states
    both = jnp.concatenate([left * right, jnp.abs(left - right)])
    h = jax.nn.sigmoid(both @ w["both"] + w["both_bias"])
    return jax.nn.log_softmax(h @ w["head"] + w["head_bias"])


@pcbatch.batch(in_axes=(None, 0))
def predict(w, pair):
    """What a pair is graded."""
    return graded(w, (nary_tree_lstm.encode(w, pair.left), nary_tree_lstm.encode(w, pair.right)))


@pcbatch.batch(in_axes=(None, 0, 0))
def loss(w, pair, shares):
    """The cross entropy with the shares of grades."""
    return -jnp.sum(shares * predict(w, pair))


@pcbatch.batch(in_axes=(None, 0))
def leaf(w, word):
    """The state of a node without children."""
    return nary_tree_lstm.encode(w, Node(word, []))


@pcbatch.batch(in_axes=(None, 0, 0))
def inner(w, word, states):
    """The state of a node from the states of its children."""
    x = w["embedding"][word]
    below = kept = jnp.zeros_like(x)
    for h, c in states:
        below = below + h
        kept = kept + jax.nn.sigmoid(x @ w["forget_input"] + h @ w["forget"] + w["forget_bias"]) * c
    i, o, u = jnp.split(x @ w["input"] + below @ w["below"] + w["bias"], 3)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + kept
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def asked(w: Any, pairs: Sequence[Pair]) -> list[Any]:
    """The grades of all pairs: Python walks each pair by itself, in a fiber, and asks for its nodes."""

    def encode(node: Node) -> Any:
        if not node.children:
            return leaf.ask(w, node.word, keep=True)
        return inner.ask(w, node.word, [encode(child) for child in node.children], keep=True)

    def grade(pair: Pair) -> Any:
        return graded.ask(w, tuple(map(encode, pair)))

    return list(pcbatch.gather(grade, pairs))


_leaf, _inner, _graded = jax.jit(leaf.plain), jax.jit(inner.plain), jax.jit(graded.plain)


def node_by_node(w: Any, pairs: Sequence[Pair]) -> list[Any]:
    """The grades of all pairs: Python walks them one after the other, and calls a jitted function for each node."""

    def encode(node: Node) -> Any:
        if not node.children:
            return _leaf(w, node.word)
        return _inner(w, node.word, [encode(child) for child in node.children])

    return [_graded(w, tuple(map(encode, pair))) for pair in pairs]


def weights(hidden: int) -> dict[str, Any]:
    """Random ones."""
    rng = np.random.default_rng(0)
    made: dict[str, Any] = nary_tree_lstm.weights(rng, hidden)
    size = max(1, hidden // 3)
    return made | {
        "both": data.dense(rng, 2 * hidden, size),
        "both_bias": data.bias(rng, size),
        "head": data.dense(rng, size, GRADES),
        "head_bias": data.bias(rng, GRADES),
    }


def pairs(count: int, nodes: float = NODES) -> tuple[list[Pair], Any]:
    """Random pairs of trees with so many nodes in the mean, and the shares of grades that they should get."""
    rng = np.random.default_rng(1)

    def tree() -> Node:
        size = max(2, int(rng.normal(nodes, nodes / 3)))
        while True:
            made = nary_tree_lstm.dependencies(rng, rng.integers(0, data.WORDS, size).tolist())
            if widest(made) <= CHILDREN:
                return made

    made = [Pair(tree(), tree()) for _ in range(count)]
    return made, jnp.asarray(rng.dirichlet(np.ones(GRADES), count), jnp.float32)


def widest(node: Node) -> int:
    """The most children of a node in a tree."""
    return max([len(node.children), *map(widest, node.children)])


def count_nodes(node: Node) -> int:
    """The nodes of a tree."""
    return 1 + sum(map(count_nodes, node.children))


def in_torch(w: Any, some: Sequence[Pair], shares: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The network in PyTorch, pair by pair and operation by operation: inference, and the gradient of the mean loss."""
    import torch

    from examples.networks import in_torch as peer

    torch.set_num_threads(1)
    targets = torch.tensor(np.asarray(shares))

    def grade(v: Any, pair: Pair) -> Any:
        left, right = (peer.nary_states(v, tree)[0] for tree in pair)
        h = (torch.cat([left * right, (left - right).abs()]) @ v["both"] + v["both_bias"]).sigmoid()
        return torch.log_softmax(h @ v["head"] + v["head_bias"], 0)

    fixed = peer.tensors(w)

    def inference() -> Any:
        with torch.inference_mode():
            return np.stack([grade(fixed, pair).numpy() for pair in some])

    def training() -> Any:
        learnt = peer.tensors(w, learnt=True)
        for pair, share in zip(some, targets, strict=True):
            (-(share * grade(learnt, pair)).sum() / len(some)).backward()
        return {name: tensor.grad for name, tensor in learnt.items()}

    return inference, training
