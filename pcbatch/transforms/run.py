"""A run of the machine inside a trace: one operation, which `vmap` folds into more lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh

from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.runtime.execute import call_values
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.execute.traced_run import run_traced
from pcbatch.runtime.lowering_platform import lowered_for, lowering_platform
from pcbatch.runtime.sharding.custom_partitioning import split_by_xla
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding, ShardedArguments, trace_without_mesh
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks, no_donation, non_finite_lanes, replaying, unsought
from pcbatch.transforms import tangent
from pcbatch.transforms.primitive.operation import (
    Axis,
    BatchedOperation,
    Operation,
    bind,
    fold_lanes,
    jitted,
    repeat_lanes,
    unfolded_outs,
)
from pcbatch.transforms.recorded_run import RecordedRun
from pcbatch.transforms.tasks.recorded_run import TaskRecordedRun, by_tasks, task_tape_of

PER_LANE = ("values", "status", "pc", "depths", "back", "shown")  # fields of a raw result with a value for each lane


@dataclass(frozen=True)
class UnsharingProgram:
    """A program, and a function that compiles it again with some shared arguments per lane.

    `unshared` takes the names of the arguments that are to be per lane.
    """

    executable: PcExecutable
    unshared: Callable[[frozenset[str]], UnsharingProgram] = field(compare=False)


@dataclass(frozen=True, repr=False)
class Run(Operation):
    """`lanes` lanes of a program to their end.

    Operands: the arguments `names`, of which those that are `mapped` have the lanes as their first axis, and, if
    `ends`, the number of lanes that have work. Results: the leaves of the raw result.
    """

    program: UnsharingProgram
    names: tuple[str, ...]
    mapped: tuple[bool, ...]
    lanes: int
    through: int | None = None  # the width of the machine, if inputs are to wait for lanes
    ends: bool = False
    smooth: bool = False  # run the machine whose frames keep floating numbers as such, for JAX's forward mode
    elements: int = 1  # of `vmap`s that are folded into the lanes
    spread: bool = False  # it is the part of one device of several
    name: str = "run"
    differentiates = False

    def __repr__(self) -> str:
        return f"{self.name}[lanes={self.lanes}]"

    @property
    def steps(self) -> StackProgram:
        return self.program.executable.program

    def raw_result(self, *args: Any) -> RawResult:
        """The run, in JAX's operations."""
        return run_traced(self.program.executable, self.arguments(*args), self.lanes, self.through, self.smooth)

    def arguments(self, *args: Any) -> ShardedArguments:
        """The operands as arguments of a machine."""
        named = list(zip(self.names, self.mapped, args, strict=False))
        end = args[-1] if self.ends else None
        mapped = {v: x for v, is_mapped, x in named if is_mapped}
        names = None  # the numbers that lanes print: those in their element
        if self.program.executable.prints:
            names = jnp.arange(self.lanes, dtype=jnp.int32) // self.elements
        return ShardedArguments(mapped, {v: x for v, is_mapped, x in named if not is_mapped}, end, names)

    @property
    def splits(self) -> bool:
        """Whether XLA may split the run by lanes, if no mesh is given."""
        return not (self.ends or self.smooth or self.program.executable.prints or is_symbolic(self.lanes))

    def lower(self, *args: Any) -> Sequence[Any]:
        if not self.splits:
            return jax.tree.leaves(self.raw_result(*args))
        executable, sharded = self.program.executable, self.arguments(*args)
        platform = lowering_platform()

        def some(args: Mapping[str, Any], lanes: int) -> RawResult:
            with lowered_for(platform):  # XLA asks for parts when the lowering is long over
                given = ShardedArguments(*executable.arguments.split(args), None, None)
                return run_traced(executable, given, lanes, self.through)

        return jax.tree.leaves(split_by_xla(some, sharded.mapped, sharded.common, self.lanes))

    def impl(self, *args: Any) -> Sequence[Any]:
        if not debug_checks():
            return self._run(*args)
        # Lanes that fail give NaN on purpose. The caller reports them; JAX's search must not find them first.
        if replaying():
            with unsought():
                outs = list(jitted(self)(*args))  # with the depth that stacks had there
            if np.any(self._unflatten(outs).status):
                return outs
        try:
            return self._run(*args)
        except FloatingPointError:
            with unsought():
                outs = list(self._run(*args))
            if non_finite_lanes(self._unflatten(outs)):
                raise
            return outs

    def _unflatten(self, outs: Sequence[Any]) -> RawResult:
        raw: RawResult = jax.tree.unflatten(self.structure(), outs)
        return raw

    def _run(self, *args: Any) -> Sequence[Any]:
        if self.ends or (self.elements > 1 and self.program.executable.prints):
            return list(jitted(self)(*args))
        executable, named = self.program.executable, dict(zip(self.names, args, strict=True))
        if self.through is not None:
            return jax.tree.leaves(executable.map(named, self.lanes, self.through))
        with no_donation():  # tangents are computed from the same arguments
            return jax.tree.leaves(executable.run_lanes(named, self.lanes).unpacked())

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        run = self.folded(size, axes)
        return BatchedOperation(
            run,
            lambda k, x, axis: self.folded_operand(run, size, k, x, axis),
            lambda outs: unfolded_outs(outs, self.per_lane(), size),
            lambda outs: unfolded_outs(outs, [True] * len(outs), size),
        )

    def folded(self, size: int, axes: Sequence[Axis]) -> Run:
        """The run of `size` times as many lanes. Shared arguments that differ between elements become per lane."""
        flags = zip(self.names, self.mapped, axes, strict=False)
        unshared = {v for v, is_mapped, axis in flags if not is_mapped and axis is not None}
        mapped = tuple(is_mapped or v in unshared for v, is_mapped in zip(self.names, self.mapped, strict=True))
        program = self.program.unshared(frozenset(unshared)) if unshared else self.program
        return replace(self, program=program, mapped=mapped, lanes=self.lanes * size, elements=self.elements * size)

    def folded_operand(self, run: Run, size: int, k: int, x: Any, axis: Axis) -> Any:
        """Operand `k` of the folded run, from that of this one with the elements along `axis`."""
        if k == len(self.names):
            return x * size  # the number of lanes that have work
        if self.mapped[k]:
            return fold_lanes(x, axis, size)
        return repeat_lanes(x, axis, self.lanes, size) if run.mapped[k] else x

    def structure(self) -> Any:
        """The tree of a raw result, of which the results are the leaves."""
        executable = self.program.executable
        return executable.results.structure(executable.stacks.traced())

    def per_lane(self) -> list[bool]:
        """Whether each result has a value for each lane."""
        flags = jax.tree.unflatten(self.structure(), [False] * self.structure().num_leaves)
        by_lane = {name: jax.tree.map(lambda _: True, getattr(flags, name)) for name in PER_LANE}
        return jax.tree.leaves(replace(flags, **by_lane))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return tangent.jvp_of_run(self, primals, tangents)


