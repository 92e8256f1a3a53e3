"""Programs on four CPU devices, for `test_devices.py`; a line for each is printed.

JAX_NUM_CPU_DEVICES=4 python -m tests.devices.four_devices
"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import jax
import numpy as np

import pcbatch
from tests.devices.four import main
from tests.programs.batched import Pair, collatz, countdown, deep, fragile, same, walk, walks
from tests.programs.compare import assert_same_bits

SIZES = (1, 3, 101)[1 if sys.argv[1:] else 0 :]  # fewer where few cases run


def numbers(inputs: int) -> np.ndarray:
    """Numbers whose sequences differ in length."""
    return np.random.default_rng(inputs).integers(1, 900, inputs).astype(np.int32)


def calls() -> None:
    for inputs in SIZES:
        ns = numbers(inputs)
        one = collatz.run(ns)
        for devices in (3, "all", jax.devices()[1:2]):
            assert_same_bits(collatz(ns, devices=devices), one.value)
            same(collatz.run(ns, devices=devices), one)
            same(collatz.map(ns, devices=devices, lanes=3), one)
    assert collatz(numbers(0), devices=4).shape == collatz.map(numbers(0), devices=4).status.shape == (0,)


def shared() -> None:
    args = walks(5)
    one = walk.run(*args)
    for how in ({}, {"devices": 4}):
        same(walk.run(*args, **how), one)
        same(walk.map(*args, lanes=1, **how), one)


def deep_() -> None:
    ns = np.array([3, 200, 0, 1, 70, 130, 5], np.int32)
    for devices in (2, 4):
        f = deep.with_options(devices=devices)
        same(f.run(ns), deep.run(ns))
        same(deep.with_options().map(ns, devices=devices, lanes=1), deep.run(ns))
        same(deep.with_options(max_depth=50).map(ns, devices=devices), deep.with_options(max_depth=50).run(ns))


def failures() -> None:
    ns = np.array([1, 5, 3, -2, 12, 5, 13, 2, 30, 11, -1, 4, 9], np.int32)
    one = fragile.run(ns)
    for how in ({}, {"chunk": 5}):
        same(fragile.map(ns, devices=4, lanes=2, **how), one)
    same(fragile.run(ns, devices=4), one)
    texts = []
    for devices in (1, 3):
        try:
            fragile(ns, devices=devices)
        except pcbatch.BatchRuntimeError as error:
            texts.append([line for line in str(error).splitlines() if "trip" not in line])
    assert len(texts) == 2 and texts[0] == texts[1]


def chunks() -> None:
    for inputs in (1, 5, 1001):
        ns = numbers(inputs)
        one = collatz.run(ns)
        for chunk, lanes in ((7, 3), (400, 16), (5000, 300)):
            if inputs // chunk < 200:
                same(collatz.map(ns, chunk=chunk, lanes=lanes, devices=4), one)
        told: list[Any] = []
        parts = (ns[k : k + 90] for k in range(0, inputs, 90))
        same(collatz.map(parts, lanes=5, devices=3, progress=lambda *report: told.append(report)), one)
        assert told[-1] == (inputs, inputs)


def structures() -> None:
    for inputs in (3, 30):
        args = walks(inputs)
        one = walk.run(*args)
        same(walk.run(*args, devices=4), one)
        same(walk.map(*args, devices=4, chunk=7, lanes=2), one)
        assert isinstance(walk.map(*args, devices=4, chunk=7).value[0], Pair)


def prints() -> None:
    ns = np.array([2, 0, 3, 1, 1, 4, 0], np.int32)
    expected = sorted(f"[lane {k}] {n} left" for k, top in enumerate(ns) for n in range(1, top + 1))
    for call in (countdown, lambda ns, **how: countdown.map(ns, lanes=1, chunk=5, **how), countdown.map):
        with contextlib.redirect_stdout(io.StringIO()) as written:
            call(ns, devices=4)
            jax.effects_barrier()
        assert sorted(written.getvalue().splitlines()) == expected


def committed() -> None:
    """Arguments may be on any device, each on another."""
    args = walks(6)
    here = jax.device_put(args, jax.devices()[3])
    one = walk.run(*args)
    same(walk.run(*here, devices=2), one)
    same(walk.map(*here, devices=4), one)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    ns = numbers(8)
    spread = jax.device_put(ns, jax.NamedSharding(mesh, jax.P("x")))
    same(collatz.run(spread, devices=4), collatz.run(ns))
    same(collatz.run(spread), collatz.run(ns))


def placed() -> None:
    """Results are on the first device."""
    assert collatz(numbers(5), devices=jax.devices()[2:3]).sharding.device_set == {jax.devices()[2]}
    assert collatz(numbers(8), devices=4).sharding.device_set == {jax.devices()[0]}


def meshes() -> None:
    ns = numbers(21)
    for names, shape in ((("x",), (4,)), (("x", "y"), (2, 2))):
        mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(shape), names)
        same(collatz.run(ns, mesh=mesh), collatz.run(ns))
        same(collatz.map(ns, mesh=mesh, lanes=2), collatz.run(ns))
        same(collatz.map(ns, devices=mesh, chunk=5), collatz.run(ns))
        same(collatz.with_options(devices=mesh).run(ns), collatz.run(ns))


def inside_jit() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    for inputs in SIZES:
        ns = numbers(inputs)
        for how in ({"devices": 4}, {"mesh": mesh}):
            assert_same_bits(jax.jit(lambda a, how=how: collatz(a, **how))(ns), collatz(ns))
            assert_same_bits(jax.jit(lambda a, how=how: collatz.map(a, lanes=2, **how).value)(ns), collatz(ns))


def lowered() -> None:
    ns = numbers(9)
    made = collatz.lower(ns, devices=4)
    assert "sharding" in made.as_text() and "shard_map" in made.as_text("jaxpr")
    assert "shard_map" not in collatz.lower(ns).as_text("jaxpr")
    compiled = made.compile()
    assert_same_bits(compiled(ns), collatz(ns))
    assert_same_bits(compiled(ns[::-1].copy()), collatz(ns[::-1].copy()))


def statistics() -> None:
    ns = np.array([1, 3, 2, 4, 2, 3, 1], np.int32)
    one = fragile.run(ns).stats
    for stats in (
        fragile.run(ns, devices=4).stats,
        fragile.map(ns, devices=4, lanes=1).stats,
        fragile.map(ns, devices=4, lanes=1, chunk=4).stats,
    ):
        assert int(stats.trips) >= int(one.trips)
        assert sum(b.active for b in stats.blocks) == sum(b.active for b in one.blocks)
        assert stats.lanes == 7


def many() -> None:
    """More inputs than a machine should have lanes."""
    ns = np.resize(numbers(101), 5003)
    assert_same_bits(collatz(ns, devices=4), collatz(ns))


CASES = (
    calls, shared, deep_, failures, chunks, structures, prints, committed, placed, meshes, inside_jit, lowered,
    statistics, many,
)  # fmt: skip


if __name__ == "__main__":
    main(CASES)
