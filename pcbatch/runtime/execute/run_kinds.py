"""The kinds of monitored runs: which one a call becomes, and which one a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jax.sharding import Mesh

from pcbatch.runtime.execute import run_state
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.execute.run_state import RunState
from pcbatch.runtime.execute.task_run import TaskRun
from pcbatch.runtime.tasks.executable import CHUNK


def begin(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, lanes: int | None, mesh: Mesh | None
) -> RunState:
    """Return a run before its first trip: by tasks where a plain call of one device has them, else by lanes.

    Args:
        executable: the program.
        args: the arguments of the call.
        inputs: the number of inputs.
        lanes: the lanes that `f.map` was asked for; None: a plain call.
        mesh: the devices.
    """
    if lanes is None and mesh is None and executable.tasks is not None and executable.tasks.takes(min(inputs, CHUNK)):
        return TaskRun.before(executable, args, inputs, CHUNK)
    return run_state.begin(executable, args, inputs, lanes, mesh)


def like(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, mesh: Mesh | None, shape: Mapping[str, Any]
) -> RunState:
    """Return a run of this shape (see `RunState.shape`) with the types of its arrays, to be `restored`.

    `args` may be types too.

    Raises:
        TooLargeError: there is no memory for it.
    """
    if "tasks" in shape:
        return TaskRun.described(executable, args, inputs, shape)
    return run_state.like(executable, args, inputs, mesh, shape)
