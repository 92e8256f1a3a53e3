"""A run and its gradient as one operation, of which derivatives of gradients are made.

For a run `f` let `p(x, ct) = <ct, f(x)>`. A `GradientRun` computes `f(x)` and `J(x)^T ct`: the gradient of `p`. Its own
derivative is the Hessian of `p`, which is symmetric: the transpose of its tangents is its tangents. So reverse mode of
a gradient is forward mode of it, and no machine is needed that undoes the backward machine.

The run is recorded inside of the operation, so that no tape has tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pcbatch.transforms.backward import Backward
from pcbatch.transforms.primitive.derived import Jvp, at_once, is_inexact, jvp_of, one_by_one
from pcbatch.transforms.primitive.operation import (
    Axis,
    BatchedOperation,
    Differentiable,
    batched_per_lane,
    bind,
    fold_lanes,
)
from pcbatch.transforms.recorded_run import RecordedRun, Room, RunOperation, run_compiled
from pcbatch.transforms.remat_run import RematRun, recorder_of_lanes
from pcbatch.transforms.tape.needs import PLAIN, Needs
from pcbatch.transforms.tape.tape_plan import Tape

if TYPE_CHECKING:
    from pcbatch.transforms.run import Run


@dataclass(frozen=True, repr=False)
class GradientRun(RunOperation, Differentiable):
    """A run in lanes together with its gradient, as one operation of JAX.

    Operands: the arguments of the run, and the cotangents of the floating leaves of its value. Results: these leaves,
    and the cotangents of the arguments that are `moved`.
    """

    run: Run
    moved: tuple[bool, ...]
    tape: Tape
    room: Room
    needs: Needs = PLAIN
    name: str = "run with gradient"
    differentiates = True

    @property
    def _recorder(self) -> RecordedRun | RematRun:
        return recorder_of_lanes(self.tape, self.run).again(self.room)

    @property
    def _backward(self) -> Backward:
        return Backward(self.run, self.moved, self.tape, skips=False, needs=self.needs)

    def lower(self, *args: Any) -> Sequence[Any]:
        recorder, backward, count = self._recorder, self._backward, len(self.moved)
        leaves, parts = recorder.split(recorder.lower(*args[:count]))
        values = [x for x in leaves if is_inexact(x)][: len(backward.results)]
        return [*values, *backward.lower(*args[:count], *parts.values(), *args[count:])]

    def impl(self, *args: Any) -> Sequence[Any]:
        return run_compiled(self, self.executable, self.run.lanes, *args)

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        count = len(self.moved)
        if all(axis is None for axis in axes[:count]):
            return at_once(self, size, axes)  # no lane is skipped: cotangents decide nothing
        if any(is_moved and not mapped for is_moved, mapped in zip(self.moved, self.run.mapped, strict=False)):
            return one_by_one(self, size, axes)  # elements share what has a cotangent for each of them
        run = self.run.folded(size, axes[:count])
        if run.program != self.run.program or isinstance(self._recorder, RematRun):  # another tape
            return one_by_one(self, size, axes)

        def operand(k: int, x: Any, axis: Axis) -> Any:
            return self.run.folded_operand(run, size, k, x, axis) if k < count else fold_lanes(x, axis, size)

        return batched_per_lane(replace(self, run=run), operand, size)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, jvp_of(self, primals, tangents, outs)

    def for_tangents(self) -> GradientRun:
        return replace(self, needs=Needs(tangents=True))

    def tangents(
        self, args: Sequence[Any], cotangents: Sequence[Any], of_args: Sequence[Any], of_cotangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The tangents of the floating leaves of the value, and those of the cotangents of the arguments; None for
        arguments that are not `moved`. Tangents of operands are None where they are zero."""
        of_operands = (*of_args, *of_cotangents)
        flags = tuple(t is not None for t in of_operands)
        outs = bind(Jvp(self, flags), *args, *cotangents, *(t for t in of_operands if t is not None))
        of_moved = iter(outs[len(cotangents) :])
        return outs[: len(cotangents)], [next(of_moved) if is_moved else None for is_moved in self.moved]
