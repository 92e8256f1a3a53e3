"""Backward runs: from the cotangents of a run's results to those of its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.ir.stack import StackProgram, Storage
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.options import Dense
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.sharding.lane_sharding import ShardedArguments
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks
from pcbatch.runtime.vm.lane_window import lane_mask
from pcbatch.runtime.vm.layout import reg
from pcbatch.runtime.vm.machine import State, poison
from pcbatch.runtime.vm.policies import Drain, Sweep
from pcbatch.runtime.vm.status import Status
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.primitive.batching import Axis, BatchedOperation, at_once, one_by_one
from pcbatch.transforms.primitive.jvp import pushed_linear, refuse
from pcbatch.transforms.primitive.lane_folding import fold_lanes, unfolded_outs
from pcbatch.transforms.primitive.operation import bind
from pcbatch.transforms.recorded_run import ELEMENTS, FULL, ROOM, RunOperation, folded_part, run_now
from pcbatch.transforms.remat_run import SEGMENT, SEGMENTS, SNAPSHOT, STRIDE, recorder_of, segment_machine, segment_rows
from pcbatch.transforms.tape import backward_machine
from pcbatch.transforms.tape.block_vjp import any_in_record, zero_preserving_vjp, zero_where_inactive
from pcbatch.transforms.tape.plan import HEAD, STATUS, Tape
from pcbatch.transforms.tape.uniform_cotangents import settled, totals


@dataclass(frozen=True, repr=False)
class Backward(RunOperation):
    """Operands: the arguments of a run, the parts of its tape, and the cotangents of the floating leaves of its value.
    Gives those of the arguments that are `moved`."""

    run: Any
    moved: tuple[bool, ...]
    tape: Tape
    skips: bool = True  # do lanes whose cotangents are all zero stay out of it?
    marked: bool = False  # was the run marked, and not recorded?
    name: str = "backward run"
    differentiates = True

    @property
    def keys(self) -> tuple[str, ...]:
        """What the parts of the tape are called."""
        return recorder_of(self.run, self.tape).keys

    @property
    def results(self) -> tuple[str, ...]:
        """The variables of the floating leaves of the value."""
        program = self.executable.program
        return tuple(v for v in program.results if is_float(_type(program, v)))

    def cotangents(self, given: Sequence[Any]) -> list[Any]:
        """Of every floating leaf of the value; those of other results are of no use."""
        lanes, program = self.run.lanes, self.executable.program
        out = []
        for v, ct in zip(self.results, given, strict=False):
            type_ = storage_type(_type(program, v))
            out.append(jnp.zeros((lanes, *type_.shape), jnp.dtype(type_.dtype)) if ct is None else ct)
        return out

    def lower(self, *args: Any) -> Sequence[Any]:
        count, keys = len(self.moved), self.keys
        left = dict(zip(keys, args[count : count + len(keys)], strict=True))
        cotangents = dict[str, Any]()
        for v, given in zip(self.results, args[count + len(keys) :], strict=True):
            cotangents[v] = cotangents[v] + given if v in cotangents else given
        return undone(self, args[:count], left, cotangents)

    def impl(self, *args: Any) -> Sequence[Any]:
        return run_now(self, self.executable, self.run.lanes, *args)

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any]:
        return [x.to_tangent_aval() for x, here in zip(avals, self.moved, strict=False) if here]

    def stride(self, left: Mapping[str, Any]) -> int:
        """Lanes of the run that was recorded, for each lane here: elements may have been recorded together."""
        return left[ELEMENTS].shape[-1] // self.run.elements if ELEMENTS in left else 1

    def _apart(self, axes: Sequence[Axis]) -> bool:
        """Has each element a tape of its own?"""
        if not self.tape.blocks or self.marked:
            return True
        return axes[len(self.moved) + self.keys.index(next(iter(self.tape.blocks[0].buffers.values())))] is not None

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        count, keys = len(self.moved), self.keys
        if all(axis is None for axis in axes[: count + len(keys)]):
            return at_once(replace(self, skips=False), size, axes)
        if any(here and not mapped for here, mapped in zip(self.moved, self.run.mapped, strict=False)):
            return one_by_one(self, size, axes)  # elements share what has a cotangent for each of them
        if self._apart(axes):
            return one_by_one(self, size, axes)
        run = self.run.folded(size, axes[:count])

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if k < count:
                return self.run.folded_operand(run, size, k, x, axis)
            return folded_part(keys[k - count], x, axis, size) if k < count + len(keys) else fold_lanes(x, axis, size)

        def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
            return unfolded_outs(outs, [True] * len(outs), size)

        return BatchedOperation(replace(self, run=run), operand, results, results)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, pushed_linear(self, len(self.moved) + len(self.keys), primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        count = len(self.moved) + len(self.keys)
        if any(x is None for x in args[:count]):
            raise refuse()
        from pcbatch.transforms.tangent import Tangent

        moved = [x for x, here in zip(args, self.moved, strict=False) if here]
        tangents = [jnp.zeros_like(x) if ct is None else ct for x, ct in zip(moved, cotangents, strict=True)]
        found = bind(Tangent(self.run, self.moved, self.tape), *args[:count], *tangents)
        return [*[None] * count, *found[: len(self.results)]]


def _type(program: StackProgram, name: str) -> ArrayType:
    type_ = program.vars[name].type
    assert type_ is not None
    return type_


def undone(
    operation: Backward, args: Sequence[Any], left: Mapping[str, Any], cotangents: Mapping[str, Any]
) -> list[Any]:
    """The cotangents of arguments, from those of results."""
    run, plan = operation.run, operation.tape
    machine, lanes = operation.executable.smooth, run.lanes
    shared, per_lane = machine.stored(_arguments(operation, args), lanes)
    layout = backward_machine.layout_of(machine.layout, plan)
    known = {**shared, **{reg(v): x for v, x in per_lane.items()}, **left}
    alive = any_in_record(list(cotangents.values())) if cotangents else jnp.zeros((lanes,), bool)
    ok = left[STATUS] == int(Status.OK)
    given = {v: zero_where_inactive(ok, x) for v, x in cotangents.items()}
    began = backward_machine.start(layout, given, left[ROOM].shape[0], lanes, known)
    if operation.marked:
        carry = by_segments(operation, layout, known, alive, left, began)
    else:
        # Links of a tape that was full lead anywhere, in circles too.
        head = jnp.where(left[FULL], -1, left[HEAD])
        began = backward_machine.at_records(layout, began, jnp.where(alive, head, -1) if operation.skips else head)
        stride = operation.stride(left)
        carry = backwards(operation, layout, known, began, stride)
        carry = settled(plan, carry, known, stride)
    return _of_arguments(operation, args, layout, carry, (alive & ~ok) | left[FULL])


def _arguments(operation: Backward, args: Sequence[Any]) -> dict[str, Any]:
    given: ShardedArguments = operation.run.given(*args)
    return operation.executable.natural({**given.mapped, **given.common})


def _of_arguments(
    operation: Backward,
    args: Sequence[Any],
    layout: backward_machine.BackwardLayout,
    carry: Values,
    wrong: jax.Array,
) -> list[Any]:
    """The cotangents that are asked for; NaN for lanes where they are `wrong`."""
    run = operation.run
    sums = {**totals(operation.tape, carry), **_owned(layout, carry)}
    of_shared = _shared_cotangents(operation, _arguments(operation, args), sums)
    out = []
    for k, v in enumerate(run.names):
        if not operation.moved[k]:
            continue
        x = args[k]
        if v in of_shared:
            ct = of_shared[v]
        elif backward_machine.ct(v) in carry:
            ct = layout.forward.rows(reg(v), carry[backward_machine.ct(v)])
            ct = ct if run.mapped[k] else ct.sum(0)
        else:
            ct = jnp.zeros_like(x)
        bad = wrong if run.mapped[k] else jnp.any(wrong)
        out.append(poison(lane_mask(bad, ct), ct).astype(x.dtype))
    return out


def by_segments(
    operation: Backward,
    layout: backward_machine.BackwardLayout,
    known: Values,
    alive: jax.Array,
    left: Mapping[str, Any],
    began: Values,
) -> Values:
    """Run backwards through the segments of a marked run, each of which is run again from the mark before it."""
    lanes, stride = operation.run.lanes, left[STRIDE]
    plain = segment_machine(operation.executable)
    taped = segment_machine(operation.executable, operation.tape, lanes)
    marks = {key.removeprefix(SNAPSHOT): x for key, x in left.items() if key.startswith(SNAPSHOT)}
    shared = {v: x for v, x in known.items() if v in operation.executable.program.vars}

    def segment(c: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
        place, carry = c
        mark = {key: x[place // stride] for key, x in marks.items()}
        state = State(mark, shared, jnp.zeros((), jnp.int32))
        state = plain.advance(state, (place % stride) * SEGMENT)
        room = operation.tape.empty(lanes, segment_rows(operation.tape, lanes))
        state = taped.advance(State({**state.carry, **room}, shared, jnp.zeros((), jnp.int32)), SEGMENT)
        here = {**known, **{key: state.carry[key] for key in operation.tape.keys()}}
        head = state.carry[HEAD]
        carry = backward_machine.at_records(layout, carry, jnp.where(alive, head, -1) if operation.skips else head)
        carry = backwards(operation, layout, here, carry)
        return place - 1, settled(operation.tape, carry, here, 1)

    ended = jax.lax.while_loop(lambda c: c[0] >= 0, segment, (left[SEGMENTS] - 1, began))
    return dict(ended[1])


def backwards(
    operation: Backward, layout: backward_machine.BackwardLayout, known: Values, carry: Values, stride: int = 1
) -> Values:
    """Run the backward machine to its end."""
    machine, codes = operation.executable.smooth, layout.codes
    modes = machine.modes(carry[backward_machine.RECORD].shape[0])
    expensive = tuple(code.index for code in codes if code.tape.index in machine.expensive)
    stage: Any = backward_machine.BackwardContext(layout, known, machine.isolate_reads, stride)
    shape: Any = layout
    chosen = tuple(modes[c.tape.index] if c.index in expensive else Dense() for c in codes)
    blocks = Blocks(shape, Guard(), chosen, expensive, stage)
    policy = Drain() if expensive else Sweep()
    # A trip undoes one record at least. Where elements of a `vmap` take different ways at a `cond`, JAX computes all of
    # them, with zeros or another tape in place of one that was not made: what that gives is of no use, but it must end.
    rows = [(known[b.count], known[next(iter(b.buffers.values()))].shape[0]) for b in operation.tape.blocks]
    trips = sum((jnp.clip(n, 0, room) for n, room in rows), jnp.zeros((), jnp.int32))

    def live(c: tuple[jax.Array, Values]) -> Any:
        return (c[0] > 0) & blocks.live(c[1])

    ended: Values = jax.lax.while_loop(live, lambda c: (c[0] - 1, policy.trip(blocks, c[1])), (trips, carry))[1]
    return ended


def _owned(layout: backward_machine.BackwardLayout, carry: Values) -> dict[str, Any]:
    return {v: carry[backward_machine.own(v)].sum(0) for v in layout.owned}


def _shared_cotangents(operation: Backward, arguments: Mapping[str, Any], sums: Mapping[str, Any]) -> dict[str, Any]:
    """The cotangents of arguments that lanes share, from those of all shared variables."""
    program, machine = operation.executable.program, operation.executable.smooth
    flags = zip(operation.run.names, operation.run.mapped, operation.moved, strict=False)
    wanted = [v for v, mapped, here in flags if here and not mapped and program.vars[v].storage is Storage.SHARED]
    if not wanted:
        return {}

    def shared(*values: Any) -> dict[str, Any]:
        new = dict(zip(wanted, values, strict=True))
        found = machine.stored({**arguments, **new}, operation.run.lanes, zero_preserving_vjp)[0]
        return {v: found[v] for v in sums}

    pulled = jax.vjp(shared, *(arguments[v] for v in wanted))[1](dict(sums))
    return dict(zip(wanted, pulled, strict=True))
