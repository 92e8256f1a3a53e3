"""Dicts keep the order of their keys, and their leaves stand where JAX has them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import leaf_names
from pcbatch.lowering.typing.join_types import join
from pcbatch.lowering.typing.pytree import flatten, without_order
from tests.lowering.typed import abstract_of

NUMBER = ArrayType("int32", ())


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": 2},
        {"a": {"z": 1, "y": (2, None)}, "b": [{2: 3, 1: 4}]},
        ({"b": {"d": 1, "c": 2}, "a": 3}, {"a": 4, "b": 5}),
        {},
        5,
    ],
)
def test_what_comes_back_is_what_was_flattened(value: Any) -> None:
    leaves, tree = flatten(value)
    assert leaves == jax.tree.leaves(value)
    assert repr(jax.tree.unflatten(tree, leaves)) == repr(value)
    assert without_order(tree) == jax.tree.structure(value)


def test_names_of_leaves_go_with_their_values() -> None:
    assert leaf_names("d", abstract_of({"b": NUMBER, "a": (NUMBER, NUMBER)})) == ("d.a._0", "d.a._1", "d.b")


def test_paths_that_disagree_about_the_order_sort_the_keys() -> None:
    one, other = abstract_of({"b": NUMBER, "a": NUMBER}), abstract_of({"a": NUMBER, "b": NUMBER})
    assert join(one, one) == one
    assert join(one, other) == join(other, one) == other


def test_arguments_and_results_keep_the_order() -> None:
    @pcbatch.batch(in_axes=({"low": 0, "high": None},))
    def f(d):
        order = 0
        for value in d.values():
            order = order * 10 + value
        return order, {**d, "also": {"y": 1, "x": order}}

    order, d = f({"low": jnp.array([1, 2]), "high": jnp.array(3)})
    assert order.tolist() == [13, 23]
    assert list(d) == ["low", "high", "also"] and list(d["also"]) == ["y", "x"]
    assert f({"high": jnp.array(3), "low": jnp.array([1, 2])})[0].tolist() == [31, 32]
