"""Derivatives of a run, as operations of JAX.

    Run ── jvp ──> RecordedRun (the run, and its tape) and Tangent (linear) ── transpose ──> Backward

Forward mode is JAX's own, of the machine's loop. Reverse mode undoes the records of the tape (`tape.py`, `back.py`).
Forward over reverse works by JAX's forward mode of `RecordedRun` and `Backward`; reverse over reverse is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax

from pcbatch.ir.def_use import reads, writes
from pcbatch.transforms.backward import Backward
from pcbatch.transforms.failure_callback import mode_of, told
from pcbatch.transforms.primitive.batching import Axis, BatchedOperation, at_once
from pcbatch.transforms.primitive.errors import blaming
from pcbatch.transforms.primitive.jvp import Jvp, is_inexact, lifted, pushed_linear, refuse
from pcbatch.transforms.primitive.operation import bind, types_of
from pcbatch.transforms.recorded_run import FULL, RecordedRun, RunOperation, folded_part, run_now, tape_notice
from pcbatch.transforms.remat_run import RematRun, recorder_of
from pcbatch.transforms.tape import plan as tape
from pcbatch.transforms.tape.plan import HEAD, STATUS, Tape

# The linear part


@dataclass(frozen=True, repr=False)
class Tangent(RunOperation):
    """Operands: the arguments of a run, the parts of its tape (if there is one), and the tangents of those arguments
    that are `moved`. Gives the tangents of the floating results."""

    run: Any
    moved: tuple[bool, ...]
    tape: Tape | None
    why: Exception | None = field(default=None, compare=False)  # there is no tape
    spoilt: bool = False  # is the tape that of another run?
    name: str = "tangents of run"
    differentiates = True

    @property
    def _args(self) -> int:
        return len(self.moved)

    @property
    def _taped(self) -> RecordedRun | RematRun | None:
        return None if self.tape is None else recorder_of(self.run, self.tape)

    @property
    def _left(self) -> int:
        return 0 if self._taped is None else len(self._taped.keys)

    def lower(self, *args: Any) -> Sequence[Any]:
        count = self._args
        smooth = replace(self.run, smooth=True)
        return Jvp(smooth, self.moved).lower(*args[:count], *args[count + self._left :])

    def impl(self, *args: Any) -> Sequence[Any]:
        return run_now(self, self.executable, self.run.lanes, *args)

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any]:
        return [x.to_tangent_aval() for x in types_of(self.run, avals[: self._args]) if is_inexact(x)]

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        count, left = self._args, self._left
        if all(axis is None for axis in axes[: count + left]):
            return at_once(self, size, axes)
        forward = (*axes[:count], *axes[count + left :])
        found = lifted(lambda run: replace(self, run=run), self.run, self.moved, size, forward)
        if self.tape is not None:
            assert isinstance(found.operation, Tangent)
            keys = recorder_of(self.run, self.tape).keys
            head = axes[count + keys.index(HEAD)] if HEAD in keys else None
            if head is None or found.operation.run.program != self.run.program:
                found = replace(found, operation=replace(found.operation, spoilt=True))

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if count <= k < count + left:
                assert self.tape is not None
                return folded_part(recorder_of(self.run, self.tape).keys[k - count], x, axis, size)
            return found.operand(k if k < count else k - left, x, axis)

        return replace(found, operand=operand)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, pushed_linear(self, self._args + self._left, primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        count = self._args
        if any(x is None for x in args[: count + self._left]):
            raise refuse()
        if self.tape is None or self.spoilt:
            raise self.why or refuse()
        operation = Backward(self.run, self.moved, self.tape, marked=isinstance(self._taped, RematRun))
        given = self._watched(operation.cotangents(cotangents), args[count : count + self._left])
        found = iter(bind(operation, *args[: count + self._left], *given))
        return [None] * (count + self._left) + [next(found) for _ in range(sum(self.moved))]

    def _watched(self, cotangents: list[Any], left: Sequence[Any]) -> list[Any]:
        """The cotangents; where the tape was full, people are told."""
        taped = self._taped
        if not isinstance(taped, RecordedRun) or not (cotangents and taped.tape.blocks):
            return cotangents
        known = dict(zip(taped.keys, left, strict=True))
        flags = [known[key] for key in (FULL, STATUS, *(block.count for block in taped.tape.blocks))]
        return told(tape_notice(self.executable, taped.tape), mode_of(self.executable.options), flags, cotangents)


# From a run to its derivatives


def jvp_rule(run: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], list[Any]]:
    """The results of a run, and their tangents."""
    moved = tuple(t is not None for t in tangents)
    given = [t for t in tangents if t is not None]
    found, why = None, None
    if any(isinstance(t, jax.core.Tracer) for t in given):  # else nothing can ask for a transpose
        try:
            with blaming(run.steps):
                found = tape_of(run.program, wanted(run, moved))
        except Exception as error:  # it may be meant for forward mode
            why = error
    if found is None:
        outs = bind(run, *primals)
        kept: list[Any] = []
    else:
        taped = recorder_of(run, found)
        outs = bind(taped, *primals)
        outs, left = taped.split(outs)
        kept = list(left.values())
    linear = iter(bind(Tangent(run, moved, found, why), *primals, *kept, *given))
    return outs, [next(linear) if is_inexact(x) else None for x in outs]


def wanted(run: Any, moved: Sequence[bool]) -> frozenset[str]:
    """Shared variables that the cotangents of some arguments go through."""
    program = run.program.executable.program
    found = {v for v, mapped, here in zip(run.names, run.mapped, moved, strict=False) if here and not mapped}
    for op in program.prologue:
        if found & set(reads(op)):
            found |= set(writes(op))
    return frozenset(found)


@lru_cache(maxsize=256)
def tape_of(program: Any, shared: frozenset[str]) -> Tape:
    """The plan of a program's tape."""
    return tape.plan(program.executable.smooth.layout, shared)
