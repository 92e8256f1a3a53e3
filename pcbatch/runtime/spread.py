"""Inputs dealt out to devices: one machine on each, no collective between them.

Inputs are dealt like cards, input k to device k mod D, because neighbours in a user's array are often alike: measured
against contiguous parts of inputs sorted by cost, which leave devices waiting. What does not divide evenly is filled
up with copies of the last input that no device runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec


@dataclass(frozen=True, slots=True)
class Spread:
    """`inputs` dealt to the devices of a mesh (None: one device, nothing to deal)."""

    mesh: Mesh | None
    inputs: int

    @property
    def devices(self) -> int:
        """How many machines there are."""
        return 1 if self.mesh is None else int(self.mesh.size)

    @property
    def each(self) -> int:
        """Inputs of one device, the copies that fill it up included."""
        return -(-self.inputs // self.devices)

    def ends(self) -> Any:
        """How many of a device's inputs are real: int32[] or int32[devices]."""
        if self.mesh is None:
            return jnp.int32(self.inputs)
        return (self.inputs - jnp.arange(self.devices, dtype=jnp.int32) + self.devices - 1) // self.devices

    def deal(self, array: Any) -> Any:
        """[inputs, ...] as [devices, each, ...]."""
        if self.mesh is None:
            return array
        missing = self.devices * self.each - self.inputs
        if missing:
            array = jnp.concatenate([array, jnp.repeat(array[-1:], missing, axis=0)])
        return jnp.swapaxes(array.reshape(self.each, self.devices, *array.shape[1:]), 0, 1)

    def collect(self, array: Any) -> Any:
        """The inverse of `deal`."""
        if self.mesh is None:
            return array
        return jnp.swapaxes(array, 0, 1).reshape(-1, *array.shape[2:])[: self.inputs]

    def run(self, body: Callable[[Any, Any], Any], dealt: Any, common: Any) -> Any:
        """`body(dealt, common)` on every device; what it gives has the devices in front."""
        if self.mesh is None:
            return body(dealt, common)
        spec: Any = PartitionSpec  # untyped in some releases of JAX
        devices = spec(self.mesh.axis_names)

        def local(dealt: Any, common: Any) -> Any:
            out = body(jax.tree.map(lambda x: x[0], dealt), common)
            return jax.tree.map(lambda x: x[None], out)

        mapped: Any = jax.shard_map(
            local, mesh=self.mesh, in_specs=(devices, spec()), out_specs=devices, check_vma=False
        )
        return mapped(dealt, common)
