"""Packed objects through the ways to run a program: transformations of JAX, files, queues, compiled programs."""

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
    word: int


@pcbatch.batch
def total(node):
    if node is None:
        return 0
    return node.word + total(node.left) + total(node.right)


@pcbatch.batch
def rightmost(node):
    while node.right is not None:
        node = node.right
    return {"node": node, "parts": (node.left, node.word)}


@pcbatch.batch(in_axes={"more": None})
def together(pair, more, other=None):
    node, n = pair
    return node.word + n + more[0].word + (0 if other is None else other.word)


def tree(leaves: int) -> Node:
    half = leaves // 2
    return Node(None, None, leaves) if leaves < 2 else Node(tree(half), tree(leaves - half), 3 * leaves)


TREES = [tree(k) for k in range(1, 9)]
PACKED = pcbatch.pack(TREES)
TOTALS = [total.plain(one) for one in TREES]


def test_vmap() -> None:
    places = jnp.arange(8).reshape(4, 2)
    assert jax.vmap(lambda k: total(PACKED[k]))(places).reshape(-1).tolist() == TOTALS
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), PACKED, pcbatch.pack(TREES[::-1]))
    assert jax.vmap(total)(stacked).tolist() == [TOTALS, TOTALS[::-1]]


def test_runs_that_are_stopped_and_resumed(tmp_path: Any) -> None:
    machine = total.start(PACKED).advance(max_trips=2)
    machine.save(tmp_path / "run.npz")
    assert total.load(tmp_path / "run.npz", PACKED).advance().result().value.tolist() == TOTALS


def test_queues() -> None:
    assert total.map(PACKED, lanes=3).value.tolist() == TOTALS
    assert total.map(iter([PACKED[:4], PACKED[4:]]), lanes=2).value.tolist() == TOTALS


def test_programs_compiled_beforehand() -> None:
    shapes = jax.eval_shape(lambda packed: packed, PACKED)
    assert total.lower(shapes).compile()(PACKED).tolist() == TOTALS


def test_two_devices() -> None:
    assert np.asarray(total(PACKED, devices=2)).tolist() == TOTALS


def test_structures() -> None:
    result = rightmost(PACKED)
    plain = [rightmost.plain(one) for one in TREES]
    assert result["node"].unpack() == [one["node"] for one in plain]
    assert result["parts"][0].unpack() == [one["parts"][0] for one in plain]
    found = together((PACKED, jnp.arange(8)), PACKED[2:4], PACKED[::-1])
    rest = zip(TREES, range(8), TREES[::-1], strict=True)
    assert found.tolist() == [together.plain((one, n), TREES[2:4], other) for one, n, other in rest]


def test_exported_programs() -> None:
    run = jax.jit(lambda ids: total(pcbatch.Packed(ids, PACKED.columns, PACKED.schema, PACKED.roots)))
    assert jax.export.export(run)(PACKED.ids).call(PACKED.ids).tolist() == TOTALS
