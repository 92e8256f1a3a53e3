"""Sums with arrays that are zero but for a part: the part is added in its place, and nothing else changes."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters.partial_eval import dce_jaxpr

from pcbatch.lowering.jaxpr_passes.add_parts import add_parts

TABLE = jnp.arange(12.0).reshape(4, 3)


def added_tables(closed: jex.ClosedJaxpr) -> int:
    """The number of sums of whole tables in a jaxpr."""
    sums = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name in ("add", "add_any")]
    return sum(eqn.outvars[0].aval.shape == TABLE.shape for eqn in sums)


def used(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """A jaxpr without what nothing needs."""
    return jex.ClosedJaxpr(dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))[0], closed.consts)


def by_slice(total: Any, part: Any, i: Any) -> Any:
    return total + jax.lax.dynamic_update_slice(jnp.zeros((4, 3)), part, (i, 0))


def by_scatter(total: Any, part: Any, i: Any) -> Any:
    return total + jnp.zeros((4, 3)).at[i].add(part[0])


def of_two(total: Any, part: Any, i: Any) -> Any:
    zeros = jnp.zeros((4, 3))
    parts = jax.lax.dynamic_update_slice(zeros, part, (i, 0)) + jax.lax.dynamic_update_slice(zeros, 2 * part, (0, 0))
    return 3 * total + parts


@pytest.mark.parametrize("f", [by_slice, by_scatter, of_two])
@pytest.mark.parametrize("i", [0, 3, 9])
def test_a_part_is_added_in_its_place(f: Any, i: int) -> None:
    args = TABLE, jnp.ones((1, 3)), i
    closed = jax.make_jaxpr(f)(*args)
    new = add_parts(closed)
    (found,) = jex.jaxpr_as_fun(new)(*args)
    np.testing.assert_array_equal(found, f(*args))
    assert added_tables(used(closed)) and not added_tables(used(new))


def test_an_array_that_holds_something_is_added_as_a_whole() -> None:
    def f(total: Any, part: Any, i: Any) -> Any:
        return total + jax.lax.dynamic_update_slice(jnp.ones((4, 3)), part, (i, 0))

    args = TABLE, jnp.ones((1, 3)), 1
    new = add_parts(jax.make_jaxpr(f)(*args))
    assert added_tables(used(new)) == 1
    np.testing.assert_array_equal(jex.jaxpr_as_fun(new)(*args)[0], f(*args))


def test_a_sum_that_something_else_uses_stays() -> None:
    def f(total: Any, part: Any, i: Any) -> Any:
        zeros = jnp.zeros((4, 3))
        parts = jax.lax.dynamic_update_slice(zeros, part, (i, 0)) + jnp.ones((4, 3))
        return total + parts, parts * 2

    args = TABLE, jnp.ones((1, 3)), 1
    new = add_parts(jax.make_jaxpr(f)(*args))
    for found, wanted in zip(jex.jaxpr_as_fun(new)(*args), f(*args), strict=True):
        np.testing.assert_array_equal(found, wanted)
