"""Derivatives of a run, as operations of JAX.

    Run ── jvp ──> RecordedRun (the run, and its tape) and Tangent (linear) ── transpose ──> Backward

Forward mode is JAX's own, of the machine's loop. Reverse mode undoes the records of the tape (`tape/plan.py`,
`tape/backward_machine.py`).
Forward over reverse works by JAX's forward mode of `RecordedRun` and `Backward`; reverse over reverse is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import jax

from pcbatch.ir.def_use import reads, writes
from pcbatch.transforms.backward import Backward
from pcbatch.transforms.failure_callback import failure_mode, notify_if
from pcbatch.transforms.primitive.derived import Jvp, at_once, batch_tangents, is_inexact, linear_jvp
from pcbatch.transforms.primitive.errors import blaming, refuse_reverse
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
    foreign_tape: bool = False  # the tape is that of another run: there is no transpose
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
        return Jvp(self.run, self.moved).lower(*args[:count], *args[count + len(self._keys) :])

    def impl(self, *args: Any) -> Sequence[Any]:
        return run_compiled(self, self.executable, self.run.lanes, *args)

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any]:
        return [x.to_tangent_aval() for x in types_of(self.run, avals[: len(self.moved)]) if is_inexact(x)]

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        count, keys = len(self.moved), self._keys
        first = count + len(keys)  # tangent
        if all(axis is None for axis in axes[:first]):
            return at_once(self, size, axes)
        forward = (*axes[:count], *axes[first:])
        batched = batch_tangents(self._of_run, self.run, self.moved, size, forward)
        if self.tape is not None:
            assert isinstance(batched.operation, Tangent)
            # The tape can be that of the folded run only if its elements were recorded together.
            head = axes[count + keys.index(HEAD)] if HEAD in keys else None
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
        return outs, linear_jvp(self, len(self.moved) + len(self._keys), primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        count = len(self.moved)
        first = count + len(self._keys)  # tangent
        if any(x is None for x in args[:first]):
            raise refuse_reverse()
        if self.tape is None or self.foreign_tape:
            raise self.no_tape or refuse_reverse()
        operation = Backward(self.run, self.moved, self.tape, remat=isinstance(self._recorder, RematRun))
        of_results = self._notifying(operation.cotangents(cotangents), args[count:first])
        of_arguments = iter(bind(operation, *args[:first], *of_results))
        return [None] * first + [next(of_arguments) for _ in range(sum(self.moved))]

    def _notifying(self, cotangents: list[Any], parts: Sequence[Any]) -> list[Any]:
        """Return the cotangents, in a program that warns or raises if the tape was full."""
        recorder = self._recorder
        if not isinstance(recorder, RecordedRun) or not (cotangents and recorder.tape.blocks):
            return cotangents
        tape = dict(zip(recorder.keys, parts, strict=True))
        flags = [tape[key] for key in (FULL, STATUS, *(block.count for block in recorder.tape.blocks))]
        notice = tape_notice(self.executable, recorder.tape)
        return notify_if(notice, failure_mode(self.executable.options), flags, cotangents)


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
