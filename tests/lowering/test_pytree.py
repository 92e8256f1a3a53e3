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
from pcbatch.lowering.typing.pytree import common_order, flatten
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
    assert common_order(tree, jax.tree.structure(value)) == jax.tree.structure(value)


def test_names_of_leaves_go_with_their_values() -> None:
    assert leaf_names("d", abstract_of({"b": NUMBER, "a": (NUMBER, NUMBER)})) == ("d.a._0", "d.a._1", "d.b")


def test_paths_that_disagree_about_the_order_sort_the_keys() -> None:
    one, other = abstract_of({"b": NUMBER, "a": NUMBER}), abstract_of({"a": NUMBER, "b": NUMBER})
    assert join(one, one) == one
    assert join(one, other) == join(other, one) == other


def test_only_the_dicts_that_disagree_are_sorted() -> None:
    one = abstract_of(({"d": NUMBER, "c": NUMBER}, {"b": NUMBER, "a": NUMBER}))
    other = abstract_of(({"d": NUMBER, "c": NUMBER}, {"a": NUMBER, "b": NUMBER}))
    assert join(one, other) == join(other, one) == other


@pcbatch.batch
def beside_others(a):
    """A dict beside another one whose structure inference takes some turns to find."""
    known, rows = {3: a}, [[] for _ in range(3)]
    chosen = {k: v for k, v in known.items() if v != 1}
    rows[1 % len(rows)].append(5)
    known.update({1: a})
    if rows:
        rows[0].append(2)
    return rows, known, chosen


@pcbatch.batch
def beside_a_text(a):
    """A dict in a result with a text that is known while compiling."""
    return "text", {3: a, 1: a}, {"z": "u", "b": a}


def test_results_keep_the_order_beside_anything() -> None:
    for function, places in ((beside_others, {1: [3, 1]}), (beside_a_text, {1: [3, 1], 2: ["z", "b"]})):
        result = function(jnp.array([5, 6]))
        assert {place: list(result[place]) for place in places} == places


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
