"""Reductions over lanes: their values for any number of lanes, and one kernel for each on a CPU."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.runtime.vm.lane_reductions import any_lane, count_lanes, least


@pytest.mark.parametrize("lanes", [1, 5, 63, 64, 65, 130, 1024])
def test_values(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    numbers = rng.integers(0, 7, lanes)
    for wanted in (int(numbers[-1]), 9):
        mask = jnp.array(numbers == wanted)
        assert bool(any_lane(mask)) == (wanted in numbers)
        assert int(count_lanes(mask)) == int((numbers == wanted).sum())
    assert int(least(jnp.array(numbers, jnp.int8), 3)) == min(3, int(numbers.min()))


@pytest.mark.parametrize("reduce", [any_lane, count_lanes], ids=["any", "count"])
@pytest.mark.parametrize("lanes", [256, 1024, 4096])
def test_a_comparison_and_its_reduction_are_one_kernel(reduce: Callable[..., jax.Array], lanes: int) -> None:
    pc = jnp.zeros(lanes, jnp.int8)
    text = jax.jit(lambda pc: reduce(pc == 3)).lower(pc).compile().as_text()
    assert text is not None
    entry = text[text.index("ENTRY") :]
    assert "reduce-window" not in text
    assert entry.count(" fusion(") <= 2  # the comparison with the reduction; and what joins two numbers


def test_under_vmap() -> None:
    masks = jnp.arange(256).reshape(2, 128) == 200
    assert jax.vmap(any_lane)(masks).tolist() == [False, True]
