"""Backward runs: from the cotangents of a run's results to those of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from pcbatch.ir.stack import StackProgram, Storage
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import storage_type, zeros
from pcbatch.plan import Dense
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
from pcbatch.transforms.primitive.derived import at_once, one_by_one
from pcbatch.transforms.primitive.operation import Axis, BatchedOperation, Operation, batched_per_lane, fold_lanes
from pcbatch.transforms.recorded_run import (
    ELEMENTS,
    FULL,
    ROOM,
    TapedOperation,
    folded_part,
    recorded_together,
    run_compiled,
    undoes_natively,
)
from pcbatch.transforms.remat_run import SEGMENT, SEGMENTS, SNAPSHOT, STRIDE, RematRun, segment_machine, segment_rows
from pcbatch.transforms.tape import backward_machine
from pcbatch.transforms.tape.backward_machine import BackwardLayout
from pcbatch.transforms.tape.block_vjp import zero_preserving_vjp, zero_where_inactive
from pcbatch.transforms.tape.lane_undoing import OK, RerunTape, undo_lanes
from pcbatch.transforms.tape.needs import PLAIN, Needs, any_in_record
from pcbatch.transforms.tape.tape_plan import HEAD, STATUS, Tape
from pcbatch.transforms.tape.uniform_cotangents import flush, totals

if TYPE_CHECKING:
    from pcbatch.transforms.run import Run


@dataclass(frozen=True, repr=False)
class Backward(TapedOperation):
    """The pullback of a run, as an operation that runs the backward machine.

    Operands: the arguments of the run, the parts of its tape, and the cotangents of the floating leaves of its value.
    Results: the cotangents of the arguments that are `moved`.
    """

    run: Run
    moved: tuple[bool, ...]
    tape: Tape
    skips: bool = True  # lanes with cotangents of zero alone undo no records
    needs: Needs = PLAIN
    native: bool = True  # see `RerunRun`
    name: str = "backward run"
    differentiates = True

    @property
    def results(self) -> tuple[str, ...]:
        """The variables of the floating leaves of the value."""
        program = self.executable.program
        return tuple(v for v in program.results if is_float(_type(program, v)))

    def cotangents(self, cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of the floating leaves of the value, from those of all results of a run (None: zero). Other
        results have no derivative here."""
        types = [storage_type(_type(self.executable.program, v)) for v in self.results]
        pairs = zip(types, cotangents, strict=False)
        return [zeros(type_, (self.run.lanes,)) if ct is None else ct for type_, ct in pairs]

    def lower(self, *args: Any) -> Sequence[Any]:
        given, parts, cts = self.operands(args)
        cotangents = dict[str, Any]()
        for v, ct in zip(self.results, cts, strict=True):
            cotangents[v] = cotangents[v] + ct if v in cotangents else ct
        return argument_cotangents(self, given, parts, cotangents)

    def impl(self, *args: Any) -> Sequence[Any]:
        return run_compiled(self, self.executable, self.run.lanes, *args)

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any]:
        return [x.to_tangent_aval() for x, is_moved in zip(avals, self.moved, strict=False) if is_moved]

    def over_devices(self) -> Operation:
        return replace(self, native=False)

    def stride(self, parts: Mapping[str, Any]) -> int:
        """The lanes of the recorded run for each lane of this one: elements may have been recorded together."""
        return parts[ELEMENTS].shape[-1] // self.run.elements if ELEMENTS in parts else 1

    def of_arguments(
        self, args: Sequence[Any], of_shared: Values, of_lanes: Callable[[str], Any], wrong: jax.Array | None
    ) -> list[Any]:
        """The cotangents of the arguments that are `moved`.

        Args:
            args: The arguments of the run.
            of_shared: The cotangents of shared ones.
            of_lanes: Gives those of another one, [lanes, ...]; None: zero.
            wrong: bool[lanes]: the lanes that get NaN; None: none does.
        """
        out = []
        for k, v in enumerate(self.run.names):
            if not self.moved[k]:
                continue
            x, ct, mapped = args[k], of_shared.get(v), self.run.mapped[k]
            if ct is None:
                ct = of_lanes(v)
                ct = jnp.zeros_like(x) if ct is None else ct if mapped else ct.sum(0)
            if wrong is not None:
                (ct,) = self.needs.apply(_Poisoned(mapped), wrong, ct)
            out.append(ct.astype(x.dtype))
        return out

    def _tape_per_element(self, axes: Sequence[Axis]) -> bool:
        """Whether each element of a `vmap` has a tape of its own."""
        if not self.tape.blocks or isinstance(self.recorder, RematRun):
            return True
        return axes[len(self.moved) + self.keys.index(self.tape.blocks[0].state_keys[1])] is not None

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        count, first, keys = len(self.moved), self.first, self.keys
        reruns = isinstance(self.tape, RerunTape)
        if not reruns and all(axis is None for axis in axes[:first]):
            # Elements differ in cotangents alone, and walk over the same records: if none of them is skipped.
            return at_once(replace(self, skips=False), size, axes)
        if any(is_moved and not mapped for is_moved, mapped in zip(self.moved, self.run.mapped, strict=False)):
            return one_by_one(self, size, axes)  # elements share what has a cotangent for each of them
        run = self.run.folded(size, axes[:count])
        if run.program != self.run.program if reruns else self._tape_per_element(axes):
            return one_by_one(self, size, axes)

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if k < count:
                return self.run.folded_operand(run, size, k, x, axis)
            return self._folded(keys[k - count], x, axis, size) if k < first else fold_lanes(x, axis, size)

        return batched_per_lane(replace(self, run=run), operand, size)

    def _folded(self, key: str, x: Any, axis: Axis, size: int) -> Any:
        """The part `key` of the tape for the lanes of all elements."""
        is_rerun = isinstance(self.tape, RerunTape) and key == STATUS
        return fold_lanes(x, axis, size) if is_rerun else folded_part(key, x, axis, size)


