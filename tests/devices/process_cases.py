"""Programs that `two_processes.py` runs on the devices of one process or of several."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import multihost_utils

import pcbatch
from examples.nuts.targets import gaussian
from pcbatch.mcmc.hamiltonian import Mass, Sample
from pcbatch.mcmc.nuts import nuts
from tests.oracles.plans import replanned
from tests.programs.batched import deep, fib, fragile, walk, walks
from tests.programs.compare import to_numpy


def numbers(inputs: int) -> np.ndarray:
    """Numbers whose runs differ in length."""
    return np.random.default_rng(inputs).integers(0, 14, inputs).astype(np.int32)


def chains(lanes: int) -> tuple[Any, tuple[Any, ...]]:
    """A step of NUTS, and arguments of it."""
    target = gaussian(3)
    q = jnp.asarray(target.start(1, lanes), jnp.float32)
    logp, grad = jax.vmap(target.logp_and_grad)(q)
    noise = jax.random.normal(jax.random.key(2), q.shape)
    keys = jax.random.split(jax.random.key(3), lanes)
    transition = nuts(target.logp_and_grad, deepest=5).transition

    @pcbatch.batch(in_axes=(0, 0, 0, None, None))
    def step(key, noise, sample, step, mass):
        return transition(jax.random.key_data(key), noise, sample, step, mass, 5, ())

    ones = np.ones(3, np.float32)
    return step, (keys, noise, Sample(jnp.stack([q, grad], axis=1), logp), np.float32(0.4), Mass(ones, ones))


def run(mesh: Any) -> dict[str, Any]:
    """All results."""
    spec = jax.P(mesh.axis_names)

    def place(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: placed(leaf, jax.NamedSharding(mesh, spec)), tree)

    step, args = chains(24)
    ns, steps = place(numbers(24)), (*place(args[:3]), *args[3:])
    calls = place(np.array([3, 200, 0, 1, 70, 130, 5, 9], np.int32))
    in_lanes = replanned(fib, fork="never")
    found = {
        "fib": fib(ns),
        "fib.run": in_lanes.run(ns),  # trips of tasks depend on how many processes there are
        "fib.map": fib.map(ns, lanes=2),
        "fib in jit": jax.jit(fib)(ns),
        "fib in shard_map": jax.jit(jax.shard_map(fib, mesh=mesh, in_specs=spec, out_specs=spec))(ns),
        "nuts": step(*steps),
        "deep": deep(calls),
        "fragile": fragile.run(ns),
        "whole": in_lanes.run(numbers(21), mesh=mesh),
        "whole, map": fib.map(numbers(21), mesh=mesh, lanes=2),
        "whole, failing": fragile.run(numbers(21), mesh=mesh),
        "whole, keys": walk.run(*walks(5), mesh=mesh),
    }
    complain(place, mesh)
    return {
        name: (x.value, x.status, x.stats.trips) if isinstance(x, pcbatch.Result) else x for name, x in found.items()
    }


def complain(place: Callable[[Any], Any], mesh: Any) -> None:
    """A lane that fails is told of in every process, with its number and its input; so is what cannot be."""
    with pytest.raises(pcbatch.BatchRuntimeError, match=r"7 \(n=5\): 5 is not allowed"):
        fragile(place(np.array([1, 2, 3, 4, 4, 3, 2, 5], np.int32)))
    if jax.process_count() > 1:
        with pytest.raises(pcbatch.UsageError, match=r"devices=jax.local_devices\(\)"):
            fib.map(numbers(21), mesh=mesh, chunk=5)
        long_runs(place, mesh)
    assert fib.map(numbers(21), devices=jax.local_devices(), chunk=5).value.shape == (21,)


def long_runs(place: Callable[[Any], Any], mesh: Any) -> None:
    """Each process looks after its own devices, and keeps its own runs."""
    folder = Path(tempfile.mkdtemp())
    for call in (
        lambda: fib.start(numbers(21), mesh=mesh),
        lambda: fib.run(place(numbers(24)), timeout=60),
        lambda: fib.run(place(numbers(24)), save_to=folder / "run"),
        lambda: fib.map(numbers(21), mesh=mesh, lanes=2, progress=print),
    ):
        with pytest.raises(pcbatch.UsageError, match="PCB414.*devices of several processes"):
            call()
    own = jax.local_devices()
    m = fib.start(numbers(21), devices=own).advance(2)
    m.save(folder / "own")
    again = fib.load(folder / "own", devices=own).advance().result().value
    assert np.array_equal(again, fib.run(numbers(21), devices=own, save_to=folder / "run").value)
    with pytest.raises(pcbatch.UsageError, match=r"devices of several processes[\s\S]*devices=jax.local_devices\(\)"):
        fib.load(folder / "own", mesh=mesh)


def placed(leaf: Any, sharding: jax.NamedSharding) -> Any:
    """An array that every process has, on the devices of all."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.jit(jax.random.wrap_key_data)(placed(jax.random.key_data(leaf), sharding))
    return jax.device_put(np.asarray(leaf), sharding)


def whole(leaf: Any) -> np.ndarray:
    """A result, as every process sees it."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.jit(jax.random.key_data)(leaf)
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))
    return to_numpy(leaf)
