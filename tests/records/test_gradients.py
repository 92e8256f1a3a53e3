"""Derivatives with respect to the numbers that objects hold, and to weights that lanes share."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.share(3)


class Node(NamedTuple):
    left: Any
    right: Any
    value: float
    row: Any


@pcbatch.batch(in_axes=(None, 0))
def encode(weight, node):
    if node.left is None:
        return jnp.tanh(node.row * node.value)
    return jnp.sin(encode(weight, node.left) @ weight + encode(weight, node.right)) * node.value


def objects() -> list[Node]:
    leaves = [Node(None, None, 0.5 + k, np.float32([k, 1.0 - k])) for k in range(3)]
    shared = Node(leaves[0], leaves[1], 1.5, np.zeros(2, np.float32))
    return [leaves[2], shared, Node(shared, Node(leaves[2], shared, -0.5, leaves[0].row), 2.0, leaves[0].row)]


WEIGHT = jnp.array([[0.3, -0.2], [0.1, 0.9]])


def expected() -> Any:
    """The gradient of the plain function, which walks over numbers of JAX."""
    packed = pcbatch.pack(objects())
    values, rows = packed.columns[2:]
    left, right = map(np.asarray, packed.columns[:2])

    def encode_row(weight: Any, values: Any, rows: Any, k: int) -> Any:
        if left[k] < 0:
            return jnp.tanh(rows[k] * values[k])
        parts = (encode_row(weight, values, rows, int(child[k])) for child in (left, right))
        return jnp.sin(next(parts) @ weight + next(parts)) * values[k]

    def loss(weight: Any, values: Any, rows: Any) -> Any:
        return sum(jnp.sum(encode_row(weight, values, rows, int(k))) for k in packed.ids)

    return jax.grad(loss, (0, 1, 2))(WEIGHT, values, rows)


def test_gradients_of_columns_and_weights() -> None:
    packed = pcbatch.pack(objects())

    def loss(weight: Any, packed: Any) -> Any:
        return jnp.sum(encode(weight, packed))

    weight, values, rows = expected()
    of_weight = jax.grad(loss)(WEIGHT, packed)
    np.testing.assert_allclose(of_weight, weight, rtol=1e-4)
    both = jax.jit(jax.grad(loss, (0, 1), allow_int=True))(WEIGHT, packed)
    np.testing.assert_allclose(both[0], weight, rtol=1e-4)
    assert isinstance(both[1], pcbatch.Packed)
    np.testing.assert_allclose(both[1].columns[2], values, rtol=1e-4)
    np.testing.assert_allclose(both[1].columns[3], rows, rtol=1e-4)
