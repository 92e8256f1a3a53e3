"""The machine: `start` makes a state from arguments, `advance` runs trips, `finish` reads the results.

All three are pure functions of arrays, to be called inside `jit` (together: one program) or one after another
(chunks, growing stacks). Algorithm 2 of Radul et al. (MLSys 2020), with values in registers and frames written in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.stack import StackProgram, Storage
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import as_result, from_storage, integer_limits, to_storage
from pcbatch.plan import Mode
from pcbatch.runtime.vm import frames, timeline
from pcbatch.runtime.vm import layout as layouts
from pcbatch.runtime.vm.block_body import Values, evaluate
from pcbatch.runtime.vm.blocks import Blocks, Emitter
from pcbatch.runtime.vm.lane_window import everyone, lane_mask
from pcbatch.runtime.vm.layout import LAST, NAME, Layout, reg
from pcbatch.runtime.vm.policies import FAIR, Policy, Stepwise, is_ours, one_trip
from pcbatch.runtime.vm.register_groups import Groups
from pcbatch.runtime.vm.run_once import run_once
from pcbatch.runtime.vm.status import Status, status_of, unpark
from pcbatch.runtime.vm.step import StepContext


@partial(jax.tree_util.register_dataclass, data_fields=["carry", "shared", "trips"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class State:
    """The state of a run between two trips; a pytree of JAX."""

    carry: Values  # by state key, see `layout.py`
    shared: Values  # values that all lanes share, by variable, in storage form
    trips: jax.Array  # int32[]: the trips so far


@dataclass(frozen=True, slots=True)
class Machine:
    """A compiled program with its emitter and policy: the functions that run it, for any number of lanes."""

    layout: Layout
    emitter: Emitter
    schedule: Policy
    expensive: tuple[int, ...]
    modes: Callable[[int], tuple[Mode, ...]]  # by number of lanes
    left_behind: Callable[[int], float] = lambda lanes: 0.0  # see `Blocks.left_behind`; by number of lanes
    isolate_reads: bool = False  # steps read in loops of their own where XLA would copy, see `run_once.isolated`
    stage: Callable[[Layout, Values, bool], StepContext] = StepContext  # makes the context of steps

    @property
    def program(self) -> StackProgram:
        """The program that the machine runs."""
        return self.layout.program

    def start(
        self, args: Mapping[str, Any], lanes: int, depth: int, end: Any = None, names: Any = None, todo: Any = None
    ) -> State:
        """Return the state before the first trip.

        Args:
            args: The arguments by parameter, [lanes, ...] each; unbatched if all lanes share them.
            lanes: The number of lanes.
            depth: The nested calls that there is room for.
            end: int32[]: lanes from this number on have no work; None: all have.
            names: int32[lanes]: the numbers that lanes print; None: their own.
            todo: bool[lanes]: the lanes that have work; None: all.
        """
        shared, per_lane = self.stored(args, lanes)
        carry = layouts.initial(self.layout, lanes, depth, per_lane)
        if names is not None and self.layout.prints:
            carry[NAME] = names
        if end is not None and not (isinstance(end, np.integer) and int(end) == lanes):
            done = jnp.full_like(carry["pc"], self.layout.exit)
            carry["pc"] = jnp.where(jnp.arange(lanes, dtype=jnp.int32) < end, carry["pc"], done)
        if todo is not None:
            carry["pc"] = jnp.where(todo, carry["pc"], jnp.full_like(carry["pc"], self.layout.exit))
        return State(carry, shared, jnp.zeros((), jnp.int32))

    def idle(self, shared: Values, lanes: int, depth: int) -> State:
        """Return a state in which no lane has work; `shared` is the first result of `stored`."""
        carry = layouts.initial(self.layout, lanes, depth, {})
        carry["pc"] = jnp.full_like(carry["pc"], self.layout.exit)
        return State(carry, shared, jnp.zeros((), jnp.int32))

    def stored(
        self, args: Mapping[str, Any], inputs: int, around: Callable[[Any], Any] = lambda fn: fn
    ) -> tuple[Values, Values]:
        """Return the values that all inputs share, and those of each input, by variable in storage form.

        Args:
            args: The arguments by parameter, [inputs, ...] each or unbatched.
            inputs: The number of inputs.
            around: Wraps the functions of the primitives that compute shared values.

        Returns:
            The shared values, unbatched: shared parameters and what the program's prologue computes of them; and the
            other parameters, [inputs, ...].
        """
        program = self.program
        stored = {v: to_storage(value, _type(program, v)) for v, value in args.items()}
        shared = {v: stored.pop(v) for v in list(stored) if program.vars[v].storage is Storage.SHARED}
        env = {v: from_storage(value, _type(program, v)) for v, value in shared.items()}
        for op in program.prologue:
            evaluate(op, env, around)
        shared = {v: to_storage(value, _type(program, v)) for v, value in env.items()}
        per_input = {
            v: jnp.broadcast_to(value, (inputs, *value.shape))
            if value.ndim == len(self.layout.stored_type(v).shape)  # unbatched, but the program keeps it in a register
            else value
            for v, value in stored.items()
        }
        return shared, per_input

    def advance(self, state: State, max_trips: int | jax.Array | None = None, go: Any = None) -> State:
        """Return the state after running until no lane is live, or for at most `max_trips` trips.

        With `go`, a bool[] that is false, no trip is made.
        """

        def going(blocks: Blocks, carry: Values, trips: jax.Array) -> jax.Array:
            pred = blocks.live(carry)
            pred = pred if go is None else pred & go
            return pred if max_trips is None else pred & (trips < max_trips)

        return self._while(going, state)

    def to_the_end(self, state: State) -> State:
        """Return a state in which no lane is live, of which only what `results`, `shown` and `back` read is right."""
        return self.advance(state)

    def advance_to_few(self, state: State, few: int, go: Any = None) -> State:
        """Return the state after running until at most `few` lanes are live; if `go` is false, no trip is made."""

        def going(blocks: Blocks, carry: Values, trips: jax.Array) -> jax.Array:
            pred = blocks.count_live(carry) > few
            return pred if go is None else pred & go

        return self._while(going, state)

    def _while(self, going: Callable[[Blocks, Values, jax.Array], jax.Array], state: State) -> State:
        """Make trips while `going(blocks, carry, trips)` says so; `trips` are those of this loop, int32[]."""
        groups = self.groups(state)
        blocks = self.blocks(state, groups)

        def trip(s: tuple[Values, jax.Array]) -> tuple[Values, jax.Array]:
            return self.trip(blocks, s[0], state.trips + s[1]), s[1] + 1

        start = self.packed(state, groups), jnp.zeros((), jnp.int32)
        carry, trips = jax.lax.while_loop(lambda s: going(blocks, *s), trip, start)
        return State(self.unpacked(carry, groups), state.shared, state.trips + trips)

    def packed(self, state: State, groups: Groups) -> Values:
        """Return the arrays of a state as a loop of trips carries them."""
        # The block after the last one is the first one, which lanes wait for at the start of a run.
        last = {LAST: jnp.asarray(len(self.layout.codes) - 1, jnp.int32)} if self._visits_singly else {}
        return groups.pack(state.carry) | last

    def unpacked(self, carry: Values, groups: Groups) -> Values:
        """Return the arrays of a state that a loop of trips has carried: the inverse of `packed`."""
        return groups.unpack({key: value for key, value in carry.items() if key != LAST})

    @property
    def _visits_singly(self) -> bool:
        """Whether a trip is one visit of a block that the policy chooses, for a policy that visits several."""
        return self.emitter.visits_singly and is_ours(self.schedule) and isinstance(self.schedule, Stepwise)

    @property
    def waits_for_lanes(self) -> bool:
        """Whether a trip is one of all lanes together: lanes that are done cost time then, and the last ones may go on
        in a narrower machine."""
        return True

    @property
    def trip_by_trip(self) -> Machine:
        """A machine that does the same, whose trips are operations of JAX: for gradients, and to look on."""
        return self

    def trip(self, blocks: Blocks, carry: Values, trips: jax.Array) -> Values:
        """Return the state after one trip; `trips` int32[] were made before it."""
        if not self.layout.timed:
            return self._trip(blocks, carry, trips)

        def untimed(state: Values) -> Values:
            return self._trip(blocks, state, trips)

        return timeline.recorded(untimed, carry, trips, len(blocks), layouts.PER_BLOCK)

    def _trip(self, blocks: Blocks, carry: Values, trips: jax.Array) -> Values:
        """Make a trip; after every `FAIR`-th one of a user's policy follows a sweep, so that no lane starves."""
        if LAST in carry:
            assert isinstance(self.schedule, Stepwise)
            rest = {key: value for key, value in carry.items() if key != LAST}
            block = self.schedule.following(blocks, rest, carry[LAST])
            return {**blocks.emitter.run(blocks, block, rest, range(len(blocks))), LAST: block}
        carry = one_trip(self.schedule, blocks, carry)
        if is_ours(self.schedule):
            return carry
        turn = (trips + 1) % FAIR == 0
        return run_once(turn, lambda c: blocks.sweep(range(len(blocks)), c), carry)

    def back(self, carry: Values) -> jax.Array:
        """Return the number of the block that each lane's current body returns to, int32[lanes]."""
        assert self.layout.frames is not None
        window = everyone(jnp.ones(carry["pc"].shape, bool))
        return self.layout.frames.back(carry, window, carry["depth"]).astype(jnp.int32)

    @property
    def totals(self) -> tuple[str, ...]:
        """The state keys of arrays that belong to no lane."""
        return (*self.counts, *(timeline.KEYS if self.layout.timed else ()))

    @property
    def counts(self) -> tuple[str, ...]:
        """The state keys of statistics."""
        return layouts.PER_BLOCK if self.layout.stats else ()

    def groups(self, state: State) -> Groups:
        """Return the registers that are rows of one array inside the loop of trips, for the lanes of a state."""
        return layouts.register_groups(self.layout, state.carry["pc"].shape[0])

    def blocks(self, state: State, groups: Groups | None = None) -> Blocks:
        """Return the blocks as the policy gets them, for the lanes of a state whose registers are in `groups`."""
        lanes = state.carry["pc"].shape[0]
        stage = self.stage(self.layout, state.shared, self.isolate_reads)
        stage = stage if groups is None else replace(stage, groups=groups)
        return Blocks(self.layout, self.emitter, self.modes(lanes), self.expensive, stage, self.left_behind(lanes))

    def results(self, carry: Values) -> tuple[tuple[Any, ...], jax.Array]:
        """Return the leaves of the result, [lanes, ...] each in storage form, and the statuses, int32[lanes].

        `carry` is a state, or the arrays that a queue has collected of its inputs. Lanes that failed give NaN, or the
        smallest number of their dtype.
        """
        status = self.statuses(carry)
        return tuple(or_failed(carry[reg(v)], status) for v in self.program.results), status

    def statuses(self, carry: Values) -> jax.Array:
        """Return the statuses of lanes, int32[lanes]; see `results`."""
        return status_of(carry["pc"].astype(jnp.int32), self.layout.exit)

    def leaves(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the leaves of the result as users get them."""
        return tuple(as_result(x, _type(self.program, v)) for v, x in zip(self.program.results, values, strict=True))

    def lane_by_lane(self, compute: Callable[[Values], Any], rows: Values) -> Any:
        """Return `compute(rows)`, of arrays [lanes, ...], which computes each lane's part from the lane's own: here of
        all lanes together."""
        return compute(rows)

    def shown(self, carry: Values, shared: Values) -> Values:
        """Return the values that messages of failures show, by variable, [lanes, ...] in storage form."""
        lanes = carry["pc"].shape
        out: Values = {v: carry[reg(v)] for v in self.layout.shown if v not in shared}
        return out | {v: jnp.broadcast_to(x, lanes + x.shape) for v, x in shared.items() if v in self.layout.shown}

    def grow(self, state: State, depth: int) -> State:
        """Return the state with room for `depth` nested calls; lanes that ran out of room are live again."""
        lanes, buffers = state.carry["pc"].shape[0], self.layout.buffers
        carry = {k: frames.grow(v, lanes, depth) if k in buffers else v for k, v in state.carry.items()}
        carry["pc"] = unpark(carry["pc"], self.layout.exit, Status.STACK_FULL)
        return replace(state, carry=carry)


def _type(program: StackProgram, name: str) -> Any:
    return program.vars[name].type


def final(stored: Any, type_: ArrayType, status: jax.Array) -> Any:
    """Return a leaf of the result [lanes, ...] from its storage form, and the statuses int32[lanes]."""
    return as_result(or_failed(stored, status), type_)


def or_failed(stored: Any, status: jax.Array) -> Any:
    """Return a leaf [lanes, ...] in storage form; lanes that failed give NaN, or the smallest number of its dtype."""
    ok = lane_mask(status == int(Status.OK), stored)
    if jnp.issubdtype(stored.dtype, jnp.inexact):
        return poison(~ok, stored)
    return jnp.where(ok, stored, failed(stored.dtype))


@jax.custom_jvp
def poison(where: jax.Array, value: Any) -> Any:
    """Return a floating array with NaN where `where` is true; its derivatives are NaN there as well.

    The derivative of a selection would be zero there, which would look like an answer. The shapes of `where` (bool) and
    `value` are broadcast together.
    """
    return jnp.where(where, jnp.asarray(jnp.nan, value.dtype), value)


@poison.defjvp
def _poison_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    where, value = primals
    return poison(where, value), poison(where, tangents[1])


def failed(dtype: Any) -> Any:
    """Return the value, of shape [], that stands in the result of a lane that has none."""
    if jnp.issubdtype(dtype, jnp.inexact):
        return jnp.asarray(jnp.nan, dtype)
    return jnp.asarray(False) if dtype == np.bool_ else jnp.asarray(integer_limits(dtype)[0], dtype)
