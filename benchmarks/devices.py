"""Lanes split over devices: one program for each, no traffic between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

LANES = "lanes"


def use(devices: int) -> None:
    """Split the CPU into so many devices. Before the first computation."""
    if devices > 1:
        jax.config.update("jax_num_cpu_devices", devices)


def split(function: Callable[..., Any], args: tuple[Any, ...], devices: int) -> Any:
    """`function(*args)` ready to be called: every leaf of the arguments and results split along its leading axis.

    A function over few lanes each must give leading axes to all of its results.
    """
    mesh = Mesh(np.array(jax.devices()[:devices]), (LANES,))
    specs = (PartitionSpec(LANES),) * len(args)
    placed = jax.device_put(args, NamedSharding(mesh, PartitionSpec(LANES)))
    run = jax.jit(
        jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(LANES), check_vma=False)
        if devices > 1
        else function
    )
    return lambda: run(*placed)
