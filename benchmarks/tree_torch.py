"""The TreeLSTM of `examples.treelstm` as one writes it in PyTorch: a recursion that runs tree by tree, node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from examples.treelstm.data import Trees


class Tree(NamedTuple):
    """One tree as Python lists, which are quicker to read than tensors."""

    left: list[int]
    right: list[int]
    word: list[int]
    label: list[int]
    weight: list[float]


class TreeLSTM(torch.nn.Module):
    """The same weights, the same equations."""

    def __init__(self, weights: dict[str, Any]) -> None:
        super().__init__()
        self.w = torch.nn.ParameterDict({name: torch.tensor(np.asarray(value)) for name, value in weights.items()})

    def leaf(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The state of a word."""
        i, o, u = (x @ self.w["leaf"] + self.w["leaf_bias"]).chunk(3)
        c = i.sigmoid() * u.tanh()
        return o.sigmoid() * c.tanh(), c

    def compose(self, left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The state of a phrase."""
        gates = torch.cat([left[0], right[0]]) @ self.w["node"] + self.w["node_bias"]
        i, f, g, o, u = gates.chunk(5)
        c = i.sigmoid() * u.tanh() + f.sigmoid() * left[1] + g.sigmoid() * right[1]
        return o.sigmoid() * c.tanh(), c

    def encode(self, tree: Tree) -> list[tuple[Tensor, Tensor]]:
        """The states of all nodes, as `postorder` has them: the root's is the last."""
        words = [word for word in tree.word if word >= 0]  # of the leaves, from left to right
        vectors = iter(torch.nn.functional.embedding(torch.tensor(words), self.w["embedding"]).unbind())
        states: list[tuple[Tensor, Tensor]] = []

        def visit(node: int) -> tuple[Tensor, Tensor]:
            if tree.left[node] < 0:
                state = self.leaf(next(vectors))
            else:
                state = self.compose(visit(tree.left[node]), visit(tree.right[node]))
            states.append(state)
            return state

        visit(0)
        return states

    def logits(self, h: Tensor) -> Tensor:
        """A number for each class."""
        return h @ self.w["head"] + self.w["head_bias"]

    def loss(self, tree: Tree) -> Tensor:
        """That of all nodes of a tree, whose classes are asked for at once."""
        shown = [h for h, _ in self.encode(tree)]
        order = postorder(tree)
        label, weight = torch.tensor([tree.label[n] for n in order]), torch.tensor([tree.weight[n] for n in order])
        scores = self.logits(torch.stack(shown))
        return (weight * torch.nn.functional.cross_entropy(scores, label, reduction="none")).sum()


def postorder(tree: Tree, node: int = 0) -> list[int]:
    """Nodes in the order in which their states are known."""
    if tree.left[node] < 0:
        return [node]
    return [*postorder(tree, tree.left[node]), *postorder(tree, tree.right[node]), node]


def listed(trees: Trees) -> list[Tree]:
    """One after the other."""
    return [Tree(*(array[k].tolist() for array in trees)) for k in range(len(trees.left))]


def inference(weights: dict[str, Any], trees: Sequence[Tree]) -> Callable[[], np.ndarray]:
    """A call that gives the numbers of all sentences."""
    torch.set_num_threads(1)
    model = TreeLSTM(weights)

    def run() -> np.ndarray:
        with torch.inference_mode():
            return np.stack([model.logits(model.encode(tree)[-1][0]).numpy() for tree in trees])

    return run


def gradient(weights: dict[str, Any], trees: Sequence[Tree]) -> tuple[float, dict[str, np.ndarray]]:
    """The mean loss of the trees, and its gradient."""
    model = TreeLSTM(weights)
    value = torch.stack([model.loss(tree) for tree in trees]).mean()
    value.backward()
    return float(value.detach()), {name: parameter.grad.numpy() for name, parameter in model.w.items()}


def training(weights: dict[str, Any], trees: Sequence[Tree], rate: float, most: float) -> Callable[[], float]:
    """A call that makes one step on a minibatch, with the norm of its gradient cut off at `most`."""
    torch.set_num_threads(1)
    model = TreeLSTM(weights)
    rule = torch.optim.Adam(model.parameters(), lr=rate)

    def run() -> float:
        rule.zero_grad()
        value = torch.stack([model.loss(tree) for tree in trees]).mean()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), most)
        rule.step()
        return float(value.detach())

    return run
