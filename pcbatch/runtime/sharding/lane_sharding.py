"""Inputs on several devices: one machine on each, no collective between them.

Inputs are dealt like cards, input k to device k mod D, because neighbours in a user's array are often alike: contiguous
parts of inputs sorted by cost were measured to leave devices waiting. Lanes that lie on devices already, in contiguous
blocks along axes of a mesh, stay where they are, and their results with them. Where inputs do not divide evenly, copies
of the last one fill up the arrays; no device runs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from pcbatch.lowering.typing.jax_types import array_struct, is_symbolic
from pcbatch.lowering.typing.trace import is_key_array


def without_mesh() -> AbstractContextManager[Any]:
    """Return a context in which JAX traces as if there were no ambient mesh.

    The kind of device stays, which a mesh says as well: that of a GPU for which kernels are lowered elsewhere.
    """
    mesh: Any = AbstractMesh  # untyped in some releases of JAX
    device = getattr(ambient_mesh(), "abstract_device", None)
    empty = mesh((), ()) if device is None else mesh((), (), abstract_device=device)
    context: AbstractContextManager[Any] = jax.sharding.use_abstract_mesh(empty)
    return context


def run_without_mesh() -> AbstractContextManager[Any]:
    """Return a context in which programs run as if there were no ambient mesh; for use outside traces."""
    if ambient_mesh().empty:
        return nullcontext()
    set_mesh: Any = jax.set_mesh  # untyped in some releases of JAX
    context: AbstractContextManager[Any] = set_mesh(Mesh(np.empty((), dtype=object), ()))
    return context


def ambient_mesh() -> AbstractMesh:
    """Return the mesh that JAX is tracing in; an empty one if there is none."""
    get_mesh: Any = jax.sharding.get_abstract_mesh  # untyped in some releases of JAX
    mesh: AbstractMesh = get_mesh()
    return mesh


def manual_axes(mesh: Any) -> frozenset[str]:
    """Return the names of a mesh's axes that a surrounding `shard_map` is manual over."""
    if mesh.empty:
        return frozenset()
    types = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return frozenset(name for name, type_ in types if type_ == AxisType.Manual)


def is_explicit(mesh: Any) -> bool:
    """Whether shardings over some axes of a mesh are part of the types of arrays."""
    return any(type_ == AxisType.Explicit for type_ in mesh.axis_types)


def varying(args: Any) -> frozenset[str]:
    """Return the names of the axes that some array of a pytree varies over, as far as JAX tracks it."""
    types: Any = [jax.typeof(leaf) for leaf in jax.tree.leaves(args)]
    return frozenset[str]().union(*(t.manual_axis_type.varying for t in types))


