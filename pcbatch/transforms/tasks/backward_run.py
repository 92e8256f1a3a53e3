"""The pullback of a run by tasks, as an operation of JAX.

Examples that tasks have not finished, because one has failed or had no room, and all of them if the tape was full, have
the gradient of lanes, which run them again. Inside a trace that is left out where the user has said how long the tape
is and nothing can fail (`TaskRecordedRun.trusts`): what has no gradient then is NaN, as in lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.runtime.vm.lane_window import lane_mask
from pcbatch.runtime.vm.machine import poison
from pcbatch.transforms.backward import Backward
from pcbatch.transforms.gradient_run import GradientRun
from pcbatch.transforms.primitive.derived import at_once, one_by_one
from pcbatch.transforms.primitive.operation import Axis, BatchedOperation, bind, fold_lanes, unfolded_outs
from pcbatch.transforms.recorded_run import RecordedRun, Room, run_compiled, traced_rows
from pcbatch.transforms.tape.block_vjp import zero_where_inactive
from pcbatch.transforms.tape.plan import Tape
from pcbatch.transforms.tasks.backward import argument_cotangents, shared_cotangents
from pcbatch.transforms.tasks.plan import EXAMPLES, FULL, ROOTS, TODO, TaskTape
from pcbatch.transforms.tasks.recorded_run import TaskRecordedRun


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

    @property
    def keys(self) -> tuple[str, ...]:
        """The state keys of the parts of the tape, in order."""
        return self.tape.keys

    def lower(self, *args: Any) -> Sequence[Any]:
        count = len(self.moved)
        given, cts = args[:count], list(args[count + len(self.keys) :])
        parts = dict(zip(self.keys, args[count : count + len(self.keys)], strict=True))
        todo = parts[TODO] | parts[FULL]
        by_tasks = self._by_tasks(given, parts, [zero_where_inactive(~todo, ct) for ct in cts])
        if self.complete:
            return by_tasks
        if self._recorder.trusts:
            return self._told(by_tasks, parts, cts)
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

    def _told(self, found: Sequence[Any], parts: dict[str, Any], cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the arguments that are moved; NaN for examples that have none."""
        asked = jnp.any(jnp.array([jnp.any((ct != 0).reshape(self.run.lanes, -1), axis=1) for ct in cts]), axis=0)
        wrong = (asked & parts[TODO]) | parts[FULL]
        mapped = [m for m, is_moved in zip(self.run.mapped, self.moved, strict=False) if is_moved]
        each = [wrong if is_mapped else jnp.any(wrong) for is_mapped in mapped]
        return [poison(lane_mask(bad, ct), ct) for bad, ct in zip(each, found, strict=True)]

    def _lanes(self) -> GradientRun:
        """Return the operation that computes this gradient by lanes, inside a trace."""
        assert self.again is not None
        recorded = RecordedRun(self.run, self.again)
        room = Room(traced_rows(recorded), self.executable.stacks.traced(), self.run.elements)
        return GradientRun(self.run, self.moved, self.again, room)

    def _by_tasks(self, args: Sequence[Any], parts: dict[str, Any], cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the arguments that are moved."""
        run, recorder = self.run, self._recorder
        tasks, given = recorder.tasks, recorder.task_arguments(*args)
        named = self.executable.named(tasks)
        recorded = parts[EXAMPLES].shape[0]
        fixed, _ = tasks.stored(given, run.lanes, single=False)
        roots = parts[ROOTS]
        if recorded != run.lanes:  # an element of several that were recorded together
            fixed = {v: _spread(x, roots, recorded) if v in tasks.program.constants else x for v, x in fixed.items()}
        of_results = iter(cts)
        results = [next(of_results) if v in self.results else None for v in self.executable.program.results]
        entering = [_spread(ct, roots, recorded) if ct is not None else None for ct in results]
        each, sums = argument_cotangents(self.tape, fixed, recorded, parts, entering)
        by_name = {name: v for v, name in named.items()}
        shared = [
            by_name[n] for k, n in enumerate(run.names) if self.moved[k] and by_name.get(n) in tasks.program.shared
        ]
        of_shared = shared_cotangents(tasks.program, given, sums, shared)
        out = []
        for k, name in enumerate(run.names):
            if not self.moved[k]:
                continue
            v, x = by_name.get(name), args[k]
            ct = of_shared.get(v) if v in of_shared else each.get(v)  # type: ignore[arg-type]
            if ct is None:
                ct = jnp.zeros_like(x)
            elif v not in of_shared:
                ct = ct.at[roots].get(mode="clip") if recorded != run.lanes else ct
                ct = ct if run.mapped[k] else ct.sum(0)
            out.append(ct.astype(x.dtype))
        return out

    def impl(self, *args: Any) -> Sequence[Any]:
        parts = dict(zip(self.keys, args[len(self.moved) :], strict=False))
        todo = np.asarray(parts[TODO]) | bool(np.any(parts[FULL]))
        done = replace(self, complete=True)
        out = run_compiled(done, self.executable, self.run.lanes, *args)
        if not todo.any():
            return out
        return [a + b for a, b in zip(out, self._again(todo, *args), strict=True)]

    def _again(self, todo: np.ndarray, *args: Any) -> list[Any]:
        """The cotangents of arguments from those examples that tasks have not finished, by lanes."""
        assert self.again is not None
        count = len(self.moved)
        which = np.flatnonzero(todo)
        # The number of lanes is a power of two, so that few programs are compiled; the last example fills up.
        filled = np.concatenate([which, np.full(rounded(len(which)) - len(which), which[-1])]).astype(np.int32)
        run = replace(self.run, lanes=len(filled))
        given = [x[filled] if m else x for x, m in zip(args[:count], run.mapped, strict=True)]
        first = jnp.arange(len(filled)) < len(which)
        cts = [zero_where_inactive(first, ct[filled]) for ct in args[count + len(self.keys) :]]
        recorder = RecordedRun(run, self.again, silent=True)
        parts = recorder.split(bind(recorder, *given))[1]
        outs = bind(Backward(run, self.moved, self.again), *given, *parts.values(), *cts)
        moved = [k for k, is_moved in enumerate(self.moved) if is_moved]
        return [
            jnp.zeros_like(args[k]).at[filled].add(ct) if run.mapped[k] else ct
            for k, ct in zip(moved, outs, strict=True)
        ]

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        count, keys = len(self.moved), self.keys
        if all(axis is None for axis in axes[: count + len(keys)]):  # elements differ in cotangents alone
            return at_once(self, size, axes)
        if any(m and not mapped for m, mapped in zip(self.moved, self.run.mapped, strict=False)):
            return one_by_one(self, size, axes)
        if axes[count + keys.index(FULL)] is not None:  # each element has a tape of its own
            return one_by_one(self, size, axes)
        run = self.run.folded(size, axes[:count])

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if k < count:
                return self.run.folded_operand(run, size, k, x, axis)
            if count <= k < count + len(keys):
                return fold_lanes(x, axis, size) if keys[k - count] in (TODO, ROOTS) else x
            return fold_lanes(x, axis, size)

        def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
            return unfolded_outs(outs, [True] * len(outs), size)

        return BatchedOperation(replace(self, run=run), operand, results, results)


def _spread(x: Any, roots: Any, lanes: int) -> Any:
    """The values of some examples at their numbers among all that were recorded; of others any."""
    return jnp.zeros((lanes, *x.shape[1:]), x.dtype).at[roots].set(x, mode="drop")
