"""Batched functions among the many devices of JAX: inside `shard_map`, on sharded arrays, over several processes.

This process has two devices. What needs four runs in `tests/devices/four_meshes.py`, what needs processes in
`tests/devices/two_processes.py`.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding

import pcbatch
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, partition_spec
from tests.devices import four_meshes
from tests.devices.four import ROOT, check, collectives
from tests.oracles.plans import replanned
from tests.programs.batched import collatz, deep, fib, fragile, walk, walks
from tests.programs.compare import assert_same_bits

NUMBERS = np.random.default_rng(5).integers(0, 12, 12).astype(np.int32)


def mesh(kind: AxisType = AxisType.Auto) -> jax.sharding.Mesh:
    return jax.make_mesh((2,), ("x",), axis_types=(kind,))


def split(array: Any, kind: AxisType = AxisType.Auto) -> jax.Array:
    """An array with its leading axis on two devices."""
    return jax.device_put(array, NamedSharding(mesh(kind), jax.P("x")))


def mapped(f: Any, **how: Any) -> Any:
    return jax.shard_map(f, mesh=mesh(), in_specs=jax.P("x"), out_specs=jax.P("x"), **how)


@pytest.mark.full_only
def test_four_devices(request: pytest.FixtureRequest) -> None:
    check(four_meshes, request.config.getoption("full"))


@pytest.mark.parametrize("inputs", range(1, 10))
def test_blocks(inputs: int) -> None:
    """Neighbours go to one device, and none is left out."""
    mesh = SimpleNamespace(shape={"x": 4, "y": 2}, axis_names=("x", "y"))
    spread = LaneSharding(None, inputs)
    object.__setattr__(spread, "over", _sharding(mesh))
    ends = spread.ends(inputs)
    assert spread.devices == 4
    assert [k for d, end in enumerate(ends) for k in range(d * spread.each, d * spread.each + end)] == [*range(inputs)]


def _sharding(mesh: Any) -> NamedSharding:
    """Of a mesh with more devices than there are."""
    made = NamedSharding(jax.sharding.AbstractMesh(tuple(mesh.shape.values()), mesh.axis_names), partition_spec("x"))
    assert made.mesh.shape == mesh.shape
    return made


@pytest.mark.share(6)
@pytest.mark.parametrize("vma", [True, False])
def test_inside_shard_map_and_outside_again(vma: bool, request: pytest.FixtureRequest) -> None:
    """What is compiled in one place is used in all others."""
    f = pcbatch.batch(fib.fn)
    expected = fib(NUMBERS)
    other, typed = (jax.make_mesh((2,), ("z",), axis_types=(kind,)) for kind in (AxisType.Auto, AxisType.Explicit))
    places = {
        "inside": lambda: jax.jit(mapped(f, check_vma=vma))(NUMBERS),
        "outside": lambda: f(NUMBERS),
        "explicit": lambda: f(split(NUMBERS, AxisType.Explicit)),
        "jit": lambda: jax.jit(f)(split(NUMBERS)),
        "another": lambda: jax.jit(jax.shard_map(f, mesh=other, in_specs=jax.P("z"), out_specs=jax.P("z")))(NUMBERS),
        "another, explicit": lambda: jax.jit(f)(jax.device_put(NUMBERS, NamedSharding(typed, jax.P("z")))),
        "inside, without jit": lambda: mapped(f, check_vma=vma)(NUMBERS),
    }
    again = tuple(reversed(places)) if request.config.getoption("full") else ("inside",)
    for place in (*places, *again):
        assert_same_bits(places[place](), expected)


def test_results_vary_inside_shard_map() -> None:
    """JAX must know, or it would take the results of one device for those of all."""
    seen: list[frozenset[str]] = []

    def body(ns: jax.Array) -> jax.Array:
        result = collatz.run(ns)
        seen.extend(jax.typeof(x).manual_axis_type.varying for x in (result.value, result.status, result.stats.trips))
        return result.value

    jax.jit(mapped(body))(NUMBERS + 1)
    assert seen == [frozenset({"x"})] * 3


@pytest.mark.full_only
def test_keys_and_shared_arguments_inside_shard_map() -> None:
    pair, matrix, starts = walks(6)
    f = walk.with_options(in_axes=(0, None, 0))
    expected = f.run(pair, matrix, starts.T)
    for vma in (True, False):
        inside = jax.shard_map(
            lambda *args: f(*args),
            mesh=mesh(),
            in_specs=(jax.P("x"), jax.P(), jax.P("x")),
            out_specs=jax.P("x"),
            check_vma=vma,
        )
        assert_same_bits(jax.jit(inside)(pair, matrix, starts.T), expected.value)


@pytest.mark.parametrize("f", [fib, lambda ns: fib.map(ns, lanes=2).value], ids=["call", "map"])
def test_inside_jit_each_device_has_a_machine(f: Any) -> None:
    """No device asks another while it runs, and results stay where their lanes were."""
    ns = split(NUMBERS)
    assert collectives(jax.jit(f).lower(ns).compile().as_text()) == []
    assert jax.jit(f)(ns).sharding.is_equivalent_to(ns.sharding, 1)
    assert_same_bits(jax.jit(f)(ns), fib(NUMBERS))
    together = replanned(fib, emitter="guard")
    stats = jax.jit(together.run)(ns).stats
    assert int(stats.trips) == sum(int(together.run(part).stats.trips) for part in np.split(NUMBERS, 2))


def test_inside_jit_on_one_device_nothing_is_split() -> None:
    """The text of a program stays what it was: it names no address of this process."""
    assert "custom_call" not in jax.jit(fib).lower(NUMBERS).as_text()


def test_lanes_stay_where_they_lie() -> None:
    for kind in (AxisType.Auto, AxisType.Explicit):
        ns = split(NUMBERS, kind)
        for result in (fib.run(ns), fib.map(ns, lanes=2)):
            assert result.value.sharding.is_equivalent_to(ns.sharding, 1)
            assert result.value.sharding.mesh == ns.sharding.mesh
            assert_same_bits(result.value, fib(NUMBERS))
        parts, together = np.split(NUMBERS, 2), replanned(fib, emitter="guard")
        assert int(together.run(ns).stats.trips) == sum(int(together.run(part).stats.trips) for part in parts)


@pytest.mark.full_only
def test_what_is_asked_for_wins() -> None:
    ns = split(NUMBERS)
    for devices in (1, 2, jax.devices()[:1], jax.devices()[1:]):
        first = devices[0] if isinstance(devices, list) else jax.devices()[0]
        for f in (fib, fib.map):
            found = f(ns, devices=devices)
            value = found.value if isinstance(found, pcbatch.Result) else found
            assert value.sharding.device_set == {first}
            assert_same_bits(value, fib(NUMBERS))


def refused(match: str, call: Any) -> None:
    with pytest.raises(pcbatch.UsageError, match=match) as info:
        call()
    assert [d.code for d in info.value.diagnostics] == ["PCB414"]


def test_devices_inside_shard_map_are_refused() -> None:
    for f in (lambda ns: fib(ns, devices=2), lambda ns: fib.map(ns, mesh=mesh()).value):
        refused("inside a `jax.shard_map` over 'x'", lambda f=f: jax.jit(mapped(f))(NUMBERS))
    assert_same_bits(jax.jit(mapped(pcbatch.batch(devices="all")(fib.fn)))(NUMBERS), fib(NUMBERS))


def test_a_mesh_that_is_not_the_one_around_is_refused() -> None:
    other = jax.make_mesh((2,), ("z",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh()):
        refused("is not the mesh that is around", lambda: jax.jit(lambda ns: fib(ns, mesh=other))(NUMBERS))
    refused("there is no mesh around", lambda: fib(NUMBERS, devices=jax.P("x")))


@pytest.mark.full_only
def test_jax_refuses_arrays_that_do_not_divide() -> None:
    """What docs/users/jax.md says."""
    with pytest.raises(ValueError, match="evenly divide"):
        split(NUMBERS[:11])
    assert_same_bits(fib(NUMBERS[:11], mesh=mesh()), fib(NUMBERS[:11]))
    assert_same_bits(fib(NUMBERS[:11], devices=NamedSharding(mesh(), jax.P("x"))), fib(NUMBERS[:11]))


@pcbatch.batch
def chatty(n):
    while n < 40:
        n = n + jax.lax.psum(n, "x")
    return n


@pytest.mark.parametrize("vma", [True, False])
def test_a_collective_in_a_lane_is_refused(vma: bool) -> None:
    with pytest.raises(pcbatch.CompileError, match="each lane runs at its own pace") as info:
        jax.jit(mapped(chatty, check_vma=vma))(NUMBERS)
    (found,) = info.value.diagnostics
    assert found.code == "PCB304" and "jax.lax.psum(f(xs), axis)" in found.helps[0]
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[found.primary.loc.line - 1]
    assert "psum" in line


def test_collectives_around_a_call() -> None:
    """The way out that the message names."""

    def total(ns: jax.Array) -> jax.Array:
        return jax.lax.psum(fib(jax.lax.ppermute(ns, "x", [(0, 1), (1, 0)])).sum(), "x")

    found = jax.jit(jax.shard_map(total, mesh=mesh(), in_specs=jax.P("x"), out_specs=jax.P()))(NUMBERS)
    assert int(found) == int(fib(NUMBERS).sum())


@pytest.mark.full_only
def test_failures_are_told_of_lanes_on_several_devices() -> None:
    ns = split(np.array([1, 2, 3, 5, 4, 1], np.int32))
    with pytest.raises(pcbatch.BatchRuntimeError, match="3 .n=5.*: 5 is not allowed"):
        fragile(ns)
    assert fragile.run(ns).status.tolist() == fragile.run(np.asarray(ns)).status.tolist()


@pytest.mark.full_only
def test_stacks_grow_on_several_devices() -> None:
    ns = np.array([3, 200, 0, 70], np.int32)
    f = deep.with_options()
    assert_same_bits(f(split(ns)), deep(ns))
    assert_same_bits(deep.with_options().map(split(ns), lanes=1).value, deep(ns))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.full_only
def test_two_processes(tmp_path: Path) -> None:
    """A mesh over two processes gives, in both, what the same mesh gives in one: all bits."""
    port = free_port()
    files = [tmp_path / f"{name}.npz" for name in ("one", "first", "second")]
    runs = [(files[0], 0, 1, 0), (files[1], 0, 2, port), (files[2], 1, 2, port)]
    started = [_start(*map(str, run)) for run in runs]
    for process in started:
        _, errors = process.communicate(timeout=500)
        assert process.returncode == 0, errors
    one, *two = [dict(np.load(file)) for file in files]
    assert any(name.startswith("nuts") for name in one) and any(name.startswith("fib.run") for name in one)
    for other in two:
        assert other.keys() == one.keys()
        for name, array in one.items():
            assert_same_bits(other[name], array)
    assert_same_bits(one["fib 0"], np.asarray(fib(np.random.default_rng(24).integers(0, 14, 24).astype(np.int32))))


def _start(*args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-m", "tests.devices.two_processes", *args]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_lanes_that_do_not_divide_inside_jit() -> None:
    """Every device runs all of them."""
    ns, lanes = split(NUMBERS), NamedSharding(mesh(), jax.P("x"))
    uneven = jax.jit(lambda ns: fib(jax.lax.with_sharding_constraint(ns[:11], lanes)))
    assert_same_bits(uneven(ns), fib(NUMBERS[:11]))
    assert set(collectives(uneven.lower(ns).compile().as_text())) <= {"all-gather"}


@pcbatch.batch
def branching(n):
    """Calls that run side by side."""
    if n < 2:
        return n
    return branching(n - 1) + branching(n - 2)


def test_explicit_axes_of_one_device() -> None:
    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1], axis_types=(AxisType.Explicit,))
    ns = jax.device_put(np.arange(9, dtype=np.int32), NamedSharding(mesh, jax.P("data")))
    want = [0, 1, 1, 2, 3, 5, 8, 13, 21]
    for result in (branching(ns), jax.jit(branching)(ns), branching.run(ns).value):
        assert result.tolist() == want and result.sharding.spec == jax.P("data")
    assert branching.start(ns).advance().result().value.tolist() == want