def traced_run(
    program: UnsharingProgram, args: Mapping[str, Any], lanes: int, through: int | None = None, mesh: Devices = None
) -> RawResult:
    """Run a call that JAX traces.

    `through`: the number of lanes of the machine, if inputs are to wait for lanes; then `lanes` is that of the inputs.
    """
    executable = program.executable
    sharding = LaneSharding(mesh, lanes)
    if sharding.over is None:
        return _bind_run(program, *executable.arguments.split(args), lanes, through)

    def run(sharded: ShardedArguments, common: Mapping[str, Any]) -> RawResult:
        return run_traced(executable, replace(sharded, common=common), sharding.each, through)

    def body(sharded: ShardedArguments, common: Mapping[str, Any]) -> RawResult:
        if sharded.names is not None:  # no operation has the numbers that lanes print as operands
            raw: RawResult = trace_without_mesh(run, sharded, common)
            return raw
        return _bind_run(program, sharded.mapped, common, sharding.each, through, sharded.end, spread=True)

    def whole(args: Mapping[str, Any]) -> RawResult:
        sharded = executable.arguments.sharded(args, sharding)
        raw: RawResult = sharding.around(body, sharded.without_common(), sharded.common)
        return call_values.collected(raw, sharding)

    # If the mesh is in types alone, `jit` takes the devices from the arguments.
    run_whole: Any = jax.jit(whole) if isinstance(sharding.mesh, AbstractMesh) else whole
    raw: RawResult = run_whole(dict(args))
    return raw


def _bind_run(
    program: UnsharingProgram,
    mapped: Mapping[str, Any],
    shared: Mapping[str, Any],
    lanes: int,
    through: int | None,
    end: Any = None,
    spread: bool = False,
) -> RawResult:
    names = (*mapped, *shared)
    run = Run(program, names, tuple(v in mapped for v in names), lanes, through, end is not None, spread=spread)
    operands = [*mapped.values(), *shared.values(), *([] if end is None else [end])]
    # JAX would differentiate what `asarray` does to an array, too, where there is no `jit` around.
    arrays = (x if isinstance(x, jax.Array) else jnp.asarray(x) for x in operands)
    raw: RawResult = jax.tree.unflatten(run.structure(), bind(run, *arrays))
    return raw


def records_of(
    program: UnsharingProgram, args: Mapping[str, Any], lanes: int
) -> tuple[RawResult, list[tuple[str, int, int]], bool]:
    """Run and record, for a gradient with respect to all floating arguments.

    Returns:
        The result; the label, the number of records and the bytes of a record for each recorded block; and whether they
        are blocks of tasks.
    """
    mapped, shared = program.executable.arguments.split(args)
    names, operands = (*mapped, *shared), [*mapped.values(), *shared.values()]
    run = Run(program, names, tuple(v in mapped for v in names), lanes)
    moved = tuple(bool(jnp.issubdtype(x.dtype, jnp.inexact)) for x in operands)
    recorder: RecordedRun | TaskRecordedRun
    if by_tasks(run):
        recorder = TaskRecordedRun(run, task_tape_of(run, moved))
    else:
        recorder = RecordedRun(run, tangent.tape_of(program, tangent.wanted(run, moved)))
    raw, parts = recorder.recorded(*operands)
    uses = [(block.source.label, int(parts[block.count]), block.bytes()) for block in recorder.tape.blocks]
    return raw, uses, isinstance(recorder, TaskRecordedRun)
