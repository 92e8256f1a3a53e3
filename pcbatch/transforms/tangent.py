"""Derivatives of a run, as operations of JAX.

    Run ── jvp ──> RecordedRun (the run, and its tape) and Tangent (linear) ── transpose ──> Backward
    Backward ── jvp ──> Jvp(GradientRun) ── transpose ──> Jvp(GradientRun)

Forward mode is JAX's own, of the machine's loop. Reverse mode undoes the records of the tape (`tape/tape_plan.py`,
`tape/backward_machine.py`). A derivative of a gradient is the product of a symmetric matrix and a vector, in either
mode (`gradient_run.py`). No tape has a tangent: it is a function of the arguments of its run, and the derivative
through it is in that of the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import or_
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp

from pcbatch.transforms.backward import Backward
from pcbatch.transforms.failure_callback import failure_mode, notify_if
from pcbatch.transforms.gradient_run import GradientRun
from pcbatch.transforms.primitive.derived import at_once, batch_tangents, is_inexact, linear_jvp, tangents_of
from pcbatch.transforms.primitive.errors import blaming, not_linear
from pcbatch.transforms.primitive.operation import (
    Axis,
    BatchedOperation,
    Operation,
    bind,
    jvp_rule,
    pullback_rule,
    transpose_rule,
    types_of,
)
from pcbatch.transforms.recorded_run import (
    FULL,
    RecordedRun,
    RerunRun,
    TapedOperation,
    TapingRun,
    by_reruns,
    folded_part,
    recorder_of,
    run_compiled,
    tape_notice,
)
from pcbatch.transforms.remat_run import RematRun
from pcbatch.transforms.tape.lane_undoing import LaneUndoing, RerunTape
from pcbatch.transforms.tape.tape_plan import HEAD, STATUS, Tape, computed_of, plan_tape
from pcbatch.transforms.tasks.backward_run import TaskBackward
from pcbatch.transforms.tasks.recorded_run import TaskRecordedRun, by_tasks, task_tape_of
from pcbatch.transforms.tasks.task_tape import TODO, TaskTape

if TYPE_CHECKING:
    from pcbatch.transforms.run import Run, UnsharingProgram

# The linear part


@dataclass(frozen=True, repr=False)
class Tangent(TapedOperation):
    """The tangents of a run, which are linear in the tangents of its arguments.

    Operands: the arguments of the run, the parts of its tape (if there is one), and the tangents of those arguments
    that are `moved`. Results: the tangents of the floating results. Forward mode does not read the tape; it is among
    the operands for the transpose.
    """

    run: Run
    moved: tuple[bool, ...]
    tape: Tape | TaskTape | None
    no_tape: Exception | None = field(default=None, compare=False)  # the reason for which there is none
    foreign_tape: bool = False  # the tape is that of another run: the transpose records again
    name: str = "tangents of run"
    differentiates = True

    def lower(self, *args: Any) -> Sequence[Any]:
        given, _, of_moved = self.operands(args)
        return tangents_of(replace(self.run, smooth=True).lower, self.moved, given, of_moved)

    def impl(self, *args: Any) -> Sequence[Any]:
        return run_compiled(self, self.executable, self.run.lanes, *args)

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any]:
        return [x.to_tangent_aval() for x in types_of(self.run, avals[: len(self.moved)]) if is_inexact(x)]

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        count, first, keys = len(self.moved), self.first, self.keys
        if all(axis is None for axis in axes[:first]):
            return at_once(self, size, axes)
        forward = (*axes[:count], *axes[first:])
        batched = batch_tangents(self._of_run, self.run, self.moved, size, forward)
        if self.tape is not None:
            assert isinstance(batched.operation, Tangent)
            # The tape can be that of the folded run only if its elements were recorded together.
            by_lane = [key for key in (HEAD, TODO, STATUS) if key in keys]
            head = axes[count + keys.index(by_lane[0])] if by_lane else None
            if head is None or batched.operation.run.program != self.run.program:
                batched = replace(batched, operation=replace(batched.operation, foreign_tape=True))

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if count <= k < first:
                return folded_part(keys[k - count], x, axis, size)
            return batched.operand(k if k < count else k - len(keys), x, axis)

        return replace(batched, operand=operand)

    def _of_run(self, run: Operation) -> Tangent:
        return replace(self, run=cast("Run", run))  # a `Run` is batched into a `Run`

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, linear_jvp(self, self.first, primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        if any(x is None for x in args[: self.first]):
            raise not_linear()
        return self.pullback(cotangents, args, [x is None for x in args])

    def for_tangents(self) -> Tangent:
        return self

    def pullback(self, cotangents: Sequence[Any], args: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        if self.no_tape is not None:
            raise self.no_tape
        count, first = len(self.moved), self.first
        of_tangents = iter(wanted[first:])
        linear = [is_moved and next(of_tangents) for is_moved in self.moved]
        taped = Taped.of(self.run, None if self.foreign_tape else self.tape, args[:first], [*map(or_, wanted, linear)])
        back: list[Any] = [None] * count
        if any(wanted[:count]):
            of_args = by_argument(self.moved, args[first:])
            back = taped.tangents(wanted[:count], taped.cotangents(cotangents), of_args)[1]
        of_linear = taped.backward(linear, cotangents) if any(linear) else back
        moved = [ct for ct, is_moved in zip(of_linear, self.moved, strict=True) if is_moved]
        return [*back, *[None] * (first - count), *moved]


# A run with its tape


@dataclass(frozen=True, eq=False)
class Taped:
    """A run whose tape is at hand: `args` are its arguments, then the parts of the tape."""

    run: Run
    tape: Tape | TaskTape
    args: Sequence[Any]

    @staticmethod
    def of(
        run: Run, tape: Tape | TaskTape | None, args: Sequence[Any], moved: Sequence[bool], by_lanes: bool = False
    ) -> Taped:
        """The run with this tape, or recorded again if the tape does not serve the gradient of what is `moved`."""
        if isinstance(tape, TaskTape) and not by_lanes and task_tape_of(run, moved).moved <= tape.moved:
            return Taped(run, tape, args)
        if isinstance(tape, Tape) and wanted(run, moved) <= tape.shared:
            return Taped(run, tape, args)
        with blaming(run.steps):
            tape = tape_of(run.program, wanted(run, moved)) if by_lanes else _planned(run, moved)
        primals = args[: len(moved)]
        recorder = recorder_of(tape, run)
        if isinstance(recorder, RecordedRun):  # lanes have printed
            recorder = replace(recorder, silent=True)
        return Taped(run, tape, [*primals, *recorder.split(bind(recorder, *primals))[1].values()])

    @cached_property
    def recorder(self) -> TapingRun:
        """The run that has left the tape."""
        return recorder_of(self.tape, self.run)

    @property
    def _parts(self) -> dict[str, Any]:
        keys = self.recorder.keys
        return dict(zip(keys, self.args[len(self.args) - len(keys) :], strict=True))

    def cotangents(self, cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of the floating leaves of the value, from those of all floating results of the run."""
        return self._backward(()).cotangents(cotangents)

    def backward(self, moved: Sequence[bool], cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of the arguments that are `moved`, from those of the floating results of the run."""
        outs = bind(self._backward(moved), *self.args, *self._notifying(self.cotangents(cotangents)))
        return by_argument(moved, outs)

    def tangents(
        self,
        wanted: Sequence[bool],
        cotangents: Sequence[Any],
        of_args: Sequence[Any],
        of_cotangents: Sequence[Any] = (),
    ) -> tuple[list[Any], list[Any]]:
        """The tangents of the value, and of the cotangents of the arguments that are `wanted`. `cotangents` are those
        of the floating leaves of the value; tangents are None where they are zero."""
        recorder, args = self.recorder, self.args[: len(self.args) - len(self.recorder.keys)]
        if not isinstance(recorder, RecordedRun | RematRun):  # derivatives of gradients are made by lanes together
            lanes = Taped.of(self.run, None, args, wanted, by_lanes=True)
            return lanes.tangents(wanted, cotangents, of_args, of_cotangents)
        assert isinstance(self.tape, Tape)
        operation = GradientRun(self.run, tuple(wanted), self.tape, recorder.room_of(self._parts))
        of_cotangents = of_cotangents or [None] * len(cotangents)
        return operation.tangents(args, self._notifying(list(cotangents)), of_args, of_cotangents)

    def _backward(self, moved: Sequence[bool]) -> Backward:
        if isinstance(self.tape, TaskTape):
            again = tape_of(self.run.program, wanted(self.run, moved))
            return TaskBackward(self.run, tuple(moved), self.tape, again=again)
        return Backward(self.run, tuple(moved), self.tape)

    def _notifying(self, cotangents: list[Any]) -> list[Any]:
        """Return the cotangents, in a program that raises if the tape was full, or warns where that is asked for.

        A lane that fails is one of many; a tape that is too small leaves nothing of a gradient, and a training that
        goes on with NaN is lost.
        """
        recorder = self.recorder
        if isinstance(recorder, RematRun | RerunRun) or not (cotangents and recorder.tape.blocks):
            return cotangents
        if isinstance(recorder, TaskRecordedRun) and not recorder.trusts:
            return cotangents
        each = TODO if isinstance(recorder, TaskRecordedRun) else STATUS
        tape = self._parts
        flags = [tape[key] for key in (FULL, each, *(block.count for block in recorder.tape.blocks))]
        executable = self.run.program.executable
        mode = failure_mode(executable.options, usual="error")
        return notify_if(tape_notice(executable, recorder.tape), mode, flags, cotangents)


def by_argument(moved: Sequence[bool], of_moved: Sequence[Any]) -> list[Any]:
    """The values of those arguments that are `moved`; None for the others."""
    values = iter(of_moved)
    return [next(values) if is_moved else None for is_moved in moved]


# From a run to its derivatives


def jvp_of_run(run: Run, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], list[Any]]:
    """The results of a run, and their tangents; None where a result has none."""
    moved = tuple(t is not None for t in tangents)
    of_moved = [t for t in tangents if t is not None]
    tape: Tape | TaskTape | None = None
    no_tape = None
    if any(isinstance(t, jax.core.Tracer) for t in of_moved):  # else nothing can ask for a transpose
        try:
            with blaming(run.steps):
                tape = _planned(run, moved)
        except Exception as error:  # raised by the transpose: forward mode needs no tape
            no_tape = error
    if tape is None:
        outs = bind(run, *primals)
        parts: list[Any] = []
    else:
        recorder = recorder_of(tape, run)
        outs, by_key = recorder.split(bind(recorder, *primals))
        parts = list(by_key.values())
    linear = iter(bind(Tangent(run, moved, tape, no_tape), *primals, *parts, *of_moved))
    return outs, [next(linear) if is_inexact(x) else None for x in outs]


@jvp_rule.register(TapingRun)
def _jvp_of_recorder(
    recorder: TapingRun, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], list[Any]]:
    """The results of a run that is recorded, with the parts of its tape, and their tangents: the tape has none."""
    outs = bind(recorder, *primals)
    leaves, parts = recorder.split(outs)
    moved = tuple(t is not None for t in tangents)
    of_moved = [t for t in tangents if t is not None]
    linear = iter(bind(Tangent(recorder.run, moved, recorder.tape), *primals, *parts.values(), *of_moved))
    return outs, [*(next(linear) if is_inexact(x) else None for x in leaves), *(None for _ in parts)]


@jvp_rule.register(Backward)
def _jvp_of_backward(
    operation: Backward, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], list[Any]]:
    """The results of a backward run, and their tangents."""
    count, first = len(operation.moved), operation.first
    outs, cotangents = bind(operation, *primals), primals[first:]
    if all(t is None for t in tangents[:count]):  # it is linear in cotangents
        pairs = zip(cotangents, tangents[first:], strict=True)
        return outs, bind(operation, *primals[:first], *(jnp.zeros_like(x) if t is None else t for x, t in pairs))
    taped = Taped(operation.run, operation.tape, primals[:first])
    of_moved = taped.tangents(operation.moved, cotangents, tangents[:count], tangents[first:])[1]
    return outs, [t for t in of_moved if t is not None]


@transpose_rule.register(Backward)
def _transpose_of_backward(operation: Backward, cotangents: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """The tangents of a run, from the cotangents of the results of its backward run."""
    count = operation.first
    if any(x is None for x in args[:count]):
        raise not_linear()
    moved = [x for x, is_moved in zip(args, operation.moved, strict=False) if is_moved]
    tangents = [jnp.zeros_like(x) if ct is None else ct for x, ct in zip(moved, cotangents, strict=True)]
    of_results = bind(Tangent(operation.run, operation.moved, operation.tape), *args[:count], *tangents)
    return [*[None] * count, *of_results[: len(operation.results)]]


@pullback_rule.register(GradientRun)
def _pullback_of_gradient(
    operation: GradientRun, cotangents: Sequence[Any], args: Sequence[Any], moved: Sequence[bool]
) -> list[Any]:
    """The rule `pullback` of a run with its gradient: by its tangents, because its derivative is symmetric."""
    count = len(operation.moved)
    values = len(args) - count
    of_args, of_cotangents = by_argument(operation.moved, cotangents[values:]), cotangents[:values]
    if all(ct is None for ct in cotangents):
        return [None] * len(args)
    if wanted(operation.run, moved[:count]) <= operation.tape.shared:
        same = replace(operation, moved=tuple(moved[:count]))
        of_values, back = same.tangents(args[:count], args[count:], of_args, of_cotangents)
    else:
        taped = Taped.of(operation.run, None, args[:count], moved[:count])
        of_values, back = taped.tangents(moved[:count], args[count:], of_args, of_cotangents)
    return [*back, *(t if is_moved else None for t, is_moved in zip(of_values, moved[count:], strict=True))]


def wanted(run: Run, moved: Sequence[bool]) -> frozenset[str]:
    """The shared variables that the cotangents of the arguments that are moved go through."""
    flags = zip(run.names, run.mapped, moved, strict=False)
    return computed_of({v for v, mapped, is_moved in flags if is_moved and not mapped}, run.steps.prologue)


def _planned(run: Run, moved: Sequence[bool]) -> Tape | TaskTape:
    """The plan of the tape for the gradient of a run by the arguments that are moved."""
    if by_tasks(run):
        return task_tape_of(run, moved)
    rerun = rerun_tape_of(run.program, wanted(run, moved)) if by_reruns(run) else None
    return rerun or tape_of(run.program, wanted(run, moved))


@lru_cache(maxsize=256)
def tape_of(program: UnsharingProgram, shared: frozenset[str]) -> Tape:
    """The plan of a program's tape, for gradients that reach the shared variables `shared`."""
    return plan_tape(program.executable.smooth.layout, shared)


@lru_cache(maxsize=256)
def rerun_tape_of(program: UnsharingProgram, shared: frozenset[str]) -> RerunTape | None:
    """The plan of the tape of each lane, for gradients that reach the shared variables `shared`; None if no native
    function can undo a lane."""
    executable, tape = program.executable, tape_of(program, shared)
    undoing = LaneUndoing.of(executable.smooth.layout, tape)
    return RerunTape(tape.blocks, tape.shared, undoing) if undoing.is_native(executable.stacks.traced()) else None
