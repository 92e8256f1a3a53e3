"""Counts beyond 2**32."""

from __future__ import annotations

from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcbatch.runtime.vm import wide_counters

pytestmark = [pytest.mark.share(3), pytest.mark.older_emitters]

Parts = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20)


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
@given(parts=Parts)
def test_sums_are_exact(xp: ModuleType, parts: list[int]) -> None:
    total = wide_counters.zeros(1, xp)
    for part in parts:
        total = wide_counters.plus(total, wide_counters.widened(xp.asarray([part], xp.uint32), xp), xp)
    assert total.dtype == np.uint32
    assert wide_counters.integer(total[0]) == sum(parts)
    assert wide_counters.value(total).tolist() == [float(sum(parts))]


def test_one_entry_is_added_to() -> None:
    total = wide_counters.zeros(3)
    for _ in range(3):
        total = wide_counters.added(total, 1, jnp.uint32(2**31))
    assert wide_counters.value(total).tolist() == [0.0, 3 * 2.0**31, 0.0]


def test_traced() -> None:
    """As JAX's own numbers: shares in single precision, executions as integers."""
    total = jnp.array([[7, 3]], jnp.uint32)
    share, count = jax.jit(lambda t: (wide_counters.value(t), wide_counters.integer(t[0])))(total)
    assert share.dtype == jnp.float32
    assert share[0] == np.float32(3 * 2.0**32 + 7)
    assert count.dtype == jnp.int32
    assert count == 7
