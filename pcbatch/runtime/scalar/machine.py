"""The machine that runs lane after lane, each to its end, in one native function of a CPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.ir.dataflow import components, invert
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.analysis.block_frequency import flow
from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.runtime import emit
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.scalar.native import in_one_function
from pcbatch.runtime.scalar.visit import read_back, scalars_of, visit
from pcbatch.runtime.scalar.words import Words
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.layout import PER_BLOCK, Layout, reg
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.status import Status, parked
from pcbatch.runtime.vm.step import written as step_keys

VISITS = "visits of this lane"  # of a lane: those since it was cut out, int32[]; counted if they have a budget
BACK = "return address"  # of each lane, int32[lanes], where it leaves no frames


@dataclass(frozen=True)
class ScalarMachine(Machine):
    """A machine whose lanes run one after the other; its state is that of any other machine.

    A trip is one visit of each lane that lives, and a run whose trips have no limit is one trip.
    """

    scalar_layout: Layout = field(kw_only=True)  # the same with the bodies of blocks for one lane

    @property
    def waits_for_lanes(self) -> bool:
        return False

    @property
    def trip_by_trip(self) -> Machine:
        machine = Machine(**{each.name: getattr(self, each.name) for each in fields(Machine)})
        return replace(machine, emitter=emit.pick("auto"))

    def advance(self, state: State, max_trips: int | jax.Array | None = None, go: Any = None) -> State:
        return self._advance(state, frozenset(), max_trips, go)

    def to_the_end(self, state: State) -> State:
        lasting = {reg(v) for v in (*self.program.results, *self.layout.shown)}
        passing = {key for key in state.carry if key.startswith(reg("")) and key not in lasting}
        return self._advance(state, frozenset({*passing, *self.layout.buffers}))

    def back(self, carry: Values) -> jax.Array:
        """Return the return address of each lane, int32[lanes]: see `Machine.back`."""
        return carry[BACK] if BACK in carry else super().back(carry)

    def _advance(
        self, state: State, passing: frozenset[str], max_trips: int | jax.Array | None = None, go: Any = None
    ) -> State:
        """Let the lanes run; `passing` are the registers, and frames, that nothing reads behind the run."""
        if lowering_platform() != "cpu" or is_symbolic(state.carry["pc"].shape[0]):
            return self.trip_by_trip.advance(state, max_trips, go)
        layout, width = self.scalar_layout, jnp.int32(state.carry["pc"].shape[0])
        lanes = width if go is None else jnp.where(go, width, 0)
        budget = None if max_trips is None else jnp.asarray(max_trips, jnp.int32)
        given = {reg(v) for v in self.program.params}
        carry = {key: value for key, value in state.carry.items() if key not in passing or key in given}
        unset = {key: state.carry[key][0] for key in state.carry.keys() - carry.keys() - {*layout.buffers}}
        if layout.frames is not None and passing & {*layout.buffers}:
            depth = state.carry["frames"].shape[0] // carry["pc"].shape[0] - 2
            unset |= layout.frames.empty(1, depth, layout.exit)
            carry[BACK] = jnp.zeros(carry["pc"].shape, jnp.int32)

        def run(
            carry: Values, unset: Values, shared: Values, lanes: jax.Array, budget: jax.Array | None
        ) -> tuple[Values, jax.Array]:
            return _first_lanes(layout, carry, unset, passing, shared, lanes, budget)

        left, trips = in_one_function(run)(carry, unset, state.shared, lanes, budget)
        return State(state.carry | left, state.shared, state.trips + trips)


def _first_lanes(
    layout: Layout,
    carry: Values,
    unset: Values,
    passing: frozenset[str],
    shared: Values,
    lanes: jax.Array,
    budget: jax.Array | None,
) -> tuple[Values, jax.Array]:
    """Let each of the first `lanes` lanes run to its end, or until it has used up its budget of visits.

    Args:
        layout: The machine's arrays.
        carry: Those of all lanes.
        unset: Registers and frames of one lane, which each lane sets before it reads them.
        passing: The registers whose values no lane leaves, and frames.
        shared: The values that all lanes share.
        lanes, budget: See above.

    Returns:
        What lanes leave of the state, and the most visits that a lane has made, int32[]; one where there is no budget.
    """

    written = {"pc", BACK, *layout.buffers} | {key for code in layout.codes for key in step_keys(layout, code)}
    rows = {key: by_lane(layout, key, value, carry["pc"].shape[0]) for key, value in carry.items()}
    leaves = written - passing
    constant = {key: value for key, value in rows.items() if key not in leaves}

    def one(number: jax.Array, c: tuple[Values, Values, jax.Array]) -> tuple[Values, Values, jax.Array]:
        changing, passed, most = c
        lane = cut_out(layout, constant | changing, number) | passed
        if budget is not None:
            lane[VISITS] = jnp.int32(0)
        lane = _to_its_end(layout, lane, shared, lanes, budget)
        visits = lane.pop(VISITS, jnp.int32(1))
        if BACK in lane:
            lane[BACK] = read_back(lane)
        # What passes goes on to the next lane, in place.
        return put_back(layout, changing, lane, number), {key: lane[key] for key in passed}, jnp.maximum(most, visits)

    changing = {key: value for key, value in rows.items() if key in leaves}
    changed, _, most = jax.lax.fori_loop(0, lanes, one, (changing, unset, jnp.int32(0)))
    return {key: value.reshape(carry[key].shape) for key, value in changed.items()}, most


def by_lane(layout: Layout, key: str, value: jax.Array, lanes: int) -> jax.Array:
    """Return an array of the state with an axis of lanes: the second one of frames, the first one of others."""
    if key not in layout.buffers:
        return value
    return value.reshape(value.shape[0] // lanes, lanes, value.shape[1])


def cut_out(layout: Layout, rows: Values, number: jax.Array) -> Values:
    """Return the state of one lane: it is worked on by itself, as XLA copies the state of all lanes in each step
    otherwise."""
    out: Values = {}
    for key, value in rows.items():
        if key in PER_BLOCK:
            out[key] = value
        else:
            axis = 1 if key in layout.buffers else 0
            out[key] = jax.lax.dynamic_index_in_dim(value, number, axis, False, allow_negative_indices=False)
    return out | {"pc": out["pc"].astype(jnp.int32)}


def put_back(layout: Layout, rows: Values, lane: Values, number: jax.Array) -> Values:
    """Return the state of all lanes with that of one of them in its place: the inverse of `cut_out`."""
    out: Values = {}
    for key, value in rows.items():
        new = lane[key].astype(value.dtype)
        if key in PER_BLOCK:
            out[key] = new
        else:
            axis = 1 if key in layout.buffers else 0
            out[key] = jax.lax.dynamic_update_index_in_dim(value, new, number, axis, allow_negative_indices=False)
    return out


def _to_its_end(layout: Layout, lane: Values, shared: Values, some: jax.Array, budget: jax.Array | None) -> Values:
    """Return the state of a lane that has run until it returns, fails, lacks room or has used up its budget.

    `some` is any value that XLA does not know.
    """

    words = Words.of(lane)
    barrier: Any = jax.lax.optimization_barrier  # untyped

    def pc(lane: Values) -> jax.Array:
        # Where a loop's condition reads one number alone, XLA copies all that the number depends on in the loop, loops
        # inside of it included, to find out how often the loop goes round: half the time of a compilation.
        unknown: jax.Array = barrier((words.scalar(lane, "pc"), some))[0]
        return unknown

    def may_go_on(lane: Values) -> jax.Array:
        may = jnp.ones((), bool) if budget is None else words.scalar(lane, VISITS) < budget
        return may if layout.max_steps is None else may & (words.scalar(lane, "steps") < layout.max_steps)

    def step(code: BlockCode, lane: Values) -> Values:
        keys = scalars_of(layout, code)
        lane = words.read(lane, [*keys, VISITS])
        # The program counter changes in each round. What does not depend on it XLA would move in front of the loop
        # around the block, and compute for lanes that do not wait there: a loop may have no end for them.
        read = {key: lane[key] for key in keys}, {v: shared[v] for v in code.shared}, words.scalar(lane, "pc")
        own, used, _ = barrier(read)
        lane = lane | own
        out = visit(layout, code, lane, used)
        return words.stored(lane, out | ({VISITS: lane[VISITS] + 1} if VISITS in lane else {}))

    lane = words.packed(lane)
    awaited = [code for code in layout.codes if code.awaited]
    written = {code.index: jax.eval_shape(partial(_changed, partial(step, code)), lane) for code in awaited}

    def sweep(nest: Nest, lane: Values) -> Values:
        """Visit what the lane waits for, in order; a block, and a loop, until it waits elsewhere."""
        for part in nest:
            inside = (part,) if isinstance(part, int) else blocks_of(part)
            names = {name for k in inside for name in written.get(k, ())}
            waits = partial(_waits, inside, pc, may_go_on)
            if isinstance(part, int) and part in written:
                code = layout.codes[part]
                with jax.named_scope(code.scope):
                    lane = _repeated(partial(step, code), waits, lane, names)
            elif not isinstance(part, int) and names:
                lane = _repeated(partial(sweep, part), waits, lane, names)
        return lane

    nest = loop_nest(layout.program)
    ran: Values = jax.lax.while_loop(
        lambda lane: (pc(lane) < layout.exit) & may_go_on(lane), partial(sweep, nest), lane
    )
    ran = words.unpacked(ran)
    if layout.max_steps is None:
        return ran
    over = (ran["pc"] < layout.exit) & (ran["steps"] >= layout.max_steps)
    over = over if budget is None else over & (budget > 0)
    return ran | {"pc": jnp.where(over, parked(ran["pc"], layout.exit, Status.STEP_LIMIT), ran["pc"])}


def _changed(step: Callable[[Values], Values], lane: Values) -> Values:
    return {key: new for key, new in step(lane).items() if new is not lane[key]}


def _repeated(
    step: Callable[[Values], Values], waits: Callable[[Values], jax.Array], lane: Values, names: Collection[str]
) -> Values:
    """Repeat a step while the lane waits for it. The loop carries what the step writes, `names`: XLA updates it in
    place."""
    rest = {key: value for key, value in lane.items() if key not in names}

    def body(c: Values) -> Values:
        new = step({**rest, **c})
        return {key: new[key] for key in c}

    new: Values = jax.lax.while_loop(
        lambda c: waits({**rest, **c}), body, {key: lane[key] for key in lane if key in names}
    )
    return {**lane, **new}


def _waits(
    blocks: tuple[int, ...],
    pc: Callable[[Values], jax.Array],
    may_go_on: Callable[[Values], jax.Array],
    lane: Values,
) -> jax.Array:
    """Whether a lane waits for one of these blocks."""
    return _is_among(blocks, pc(lane)) & may_go_on(lane)


def _is_among(blocks: tuple[int, ...], pc: jax.Array) -> jax.Array:
    """Whether a program counter is that of one of these blocks, whose numbers ascend."""
    runs: list[list[int]] = []
    for k in blocks:
        if runs and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    tests = [pc == run[0] if len(run) == 1 else (pc >= run[0]) & (pc <= run[-1]) for run in runs]
    return reduce(jnp.logical_or, tests)


def scalar(machine: Machine, layout: Layout) -> ScalarMachine:
    """Return the machine that runs lane after lane by this layout, which is `for_one_lane` of the machine's."""
    values = {each.name: getattr(machine, each.name) for each in fields(Machine)}
    return ScalarMachine(**values | {"emitter": emit.OfMachine("scalar")}, scalar_layout=layout)


