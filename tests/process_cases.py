"""Programs that `two_processes.py` runs on the devices of one process or of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

import pcbatch
from examples.nuts.hamiltonian import Sample
from examples.nuts.sampler import nuts
from examples.nuts.targets import gaussian
from tests.programs.compare import to_numpy
from tests.test_map import Pair, deep, fib, fragile, walk

Place = Callable[[Any], Any]  # whole arrays -> arrays whose leading axis is spread over all devices


def numbers(inputs: int) -> np.ndarray:
    """Numbers whose runs differ in length."""
    return np.random.default_rng(inputs).integers(0, 14, inputs).astype(np.int32)


def chains(lanes: int) -> tuple[Any, tuple[Any, ...]]:
    """A step of NUTS, and arguments of it."""
    target = gaussian(3)
    q = jnp.asarray(target.start(1, lanes), jnp.float32)
    state = Sample(q, *jax.vmap(target.logp_and_grad)(q))
    noise = jax.random.normal(jax.random.key(2), q.shape)
    keys = jax.random.split(jax.random.key(3), lanes)
    step = nuts(target.logp_and_grad, max_tree_depth=5).transition
    return step.with_options(in_axes=(0, 0, 0, None, None)), (
        keys,
        noise,
        state,
        np.float32(0.4),
        np.ones(3, np.float32),
    )


def run(place: Place, mesh: Any) -> dict[str, Any]:
    """All results."""
    step, args = chains(24)
    ns, steps = place(numbers(24)), (*place(args[:3]), *args[3:])
    keys = jax.random.split(jax.random.key(3), 8)
    limits, starts = (
        np.linspace(1, 30, 8, dtype=np.float32),
        np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32),
    )
    walks = walk.with_options(in_axes=(0, None, 0))
    walking = (Pair(place(keys), {"limit": place(limits)}), 0.9 * np.eye(3, dtype=np.float32), place(starts))
    found = {
        "fib": fib(ns),
        "fib.run": fib.run(ns),
        "fib.map": fib.map(ns, lanes=2),
        "nuts": step(*steps),
        "nuts.run": step.run(*steps),
        "nuts.map": step.map(*steps, lanes=2),
        "fib in jit": jax.jit(fib)(ns),
        "nuts in jit": jax.jit(step)(*steps),
        "deep": deep(place(np.array([3, 200, 0, 1, 70, 130, 5, 9], np.int32))),
        "deep.map": deep.with_options().map(place(np.array([3, 200, 0, 1, 70, 130, 5, 9], np.int32)), lanes=1),
        "walk": walks.run(*walking),
        "fragile": fragile.run(place(numbers(24))),
        "whole": fib.run(numbers(21), mesh=mesh),
        "whole, map": fib.map(numbers(21), mesh=mesh, lanes=2),
        "whole, failing": fragile.run(numbers(21), mesh=mesh),
        "told": np.int32(failure(place, mesh)),
    }
    if mesh is not None:
        spec = jax.P(mesh.axis_names)
        found["in shard_map"] = jax.jit(jax.shard_map(fib, mesh=mesh, in_specs=spec, out_specs=spec))(ns)
    return {name: (x.value, x.status) if isinstance(x, pcbatch.Result) else x for name, x in found.items()}


def failure(place: Place, mesh: Any) -> int:
    """A lane that fails is told of in every process, with its number and its input."""
    try:
        fragile(place(np.array([1, 2, 3, 4, 4, 3, 2, 5], np.int32)))
    except pcbatch.BatchRuntimeError as error:
        assert "7 (n=5): 5 is not allowed" in str(error), str(error)
    else:
        raise AssertionError("nothing was raised")
    if mesh is not None:
        try:
            fib.map(numbers(21), mesh=mesh, chunk=5)
        except pcbatch.UsageError as error:
            assert "devices=jax.local_devices()" in str(error)
    assert fib.map(numbers(21), devices=jax.local_devices(), chunk=5).value.shape == (21,)
    return 1


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
