"""Devices to run on: what `devices=` and `mesh=` mean, and CPU cores as devices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pcbatch.call.arguments import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.runtime.sharding.ambient_mesh import ambient_mesh
from pcbatch.runtime.sharding.lane_sharding import Devices
from pcbatch.runtime.vm.raw_result import is_tracing

AXIS = "lanes"
ALL = "all"


def use_cpu_devices(count: int | None = None) -> int:
    """Make the cores of this machine `count` devices of JAX (default: one for each core that this process may use).

    XLA runs a machine's loop on one core; with several devices, `devices="all"` runs one machine on each. Call this
    before anything else uses JAX.

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
        found = len(jax.devices("cpu"))
        if found != count:
            raise usage(
                "PCB414",
                f"JAX has started with {found} CPU device{'s' if found > 1 else ''}, and cannot have {count} any more",
                help=f"call `pcbatch.use_cpu_devices({count})` before anything else uses JAX",
            ) from None
    return count


def mesh_of(devices: Any, mesh: Any = None) -> Devices:
    """What to spread lanes over; None for JAX's default device.

    `devices`: None, a number, "all", devices of JAX, a mesh, or how lanes lie on one: a `jax.NamedSharding`, or a
    `jax.P` for the mesh of `jax.set_mesh`.
    """
    if mesh is not None and devices is not None:
        raise usage("PCB414", "`devices` and `mesh` are both given", help="leave one of them out")
    found = devices if mesh is None else mesh
    match found:
        case None:
            return None
        case Mesh() | NamedSharding():
            return found
        case PartitionSpec():
            return _of_the_context(found)
        case _ if mesh is not None:
            title = f"mesh must be a `jax.sharding.Mesh` or a `jax.NamedSharding`, not {short(found)}"
            raise usage("PCB414", title, help="or give `devices=4`")
    return Mesh(np.array(_chosen(devices)), (AXIS,))


def _of_the_context(spec: PartitionSpec) -> NamedSharding:
    around = ambient_mesh()
    if around.empty:
        help = "call it inside `with jax.set_mesh(mesh):`, or give `devices=jax.NamedSharding(mesh, spec)`"
        raise usage("PCB414", f"devices is {short(spec)}, and there is no mesh around", help=help)
    mesh: Any = around if is_tracing(()) else jax.sharding.get_mesh()
    return NamedSharding(mesh, spec)


def _chosen(devices: Any) -> Sequence[Any]:
    here = jax.devices()
    if isinstance(devices, str) and devices == ALL:
        return here
    if isinstance(devices, int) and not isinstance(devices, bool):
        if 1 <= devices <= len(here):
            return here[:devices]
        title = f"{devices} devices are asked for, and JAX has {len(here)}"
        cpu = here[0].platform == "cpu"
        more = f"call `pcbatch.use_cpu_devices({devices})` before anything else uses JAX" if cpu and devices > 0 else ""
        raise usage("PCB414", title, help=more or f'give a number from 1 to {len(here)}, or `devices="all"`')
    if isinstance(devices, list | tuple) and devices and all(isinstance(d, jax.Device) for d in devices):
        if len(set(devices)) == len(devices):
            return devices
        raise usage("PCB414", "a device occurs twice among `devices`", help="name each device once")
    raise usage(
        "PCB414",
        f'devices must be a number, "all", devices of JAX or a mesh, not {short(devices)}',
        help='write `devices=4`, `devices="all"` or `devices=jax.devices()[:2]`',
    )