# The loop nest of a program, in which a lane goes round an inner loop without a look at the blocks around it.
#
# before:  bb0 -> bb1 <-> bb2, bb2 -> bb1, bb1 -> bb3
# after:   0, (1, 2), 3

Nest = tuple["int | Nest", ...]
"""Numbers of blocks in the order of control flow; a tuple inside is a loop."""


def loop_nest(program: StackProgram) -> Nest:
    """Return the loop nest of a program; calls and returns are edges as jumps are."""
    labels = [block.label for block in program.blocks]
    graph = flow(program)
    return _in_order(labels, graph, invert(graph), {label: k for k, label in enumerate(labels)})


def blocks_of(nest: Nest) -> tuple[int, ...]:
    """Return the numbers of all blocks of a nest."""
    return tuple(sorted(k for part in nest for k in ((part,) if isinstance(part, int) else blocks_of(part))))


def _in_order(
    labels: Sequence[str],
    graph: Mapping[str, Sequence[str]],
    before: Mapping[str, Sequence[str]],
    index: Mapping[str, int],
) -> Nest:
    inside = frozenset(labels)
    parts: list[int | Nest] = []
    for component in reversed(components({n: [s for s in graph[n] if s in inside] for n in labels})):
        if len(component) == 1:
            parts.append(index[component[0]])
            continue
        members = sorted(component, key=index.__getitem__)
        # Without the blocks where control enters the loop its back edges are gone, and inner loops remain.
        entered = [n for n in members if not frozenset(component).issuperset(before[n])] or members[:1]
        rest = [n for n in members if n not in entered]
        parts.append((*(index[n] for n in entered), *_in_order(rest, graph, before, index)))
    return tuple(parts)
