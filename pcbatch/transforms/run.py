"""A run of the machine inside a trace: one operation, that `vmap` folds into more lanes."""

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
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.sharding.ambient_mesh import trace_without_mesh
from pcbatch.runtime.sharding.custom_partitioning import split_by_xla
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding, ShardedArguments
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks, no_donation, non_finite_lanes, replaying, unsought
from pcbatch.transforms import tangent
from pcbatch.transforms.primitive.batching import Axis, BatchedOperation
from pcbatch.transforms.primitive.jitted import jitted
from pcbatch.transforms.primitive.jvp import not_linear
from pcbatch.transforms.primitive.lane_folding import fold_lanes, repeat_lanes, unfolded_outs
from pcbatch.transforms.primitive.operation import bind
from pcbatch.transforms.recorded_run import RecordedRun, run_growing_tape

PER_LANE = ("values", "status", "pc", "depths", "back", "shown")  # fields of an outcome with a value for each lane


@dataclass(frozen=True)
class UnsharingProgram:
    """An executable, and how to get that of the same function with less that all lanes share."""

    executable: PcExecutable
    unshared: Callable[[frozenset[str]], UnsharingProgram] = field(
        compare=False
    )  # of arguments that lanes no longer share


@dataclass(frozen=True, repr=False)
class Run:
    """`lanes` lanes of a program to their end. Its operands are the arguments `names`, of which those that are `mapped`
    have lanes in front, and, if some lanes have no work, the number of those that have (`ends`)."""

    program: UnsharingProgram
    names: tuple[str, ...]
    mapped: tuple[bool, ...]
    lanes: int
    through: int | None = None  # the width of the machine, if inputs are to wait for lanes
    ends: bool = False
    smooth: bool = False  # for JAX's forward mode
    elements: int = 1  # of `vmap`s that are folded into the lanes
    name: str = "run"
    differentiates = False

    def __repr__(self) -> str:
        return f"{self.name}[lanes={self.lanes}]"

    @property
    def steps(self) -> StackProgram:
        return self.program.executable.program

    def outcome(self, *args: Any) -> RawResult:
        """The run, in JAX's operations."""
        return self.program.executable.run_traced(self.given(*args), self.lanes, self.through, self.smooth)

    def given(self, *args: Any) -> ShardedArguments:
        """The operands as arguments of a machine."""
        pairs = list(zip(self.names, self.mapped, args, strict=False))
        end = args[-1] if self.ends else None
        mapped = {v: x for v, here, x in pairs if here}
        names = None  # lanes that print are called what they are called in their element
        if self.program.executable.prints:
            names = jnp.arange(self.lanes, dtype=jnp.int32) // self.elements
        return ShardedArguments(mapped, {v: x for v, here, x in pairs if not here}, end, names)

    @property
    def splits(self) -> bool:
        """May XLA split it by lanes, where nobody has said where they run?"""
        return not (self.ends or self.smooth or self.program.executable.prints or is_symbolic(self.lanes))

    def lower(self, *args: Any) -> Sequence[Any]:
        if not self.splits:
            return jax.tree.leaves(self.outcome(*args))
        executable, given = self.program.executable, self.given(*args)

        def some(args: Mapping[str, Any], lanes: int) -> RawResult:
            return executable.run_traced(ShardedArguments(*executable.split(args), None, None), lanes, self.through)

        return jax.tree.leaves(split_by_xla(some, given.mapped, given.common, self.lanes))

    def impl(self, *args: Any) -> Sequence[Any]:
        if not debug_checks():
            return self._now(*args)
        # Lanes that fail give NaN on purpose: their failure is told by those who have called.
        if replaying():
            with unsought():
                outs = list(jitted(self)(*args))  # with the depth that stacks had there
            if np.any(self._outcome(outs).status):
                return outs
        try:
            return self._now(*args)
        except FloatingPointError:
            with unsought():
                outs = list(self._now(*args))
            if non_finite_lanes(self._outcome(outs)):
                raise
            return outs

    def _outcome(self, outs: Sequence[Any]) -> RawResult:
        outcome: RawResult = jax.tree.unflatten(self.structure(), outs)
        return outcome

    def _now(self, *args: Any) -> Sequence[Any]:
        if self.ends or (self.elements > 1 and self.program.executable.prints):
            return list(jitted(self)(*args))
        executable, given = self.program.executable, dict(zip(self.names, args, strict=True))
        if self.through is not None:
            return jax.tree.leaves(executable.map(given, self.lanes, self.through))
        with no_donation():  # tangents are asked for with the same arguments
            return jax.tree.leaves(executable.run(given, self.lanes))

    def abstract_eval(self, avals: Sequence[Any]) -> None:
        """As traced."""

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        run = self.folded(size, axes)
        return BatchedOperation(
            run,
            lambda k, x, axis: self.folded_operand(run, size, k, x, axis),
            lambda outs: unfolded_outs(outs, self.per_lane(), size),
            lambda outs: unfolded_outs(outs, [True] * len(outs), size),
        )

    def folded(self, size: int, axes: Sequence[Axis]) -> Run:
        """The run of `size` times as many lanes. What lanes share and elements do not is no longer shared."""
        flags = zip(self.names, self.mapped, axes, strict=False)
        apart = {v for v, here, axis in flags if not here and axis is not None}
        mapped = tuple(here or v in apart for v, here in zip(self.names, self.mapped, strict=True))
        program = self.program.unshared(frozenset(apart)) if apart else self.program
        return replace(self, program=program, mapped=mapped, lanes=self.lanes * size, elements=self.elements * size)

    def folded_operand(self, run: Run, size: int, k: int, x: Any, axis: Axis) -> Any:
        """An operand of the folded run."""
        if k == len(self.names):
            return x * size  # how many lanes have work
        if self.mapped[k]:
            return fold_lanes(x, axis, size)
        return repeat_lanes(x, axis, self.lanes, size) if run.mapped[k] else x

    def structure(self) -> Any:
        """The tree that the results are the leaves of."""
        return self.program.executable.traced_structure()

    def per_lane(self) -> list[bool]:
        """Which results have a value for each lane."""
        outcome = jax.tree.unflatten(self.structure(), [False] * self.structure().num_leaves)
        marked = {name: jax.tree.map(lambda _: True, getattr(outcome, name)) for name in PER_LANE}
        return jax.tree.leaves(replace(outcome, **marked))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return tangent.jvp_rule(self, primals, tangents)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        raise not_linear()


