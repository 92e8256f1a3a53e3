"""The pullback of a run by tasks, as an operation of JAX.

Examples that tasks have not finished, because one has failed or had no room, and all of them if the tape was full, have
the gradient of lanes, which run them again. Inside a trace that is left out where the user has said how long the tape
is and nothing can fail (`TaskRecordedRun.trusts`): what has no gradient then is NaN, as in lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.runtime.vm.block_body import Values
from pcbatch.transforms.backward import Backward, of_shared_arguments
from pcbatch.transforms.gradient_run import GradientRun
from pcbatch.transforms.primitive.operation import Axis, bind, fold_lanes
from pcbatch.transforms.recorded_run import RecordedRun, Room, run_compiled, traced_rows
from pcbatch.transforms.tape.block_vjp import zero_preserving_vjp, zero_where_inactive
from pcbatch.transforms.tape.needs import any_in_record
from pcbatch.transforms.tape.tape_plan import Tape
from pcbatch.transforms.tasks.backward import argument_cotangents
from pcbatch.transforms.tasks.recorded_run import TaskRecordedRun
from pcbatch.transforms.tasks.task_tape import EXAMPLES, FULL, ROOTS, TODO, TaskTape


@dataclass(frozen=True, repr=False)
class TaskBackward(Backward):
    """The pullback of a run by tasks. Operands and results are those of `Backward`."""

    tape: TaskTape  # type: ignore[assignment]
    again: Tape | None = None  # the plan of the tape of lanes
    complete: bool = False  # tasks have finished all examples
    name: str = "backward run by tasks"

    @property
    def _recorder(self) -> TaskRecordedRun:
        return TaskRecordedRun(self.run, self.tape)

    def lower(self, *args: Any) -> Sequence[Any]:
        given, parts, cts = self.operands(args)
        todo = parts[TODO] | parts[FULL]
        wrong = None
        if self._recorder.trusts and not self.complete:
            asked = jnp.any(jnp.array([any_in_record([ct]) for ct in cts]), axis=0)
            wrong = (asked & parts[TODO]) | parts[FULL]
        by_tasks = self._by_tasks(given, parts, [zero_where_inactive(~todo, ct) for ct in cts], wrong)
        if self.complete or wrong is not None:
            return by_tasks
        lanes = self._lanes()
        left = [zero_where_inactive(todo, ct) for ct in cts]

        def again(operands: Sequence[Any]) -> list[Any]:
            return list(lanes.lower(*operands)[len(left) :])

        def nothing(_: Sequence[Any]) -> list[Any]:
            return [jnp.zeros_like(x) for x in by_tasks]

        # The condition waits for the other part, so that both may have the same memory; nothing is above infinity.
        after = sum((jnp.any(x > jnp.inf) for x in by_tasks if not jnp.iscomplexobj(x)), jnp.zeros((), bool))
        by_lanes = jax.lax.cond(jnp.any(todo) | (after > 0), again, nothing, [*given, *left])
        return [a + b for a, b in zip(by_tasks, by_lanes, strict=True)]

    def _lanes(self) -> GradientRun:
        """Return the operation that computes this gradient by lanes, inside a trace."""
        assert self.again is not None
        recorded = RecordedRun(self.run, self.again)
        room = Room(traced_rows(recorded), self.executable.stacks.traced(), self.run.elements)
        return GradientRun(self.run, self.moved, self.again, room)

    def _by_tasks(
        self, args: Sequence[Any], parts: dict[str, Any], cts: Sequence[Any], wrong: jax.Array | None
    ) -> list[Any]:
        """The cotangents of the arguments that are moved; NaN for examples that are `wrong`."""
        run, recorder = self.run, self._recorder
        tasks, given = recorder.tasks, recorder.task_arguments(*args)
        named = self.executable.named(tasks)
        recorded, roots = parts[EXAMPLES].shape[0], parts[ROOTS]
        fixed, _ = tasks.stored(given, run.lanes, single=False)
        if recorded != run.lanes:  # an element of several that were recorded together
            fixed = {v: _spread(x, roots, recorded) if v in tasks.program.constants else x for v, x in fixed.items()}
        of_results = iter(cts)
        results = [next(of_results) if v in self.results else None for v in self.executable.program.results]
        entering = [_spread(ct, roots, recorded) if ct is not None else None for ct in results]
        each, sums = argument_cotangents(self.tape, fixed, recorded, parts, entering)
        by_name = {name: v for v, name in named.items()}
        moved = {by_name.get(name) for name, is_moved in zip(run.names, self.moved, strict=False) if is_moved}

        def stored(arguments: Mapping[str, Any]) -> Values:
            return tasks.stored(arguments, run.lanes, single=False, around=zero_preserving_vjp)[0]

        def of_examples(name: str) -> Any:
            ct = each.get(by_name.get(name, ""))
            return ct if ct is None or recorded == run.lanes else ct.at[roots].get(mode="clip")

        of_shared = of_shared_arguments(stored, given, [v for v in tasks.program.shared if v in moved], sums)
        return self.of_arguments(args, {named[v]: ct for v, ct in of_shared.items()}, of_examples, wrong)

    def impl(self, *args: Any) -> Sequence[Any]:
        parts = self.operands(args)[1]
        todo = np.asarray(parts[TODO]) | bool(np.any(parts[FULL]))
        done = replace(self, complete=True)
        out = run_compiled(done, self.executable, self.run.lanes, *args)
        if not todo.any():
            return out
        return [a + b for a, b in zip(out, self._again(todo, *args), strict=True)]

    def _again(self, todo: np.ndarray, *args: Any) -> list[Any]:
        """The cotangents of arguments from those examples that tasks have not finished, by lanes."""
        assert self.again is not None
        given, _, cotangents = self.operands(args)
        which = np.flatnonzero(todo)
        # The number of lanes is a power of two, so that few programs are compiled; the last example fills up.
        filled = np.concatenate([which, np.full(rounded(len(which)) - len(which), which[-1])]).astype(np.int32)
        run = replace(self.run, lanes=len(filled))
        given = [x[filled] if m else x for x, m in zip(given, run.mapped, strict=True)]
        first = jnp.arange(len(filled)) < len(which)
        cts = [zero_where_inactive(first, ct[filled]) for ct in cotangents]
        recorder = RecordedRun(run, self.again, silent=True)
        parts = recorder.split(bind(recorder, *given))[1]
        outs = bind(Backward(run, self.moved, self.again), *given, *parts.values(), *cts)
        moved = [k for k, is_moved in enumerate(self.moved) if is_moved]
        return [
            jnp.zeros_like(args[k]).at[filled].add(ct) if run.mapped[k] else ct
            for k, ct in zip(moved, outs, strict=True)
        ]

    def _tape_per_element(self, axes: Sequence[Axis]) -> bool:
        return axes[len(self.moved) + self.keys.index(FULL)] is not None

    def _folded(self, key: str, x: Any, axis: Axis, size: int) -> Any:
        return fold_lanes(x, axis, size) if key in (TODO, ROOTS) else x


def _spread(x: Any, roots: Any, lanes: int) -> Any:
    """The values of some examples at their numbers among all that were recorded; of others any."""
    return jnp.zeros((lanes, *x.shape[1:]), x.dtype).at[roots].set(x, mode="drop")
