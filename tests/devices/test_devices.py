"""Lanes on several devices: the same bits as on one, whatever does not divide evenly.

What needs four devices runs in a process of its own, `tests/devices/four_devices.py`: this one has two.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from tests.devices import four_devices
from tests.devices.four import check, python


def test_four_devices(request: pytest.FixtureRequest) -> None:
    check(four_devices, request.config.getoption("full"))


@pytest.mark.parametrize("inputs", range(1, 10))
def test_dealing(inputs: int) -> None:
    """Input k goes to device k mod 4, and its result comes back to place k."""
    spread = LaneSharding(SimpleNamespace(size=4), inputs)  # type: ignore[arg-type]
    dealt, ends = spread.deal(np.arange(inputs)), spread.ends(inputs)
    assert [row[:end].tolist() for row, end in zip(dealt, ends, strict=True)] == [
        list(range(d, inputs, 4)) for d in range(4)
    ]
    assert spread.collect(dealt).tolist() == list(range(inputs))


def test_cpu_devices_come_first() -> None:
    done = python("-c", "import pcbatch; print(pcbatch.use_cpu_devices(3)); import jax; print(len(jax.devices()))")
    assert done.stdout.split() == ["3", "3"], done.stderr
    assert pcbatch.use_cpu_devices(len(jax.devices("cpu"))) == len(jax.devices("cpu")), "again, to no effect"
    with pytest.raises(pcbatch.UsageError, match="PCB414"):
        pcbatch.use_cpu_devices(len(jax.devices("cpu")) + 1)


@pcbatch.batch
def half(n):
    while n > 9:
        n = n // 2
    return n


@pytest.mark.parametrize("devices", [0, -1, 99, True, 1.5, "gpu", [], "all 4"], ids=str)
def test_what_are_no_devices(devices: Any) -> None:
    for call in (half, half.run, half.map, half.lower):
        with pytest.raises(pcbatch.UsageError, match="PCB414"):
            call(np.arange(4), devices=devices)


def test_devices_once_each_and_not_beside_a_mesh() -> None:
    first = jax.devices()[0]
    with pytest.raises(pcbatch.UsageError, match="occurs twice"):
        half(np.arange(4), devices=[first, first])
    with pytest.raises(pcbatch.UsageError, match="both given"):
        half(np.arange(4), devices=1, mesh=jax.sharding.Mesh(np.array([first]), ("x",)))
    with pytest.raises(pcbatch.UsageError, match="must be a `jax.sharding.Mesh`"):
        half(np.arange(4), mesh=2)


def test_a_parameter_of_that_name_is_the_function_s() -> None:
    f = pcbatch.batch(lambda_devices, in_axes={"devices": None})
    assert f(np.arange(3), devices=5).tolist() == [5, 6, 7]


def lambda_devices(x, devices):
    return x + devices


def test_an_option_of_the_function() -> None:
    f = pcbatch.batch(devices="all")(half.fn)
    assert f(np.arange(41)).tolist() == half(np.arange(41)).tolist()
    assert f(np.arange(41), devices=1).sharding.device_set == {jax.devices()[0]}
