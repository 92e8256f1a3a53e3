"""Where the lanes of a call run: what the call asks for, and where its arguments lie.

Lanes that lie on several devices stay there, one machine on each, without being asked: outside traces the shardings of
the arrays tell, inside them those that JAX has in types (explicit axes). What only XLA knows is left to `partition`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding

from pcbatch.call.arguments import Arguments, usage
from pcbatch.call.devices import mesh_of
from pcbatch.errors import UsageError
from pcbatch.runtime.sharding.ambient_mesh import ambient_mesh, is_explicit, manual_axes
from pcbatch.runtime.sharding.lane_sharding import Devices, lane_axes, partition_spec
from pcbatch.runtime.vm.raw_result import is_tracing


def requested_devices(params: Container[str], kwargs: dict[str, Any], default: Any) -> Devices:
    """What a call says; taken out of its keyword arguments, unless the function has `params` of those names.

    `default`: the option of the function. Inside a `shard_map` every device has lanes of its own, and it says nothing.
    """
    found = {name: kwargs.pop(name) for name in ("devices", "mesh") if name in kwargs and name not in params}
    if any(value is not None for value in found.values()):
        _refuse_inside_shard_map()
        return mesh_of(found.get("devices"), found.get("mesh"))
    return None if manual_axes(ambient_mesh()) else mesh_of(default)


def _refuse_inside_shard_map() -> None:
    axes = manual_axes(ambient_mesh())
    if axes:
        title = f"`devices` or `mesh` is given inside a `jax.shard_map` over {', '.join(map(repr, sorted(axes)))}"
        note = "there, every device runs the lanes that it is given, in a machine of its own"
        raise usage("PCB414", title, note, help="leave out `devices` and `mesh`, or call it outside of the `shard_map`")


def placement_of(wanted: Devices, given: Arguments) -> Devices:
    """Where the lanes of a call run. `wanted`: what the call says."""
    lying = _lying(given)
    if wanted is None or (lying is None and is_default(wanted)):
        return lying
    return _in_trace(wanted, given) if is_tracing(given.arrays) else wanted


def is_default(devices: Devices) -> bool:
    """Is it the device that JAX takes by itself?"""
    return isinstance(devices, Mesh) and devices.size == 1 and devices.devices.flat[0] == jax.devices()[0]


def without_explicit_axes(devices: Devices) -> Devices:
    """The same devices by a mesh whose axes are in no type: what a run outside traces works with."""
    match devices:
        case NamedSharding(mesh=Mesh() as mesh) if is_explicit(mesh):
            return NamedSharding(_without_explicit_axes(mesh), devices.spec)
        case Mesh() if is_explicit(devices):
            return _without_explicit_axes(devices)
        case _:
            return devices


def mesh_for_sharding(devices: Devices, what: str | None = None) -> Mesh | None:
    """The devices that chunks of the host are dealt to, and runs that it looks after (which `what` asks for): one for
    each machine."""
    found = None if is_default(devices) else without_explicit_axes(devices)
    if isinstance(found, NamedSharding):
        axes = lane_axes(found)
        one = tuple(slice(None) if name in axes else slice(1) for name in found.mesh.axis_names)
        found = Mesh(found.mesh.devices[one], found.mesh.axis_names)
    if found is not None and any(device.process_index != jax.process_index() for device in found.devices.flat):
        raise _far(what)
    return found


def _far(what: str | None) -> UsageError:
    """Each process looks after its own devices: clocks, files and Ctrl-C of several do not agree."""
    if what is None:
        title = "chunks are sent to devices of other processes"
        help = "let each process map its own inputs: give it `devices=jax.local_devices()`"
        return usage("PCB414", title, "results of chunks are on the host, and each process has one", help=help)
    title = f"`{what}` is asked for a run on devices of several processes"
    note = "the host looks after such a run, and each process has one, with a clock and files of its own"
    help = "let each process run its own inputs, and keep them in a file of its own: give it "
    return usage("PCB414", title, note, help=help + "`devices=jax.local_devices()`")


def _without_explicit_axes(mesh: Mesh) -> Mesh:
    return Mesh(mesh.devices, mesh.axis_names)


def _leaves(given: Arguments) -> Iterator[tuple[bool, Any]]:
    """Is it mapped, and the array."""
    for name, arrays in given.arrays.items():
        mapped = given.mapped.get(name, ())
        yield from ((k < len(mapped) and mapped[k], array) for k, array in enumerate(arrays))


def _lying(given: Arguments) -> Devices:
    """How the arguments lie: as the first does of those whose lanes are on several devices."""
    found = [(mapped, sharding) for mapped, x in _leaves(given) if (sharding := _sharding(x)) is not None]
    for mapped, sharding in found:
        if mapped and lane_axes(sharding) and _divides(sharding, given.lanes):
            return NamedSharding(sharding.mesh, partition_spec(lane_axes(sharding)))
    typed = next((sharding for _, sharding in found if is_explicit(sharding.mesh)), None)
    return None if typed is None else NamedSharding(typed.mesh, partition_spec(None))


def _sharding(array: Any) -> NamedSharding | None:
    """How an array lies on several devices, as far as is known."""
    if isinstance(array, jax.core.Tracer):
        sharding = jax.typeof(array).sharding
        return sharding if not sharding.mesh.empty and is_explicit(sharding.mesh) else None
    sharding = getattr(array, "sharding", None)
    return sharding if isinstance(sharding, NamedSharding) and sharding.mesh.size > 1 else None


def _divides(sharding: NamedSharding, lanes: int) -> bool:
    parts = 1
    for name in lane_axes(sharding):
        parts *= sharding.mesh.shape[name]
    return parts > 1 and lanes % parts == 0


def _in_trace(said: Mesh | NamedSharding, given: Arguments) -> Devices:
    """Inside a trace lanes lie in blocks: JAX would deal and collect by collectives, and needs none for blocks."""
    wanted = said if isinstance(said, NamedSharding) else NamedSharding(said, partition_spec(said.axis_names))
    known = _lying(given)
    around: Any = known.mesh if isinstance(known, NamedSharding) else ambient_mesh()
    if around.empty:
        found = without_explicit_axes(wanted)
        return (
            found if isinstance(said, NamedSharding) or _divides(wanted, given.lanes) else without_explicit_axes(said)
        )
    if dict(around.shape) != dict(wanted.mesh.shape):
        title = f"`devices` or `mesh` is not the mesh that is around: {dict(around.shape)}"
        raise usage("PCB414", title, help="leave them out, or say how lanes lie on it: `devices=jax.P(...)`")
    return NamedSharding(around, wanted.spec)
