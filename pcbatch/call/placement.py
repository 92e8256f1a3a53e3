"""The devices that the lanes of a call run on: those that the call asks for, else those that its arguments are on.

Lanes that are on several devices stay there, one machine on each, without being asked. Outside traces the shardings of
the arrays tell, inside them those that JAX has in types (explicit axes). Shardings that only XLA knows are left to
`runtime/sharding/custom_partitioning.py`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding

from pcbatch.call.arguments import Arguments
from pcbatch.call.devices import mesh_of
from pcbatch.call.usage import usage
from pcbatch.errors import UsageError
from pcbatch.runtime.lowering_platform import default_platform, platform_of
from pcbatch.runtime.sharding.lane_sharding import (
    Devices,
    ambient_mesh,
    is_explicit,
    lane_axes,
    manual_axes,
    partition_spec,
    places_along,
)
from pcbatch.runtime.vm.raw_result import is_tracing


def requested_devices(params: Container[str], kwargs: dict[str, Any], default: Any) -> Devices:
    """Take `devices=` and `mesh=` out of the keyword arguments of a call, unless the function has such `params`.

    Args:
        params: the names of the function's parameters.
        kwargs: of the call; changed in place.
        default: the option `devices` of the function. It does not count inside a `shard_map`, where every device has
            lanes of its own.

    Raises:
        UsageError: a wrong value, or one inside a `shard_map`.
    """
    asked = {name: kwargs.pop(name) for name in ("devices", "mesh") if name in kwargs and name not in params}
    if any(value is not None for value in asked.values()):
        _refuse_inside_shard_map()
        return mesh_of(asked.get("devices"), asked.get("mesh"))
    return None if manual_axes(ambient_mesh()) else mesh_of(default)


def _refuse_inside_shard_map() -> None:
    axes = manual_axes(ambient_mesh())
    if axes:
        title = f"`devices` or `mesh` is given inside a `jax.shard_map` over {', '.join(map(repr, sorted(axes)))}"
        note = "there, every device runs the lanes that it is given, in a machine of its own"
        raise usage("PCB414", title, note, help="leave out `devices` and `mesh`, or call it outside of the `shard_map`")


def placement_of(wanted: Devices, given: Arguments) -> Devices:
    """The devices that the lanes of a call run on. `wanted`: those that the call asks for."""
    sharding = None if given.on_one_device else _sharding_of_lanes(given)
    if wanted is None or (sharding is None and is_default(wanted)):
        return sharding
    return _in_trace(wanted, given) if is_tracing(given.arrays) else wanted


def platform_of_run(devices: Devices, arrays: Iterable[Any]) -> str:
    """Return the platform of a run outside traces, on these devices (None: where the arrays are committed to, or JAX's
    default device)."""
    mesh = devices.mesh if isinstance(devices, NamedSharding) else devices
    if isinstance(mesh, Mesh):
        return platform_of(mesh.devices.flat[0])
    default = default_platform()
    if default == "cpu":  # JAX prefers every other platform, so this is the only one
        return default
    committed = (x for x in arrays if isinstance(x, jax.Array) and x.committed)
    return next((platform_of(device) for x in committed for device in x.devices()), default)


def is_default(devices: Devices) -> bool:
    """Whether these are the one device that JAX takes by itself."""
    return isinstance(devices, Mesh) and devices.size == 1 and devices.devices.flat[0] == jax.devices()[0]


def without_explicit_axes(devices: Devices) -> Devices:
    """Return the same devices on a mesh without explicit axes, as runs outside traces need."""
    match devices:
        case NamedSharding(mesh=Mesh() as mesh) if is_explicit(mesh):
            return NamedSharding(_without_explicit_axes(mesh), devices.spec)
        case Mesh() if is_explicit(devices):
            return _without_explicit_axes(devices)
        case _:
            return devices


def mesh_for_sharding(devices: Devices, what: str | None = None) -> Mesh | None:
    """The devices of a run that the host drives, one for each machine: a monitored run, or chunks of inputs.

    `what`: the option that asks for a monitored run, for messages; None for chunks.

    Raises:
        UsageError: a device of another process.
    """
    mesh = None if is_default(devices) else without_explicit_axes(devices)
    if isinstance(mesh, NamedSharding):  # devices along the other axes have the same lanes: one of them is enough
        axes = lane_axes(mesh)
        one = tuple(slice(None) if name in axes else slice(1) for name in mesh.mesh.axis_names)
        mesh = Mesh(mesh.mesh.devices[one], mesh.mesh.axis_names)
    if mesh is not None and any(device.process_index != jax.process_index() for device in mesh.devices.flat):
        raise _of_other_processes(what)
    return mesh


def _of_other_processes(what: str | None) -> UsageError:
    """The error for devices of several processes, whose clocks, files and Ctrl-C do not agree."""
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
    """All arrays of a call, and whether each has lanes."""
    for name, arrays in given.arrays.items():
        mapped = given.mapped.get(name, ())
        yield from ((k < len(mapped) and mapped[k], array) for k, array in enumerate(arrays))


def _sharding_of_lanes(given: Arguments) -> Devices:
    """The sharding of the first argument whose lanes are on several devices; None if there is none."""
    shardings = [(mapped, sharding) for mapped, x in _leaves(given) if (sharding := _sharding(x)) is not None]
    for mapped, sharding in shardings:
        if mapped and lane_axes(sharding) and _divides(sharding, given.lanes):
            return NamedSharding(sharding.mesh, partition_spec(lane_axes(sharding)))
    # Arguments with explicit axes of which none is one of lanes: types of JAX need a run on their mesh all the same.
    typed = next((sharding for _, sharding in shardings if is_explicit(sharding.mesh)), None)
    return None if typed is None else NamedSharding(typed.mesh, partition_spec(None))


def _sharding(array: Any) -> NamedSharding | None:
    """The sharding of an array over several devices, or on a mesh with explicit axes, as far as it is known."""
    if isinstance(array, jax.core.Tracer):
        sharding = jax.typeof(array).sharding
        return sharding if not sharding.mesh.empty and is_explicit(sharding.mesh) else None
    sharding = getattr(array, "sharding", None)
    named = isinstance(sharding, NamedSharding) and (sharding.mesh.size > 1 or is_explicit(sharding.mesh))
    return sharding if named else None


def _divides(sharding: NamedSharding, lanes: int) -> bool:
    """Whether a sharding puts lanes on devices, the same number on each, if on several or in the type."""
    parts = places_along(sharding.mesh, lane_axes(sharding))
    return (parts > 1 or is_explicit(sharding.mesh)) and lanes % parts == 0


def _in_trace(said: Mesh | NamedSharding, given: Arguments) -> Devices:
    """The devices of a call in a trace, where lanes are split into contiguous blocks: those need no collectives."""
    wanted = said if isinstance(said, NamedSharding) else NamedSharding(said, partition_spec(said.axis_names))
    known = _sharding_of_lanes(given)
    ambient: Any = known.mesh if isinstance(known, NamedSharding) else ambient_mesh()
    if ambient.empty:
        blocks = isinstance(said, NamedSharding) or _divides(wanted, given.lanes)
        return without_explicit_axes(wanted if blocks else said)
    if dict(ambient.shape) != dict(wanted.mesh.shape):
        title = f"`devices` or `mesh` is not the mesh that is around: {dict(ambient.shape)}"
        raise usage("PCB414", title, help="leave them out, or say how lanes lie on it: `devices=jax.P(...)`")
    return NamedSharding(ambient, wanted.spec)