def varied(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays cast so that each varies over all axes that one of them varies over."""
    axes = varying(list(arrays))
    if not axes:
        return list(arrays)
    missing = [tuple(sorted(axes - varying([x]))) for x in arrays]
    return [jax.lax.pcast(x, more, to="varying") if more else x for x, more in zip(arrays, missing, strict=True)]


def trace_without_mesh(fn: Callable[..., Any], *args: Any) -> Any:
    """Return `fn(*args)`, traced as if there were no ambient mesh, that of a `jax.shard_map` or `jax.set_mesh` around.

    Inside a `shard_map` JAX tracks over which axes of the mesh a value varies, and on a mesh with explicit axes the
    type of an array says how it is sharded. A machine, whose carried state starts as constants, would have to cast in
    hundreds of lines. It needs none of that: it runs on one device, on the part of the arrays that this device has.

    `args` are pytrees of arrays, and so is the result, whose arrays vary over all axes that one of the arguments varies
    over.
    """
    flat, tree = jax.tree.flatten(args)
    types: list[Any] = [jax.typeof(leaf) for leaf in flat]
    if ambient_mesh().empty and all(t.sharding.mesh.empty for t in types):
        return fn(*args)

    def bare(*flat: Any) -> Any:
        with without_mesh():
            return fn(*jax.tree.unflatten(tree, flat))

    shapes = [array_struct(t.shape, t.dtype, weak_type=t.weak_type) for t in types]
    # JAX sees one equation of it under the mesh, a jitted function.
    closed, like = jax.make_jaxpr(jax.jit(bare), return_shape=True)(*shapes)
    out = _cast(jex.jaxpr_as_fun(closed)(*flat), varying(args))
    return jax.tree.unflatten(jax.tree.structure(like), out)


def _cast(arrays: Sequence[Any], axes: frozenset[str]) -> list[Any]:
    return [jax.lax.pcast(x, tuple(sorted(axes)), to="varying") for x in arrays] if axes else list(arrays)


# A mesh: inputs are dealt to all of its devices; a sharding: they are in contiguous blocks, along the axes of the
# sharding's first dimension; None: all are on JAX's default device.
Devices = Mesh | NamedSharding | None


@partial(jax.tree_util.register_dataclass, data_fields=["mapped", "common", "end", "names"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class ShardedArguments:
    """The arguments of a run, a pytree of JAX. With several devices, all fields but `common` have a leading axis for
    them: [devices, each, ...] for [each, ...], where `each` is the number of inputs of one device."""

    mapped: Mapping[str, Any]  # arguments with a value per input, [each, ...]
    common: Mapping[str, Any]  # arguments that all inputs share
    end: Any  # int32[]: the number of inputs that are not copies to fill up
    names: Any  # int32[each]: the number of each input among all; None where they are not needed

    def without_common(self) -> ShardedArguments:
        """Return the arguments that each device has for itself."""
        return replace(self, common={})


@dataclass(frozen=True, slots=True)
class LaneSharding:
    """The assignment of the inputs of a run, or of its lanes, to devices."""

    over: Devices
    inputs: int  # on all devices together

    @property
    def mesh(self) -> Any:
        """The mesh of the devices; None for JAX's default device."""
        return self.over.mesh if isinstance(self.over, NamedSharding) else self.over

    @property
    def blocks(self) -> bool:
        """Whether each device has a contiguous block of inputs."""
        return isinstance(self.over, NamedSharding)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the mesh that machines differ along; along the others they are copies of each other."""
        return lane_axes(self.over) if isinstance(self.over, NamedSharding) else tuple(self.mesh.axis_names)

    @property
    def devices(self) -> int:
        """The number of machines, which is that of the devices that differ."""
        if self.over is None:
            return 1
        return places_along(self.mesh, self.axes) if self.blocks else int(self.mesh.size)

    @property
    def each(self) -> int:
        """The number of inputs of one device, with the copies that fill it up."""
        return -(-self.inputs // self.devices)

    @property
    def far(self) -> bool:
        """Whether some of the devices belong to other processes."""
        return self.over is not None and not self._on(self._front).is_fully_addressable

    def dealt(self, mapped: Mapping[str, Any], common: Mapping[str, Any], named: bool) -> ShardedArguments:
        """Return arguments dealt to devices.

        Args:
            mapped: The arguments with a value per input, [inputs, ...] each.
            common: The arguments that all inputs share.
            named: Whether inputs need their numbers, `ShardedArguments.names`.
        """
        names = self.deal(jnp.arange(self.inputs, dtype=jnp.int32)) if named else None
        return ShardedArguments({v: self.deal(x) for v, x in mapped.items()}, common, self.ends(self.inputs), names)

    def laid(self, array: Any) -> Any:
        """Return a mapped argument, [inputs, ...], sent to devices where it can be dealt; for use outside traces."""
        if not self.blocks:
            return _untyped(array)
        return _sent(array, self._on(partition_spec() if self.inputs % self.devices else self._front), self.far)

    def described(self, mapped: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments to lower for, by parameter: for blocks, structs with the shardings that a run's have."""
        if not self.blocks or self.inputs % self.devices:
            return {**mapped, **common}

        def on(sharding: NamedSharding) -> Callable[[Any], Any]:
            return lambda x: array_struct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False), sharding=sharding)

        return {
            **jax.tree.map(on(self._on(self._front)), dict(mapped)),
            **jax.tree.map(on(self._on(partition_spec())), dict(common)),
        }

    def placed(self, dealt: ShardedArguments) -> ShardedArguments:
        """Return dealt arguments on their devices, to each of which only its part is sent; for use outside traces.

        Transfers are asynchronous.
        """
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
        """Return a pytree of arrays of all devices, on the first of them; for use outside traces.

        Each device's part is copied. A collective would wait for the slowest device: XLA gives up on that after a
        while, and with one thread for all devices it never ends. (With devices of other processes there is no other
        way: then the arrays stay where they are.)
        """
        return tree if self.over is None or self.far else jax.device_put(tree, self.mesh.devices.flat[0])

    def ends(self, inputs: int) -> Any:
        """Return the number of each device's inputs that are not copies, where there are `inputs` in all.

        int32[devices], or int32[] on JAX's default device.
        """
        if self.over is None:
            return jnp.asarray(inputs, jnp.int32) if is_symbolic(inputs) else np.int32(inputs)
        if self.blocks:
            return np.clip(inputs - self.each * np.arange(self.devices, dtype=np.int32), 0, self.each).astype(np.int32)
        return np.maximum(0, inputs - np.arange(self.devices, dtype=np.int32) + self.devices - 1) // self.devices

    def deal(self, array: Any) -> Any:
        """Return an array [inputs, ...] as [devices, each, ...], filled up with copies of the last input."""
        if self.over is None:
            return array
        missing = self.devices * self.each - self.inputs
        if missing:
            array = jnp.concatenate([array, jnp.repeat(array[-1:], missing, axis=0)])
        if self.blocks:
            return self._mapped(lambda x: x[None], (self._front,), self._typed(array, self._front))
        return jnp.swapaxes(array.reshape(self.each, self.devices, *array.shape[1:]), 0, 1)

    def collect(self, array: Any) -> Any:
        """Return an array [devices, each, ...] as [inputs, ...]: the inverse of `deal`."""
        if self.over is None:
            return array
        if self.blocks:
            rows = self._mapped(lambda x: x[0], (self._front,), array)
            return rows if self.devices * self.each == self.inputs else rows[: self.inputs]
        rows = jnp.swapaxes(array, 0, 1).reshape(-1, *array.shape[2:])[: self.inputs]
        return self._everywhere(rows)

    def total(self, add: Callable[[Any], Any], array: Any) -> Any:
        """Return `add(array)` of an array [devices, ...]; on JAX's default device, the array itself."""
        return array if self.over is None else self._everywhere(add(self._typed(array, partition_spec())))

    def run(self, body: Callable[[Any, Any], Any], dealt: Any, common: Any) -> Any:
        """Return `body(dealt, common)` of every device, with the devices in front; see `around`.

        `body` is traced as if there were no mesh.
        """
        return self.around(partial(trace_without_mesh, body), dealt, common)

    def around(self, body: Callable[[Any, Any], Any], dealt: Any, common: Any) -> Any:
        """Return `body(dealt, common)` of every device, with the devices in front.

        Args:
            body: Is traced inside the `shard_map`; it gets the part of one device, without the axis of devices.
            dealt: A pytree of arrays [devices, ...].
            common: A pytree of arrays that all devices get whole.
        """
        if self.over is None:
            return body(dealt, common)

        def local(dealt: Any, common: Any) -> Any:
            out = body(jax.tree.map(lambda x: x[0], dealt), common)
            return jax.tree.map(lambda x: x[None], out)

        dealt = jax.tree.map(lambda x: self._typed(x, self._front), dealt)
        common = jax.tree.map(lambda x: self._typed(x, partition_spec()), common)
        return self._mapped(local, (self._front, partition_spec()), dealt, common)

    def _mapped(self, local: Callable[..., Any], specs: tuple[Any, ...], *args: Any) -> Any:
        """Return `local(*args)` in a `shard_map` over all devices, with results that have the devices in front."""
        # A `shard_map` around this has taken some axes: JAX refuses to take them twice.
        free_axes = set(self.mesh.axis_names) - manual_axes(self.mesh)
        mapped: Any = jax.shard_map(
            local,
            mesh=self.mesh,
            in_specs=specs,
            out_specs=self._front,
            axis_names=free_axes,
            check_vma=bool(varying(args)),
        )
        return mapped(*args)

    def _typed(self, array: Any, spec: Any) -> Any:
        """Return an array with a sharding in its type, if the mesh has explicit axes; else the array."""
        reshard: Any = jax.reshard  # untyped in some releases of JAX
        return reshard(array, self._on(spec)) if is_explicit(self.mesh) else array

    def _everywhere(self, array: Any) -> Any:
        """Return an array replicated on all devices if several processes share them, so that each has all results."""
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
    """Return an array of a run as a NumPy array (PRNG keys as they are); for use outside traces.

    Each of several processes gets all of it.
    """
    if isinstance(array, jax.core.Tracer):
        array = jax.lax.stop_gradient(array)  # where JAX differentiates outside `jit`, this gives the concrete value
    if isinstance(array, jax.Array) and not (array.is_fully_addressable or array.is_fully_replicated):
        everywhere = NamedSharding(array.sharding.mesh, partition_spec())  # type: ignore[attr-defined]
        array = jax.jit(lambda x: x, out_shardings=everywhere)(array)
    return array if is_key_array(array) else np.asarray(array)


