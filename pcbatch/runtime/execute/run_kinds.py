"""The kinds of runs that the host can stop: which one a call becomes, and how a file holds it.

A run is saved by its fields. What is no array is JSON, a dataclass with the name of its class; whoever reads it gives
the program and the devices, and the arrays come beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from jax.sharding import Mesh

from pcbatch.runtime.execute.host_loop import RunCounts
from pcbatch.runtime.execute.queue_run import QueueRun, begin_lanes
from pcbatch.runtime.execute.run_state import BatchRun, RunState
from pcbatch.runtime.execute.task_run import TaskRun
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.tasks.executable import CHUNK
from pcbatch.runtime.tasks.sizes import Sizes

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable

CLASSES: Final = {cls.__name__: cls for cls in (BatchRun, QueueRun, TaskRun, RunCounts, Sizes)}
GIVEN: Final = ("executable", "sharding", "state")  # the fields of a run that whoever reads it gives


def encoded(value: Any) -> Any:
    """Return a run, or a value in one, ready for JSON."""
    if not is_dataclass(value):
        return value
    about = {each.name: encoded(getattr(value, each.name)) for each in fields(value) if each.name not in GIVEN}
    inputs = {"inputs": value.sharding.inputs} if isinstance(value, RunState) else {}
    return {"class": type(value).__name__, **inputs, **about}


def decoded(found: Any, executable: PcExecutable, mesh: Mesh | None) -> Any:
    """Return what `encoded` was given, a run without its arrays."""
    if not isinstance(found, Mapping):
        return found
    about = {name: decoded(x, executable, None) for name, x in found.items() if name not in ("class", "inputs")}
    if "inputs" in found:
        about |= {"executable": executable, "sharding": LaneSharding(mesh, found["inputs"]), "state": None}
    return CLASSES[found["class"]](**about)


def begin(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, lanes: int | None, mesh: Mesh | None
) -> RunState:
    """Return a run before its first trip: by tasks where a plain call of one device has them, else by lanes.

    Args:
        executable: the program.
        args: the arguments of the call.
        inputs: the number of inputs.
        lanes: the lanes that `f.map` was asked for; None: a plain call, which may become a queue as well.
        mesh: the devices.
    """
    if lanes is None and mesh is None and executable.tasks_for(inputs) is not None:
        return TaskRun.before(executable, args, inputs, CHUNK)
    return begin_lanes(executable, args, inputs, lanes, mesh)
