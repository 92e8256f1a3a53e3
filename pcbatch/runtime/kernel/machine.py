"""The machine whose loop of trips is one kernel of a GPU, written in Pallas for Triton."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.runtime.kernel import plan as plans
from pcbatch.runtime.kernel.launch import launched
from pcbatch.runtime.kernel.plan import KernelPlan
from pcbatch.runtime.vm.machine import Machine, State

FOREVER = 2**31 - 1


@dataclass(frozen=True)
class KernelMachine(Machine):
    """A machine that runs trips inside one kernel; its state is that of any other machine."""

    tile: int = 32
    warps: int = 1

    @cached_property
    def plan(self) -> KernelPlan:
        """The blocks, traced for a tile."""
        return plans.make(self.layout, self.schedule.name, self.expensive, self.tile, self.warps)

    def advance(self, state: State, max_trips: int | jax.Array | None = None, go: Any = None) -> State:
        if is_symbolic(state.carry["pc"].shape[0]):
            return super().advance(state, max_trips, go)
        budget = jnp.asarray(FOREVER if max_trips is None else max_trips, jnp.int32)
        budget = budget if go is None else jnp.where(go, budget, 0)
        carry, trips = launched(self.plan, state.carry, state.shared, budget)
        return replace(state, carry=carry, trips=state.trips + trips)
