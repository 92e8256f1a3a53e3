"""Compares a batch with each example by itself: in PyTorch if it is there, else in plain Python."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import pcbatch
from examples.networks.data import Example

RTOL, ATOL = 2e-3, 2e-4  # sums in other orders, through dozens of layers


def has_torch() -> bool:
    """Can PyTorch be imported?"""
    return importlib.util.find_spec("torch") is not None


def plain_predictions(network: Any, w: Any, examples: Sequence[Example]) -> list[Any]:
    """What the undecorated function says of each example."""
    return [network.predict.plain(w, example.x) for example in examples]


def plain_gradient(network: Any, w: Any, examples: Sequence[Example]) -> tuple[Any, Any]:
    """The mean loss of the undecorated function, and its gradient by JAX, operation by operation."""
    found = [jax.value_and_grad(network.loss.plain)(w, *example) for example in examples]
    return jax.tree.map(lambda *leaves: np.mean(np.stack(leaves), axis=0), *found)


def by_example(found: Any, number: int) -> list[Any]:
    """What a batch says of each example."""
    if isinstance(found, pcbatch.Ragged):
        return [[np.asarray(row) for row in found.values[k, : found.lengths[k]]] for k in range(number)]
    return [jax.tree.map(lambda leaf, k=k: np.asarray(leaf[k]), found) for k in range(number)]


def compare(found: Any, expected: Any, where: str, rtol: float = RTOL, atol: float = ATOL) -> None:
    """Raise if two pytrees differ."""
    have, want = jax.tree.leaves_with_path(found), jax.tree.leaves(expected)
    if len(have) != len(want):
        raise AssertionError(f"{where}: {len(have)} arrays, not {len(want)}")
    for (path, one), other in zip(have, want, strict=True):
        name = f"{where}{jax.tree_util.keystr(path)}"
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=rtol, atol=atol, err_msg=name)


def predictions(name: str, network: Any, w: Any, examples: Sequence[Example], found: Any) -> str:
    """Compare what a batch says with each example by itself; returns with what."""
    if has_torch():
        from examples.networks import in_torch

        expected, what = in_torch.predictions(name, in_torch.tensors(w), examples), "PyTorch"
    else:
        expected, what = plain_predictions(network, w, examples), "plain Python"
    for k, (have, want) in enumerate(zip(by_example(found, len(examples)), expected, strict=True)):
        compare(have, want, f"example {k}")
    return what


def gradient(name: str, network: Any, w: Any, examples: Sequence[Example], found: Any) -> str:
    """Compare the mean loss of a batch and its gradient with those of each example; returns with what."""
    if has_torch():
        from examples.networks import in_torch

        expected, what = in_torch.gradient(name, w, examples), "PyTorch"
    else:
        expected, what = plain_gradient(network, w, examples), "plain Python"
    compare(found, expected, "gradient")
    return what
