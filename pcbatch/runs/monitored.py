"""Monitored runs: with progress, a time limit, checkpoints; and those that users advance themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np
from jax.sharding import Mesh

from pcbatch.call.arguments import Arguments
from pcbatch.call.placement import mesh_for_sharding
from pcbatch.call.signature import signature
from pcbatch.compiler.program import Program
from pcbatch.data.objects.tables import TABLES
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.jax_types import to_aval
from pcbatch.runs import checkpoint_file, fingerprint
from pcbatch.runs.checkpoint_file import as_saved, check, check_kind, refused
from pcbatch.runs.interrupts import Interrupted, interruptible
from pcbatch.runs.run_handle import Run, checkpointing, traced
from pcbatch.runs.run_options import RunOptions, deadline, reporting
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.execute.host_loop import HostLoop
from pcbatch.runtime.execute.run_kinds import begin, decoded
from pcbatch.runtime.execute.run_state import RunState
from pcbatch.runtime.execute.task_run import TaskRun
from pcbatch.runtime.local_strategy.executor import needs_pc
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding, run_without_mesh
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks, is_tracing, non_finite_lanes


class Loadable(Protocol):
    """The programs of a function, as a saved run needs them; `pcbatch.api.programs.Programs` has them."""

    @property
    def fn(self) -> Any:
        """The plain function that the programs are compiled from."""

    @property
    def name(self) -> str:
        """The name of the function, for messages."""

    def pop_devices(self, kwargs: dict[str, Any]) -> Devices:
        """Take the devices of a call out of its keyword arguments."""

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Check the arguments of a call and split them into leaves."""

    def program(self, call: Arguments) -> Program:
        """The program for the signature of a call."""

    def types_of_fixed(self) -> dict[str, Abstract]:
        """The types of the first parameters, which a method has from its object."""


def start(name: str, compiled: Program, given: Arguments, mesh: Devices, what: str, lanes: int | None = None) -> Run:
    """Return a machine before its first trip; `what` names in messages what asks for it."""
    executable = _executable(compiled, given, what)
    if given.lanes == 0:
        return Run(name, compiled, given, None, None)
    with compiled.mapping_errors(given), jax.debug_nans(False), jax.debug_infs(False), run_without_mesh():
        state = begin(executable, compiled.args(given), given.lanes, lanes, _dealt(compiled, given, mesh, what))
    return Run(name, compiled, given, state, None)


def _executable(compiled: Program, given: Arguments, what: str) -> PcExecutable:
    if is_tracing(compiled.args(given)):
        raise traced(what)
    if not isinstance(compiled.executable, PcExecutable):
        raise needs_pc(f"`{what}`")
    return compiled.executable


def _dealt(compiled: Program, given: Arguments, mesh: Devices, what: str) -> Mesh | None:
    """The devices that the inputs of a call are sharded over, wherever they lie."""
    return mesh_for_sharding(compiled.placed(given, mesh), what)


def run_monitored(
    name: str,
    compiled: Program,
    given: Arguments,
    mesh: Devices,
    options: RunOptions,
    lanes: int | None = None,
    unit: str = "lanes",
) -> tuple[Program, RawResult]:
    """Run to the end, or as far as the options allow.

    Args:
        name: the name of the function, for messages.
        compiled: the program.
        given: the call.
        mesh: the devices.
        options: progress, time limit and checkpoints.
        lanes: the lanes of a machine that inputs are handed out to; None: a plain call, or tasks.
        unit: what progress counts, "lanes" or "inputs".

    Returns:
        The program that ran last (lists may have needed more room), and what it left.

    Raises:
        Interrupted: Ctrl-C was pressed; it holds the machine.
    """
    _executable(compiled, given, options.first_given)
    with reporting(options.progress, unit) as report, interruptible() as interrupted:
        machine = _begun(name, compiled, given, mesh, options, lanes)
        watch = HostLoop(until=deadline(options.timeout), report=report, interrupted=interrupted)
        if report is not None and machine.standing is not None:
            report(machine.standing)
        if options.save_to is not None:
            watch.save, watch.every = checkpointing(options.save_to), options.every
        machine = machine.moved(watch)
        if options.save_to is not None:
            machine.write(options.save_to, checkpoint_file.write_if_possible)
        if report is not None and machine.standing is not None and watch.why != "interrupted":
            report(machine.standing)
    if watch.why == "interrupted":
        raise Interrupted(machine)
    outcome = machine.outcome()
    if debug_checks() and non_finite_lanes(outcome):
        return machine.program, machine.program.execute(given, mesh)  # which says where they come from
    return machine.program, outcome