def traced_run(
    program: UnsharingProgram, args: Mapping[str, Any], lanes: int, through: int | None = None, mesh: Devices = None
) -> RawResult:
    """A run of a call that JAX traces; `through`: the width of the machine, if inputs are to wait for lanes."""
    executable = program.executable
    spread = LaneSharding(mesh, lanes)
    if spread.over is None:
        return _applied(program, *executable.split(args), lanes, through)

    def run(given: ShardedArguments, common: Mapping[str, Any]) -> RawResult:
        return executable.run_traced(replace(given, common=common), spread.each, through)

    def body(given: ShardedArguments, common: Mapping[str, Any]) -> RawResult:
        if given.names is not None:  # what lanes are called is known to no operation
            told: RawResult = trace_without_mesh(run, given, common)
            return told
        return _applied(program, given.mapped, common, spread.each, through, given.end)

    def whole(args: Mapping[str, Any]) -> RawResult:
        dealt = executable.dealt(args, spread)
        outcome: RawResult = spread.around(body, dealt.without_common(), dealt.common)
        return executable.collected(outcome, spread=spread)

    # Of a mesh that is in types alone, `jit` knows the devices from the arguments.
    run_it: Any = jax.jit(whole) if isinstance(spread.mesh, AbstractMesh) else whole
    outcome: RawResult = run_it(dict(args))
    return outcome


def _applied(
    program: UnsharingProgram,
    mapped: Mapping[str, Any],
    common: Mapping[str, Any],
    lanes: int,
    through: int | None,
    end: Any = None,
) -> RawResult:
    names = (*mapped, *common)
    flags = tuple(v in mapped for v in names)
    run = Run(program, names, flags, lanes, through, end is not None)
    operands = [*mapped.values(), *common.values(), *([] if end is None else [end])]
    outcome: RawResult = jax.tree.unflatten(run.structure(), bind(run, *map(jnp.asarray, operands)))
    return outcome


def records_of(program: UnsharingProgram, args: Mapping[str, Any], lanes: int) -> list[tuple[str, int, int]]:
    """What a gradient with respect to all floating arguments records: labels of blocks, records, and bytes of each."""
    mapped, common = program.executable.split(args)
    names, operands = (*mapped, *common), [*mapped.values(), *common.values()]
    run = Run(program, names, tuple(v in mapped for v in names), lanes)
    moved = tuple(bool(jnp.issubdtype(x.dtype, jnp.inexact)) for x in operands)
    plan = tangent.tape_of(program, tangent.wanted(run, moved))
    taped = RecordedRun(run, plan)
    left = taped.split(run_growing_tape(taped, *operands))[1]
    return [(block.code.block.label, int(left[block.count]), block.bytes()) for block in plan.blocks]
