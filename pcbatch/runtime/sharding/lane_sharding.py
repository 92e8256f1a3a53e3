"""Inputs on several devices: one machine on each, no collective between them.

Inputs are dealt like cards, input k to device k mod D, because neighbours in a user's array are often alike: measured
against contiguous parts of inputs sorted by cost, which leave devices waiting. Lanes that lie on devices already, in
blocks along axes of a mesh, stay where they are, and their results with them. What does not divide evenly is filled up
with copies of the last input that no device runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.runtime.sharding.ambient_mesh import is_explicit, manual_axes, trace_without_mesh, varying

Devices = Mesh | NamedSharding | None  # dealt to all of a mesh; in blocks, as a leading axis lies; JAX's default device


@partial(jax.tree_util.register_dataclass, data_fields=["mapped", "common", "end", "names"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class ShardedArguments:
    """The arguments of a run. With several devices, all but `common` have the devices in front.

    `mapped`: those with a value per input, [each, ...]; `common`: those that all inputs share; `end` int32[]: how many
    inputs are real; `names` int32[each]: the number of each input among all, None where nobody asks."""

    mapped: Mapping[str, Any]
    common: Mapping[str, Any]
    end: Any
    names: Any

    def without_common(self) -> ShardedArguments:
        """What each device has for itself."""
        return replace(self, common={})


@dataclass(frozen=True, slots=True)
class LaneSharding:
    """`inputs` on some devices (None: one device, nothing to deal)."""

    over: Devices
    inputs: int

    @property
    def mesh(self) -> Any:
        """The mesh of the devices."""
        return self.over.mesh if isinstance(self.over, NamedSharding) else self.over

    @property
    def blocks(self) -> bool:
        """Does a device have inputs that are neighbours?"""
        return isinstance(self.over, NamedSharding)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the mesh that tell machines apart; along others there are copies of them."""
        return lane_axes(self.over) if isinstance(self.over, NamedSharding) else tuple(self.mesh.axis_names)

    @property
    def devices(self) -> int:
        """How many machines there are."""
        if self.over is None:
            return 1
        return math.prod(self.mesh.shape[name] for name in self.axes) if self.blocks else int(self.mesh.size)

    @property
    def each(self) -> int:
        """Inputs of one device, the copies that fill it up included."""
        return -(-self.inputs // self.devices)

    @property
    def far(self) -> bool:
        """Are some of the devices those of other processes?"""
        return self.over is not None and not self._on(self._front).is_fully_addressable

    def dealt(self, mapped: Mapping[str, Any], common: Mapping[str, Any], named: bool) -> ShardedArguments:
        """Whole arguments, dealt out."""
        names = self.deal(jnp.arange(self.inputs, dtype=jnp.int32)) if named else None
        return ShardedArguments({v: self.deal(x) for v, x in mapped.items()}, common, self.ends(self.inputs), names)

    def laid(self, array: Any) -> Any:
        """An argument where it can be dealt out. Outside traces."""
        if not self.blocks:
            return _untyped(array)
        return _sent(array, self._on(partition_spec() if self.inputs % self.devices else self._front), self.far)

    def described(self, mapped: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments to lower for: in blocks, the types and shardings that those of a run will have."""
        if not self.blocks or self.inputs % self.devices:
            return {**mapped, **common}

        def on(sharding: NamedSharding) -> Callable[[Any], Any]:
            make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
            return lambda x: make(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False), sharding=sharding)

        return {
            **jax.tree.map(on(self._on(self._front)), dict(mapped)),
            **jax.tree.map(on(self._on(partition_spec())), dict(common)),
        }

    def placed(self, dealt: ShardedArguments) -> ShardedArguments:
        """On its devices: to each its part and no more. Outside traces; the transfer may still go on."""
        if self.over is None:
            return dealt
        parts, whole, far = self._on(self._front), self._on(partition_spec()), self.far
        if not far:
            mapped, end, names = jax.device_put((dealt.mapped, dealt.end, dealt.names), parts)
            return ShardedArguments(mapped, jax.device_put(dealt.common, whole), end, names)
        mapped = dealt.mapped if self.blocks else {v: _sent(x, parts, far) for v, x in dealt.mapped.items()}
        common = {v: _sent(x, whole, far) for v, x in dealt.common.items()}
        return ShardedArguments(mapped, common, *jax.tree.map(lambda x: _sent(x, parts, far), (dealt.end, dealt.names)))

    def fetched(self, tree: Any) -> Any:
        """What the devices have left, on the first of them. Outside traces.

        A copy each, and not a collective: those wait for the slowest device, XLA gives up on them after a while, and
        with one thread for all devices they never meet. (With devices of other processes there is no other way.)
        """
        return tree if self.over is None or self.far else jax.device_put(tree, self.mesh.devices.flat[0])

    def ends(self, inputs: int) -> Any:
        """How many of a device's inputs are real, of so many: int32[] or int32[devices]."""
        if self.over is None:
            return jnp.asarray(inputs, jnp.int32) if is_symbolic(inputs) else np.int32(inputs)
        if self.blocks:
            return np.clip(inputs - self.each * np.arange(self.devices, dtype=np.int32), 0, self.each).astype(np.int32)
        return np.maximum(0, inputs - np.arange(self.devices, dtype=np.int32) + self.devices - 1) // self.devices

    def deal(self, array: Any) -> Any:
        """[inputs, ...] as [devices, each, ...]."""
        if self.over is None:
            return array
        missing = self.devices * self.each - self.inputs
        if missing:
            array = jnp.concatenate([array, jnp.repeat(array[-1:], missing, axis=0)])
        if self.blocks:
            return self._mapped(lambda x: x[None], (self._front,), self._typed(array, self._front))
        return jnp.swapaxes(array.reshape(self.each, self.devices, *array.shape[1:]), 0, 1)

    def collect(self, array: Any) -> Any:
        """The inverse of `deal`."""
        if self.over is None:
            return array
        if self.blocks:
            rows = self._mapped(lambda x: x[0], (self._front,), array)
            return rows if self.devices * self.each == self.inputs else rows[: self.inputs]
        rows = jnp.swapaxes(array, 0, 1).reshape(-1, *array.shape[2:])[: self.inputs]
        return self._everywhere(rows)

    def total(self, add: Callable[[Any], Any], array: Any) -> Any:
        """`add([devices, ...])`."""
        return array if self.over is None else self._everywhere(add(self._typed(array, partition_spec())))

    def run(self, body: Callable[[Any, Any], Any], dealt: Any, common: Any) -> Any:
        """`body(dealt, common)` on every device; what it gives has the devices in front."""
        return self.around(partial(trace_without_mesh, body), dealt, common)

    def around(self, body: Callable[[Any, Any], Any], dealt: Any, common: Any) -> Any:
        """Likewise, and `body` is traced in the place where it runs."""
        if self.over is None:
            return body(dealt, common)

        def local(dealt: Any, common: Any) -> Any:
            out = body(jax.tree.map(lambda x: x[0], dealt), common)
            return jax.tree.map(lambda x: x[None], out)

        dealt = jax.tree.map(lambda x: self._typed(x, self._front), dealt)
        common = jax.tree.map(lambda x: self._typed(x, partition_spec()), common)
        return self._mapped(local, (self._front, partition_spec()), dealt, common)

    def _mapped(self, local: Callable[..., Any], specs: tuple[Any, ...], *args: Any) -> Any:
        """`local` on every device, on what each has of the arguments."""
        free = set(self.mesh.axis_names) - manual_axes(self.mesh)
        mapped: Any = jax.shard_map(
            local,
            mesh=self.mesh,
            in_specs=specs,
            out_specs=self._front,
            axis_names=free,
            check_vma=bool(varying(args)),
        )
        return mapped(*args)

    def _typed(self, array: Any, spec: Any) -> Any:
        """With a sharding that JAX wants to see in types, where the mesh has axes like that."""
        reshard: Any = jax.reshard  # untyped in some releases of JAX
        return reshard(array, self._on(spec)) if is_explicit(self.mesh) else array

    def _everywhere(self, array: Any) -> Any:
        """On all devices, if processes share them: each has all of the results then."""
        if not isinstance(self.mesh, Mesh) or not self.far:
            return array
        constrained: Any = jax.lax.with_sharding_constraint  # untyped in some releases of JAX
        return constrained(array, self._on(partition_spec()))

    @property
    def _front(self) -> Any:
        return partition_spec(self.axes or None)

    def _on(self, spec: Any) -> NamedSharding:
        return NamedSharding(self.mesh, spec)


def to_host(array: Any) -> Any:
    """An array of a run, as the host sees it; of several processes, each sees all of it. Outside traces."""
    array = jax.lax.stop_gradient(array)  # of what JAX differentiates outside `jit`, the value is known
    if isinstance(array, jax.Array) and not (array.is_fully_addressable or array.is_fully_replicated):
        everywhere = NamedSharding(array.sharding.mesh, partition_spec())  # type: ignore[attr-defined]
        array = jax.jit(lambda x: x, out_shardings=everywhere)(array)
    return array if is_key_array(array) else np.asarray(array)


def _sent(array: Any, sharding: NamedSharding, far: bool) -> Any:
    """An array on these devices; `far`: some are those of other processes, where JAX sends less."""
    if not far or not isinstance(array, jax.Array):
        return jax.device_put(array, sharding)
    if is_key_array(array):
        wrap = partial(jax.random.wrap_key_data, impl=jax.random.key_impl(array))
        return jax.jit(wrap)(_sent(jax.jit(jax.random.key_data)(array), sharding, far))
    return jax.device_put(np.asarray(array) if array.is_fully_addressable else array, sharding)


def _untyped(array: Any) -> Any:
    """Without a sharding in its type, which JAX would want to know of every array that is made of it."""
    sharding = getattr(array, "sharding", None)
    if not isinstance(sharding, NamedSharding) or not is_explicit(sharding.mesh):
        return array
    return jax.device_put(array, NamedSharding(Mesh(sharding.mesh.devices, sharding.mesh.axis_names), sharding.spec))


def lane_axes(sharding: NamedSharding) -> tuple[str, ...]:
    """The axes of the mesh that the leading axis of an array is split over."""
    first = sharding.spec[0] if len(sharding.spec) else None
    return first if isinstance(first, tuple) else () if first is None else (first,)


def partition_spec(*axes: Any) -> Any:
    """`jax.P(*axes)`."""
    spec: Any = PartitionSpec  # untyped in some releases of JAX
    return spec(*axes)
