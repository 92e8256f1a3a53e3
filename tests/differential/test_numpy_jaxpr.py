"""The oracle that evaluates jaxprs in NumPy gives what JAX gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.oracles.numpy_jaxpr import compiled

X = np.arange(24, dtype=np.int32).reshape(4, 6) * 7 % 23
ROWS = np.array([3, -1, 9, 0, 3], np.int32)  # in any order, from the end, outside, twice
COLUMNS = np.array([5, 2, 0, -9, 1], np.int32)
FLOATS = np.array([2.5, np.nan, -1.0, 7.0, -0.5, 0.5], np.float32)
WORDS = np.array([1, -5, 2**31 - 1, -(2**31)], np.int32)
BITS = np.array([3, 31, 32, -1], np.int32)


def _for(n: Any, x: Any) -> Any:
    return lax.fori_loop(0, n, lambda k, v: jnp.where(k % 2 == 0, v.at[k % 4, k].add(k), v[::-1]), x)


CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("a row", lambda x, i: x[i], (X, np.int32(2))),
    ("a row outside", lambda x, i: x.at[i].get(mode="fill"), (X, np.int32(9))),
    ("a row clipped", lambda x, i: x.at[i].get(mode="clip"), (X, np.int32(9))),
    ("rows", lambda x, i: x[i], (X, ROWS)),
    ("rows filled", lambda x, i: x.at[i].get(mode="fill", fill_value=-3), (X, ROWS)),
    ("columns", lambda x, i: x[:, i], (X, COLUMNS)),
    ("elements", lambda x, i, j: x[i, j], (X, ROWS, COLUMNS)),
    ("elements filled", lambda x, i, j: x.at[i, j].get(mode="fill"), (X.astype(np.float32), ROWS, COLUMNS)),
    ("unsigned, filled", lambda x, i: x.at[i].get(mode="fill"), (X.astype(np.uint8), ROWS)),
    ("truth, filled", lambda x, i: x.at[i].get(mode="fill"), (X > 9, ROWS)),
    ("gather in a batch", jax.vmap(lambda x, i: x[i]), (X, np.array([1, 5, 9, -2], np.int32))),
    ("set rows", lambda x, i: x.at[i].set(5), (X, ROWS)),
    ("set an element", lambda x, i, j: x.at[i, j].set(5), (X, np.int32(1), np.int32(-1))),
    ("set elements", lambda x, i, j: x.at[i, j].set(jnp.arange(5)), (X, np.array([0, 1, 2, 3, 9]), COLUMNS)),
    ("add columns", lambda x, i: x.at[:, i].add(jnp.arange(20).reshape(4, 5)), (X, COLUMNS)),
    ("add clipped", lambda x, i: x.at[i].add(100, mode="clip"), (X, ROWS)),
    ("multiply", lambda x, i: x.at[i].mul(2), (X, ROWS)),
    ("least", lambda x, i: x.at[i].min(3), (X, ROWS)),
    ("greatest", lambda x, i: x.at[i].max(9), (X, ROWS)),
    ("scatter in a batch", jax.vmap(lambda x, i: x.at[i].add(9)), (X, np.array([1, 5, 9, -2], np.int32))),
    ("fori", lambda n, x: _for(n, x), (np.int32(6), X)),
    ("while", lambda x, n: lax.while_loop(lambda v: v[0] < n, lambda v: (v[0] * 3, v[1] + n), (x, 1)),
     (np.int32(1), np.int32(100))),
    ("cond", lambda k, x: lax.switch(k, [jnp.sin, lambda v: v + 1, lambda v: v * 2], x), (np.int32(7), FLOATS)),
    ("scan", lambda x: lax.scan(lambda c, row: (c + row[0], c * row), 0, x), (X,)),
    ("scan backwards", lambda x: lax.scan(lambda c, row: (c + row[0], c * row), 0, x, reverse=True), (X,)),
    ("sort", lambda x: jnp.sort(x), (FLOATS,)),
    ("sort rows", lambda x: jnp.sort(x, axis=0), (X,)),
    ("argsort", lambda x: jnp.argsort(x), (X,)),
    ("sort by two", lambda x, y: lax.sort((x, y, x + y), num_keys=2), (COLUMNS, ROWS)),
    ("left", lax.shift_left, (WORDS, BITS)),
    ("right", lax.shift_right_logical, (WORDS, BITS)),
    ("right, with sign", lax.shift_right_arithmetic, (WORDS, BITS)),
    ("one right", lax.shift_right_logical, (np.uint32(2**32 - 1), np.uint32(7))),
    ("argmax", lambda x: jnp.argmax(x), (FLOATS,)),
    ("argmin of rows", lambda x: jnp.argmin(x, axis=1), (X,)),
    ("extremes", lambda x: (x.max(), x.min(axis=0), x.max(axis=1)), (X,)),
    ("pad", lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=4), (X,)),
    ("pad inside", lambda x: lax.pad(x, np.int32(4), ((1, -1, 2), (-1, 3, 0))), (X,)),
    ("round", lambda x: (jnp.round(x), lax.round(x)), (FLOATS,)),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "args"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_numpy_gives_what_jax_gives(fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Values and dtypes, to the bit."""
    closed = jax.make_jaxpr(fn)(*args)
    found = compiled(closed.jaxpr, closed.consts)([jnp.asarray(x).__array__() for x in args])
    for mine, theirs in zip(found, jax.tree.leaves(fn(*map(jnp.asarray, args))), strict=True):
        assert np.asarray(mine).dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
