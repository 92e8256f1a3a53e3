"""Arrays of a state by name, for checkpoints, and put back on their devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding

from pcbatch.runtime.sharding.lane_sharding import partition_spec, to_host


def named(tree: Any) -> dict[str, Any]:
    """Return the arrays of a state by their path in it."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {"/".join(map(_part, path)): leaf for path, leaf in leaves}


def _part(key: Any) -> str:
    return str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key))))


def part(name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of one part of a state, by their path in it."""
    prefix = f"{name}/"
    return {path.removeprefix(prefix): x for path, x in arrays.items() if path.startswith(prefix)}


def fitting(types: Any, arrays: Mapping[str, np.ndarray]) -> bool:
    """Return whether arrays have the names, shapes and dtypes of a state. One device may be an axis in
    front, or none."""
    wanted = named(types)
    return wanted.keys() == arrays.keys() and all(
        x.dtype == arrays[name].dtype and arrays[name].shape in (x.shape, (1, *x.shape), x.shape[x.shape[:1] == (1,) :])
        for name, x in wanted.items()
    )


def placed(types: Any, arrays: Mapping[str, np.ndarray], mesh: Mesh | None) -> Any:
    """Return a state of these types with arrays by the names of `named`, which are `fitting`."""
    leaves = [arrays[name].reshape(x.shape) for name, x in named(types).items()]
    tree = jax.tree.structure(types)
    if mesh is None:
        return jax.tree.unflatten(tree, [jnp.array(x) for x in leaves])
    parts = NamedSharding(mesh, partition_spec(mesh.axis_names))
    return jax.tree.unflatten(tree, [jax.device_put(x, parts) for x in leaves])


def trips_array(trips: int) -> Any:
    """Return a number of trips as an array: int32[], or int64[] of NumPy where that is too small."""
    return jnp.int32(trips) if trips <= np.iinfo(np.int32).max else np.int64(trips)


def total_of(counts: Any) -> int:
    """Return the sum over devices. Waits for them."""
    return int(np.sum(to_host(counts), dtype=np.int64))
