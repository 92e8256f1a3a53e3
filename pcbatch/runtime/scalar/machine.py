"""The machine that runs lane after lane in native functions of a CPU, and expensive blocks for all lanes at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.runtime import emit
from pcbatch.runtime.costs.plan_modes import Costs
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.scalar import outside, worth
from pcbatch.runtime.scalar.lanes import BACK, Part, lane_by_lane, run_lanes
from pcbatch.runtime.scalar.native import in_one_function
from pcbatch.runtime.scalar.obstacles import blocked
from pcbatch.runtime.scalar.sections import run_in_sections, sections
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks
from pcbatch.runtime.vm.layout import Layout, reg
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.register_groups import Groups
from pcbatch.runtime.vm.step import StepContext

PATIENCE = (
    1 << 16
)  # visits of a lane in one trip, where a trip has an expensive block: lanes without an end must not hold it


@dataclass(frozen=True)
class ScalarMachine(Machine):
    """A machine whose lanes run one after the other; its state is that of any other machine.

    Where no block is outside, a trip is one visit of each lane that lives, and a run whose trips have no limit is one
    trip. Else a trip lets each lane run until it waits for a block outside, and visits those for all lanes that wait.
    """

    scalar_layout: Layout = field(kw_only=True)  # the same with the bodies of blocks for one lane
    costs: Costs = field(kw_only=True)

    @property
    def waits_for_lanes(self) -> bool:
        return False

    @property
    def trip_by_trip(self) -> Machine:
        machine = Machine(**{each.name: getattr(self, each.name) for each in fields(Machine)})
        return replace(machine, emitter=emit.pick("auto"))

    def outside(self, lanes: int) -> frozenset[int]:
        """Return the numbers of the blocks that are visited for all of so many lanes at once."""
        return outside.blocks(self.costs, lanes)

    def advance(self, state: State, max_trips: int | jax.Array | None = None, go: Any = None) -> State:
        lanes = state.carry["pc"].shape[0]
        if not _is_native(lanes):
            return self.trip_by_trip.advance(state, max_trips, go)
        if self.outside(lanes):
            return super().advance(state, max_trips, go)
        return self._alone(state, None, max_trips, go)

    def to_the_end(self, state: State) -> State:
        lanes = state.carry["pc"].shape[0]
        if not _is_native(lanes) or self.outside(lanes):
            return self.advance(state)
        return self._alone(state, frozenset({reg(v) for v in (*self.program.results, *self.layout.shown)}))

    def back(self, carry: Values) -> jax.Array:
        """Return the return address of each lane, int32[lanes]: see `Machine.back`."""
        return carry[BACK] if BACK in carry else super().back(carry)

    def lane_by_lane(self, compute: Callable[[Values], Any], rows: Values) -> Any:
        return lane_by_lane(compute, rows) if _is_native(rows["pc"].shape[0]) else super().lane_by_lane(compute, rows)

    def _alone(
        self, state: State, lasting: frozenset[str] | None, max_trips: int | jax.Array | None = None, go: Any = None
    ) -> State:
        """Let the lanes run, to the end where `lasting` are the registers that something reads behind the run; None:
        all that is in the state."""
        layout, width = self.scalar_layout, jnp.int32(state.carry["pc"].shape[0])
        lanes = width if go is None else jnp.where(go, width, 0)
        budget = None if max_trips is None else jnp.asarray(max_trips, jnp.int32)
        given = {reg(v) for v in self.program.params}
        passing = own = frozenset[str]()
        if lasting is not None:
            registers = {key for key in state.carry if key.startswith(reg(""))}
            passing = frozenset({*registers - lasting, *layout.buffers})
            own = frozenset(registers - given)  # which each lane sets before it reads them
        carry = {key: value for key, value in state.carry.items() if key not in passing or key in given}
        # In a fixed order, not that of a set: the text of the program is the key of JAX's persistent cache.
        unset = {key: value[0] for key, value in state.carry.items() if key in own}
        if layout.frames is not None and lasting is not None:
            depth = state.carry["frames"].shape[0] // carry["pc"].shape[0] - 2
            unset |= layout.frames.empty(1, depth, layout.exit)
            carry[BACK] = jnp.zeros(carry["pc"].shape, jnp.int32)

        part, nests = Part(layout, passing=passing), sections(layout)

        def run(
            carry: Values, unset: Values, shared: Values, budget: jax.Array | None, lanes: jax.Array
        ) -> tuple[Values, jax.Array]:
            return run_lanes(part, carry, unset, shared, lanes, budget)

        if len(nests) == 1:
            left, trips = in_one_function(run)(carry, unset, state.shared, budget, lanes)
        else:
            left, trips = run_in_sections(part, nests, carry, unset, state.shared, lanes, budget)
        return State(state.carry | left, state.shared, state.trips + trips)

    # Trips with blocks outside

    def groups(self, state: State) -> Groups:
        return Groups()  # a native function has no groups of registers

    def blocks(self, state: State, groups: Groups | None = None) -> Blocks:
        return replace(super().blocks(state, groups), emitter=emit.EMITTERS["guard"])

    def trip(self, blocks: Blocks, carry: Values, trips: jax.Array) -> Values:
        lanes, stage = carry["pc"].shape[0], blocks.stage
        assert isinstance(stage, StepContext)
        outsiders = self.outside(lanes)
        part = Part(self.scalar_layout, outsiders, in_place=outside.in_place(self.scalar_layout, self.costs, outsiders))

        def run(carry: Values, shared: Mapping[str, Any], lanes: jax.Array) -> tuple[Values, jax.Array]:
            return run_lanes(part, carry, {}, dict(shared), lanes, jnp.int32(PATIENCE))

        left, _ = in_one_function(run)(carry, stage.shared, jnp.int32(lanes))
        return blocks.sweep(sorted(outsiders), carry | left)


def _is_native(lanes: Any) -> bool:
    """Whether a run of so many lanes is lowered to native functions."""
    return lowering_platform() == "cpu" and not is_symbolic(lanes)


def scalar(machine: Machine, layout: Layout, costs: Costs) -> ScalarMachine:
    """Return the machine that runs lane after lane by this layout, which is `for_one_lane` of the machine's.

    Blocks with operations that no native function holds are outside, however many lanes there are.
    """
    costs = worth.with_blocked(costs, blocked(layout))
    values = {each.name: getattr(machine, each.name) for each in fields(Machine)}
    return ScalarMachine(**values | {"emitter": emit.OfMachine("scalar")}, scalar_layout=layout, costs=costs)