def _sent(array: Any, sharding: NamedSharding, far: bool) -> Any:
    """Return an array with a sharding; `far`: over devices of several processes, to which JAX sends fewer arrays."""
    if not far or not isinstance(array, jax.Array):
        return jax.device_put(array, sharding)
    if is_key_array(array):
        wrap = partial(jax.random.wrap_key_data, impl=jax.random.key_impl(array))
        return jax.jit(wrap)(_sent(jax.jit(jax.random.key_data)(array), sharding, far))
    return jax.device_put(np.asarray(array) if array.is_fully_addressable else array, sharding)


def _untyped(array: Any) -> Any:
    """Return an array without a sharding in its type: JAX would demand one of every array computed from it."""
    sharding = getattr(array, "sharding", None)
    if not isinstance(sharding, NamedSharding) or not is_explicit(sharding.mesh):
        return array
    return jax.device_put(array, NamedSharding(Mesh(sharding.mesh.devices, sharding.mesh.axis_names), sharding.spec))


def lane_axes(sharding: NamedSharding) -> tuple[str, ...]:
    """Return the names of the mesh axes that the first axis of an array is split over."""
    first = sharding.spec[0] if len(sharding.spec) else None
    return first if isinstance(first, tuple) else () if first is None else (first,)


def places_along(mesh: Any, axes: Sequence[str]) -> int:
    """Return the number of devices along some axes of a mesh."""
    return math.prod(mesh.shape[name] for name in axes)


def partition_spec(*axes: Any) -> Any:
    """Return `jax.P(*axes)`, which is untyped in some releases of JAX."""
    spec: Any = PartitionSpec
    return spec(*axes)
