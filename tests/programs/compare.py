"""Does a batched result say for every lane what plain Python said?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from pcbatch import Status


def to_numpy(leaf: Any) -> np.ndarray:
    """Any leaf, typed PRNG keys included, as a NumPy array."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def assert_outcomes(result: pcbatch.Result, expected: Sequence[Any], *, rtol: float = 1e-5) -> None:
    """As `assert_lanes_equal`, where some lanes end in an exception: the others are not disturbed."""
    statuses = [status_of(outcome) for outcome in expected]
    assert np.asarray(result.status).tolist() == statuses
    good = np.flatnonzero(np.equal(statuses, int(Status.OK)))
    if good.size:
        value = jax.tree.map(lambda leaf: leaf[good], result.value)
        assert_lanes_equal(value, [expected[k] for k in good], rtol=rtol)


def status_of(outcome: Any) -> int:
    """How a lane should end whose plain outcome is a value or an exception."""
    if isinstance(outcome, AssertionError):
        return int(Status.ASSERTION)
    return int(Status.ERROR if isinstance(outcome, Exception) else Status.OK)


def lane(tree: Any, index: int) -> Any:
    """One lane of a batched value."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def assert_lanes_equal(result: Any, expected: Sequence[Any], *, rtol: float = 1e-5) -> None:
    """Integers and booleans exactly, floats to rounding; the same tree, the same shapes."""
    structures = {jax.tree.structure(value) for value in expected}
    assert structures == {jax.tree.structure(result)}, (structures, jax.tree.structure(result))
    columns = zip(*(jax.tree.leaves(value) for value in expected), strict=True)
    for leaf, column in zip(jax.tree.leaves(result), columns, strict=True):
        _assert_leaf(to_numpy(leaf), [to_numpy(value) for value in column], rtol)


def _assert_leaf(actual: np.ndarray, expected: list[np.ndarray], rtol: float) -> None:
    assert actual.shape == (len(expected), *expected[0].shape)
    want = np.stack(expected)
    assert actual.dtype.kind == want.dtype.kind, f"dtype {actual.dtype} instead of {want.dtype}"
    if want.dtype.kind in "fc":
        np.testing.assert_allclose(actual, want, rtol=rtol, atol=1e-6)
    else:
        np.testing.assert_array_equal(actual, want)


def assert_same_dtypes(result: Any, expected: Sequence[Any]) -> None:
    """The dtype of a result is what JAX promotes the plain results of all lanes to."""
    columns = zip(*(jax.tree.leaves(value) for value in expected), strict=True)
    for leaf, column in zip(jax.tree.leaves(result), columns, strict=True):
        if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            assert leaf.dtype == jnp.result_type(*column)


def assert_same_bits(left: Any, right: Any) -> None:
    """Bit for bit, NaN and negative zero included."""
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        a, b = to_numpy(a), to_numpy(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()
