"""A run inside `jax.jit` from its trace to its parts on two devices: trace, lower, XLA asks, part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding

from pcbatch.runtime.sharding.custom_partitioning import asking, split_by_xla
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.raw_result import RawResult

LANES = 8
XS = np.arange(LANES, dtype=np.int32)


def recorder(traced: list[int]) -> Callable[[dict[str, Any], int], RawResult]:
    """A run of which every trace is recorded by its number of lanes. One trip, one visit of its only block."""

    def run(args: dict[str, Any], lanes: int) -> RawResult:
        traced.append(lanes)
        assert args["x"].shape == (lanes,)
        status = jnp.zeros((lanes,), jnp.int32)
        counts = wide_counters.widened(jnp.ones((1,), jnp.uint32))
        return RawResult((args["x"] * args["k"],), status, jnp.int32(1), (counts,), status, None, None, {}, 0)

    return run


def job(traced: list[int]) -> Any:
    run = recorder(traced)
    return jax.jit(lambda x, k: split_by_xla(run, {"x": x}, {"k": k}, LANES))


def split(array: np.ndarray, devices: int) -> jax.Array:
    mesh = jax.make_mesh((devices,), ("x",), devices=jax.devices()[:devices])
    return jax.device_put(array, NamedSharding(mesh, jax.P("x")))


def test_a_run_is_traced_whole_and_then_in_parts() -> None:
    traced: list[int] = []
    traced_call = job(traced).trace(split(XS, 2), jnp.int32(3))
    assert traced == [LANES], "trace: all lanes in one machine"
    assert "pcbatch_lanes" in str(traced_call.jaxpr)
    lowered = traced_call.lower()
    assert traced == [LANES], "lower: a call that XLA asks about, nothing is traced again"
    assert "CustomSPMDPartitioning" in lowered.as_text()
    compiled = lowered.compile()
    assert traced == [LANES, LANES // 2], "XLA asks, and compiles a run of the lanes of one device"
    result = compiled(split(XS, 2), jnp.int32(3))
    np.testing.assert_array_equal(result.values[0], 3 * XS)
    assert result.values[0].sharding.is_equivalent_to(split(XS, 2).sharding, 1)
    assert int(result.trips) == 2, "of both machines together"
    assert wide_counters.value(result.counts[0]).tolist() == [2]


@pytest.mark.parametrize("place", [lambda xs: jnp.asarray(xs), lambda xs: split(xs, 1)], ids=["alone", "mesh of one"])
def test_one_device_runs_what_was_traced(place: Callable[[np.ndarray], jax.Array]) -> None:
    traced: list[int] = []
    lowered = job(traced).lower(place(XS), jnp.int32(3))
    assert "CustomSPMDPartitioning" not in lowered.as_text()
    result = lowered.compile()(place(XS), jnp.int32(3))
    assert traced == [LANES]
    np.testing.assert_array_equal(result.values[0], 3 * XS)
    assert int(result.trips) == 1


def test_replicated_lanes_run_on_every_device() -> None:
    """Every device runs all lanes, and nothing is added up."""
    traced: list[int] = []
    mesh = jax.make_mesh((2,), ("x",))
    whole = jax.device_put(XS, NamedSharding(mesh, jax.P()))
    result = job(traced)(whole, jnp.int32(3))
    assert set(traced) == {LANES}
    np.testing.assert_array_equal(result.values[0], 3 * XS)
    assert int(result.trips) == 1


def test_keys_pass_as_integers() -> None:
    def run(args: dict[str, Any], lanes: int) -> RawResult:
        status = jnp.zeros((lanes,), jnp.int32)
        return RawResult((args["key"],), status, jnp.int32(1), (), status, None, None, {}, 0)

    keys = jax.random.split(jax.random.key(1), LANES)
    result = jax.jit(lambda keys: split_by_xla(run, {"key": keys}, {}, LANES))(keys)
    assert result.values[0].dtype == keys.dtype
    assert jnp.all(jax.random.key_data(result.values[0]) == jax.random.key_data(keys))


def test_the_call_to_be_seen() -> None:
    assert "custom_partitioning" in str(asking())