def _begun(
    name: str, compiled: Program, given: Arguments, mesh: Devices, options: RunOptions, lanes: int | None
) -> Run:
    path = options.save_to
    if path is None:
        return start(name, compiled, given, mesh, options.first_given, lanes)
    if not path.exists():
        return start(name, compiled, given, mesh, options.first_given, lanes).recognisable()
    about, arrays = checkpoint_file.read(path)
    compiled = as_saved(compiled, about)
    mesh, digest = _dealt(compiled, given, mesh, options.first_given), fingerprint.of_arguments(given)
    devices = LaneSharding(mesh, 0).devices if given.lanes else 1
    check(path, about, compiled, "run", inputs=(given.lanes, "inputs"), arguments=(digest, "arguments"),
          devices=(devices, "devices"))  # fmt: skip
    return restored(path, name, compiled, given, mesh, about, arrays)


def load(programs: Loadable, path: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Return the machine in a checkpoint.

    Args:
        programs: the programs of the function.
        path: the file.
        args: arguments of the types of those that the run had; none: the types are those in the file.
        kwargs: likewise, and `devices`.

    Raises:
        StateError: the file is none, or of another program, version, setting or other devices.
    """
    mesh = programs.pop_devices(kwargs)
    file = checkpoint_file.path_of(path)
    about, arrays = checkpoint_file.read(file)
    check_kind(file, about, "run")
    if args or kwargs:
        given = programs.prepare(args, kwargs)
    else:
        with checkpoint_file.reading(file):
            given = _described(file, programs, about)
    with checkpoint_file.reading(file):
        inputs, then = int(about["inputs"]), int(about["devices"])
        call = replace(given, lanes=inputs, alone=bool(about.get("alone")))
    compiled = as_saved(programs.program(call), about)
    mesh = mesh_for_sharding(mesh, "load")
    devices = LaneSharding(mesh, 0).devices if inputs else 1
    if devices != then:
        note = f"{then} then, {devices} now"
        raise refused(file, "was written for other devices", note, f"`f.load(path, devices={then})`")
    wanted = {"inputs": (given.lanes, "inputs")} if args or kwargs else {}
    check(file, about, compiled, "run", **wanted)
    return restored(file, programs.name, compiled, call, mesh, about, arrays)


def _described(file: Path, programs: Loadable, about: Mapping[str, Any]) -> Arguments:
    """Return the types of the call that a machine was started with, with descriptions of its arrays."""
    then, now = [name for name in about["types"] if name != TABLES], list(signature(programs.fn).parameters)
    if then != now:
        note = f"it had other parameters: {', '.join(then)}; and here are: {', '.join(now)}"
        raise refused(file, "was written by another program", note)
    if TABLES in about["types"]:
        note = "objects that `pcbatch.pack` packs are of classes that the file does not hold: nothing in it is code"
        help = "give the arguments of the run again: `f.load(path, *args)`"
        raise refused(file, "began with packed objects", note, help)
    types: dict[str, Abstract] = dict(programs.types_of_fixed())
    for name, found in about["types"].items():
        if name not in types and found is None:
            note = f"the file does not hold the classes in argument `{name}`: nothing in it is code"
            help = "give the arguments, or `jax.ShapeDtypeStruct`s of them: `f.load(path, *args)`"
            raise refused(file, "holds no types of all arguments", note, help)
        if name not in types:
            types[name] = fingerprint.decoded(found)
    types = {name: types[name] for name in about["types"]}
    mapped = {name: tuple(leaves) for name, leaves in about["mapped"].items()}
    if not {*about["shared"], *mapped} <= {*types}:
        raise ValueError("it has no such arguments")
    return Arguments(
        types, frozenset(about["shared"]), _shapes(types, mapped, about["inputs"]), mapped, about["inputs"]
    )


def _shapes(types: Mapping[str, Abstract], mapped: Mapping[str, Any], lanes: int) -> dict[str, tuple[Any, ...]]:
    """Return descriptions of arrays, by parameter."""
    return {
        name: tuple(
            to_aval(leaf, (lanes,) if varies else ())
            for leaf, varies in zip(type_.arrays, mapped.get(name) or (False,) * len(type_.arrays), strict=True)
        )
        for name, type_ in types.items()
    }


def restored(
    path: Path,
    name: str,
    compiled: Program,
    given: Arguments,
    mesh: Mesh | None,
    about: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> Run:
    """Return the machine of a checkpoint whose header was checked."""
    executable = _executable(compiled, given, "load")
    with checkpoint_file.reading(path):
        digest = about["arguments"]
        paused: RunState | None = decoded(about["run"], executable, mesh)
        if paused is None:
            return Run(name, compiled, given, None, digest)
        if isinstance(paused, TaskRun) and about.get("tasks") != fingerprint.of_tasks(compiled):
            note = "its calls ran side by side (the option `fork`), and the program of these calls is "
            note += (
                "another one" if compiled.tasks is not None else "not there: `fork`, or another option, leaves it out"
            )
            raise refused(path, "was written by another program", note)
        paused = paused.described(compiled.args(given))
        if not paused.fits(arrays):
            raise checkpoint_file.unreadable(path, "its arrays are not those of such a state")
        return Run(name, compiled, given, paused.restored(arrays), digest)
