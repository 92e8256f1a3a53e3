"""Conversions to the dtype that a value has: they go, and what stores into an array does so in place."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.lowering.jaxpr_passes.drop_conversions import without_conversions


def test_conversions_to_the_same_dtype_go() -> None:
    closed = jax.make_jaxpr(lambda x, i: jnp.full(20, x).at[i].set(1.5))(0.0, 3)
    names = [eqn.primitive.name for eqn in without_conversions(closed).jaxpr.eqns]
    assert sum(eqn.primitive.name == "convert_element_type" for eqn in closed.jaxpr.eqns) > names.count(
        "convert_element_type"
    )
    assert jax.core.eval_jaxpr(without_conversions(closed).jaxpr, closed.consts, 0.0, 3)[0].tolist()[3] == 1.5


def test_conversions_to_another_dtype_stay() -> None:
    closed = jax.make_jaxpr(lambda x: x.astype(jnp.int32) + 1)(1.5)
    assert without_conversions(closed) is closed


def test_an_output_may_be_an_input() -> None:
    closed = jax.make_jaxpr(lambda x: jax.lax.convert_element_type(x, jnp.float32))(1.5)
    assert jax.core.eval_jaxpr(without_conversions(closed).jaxpr, closed.consts, 2.5) == [2.5]


@pytest.mark.parametrize("start", [0.0, jnp.float32(0.0)], ids=["weak", "strong"])
def test_stores_into_an_array_of_a_weak_type_are_in_place(start: object) -> None:
    @pcbatch.batch
    def counts(n):
        total = jnp.full(40, start)
        for k in range(n):
            total = total.at[k].set(k * 0.5)
        return total

    n = jnp.array([3, 0, 40])
    assert counts(n).tolist() == [[k * 0.5 if k < m else 0.0 for k in range(40)] for m in (3, 0, 40)]
    compiled = jax.jit(counts).lower(n).compile().as_text()
    assert compiled is not None
    assert "transpose" not in compiled  # of the whole array, for a store into a copy of it
