"""Derivatives of a run, as operations of JAX.

    Run ── jvp ──> RecordedRun (the run, and its tape) and Tangent (linear) ── transpose ──> Backward

Forward mode is JAX's own, of the machine's loop. Reverse mode undoes the records of the tape (`tape/plan.py`,
`tape/backward_machine.py`). Forward over reverse is JAX's forward mode of `RecordedRun` and `Backward`.

Reverse mode of derivatives needs no other machine. Let `f` be the run and `g(x, ct) = J(x)^T ct` its gradient. The
tangent of `g` is `H(x, ct) u + J(x)^T u_ct`. Its transpose maps `v` to `H(x, ct) v`, because the Hessian `H` of
`<ct, f(x)>` is symmetric, and to `J(x) v`: forward over reverse, and forward mode. The tape is a function of `x`, so
its part of the derivative is in that of `x`, and its own cotangents are zero (`Operation.pullback`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import or_
from typing import TYPE_CHECKING, Any, cast

import jax

from pcbatch.ir.def_use import reads, writes
from pcbatch.transforms.backward import Backward, is_float_variable
from pcbatch.transforms.failure_callback import failure_mode, notify_if
from pcbatch.transforms.primitive.derived import Jvp, at_once, batch_tangents, is_inexact, linear_jvp, one_by_one
from pcbatch.transforms.primitive.errors import blaming, not_linear
from pcbatch.transforms.primitive.operation import Axis, BatchedOperation, Operation, bind, types_of
from pcbatch.transforms.recorded_run import FULL, RecordedRun, RunOperation, folded_part, run_compiled, tape_notice
from pcbatch.transforms.remat_run import RematRun, recorder_of
from pcbatch.transforms.tape.plan import HEAD, STATUS, Tape, plan_tape

if TYPE_CHECKING:
    from pcbatch.transforms.run import Run, UnsharingProgram

# The linear part


@dataclass(frozen=True, repr=False)
class Tangent(RunOperation):
    """The tangents of a run, which are linear in the tangents of its arguments.

    Operands: the arguments of the run, the parts of its tape (if there is one), and the tangents of those arguments
    that are `moved`. Results: the tangents of the floating results. Forward mode does not read the tape; it is among
    the operands for the transpose.
    """

    run: Run
    moved: tuple[bool, ...]
    tape: Tape | None
    no_tape: Exception | None = field(default=None, compare=False)  # the reason for which there is none
    foreign_tape: bool = False  # the tape is that of another run: the transpose records again
    of_tape: bool = False  # the tangents of the floating parts of the tape are results, too
    name: str = "tangents of run"
    differentiates = True

    @property
    def _recorder(self) -> RecordedRun | RematRun | None:
        return None if self.tape is None else recorder_of(self.run, self.tape)

    @property
    def _keys(self) -> tuple[str, ...]:
        """The keys of the operands that are parts of the tape."""
        return () if self._recorder is None else self._recorder.keys

    def lower(self, *args: Any) -> Sequence[Any]:
        count = len(self.moved)
        first = count + len(self._keys)
        source: Operation = self.run
        if self.of_tape:
            assert self._recorder is not None
            source = self._recorder.again(dict(zip(self._keys, args[count:first], strict=True)))
        return Jvp(source, self.moved).lower(*args[:count], *args[first:])

    def impl(self, *args: Any) -> Sequence[Any]:
        return run_compiled(self, self.executable, self.run.lanes, *args)

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any]:
        count = len(self.moved)
        parts = avals[count : count + len(self._keys)] if self.of_tape else ()
        return [x.to_tangent_aval() for x in (*types_of(self.run, avals[:count]), *parts) if is_inexact(x)]

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        count, keys = len(self.moved), self._keys
        first = count + len(keys)  # tangent
        if all(axis is None for axis in axes[:first]):
            return at_once(self, size, axes)
        forward, recorder = (*axes[:count], *axes[first:]), self._recorder
        batched = batch_tangents(self._of_run, self.run, self.moved, size, forward)
        if recorder is not None:
            assert isinstance(batched.operation, Tangent)
            # The tape can be that of the folded run only if its elements were recorded together.
            head = axes[count + keys.index(HEAD)] if HEAD in keys else None
            if head is None or batched.operation.run.program != self.run.program:
                if self.of_tape:
                    return one_by_one(self, size, axes)
                batched = replace(batched, operation=replace(batched.operation, foreign_tape=True))
            elif self.of_tape:
                batched = batch_tangents(self._of_run, recorder, self.moved, size, forward)

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if count <= k < first:
                return folded_part(keys[k - count], x, axis, size)
            return batched.operand(k if k < count else k - len(keys), x, axis)

        return replace(batched, operand=operand)

    def _of_run(self, operation: Operation) -> Tangent:
        # A `Run` is batched into a `Run`, and one that is recorded into another.
        return replace(self, run=operation.run if isinstance(operation, RecordedRun) else cast("Run", operation))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, linear_jvp(self, len(self.moved) + len(self._keys), primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        first = len(self.moved) + len(self._keys)  # tangent
        if any(x is None for x in args[:first]):
            raise not_linear()
        return self.pullback(cotangents, args, [x is None for x in args])

    def pullback(self, cotangents: Sequence[Any], args: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        if self.no_tape is not None:
            raise self.no_tape
        count = len(self.moved)
        first = count + len(self._keys)  # tangent
        of_tangents = iter(wanted[first:])
        linear = [is_moved and next(of_tangents) for is_moved in self.moved]
        taped = Taped.of(self.run, None if self.foreign_tape else self.tape, args[:first], [*map(or_, wanted, linear)])
        # Only the value has cotangents: where the tape has some, they are zeros that JAX has made.
        back: list[Any] = [None] * count
        if any(wanted[:count]):
            of_parts = taped.tangents(self.moved, args[first:])[1]
            back = taped.tangents_of_backward(wanted[:count], cotangents, self.moved, args[first:], of_parts)
        of_linear = taped.backward(linear, cotangents) if any(linear) else back
        moved = [ct for ct, is_moved in zip(of_linear, self.moved, strict=True) if is_moved]
        return [*back, *[None] * len(self._keys), *moved]


# A run with its tape


@dataclass(frozen=True, eq=False)
class Taped:
    """A run whose tape is at hand: `args` are its arguments, then the parts of the tape."""

    run: Run
    tape: Tape
    args: Sequence[Any]

    @staticmethod
    def of(run: Run, tape: Tape | None, args: Sequence[Any], moved: Sequence[bool]) -> Taped:
        """The run with this tape, or recorded again if the tape does not serve the gradient of what is `moved`."""
        if tape is not None and wanted(run, moved) <= tape.shared:
            return Taped(run, tape, args)
        with blaming(run.steps):
            tape = tape_of(run.program, wanted(run, moved))
        primals = args[: len(moved)]
        recorder = recorder_of(run, tape)
        if isinstance(recorder, RecordedRun):  # lanes have printed
            recorder = replace(recorder, silent=True)
        return Taped(run, tape, [*primals, *recorder.split(bind(recorder, *primals))[1].values()])

    @property
    def _recorder(self) -> RecordedRun | RematRun:
        return recorder_of(self.run, self.tape)

    @property
    def _parts(self) -> Sequence[Any]:
        return self.args[len(self.args) - len(self._recorder.keys) :]

    def backward(self, moved: Sequence[bool], cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of the arguments that are `moved`, from those of the floating results of the run."""
        operation = self._backward(moved)
        return _by_argument(moved, bind(operation, *self.args, *self._notifying(operation.cotangents(cotangents))))

    def tangents(self, moved: Sequence[bool], of_args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The tangents of the floating results of the run, and those of the floating parts of the tape."""
        outs = bind(Tangent(self.run, tuple(moved), self.tape, of_tape=True), *self.args, *of_args)
        count = len(outs) - sum(map(is_inexact, self._parts))
        return outs[:count], outs[count:]

    def tangents_of_backward(
        self,
        wanted: Sequence[bool],
        cotangents: Sequence[Any],
        moved: Sequence[bool],
        of_args: Sequence[Any],
        of_parts: Sequence[Any],
    ) -> list[Any]:
        """The tangents of the cotangents of the arguments that are `wanted`. `moved`, `of_args` and `of_parts` are the
        tangents of the arguments and of the floating parts of the tape."""
        operation = self._backward(wanted)
        of_results = self._notifying(operation.cotangents(cotangents))
        flags = (*moved, *map(is_inexact, self._parts), *(False for _ in of_results))
        return _by_argument(wanted, bind(Jvp(operation, flags), *self.args, *of_results, *of_args, *of_parts))

    def _backward(self, moved: Sequence[bool]) -> Backward:
        return Backward(self.run, tuple(moved), self.tape, remat=isinstance(self._recorder, RematRun))

    def _notifying(self, cotangents: list[Any]) -> list[Any]:
        """Return the cotangents, in a program that warns or raises if the tape was full."""
        recorder = self._recorder
        if not isinstance(recorder, RecordedRun) or not (cotangents and recorder.tape.blocks):
            return cotangents
        tape = dict(zip(recorder.keys, self._parts, strict=True))
        flags = [tape[key] for key in (FULL, STATUS, *(block.count for block in recorder.tape.blocks))]
        executable = self.run.program.executable
        return notify_if(tape_notice(executable, recorder.tape), failure_mode(executable.options), flags, cotangents)


def _by_argument(moved: Sequence[bool], of_moved: Sequence[Any]) -> list[Any]:
    values = iter(of_moved)
    return [next(values) if is_moved else None for is_moved in moved]


# From a run to its derivatives


def jvp_rule(run: Run, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], list[Any]]:
    """The results of a run, and their tangents; None where a result has none."""
    moved = tuple(t is not None for t in tangents)
    of_moved = [t for t in tangents if t is not None]
    tape, no_tape = None, None
    if any(isinstance(t, jax.core.Tracer) for t in of_moved):  # else nothing can ask for a transpose
        try:
            with blaming(run.steps):
                tape = tape_of(run.program, wanted(run, moved))
        except Exception as error:  # raised by the transpose: forward mode needs no tape
            no_tape = error
    if tape is None:
        outs = bind(run, *primals)
        parts: list[Any] = []
    else:
        recorder = recorder_of(run, tape)
        outs, by_key = recorder.split(bind(recorder, *primals))
        parts = list(by_key.values())
    linear = iter(bind(Tangent(run, moved, tape, no_tape), *primals, *parts, *of_moved))
    return outs, [next(linear) if is_inexact(x) else None for x in outs]


def recorded_jvp_rule(
    recorder: RecordedRun | RematRun, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], list[Any]]:
    """The results of a run that is recorded, with the parts of its tape, and their tangents."""
    outs = bind(recorder, *primals)
    taped = Taped(recorder.run, recorder.tape, [*primals, *recorder.split(outs)[1].values()])
    moved = [t is not None for t in tangents]
    of_results, of_parts = taped.tangents(moved, [t for t in tangents if t is not None])
    of_outs = iter((*of_results, *of_parts))
    return outs, [next(of_outs) if is_inexact(x) else None for x in outs]


def run_pullback(run: Run, cotangents: Sequence[Any], args: Sequence[Any], moved: Sequence[bool]) -> list[Any]:
    """The rule `Operation.pullback` of a run, recorded or not."""
    results = run.steps.results
    of_floats = [ct for v, ct in zip(results, cotangents, strict=False) if is_float_variable(run.steps, v)]
    return Taped.of(run, None, args, moved).backward(moved, of_floats)


def backward_pullback(
    operation: Backward, cotangents: Sequence[Any], args: Sequence[Any], moved: Sequence[bool]
) -> list[Any]:
    """The rule `Operation.pullback` of a backward run."""
    count, first = len(operation.moved), len(operation.moved) + len(operation.keys)
    of_moved = _by_argument(operation.moved, cotangents)
    forward = [v is not None for v in of_moved]
    if not any(forward):
        return [None] * len(args)
    directions = [v for v in of_moved if v is not None]
    of_args: list[Any] = [None] * count
    if any(moved[:count]):
        taped = Taped.of(operation.run, operation.tape, args[:first], moved[:count])
        of_results, of_parts = taped.tangents(forward, directions)
        of_args = taped.tangents_of_backward(moved[:count], args[first:], forward, directions, of_parts)
    else:
        of_results = bind(Tangent(operation.run, tuple(forward), operation.tape), *args[:first], *directions)
    pairs = zip(of_results, moved[first:], strict=False)
    return [*of_args, *[None] * len(operation.keys), *(v if is_moved else None for v, is_moved in pairs)]


def wanted(run: Run, moved: Sequence[bool]) -> frozenset[str]:
    """The shared variables that the cotangents of the arguments that are moved go through."""
    program = run.program.executable.program
    variables = {
        v for v, mapped, is_moved in zip(run.names, run.mapped, moved, strict=False) if is_moved and not mapped
    }
    for op in program.prologue:
        if variables & set(reads(op)):
            variables |= set(writes(op))
    return frozenset(variables)


@lru_cache(maxsize=256)
def tape_of(program: UnsharingProgram, shared: frozenset[str]) -> Tape:
    """The plan of a program's tape, for gradients that reach the shared variables `shared`."""
    return plan_tape(program.executable.smooth.layout, shared)
