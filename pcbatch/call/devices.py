"""Devices to run on: the values of `devices=` and `mesh=`, and CPU cores as devices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.runtime.sharding.lane_sharding import Devices, ambient_mesh
from pcbatch.runtime.vm.raw_result import is_tracing

AXIS = "lanes"
ALL = "all"


def use_cpu_devices(count: int | None = None) -> int:
    """Make the cores of this machine `count` devices of JAX.

    XLA runs a machine's loop on one core; with several devices, `devices="all"` runs one machine on each. Call this
    before anything else uses JAX.

    Args:
        count: the number of devices. None: one for each core that this process may use.

    Returns:
        The number of devices.

    Raises:
        UsageError: JAX has started already, with another number of devices.

    Example:
        >>> import pcbatch
        >>> pcbatch.use_cpu_devices(4)  # doctest: +SKIP
        4
        >>> f(xs, devices="all")  # doctest: +SKIP
    """
    count = len(os.sched_getaffinity(0)) if count is None and hasattr(os, "sched_getaffinity") else count
    count = count or os.cpu_count() or 1
    update: Any = jax.config.update
    try:
        update("jax_num_cpu_devices", count)
    except RuntimeError:  # JAX has started
        cpus = len(jax.devices("cpu"))
        if cpus != count:
            raise usage(
                "PCB414",
                f"JAX has started with {cpus} CPU device{'s' if cpus > 1 else ''}, and cannot have {count} any more",
                help=f"call `pcbatch.use_cpu_devices({count})` before anything else uses JAX",
            ) from None
    return count


def mesh_of(devices: Any, mesh: Any = None) -> Devices:
    """The mesh, or the sharding of the lanes, that a call asks for; None for JAX's default device.

    Args:
        devices: None, a number, "all", devices of JAX, a mesh, a `jax.NamedSharding` of the lanes, or a `jax.P` for
            the mesh of `jax.set_mesh`.
        mesh: a mesh or a `jax.NamedSharding`, if `devices` is None.

    Raises:
        UsageError: both, or something else.
    """
    if mesh is not None and devices is not None:
        raise usage("PCB414", "`devices` and `mesh` are both given", help="leave one of them out")
    chosen = devices if mesh is None else mesh
    match chosen:
        case None:
            return None
        case Mesh() | NamedSharding():
            return chosen
        case PartitionSpec():
            return _on_ambient_mesh(chosen)
        case _ if mesh is not None:
            title = f"mesh must be a `jax.sharding.Mesh` or a `jax.NamedSharding`, not {short(chosen)}"
            raise usage("PCB414", title, help="or give `devices=4`")
    return Mesh(np.array(_listed(devices)), (AXIS,))


def _on_ambient_mesh(spec: PartitionSpec) -> NamedSharding:
    ambient = ambient_mesh()
    if ambient.empty:
        help = "call it inside `with jax.set_mesh(mesh):`, or give `devices=jax.NamedSharding(mesh, spec)`"
        raise usage("PCB414", f"devices is {short(spec)}, and there is no mesh around", help=help)
    mesh: Any = ambient if is_tracing(()) else jax.sharding.get_mesh()
    return NamedSharding(mesh, spec)


def _listed(devices: Any) -> Sequence[jax.Device]:
    present = jax.devices()
    if isinstance(devices, str) and devices == ALL:
        return present
    if isinstance(devices, int) and not isinstance(devices, bool):
        if 1 <= devices <= len(present):
            return present[:devices]
        title = f"{devices} devices are asked for, and JAX has {len(present)}"
        cpu = present[0].platform == "cpu"
        more = f"call `pcbatch.use_cpu_devices({devices})` before anything else uses JAX" if cpu and devices > 0 else ""
        raise usage("PCB414", title, help=more or f'give a number from 1 to {len(present)}, or `devices="all"`')
    if isinstance(devices, list | tuple) and devices and all(isinstance(d, jax.Device) for d in devices):
        if len(set(devices)) == len(devices):
            return devices
        raise usage("PCB414", "a device occurs twice among `devices`", help="name each device once")
    raise usage(
        "PCB414",
        f'devices must be a number, "all", devices of JAX or a mesh, not {short(devices)}',
        help='write `devices=4`, `devices="all"` or `devices=jax.devices()[:2]`',
    )
