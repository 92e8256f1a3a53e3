"""The machine whose loop of trips is one kernel of a GPU, written in Pallas for Triton."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.errors import UsageError
from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.options import Kernel
from pcbatch.runtime import emit
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.kernel import plan as plans
from pcbatch.runtime.kernel import qualify
from pcbatch.runtime.kernel.launch import launched
from pcbatch.runtime.kernel.plan import KernelPlan
from pcbatch.runtime.kernel.refill import drained
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks, Emitter
from pcbatch.runtime.vm.machine import Machine, State

FOREVER = 2**31 - 1
PLATFORMS = ("cuda", "rocm", "cpu")  # on a CPU the kernel is interpreted


@dataclass(frozen=True, slots=True)
class InKernel:
    """The emitter of machines that are one kernel; where single visits are asked for, it is another one."""

    name: str = "kernel"
    visits_singly: bool = True
    instead: Emitter = field(default_factory=lambda: emit.pick("auto"))

    def visit(self, blocks: Blocks, block: int, carry: Values) -> Values:
        return self.instead.visit(blocks, block, carry)

    def run(self, blocks: Blocks, block: jax.Array, carry: Values, among: Sequence[int]) -> Values:
        return self.instead.run(blocks, block, carry, among)


@dataclass(frozen=True)
class KernelMachine(Machine):
    """A machine that makes its trips inside one kernel; its state is that of any other machine.

    Attributes:
        plan: The blocks, traced for a tile of lanes.
        function: The name of the function, for messages.
    """

    plan: KernelPlan = field(kw_only=True)
    function: str = field(kw_only=True)

    @property
    def trip_by_trip(self) -> Machine:
        machine = Machine(**{each.name: getattr(self, each.name) for each in fields(Machine)})
        return replace(machine, emitter=emit.pick("auto"))

    def drained(self, q: Queue, inputs: Values, grows: bool, most: Any, halted: Any) -> Queue:
        """Run a queue to its end in one kernel, as `refill.run` does in a loop."""
        self._check_platform()
        budget = jnp.asarray(FOREVER if most is None else most, jnp.int32)
        return drained(self.plan, q, inputs, budget, ~jnp.asarray(halted), grows)

    def advance(self, state: State, max_trips: int | jax.Array | None = None, go: Any = None) -> State:
        if is_symbolic(state.carry["pc"].shape[0]):  # a grid has a known size
            return self.trip_by_trip.advance(state, max_trips, go)
        self._check_platform()
        budget = jnp.asarray(FOREVER if max_trips is None else max_trips, jnp.int32)
        budget = budget if go is None else jnp.where(go, budget, 0)
        carry, trips = launched(self.plan, state.carry, state.shared, budget)
        return replace(state, carry=carry, trips=state.trips + trips)

    def _check_platform(self) -> None:
        if (platform := lowering_platform()) not in PLATFORMS:
            raise UsageError(qualify.platform_refusal(self.function, platform))


def in_kernel(machine: Machine, function: str, sizes: Kernel) -> KernelMachine:
    """Return a machine as one kernel.

    Args:
        machine: The machine.
        function: The name of the function, for messages.
        sizes: The lanes of a tile and the warps that compute it, or None of each.

    Raises:
        UsageError: PCB428, the program cannot be a kernel.
    """
    plan, found = planned(machine, sizes)
    if plan is None or found:
        raise UsageError(qualify.refusal(function, found))
    values = {each.name: getattr(machine, each.name) for each in fields(Machine)}
    return KernelMachine(**values | {"emitter": InKernel()}, plan=plan, function=function)


def planned(machine: Machine, sizes: Kernel) -> tuple[KernelPlan | None, list[qualify.Obstacle]]:
    """Return a machine as a kernel would run it, and all that stands in the way of it."""
    found = qualify.of_machine(machine.layout, machine.schedule)
    if found:
        return None, found
    # Scalars: one warp, whose reductions are instructions. Arrays: enough threads for their elements.
    tile, warps = (16, 8) if qualify.uses_arrays(machine.layout) else (32, 1)
    name = machine.schedule.name
    plan = plans.make(machine.layout, name, machine.expensive, sizes.tile or tile, sizes.warps or warps)
    return plan, qualify.of_blocks(plan)
