"""Inputs dealt out to devices: one machine on each, no collective between them.

Inputs are dealt like cards, input k to device k mod D, because neighbours in a user's array are often alike: measured
against contiguous parts of inputs sorted by cost, which leave devices waiting. What does not divide evenly is filled
up with copies of the last input that no device runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pcbatch.lowering.jax_types import is_symbolic


@partial(jax.tree_util.register_dataclass, data_fields=["mapped", "common", "end", "names"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class Dealt:
    """The arguments of a run. With several devices, all but `common` have the devices in front.

    `mapped`: those with a value per input, [each, ...]; `common`: those that all inputs share; `end` int32[]: how many
    inputs are real; `names` int32[each]: the number of each input among all, None where nobody asks."""

    mapped: Mapping[str, Any]
    common: Mapping[str, Any]
    end: Any
    names: Any

    def without_common(self) -> Dealt:
        """What each device has for itself."""
        return replace(self, common={})


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

    def dealt(self, mapped: Mapping[str, Any], common: Mapping[str, Any], named: bool) -> Dealt:
        """Whole arguments, dealt out."""
        names = self.deal(jnp.arange(self.inputs, dtype=jnp.int32)) if named else None
        return Dealt({v: self.deal(x) for v, x in mapped.items()}, common, self.ends(self.inputs), names)

    def placed(self, dealt: Dealt) -> Dealt:
        """On its devices: to each its part and no more. Outside traces; the transfer may still go on."""
        if self.mesh is None:
            return dealt
        parts = NamedSharding(self.mesh, self._spec(self.mesh.axis_names))
        whole = NamedSharding(self.mesh, self._spec())
        per_device = (dealt.mapped, dealt.end, dealt.names)
        mapped, end, names = jax.device_put(per_device, parts)
        return Dealt(mapped, jax.device_put(dealt.common, whole), end, names)

    def fetched(self, tree: Any) -> Any:
        """What the devices have left, on the first of them. Outside traces.

        A copy each, and not a collective: those wait for the slowest device, XLA gives up on them after a while, and
        with one thread for all devices they never meet.
        """
        if self.mesh is None:
            return tree
        return jax.device_put(tree, self.mesh.devices.flat[0])

    def ends(self, inputs: int) -> Any:
        """How many of a device's inputs are real, of so many: int32[] or int32[devices]."""
        if self.mesh is None:
            return jnp.asarray(inputs, jnp.int32) if is_symbolic(inputs) else np.int32(inputs)
        return np.maximum(0, inputs - np.arange(self.devices, dtype=np.int32) + self.devices - 1) // self.devices

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
        devices = self._spec(self.mesh.axis_names)

        def local(dealt: Any, common: Any) -> Any:
            out = body(jax.tree.map(lambda x: x[0], dealt), common)
            return jax.tree.map(lambda x: x[None], out)

        mapped: Any = jax.shard_map(
            local, mesh=self.mesh, in_specs=(devices, self._spec()), out_specs=devices, check_vma=False
        )
        return mapped(dealt, common)

    def _spec(self, *axes: Any) -> Any:
        spec: Any = PartitionSpec  # untyped in some releases of JAX
        return spec(*axes)