def _type(program: StackProgram, name: str) -> ArrayType:
    type_ = program.vars[name].type
    assert type_ is not None
    return type_


def argument_cotangents(
    operation: Backward, args: Sequence[Any], parts: Mapping[str, Any], cotangents: Mapping[str, Any]
) -> list[Any]:
    """The cotangents of arguments, from those of results by variable; `parts`: the tape by state key."""
    run, tape = operation.run, operation.tape
    machine, lanes = operation.executable.smooth, run.lanes
    shared, per_lane = machine.stored(_arguments(operation, args), lanes)
    layout = backward_machine.layout_of(machine.layout, tape)
    if isinstance(tape, RerunTape):
        if operation.native and undoes_natively(run):
            return _undone_lane_by_lane(operation, args, layout, shared, per_lane, parts, cotangents)
        parts = recorded_together(run, tape, args)
    known = {**shared, **{reg(v): x for v, x in per_lane.items()}, **parts}
    needs, floats = operation.needs, list(cotangents.values())
    nonzero = needs.of_any(floats) if floats else needs.certain(jnp.zeros((lanes,), bool))
    ok = parts[STATUS] == int(Status.OK)
    # Lanes that failed gave NaN; their cotangents would spoil those of shared values for all lanes.
    entering = {v: zero_where_inactive(ok, x) for v, x in cotangents.items()}
    carry = backward_machine.start(layout, entering, parts[ROOM].shape[0], lanes, known)
    if isinstance(operation.recorder, RematRun):
        carry = undo_segments(operation, layout, known, nonzero, parts, carry)
    else:
        # Links of a tape that was full may lead to any record, and around in circles.
        head = jnp.where(parts[FULL], -1, parts[HEAD])
        carry = backward_machine.at_records(layout, carry, jnp.where(nonzero, head, -1) if operation.skips else head)
        stride = operation.stride(parts)
        carry = undo_all(operation, layout, known, carry, stride)
        carry = flush(tape, carry, known, stride, needs)
    wrong = needs.either(needs.among(nonzero, ~ok), needs.certain(parts[FULL]))
    return _of_arguments(operation, args, layout, carry, wrong)


def _undone_lane_by_lane(
    operation: Backward,
    args: Sequence[Any],
    layout: BackwardLayout,
    shared: Values,
    per_lane: Values,
    parts: Mapping[str, Any],
    cotangents: Mapping[str, Any],
) -> list[Any]:
    """The cotangents of arguments where lanes are run again, and undone, one after the other."""
    assert isinstance(operation.tape, RerunTape) and operation.tape.undoing is not None
    ok, nonzero = parts[STATUS] == int(Status.OK), any_in_record(list(cotangents.values()))
    rows = {reg(v): x for v, x in per_lane.items()}
    entering = {backward_machine.ct(v): x for v, x in cotangents.items()}
    going = ok & nonzero if operation.skips else ok
    carry = undo_lanes(operation.tape.undoing, parts[ROOM].shape[0], shared, rows, entering, going)
    moved = [v for v in layout.floats if backward_machine.ct(v) in carry]
    carry |= {(key := backward_machine.ct(v)): layout.forward.kept(reg(v), carry[key]) for v in moved}
    return _of_arguments(operation, args, layout, carry, nonzero & ~(ok & carry[OK]))


def _arguments(operation: Backward, args: Sequence[Any]) -> dict[str, Any]:
    sharded: ShardedArguments = operation.run.arguments(*args)
    return operation.executable.arguments.natural({**sharded.mapped, **sharded.common})


