"""Which lanes a visit computes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.runtime.lowering_platform import lowered_for
from pcbatch.runtime.vm import lane_window as windows
from pcbatch.runtime.vm.lane_window import Window, everyone, first, first_lanes

pytestmark = pytest.mark.share(3)


def wanted(mask: tuple[bool, ...], width: int) -> list[int]:
    found = [k for k, there in enumerate(mask) if there][:width]
    return found + [len(mask)] * (width - len(found))


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_first_lanes_of_every_mask(lanes: int, platform: str) -> None:
    for width in (1, 2, lanes, lanes + 2):
        find = jax.jit(lambda mask, width=width: first_lanes(mask, width))
        with lowered_for(platform):
            assert ("while" in str(find.trace(jnp.ones(lanes, bool)).jaxpr)) == (platform == "cpu")
        for mask in itertools.product([False, True], repeat=lanes):
            found = find(jnp.array(mask))
            assert found.dtype == jnp.int32 and found.tolist() == wanted(mask, width)


def test_both_forms_give_the_same_for_many_lanes() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        mask = jnp.array(random.random(97) < random.random())
        sequential = first_lanes(mask, 16)
        with lowered_for("tpu"):
            assert first_lanes(mask, 16).tolist() == sequential.tolist()


def written(window: Window, mask: jax.Array, lanes: int) -> list[int]:
    """An array of lane numbers after a write of 100 + place."""
    places = 100 + jnp.arange(window.width, dtype=jnp.int32)
    return window.write(jnp.arange(lanes, dtype=jnp.int32), places, mask).tolist()


MASK = jnp.array([False, True, False, True, True])


def test_everyone_reads_and_writes_in_place() -> None:
    window = everyone(MASK)
    assert window.width == 5 and window.dense and not window.borrowed
    assert window.read(MASK) is MASK
    assert written(window, window.here, 5) == [0, 101, 2, 103, 104]
    assert written(window, window.here & jnp.array([True, True, True, False, False]), 5) == [0, 101, 2, 3, 4]


def test_careful_places_read_a_lane_that_is_here() -> None:
    window = everyone(MASK, careful=True)
    assert window.read(jnp.arange(5)).tolist() == [1, 1, 1, 3, 4]
    assert written(window, window.here, 5) == [0, 101, 2, 103, 104]


@pytest.mark.parametrize(
    ("width", "read", "after"),
    [
        (1, [1], [0, 100, 2, 3, 4]),
        (2, [1, 3], [0, 100, 2, 101, 4]),
        (3, [1, 3, 4], [0, 100, 2, 101, 102]),
        (5, [1, 3, 4, 1, 1], [0, 100, 2, 101, 102]),
    ],
)
def test_the_first_few(width: int, read: list[int], after: list[int]) -> None:
    window = first(MASK, width)
    assert window.read(jnp.arange(5)).tolist() == read
    assert written(window, window.here, 5) == after
    assert written(window, window.here & (jnp.arange(width) != 0), 5) == [0, 1, *after[2:]]


def test_nobody_reads_a_lane_that_exists() -> None:
    """So it may be with a policy of the user's, and under `vmap`."""
    window = first(jnp.zeros(5, bool), 2)
    assert window.here.tolist() == [False, False] and window.source.tolist() == [4, 4]
    assert written(window, window.here, 5) == [0, 1, 2, 3, 4]


def test_targets_out_of_range_differ() -> None:
    """Scatters are told that indices are unique."""
    for window in (everyone(MASK), first(MASK, 5)):
        for mask in (window.here, window.here & False):
            targets = window.targets(mask).tolist()
            assert len(set(targets)) == len(targets)
            assert [t for t in targets if t < 5] == ([1, 3, 4] if mask is window.here else [])


def test_lane_masks_have_the_axes_of_values() -> None:
    assert windows.lane_mask(MASK, jnp.zeros((5, 2, 3))).shape == (5, 1, 1)
    assert windows.lane_mask(MASK, jnp.zeros(5)).shape == (5,)


@pytest.mark.parametrize("look", [everyone, partial(everyone, careful=True), partial(first, width=2)])
def test_lanes_may_be_the_last_axis(look: Callable[[jax.Array], Window]) -> None:
    window = look(MASK)
    rows = jnp.arange(30.0).reshape(5, 2, 3)
    last = jnp.moveaxis(rows, 0, -1)
    assert window.read(last, lanes_are_last=True).tolist() == window.read(rows).tolist()
    new = -window.read(rows) - 1
    after = window.write(last, new, window.here, lanes_are_last=True)
    assert jnp.moveaxis(after, -1, 0).tolist() == window.write(rows, new, window.here).tolist()