def _of_arguments(
    operation: Backward, args: Sequence[Any], layout: BackwardLayout, carry: Values, wrong: jax.Array
) -> list[Any]:
    """The cotangents of the arguments that are moved; NaN for lanes that are `wrong`, bool[lanes]."""
    run, machine, variables = operation.run, operation.executable.smooth, operation.executable.program.vars
    flags = zip(run.names, run.mapped, operation.moved, strict=False)
    wanted = [v for v, mapped, moved in flags if moved and not mapped and variables[v].storage is Storage.SHARED]

    def around(fn: Callable[..., Any]) -> Callable[..., Any]:
        return zero_preserving_vjp(fn, operation.needs)

    def stored(arguments: Mapping[str, Any]) -> Values:
        return machine.stored(arguments, run.lanes, around)[0]

    def of_lanes(v: str) -> Any:
        key = backward_machine.ct(v)
        return layout.forward.rows(reg(v), carry[key]) if key in carry else None

    small = {v: carry[backward_machine.own(v)].sum(0) for v in layout.small_shared}
    sums = {**totals(operation.tape, carry), **small}
    of_shared = of_shared_arguments(stored, _arguments(operation, args), wanted, sums)
    return operation.of_arguments(args, of_shared, of_lanes, wrong)


@dataclass(frozen=True)
class _Poisoned:
    """NaN for the cotangent of an argument in lanes that are wrong, or if one is in that of an argument they share."""

    mapped: bool

    def __call__(self, wrong: jax.Array, ct: Any) -> list[Any]:
        bad = wrong if self.mapped else jnp.any(wrong)
        return [poison(lane_mask(bad, ct), ct)]


def undo_segments(
    operation: Backward,
    layout: BackwardLayout,
    known: Values,
    nonzero: jax.Array,
    parts: Mapping[str, Any],
    carry: Values,
) -> Values:
    """Undo the segments of a run, last to first: run each again from the snapshot before it, and record it."""
    lanes, stride = operation.run.lanes, parts[STRIDE]
    plain = segment_machine(operation.executable)
    recording = segment_machine(operation.executable, operation.tape, lanes)
    snapshots = {key.removeprefix(SNAPSHOT): x for key, x in parts.items() if key.startswith(SNAPSHOT)}
    shared = {v: x for v, x in known.items() if v in operation.executable.program.vars}

    def undo_segment(c: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
        segment, carry = c
        snapshot = {key: x[segment // stride] for key, x in snapshots.items()}
        state = State(snapshot, shared, jnp.zeros((), jnp.int32))
        # The segments between the snapshot and this one need not be recorded.
        state = plain.advance(state, (segment % stride) * SEGMENT)
        empty = operation.tape.empty(lanes, segment_rows(operation.tape, lanes))
        state = recording.advance(State({**state.carry, **empty}, shared, jnp.zeros((), jnp.int32)), SEGMENT)
        with_tape = {**known, **{key: state.carry[key] for key in operation.tape.keys()}}
        head = state.carry[HEAD]
        carry = backward_machine.at_records(layout, carry, jnp.where(nonzero, head, -1) if operation.skips else head)
        carry = undo_all(operation, layout, with_tape, carry)
        return segment - 1, flush(operation.tape, carry, with_tape, 1, operation.needs)

    ended = jax.lax.while_loop(lambda c: c[0] >= 0, undo_segment, (parts[SEGMENTS] - 1, carry))
    return dict(ended[1])


def undo_all(operation: Backward, layout: BackwardLayout, known: Values, carry: Values, stride: int = 1) -> Values:
    """Run the backward machine until no lane has a record; see `BackwardContext` for `known` and `stride`."""
    machine, codes = operation.executable.smooth, layout.codes
    modes = machine.modes(carry[backward_machine.RECORD].shape[0])
    expensive = tuple(code.index for code in codes if code.tape.index in machine.expensive)
    context = backward_machine.BackwardContext(layout, known, machine.isolate_reads, stride, operation.needs)
    chosen = tuple(modes[c.tape.index] if c.index in expensive else Dense() for c in codes)
    blocks = Blocks(layout, Guard(), chosen, expensive, context)
    policy = Drain() if expensive else Sweep()
    # A trip undoes one record at least. Where elements of a `vmap` take different branches of a `cond`, JAX computes
    # all, with zeros or another tape for a branch that was not recorded: the result is dropped, but the loop must end.
    counts = [(known[block.count], block.rows(known)) for block in operation.tape.blocks]
    trips = sum((jnp.clip(n, 0, room) for n, room in counts), jnp.zeros((), jnp.int32))

    def live(c: tuple[jax.Array, Values]) -> Any:
        return (c[0] > 0) & blocks.live(c[1])

    ended: Values = jax.lax.while_loop(live, lambda c: (c[0] - 1, policy.trip(blocks, c[1])), (trips, carry))[1]
    return ended


def of_shared_arguments(
    stored: Callable[[Mapping[str, Any]], Values], arguments: Mapping[str, Any], wanted: Sequence[str], sums: Values
) -> Values:
    """The cotangents of those shared arguments that are `wanted`, from `sums`, those of shared values.

    `stored` gives the shared values: some are computed from the arguments before the first trip.
    """
    if not wanted:
        return {}

    def shared(*values: Any) -> Values:
        found = stored({**arguments, **dict(zip(wanted, values, strict=True))})
        return {v: found[v] for v in sums}

    cotangents = jax.vjp(shared, *(arguments[v] for v in wanted))[1](dict(sums))
    return dict(zip(wanted, cotangents, strict=True))
