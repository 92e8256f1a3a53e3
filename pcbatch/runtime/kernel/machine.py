"""The machine whose loop of trips is one kernel of a GPU, written in Pallas for Triton."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.errors import UsageError
from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.plan import Dense, Kernel
from pcbatch.runtime import emit
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.kernel import kernel_plan, qualify
from pcbatch.runtime.kernel.kernel_plan import KernelPlan
from pcbatch.runtime.kernel.launch import launched
from pcbatch.runtime.kernel.refill import drained
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.register_groups import Groups
from pcbatch.runtime.vm.step import StepContext

FOREVER = 2**31 - 1
PATIENCE_OF_KERNELS = 2**16  # trips of a kernel that others follow: lanes that never end must not hold it
PLATFORMS = ("cuda", "rocm", "cpu")  # on a CPU the kernel is interpreted


@dataclass(frozen=True)
class TiledMachine(Machine):
    """A machine with a kernel.

    Attributes:
        plan: The blocks, traced for a tile of lanes.
        function: The name of the function, for messages.
    """

    plan: KernelPlan = field(kw_only=True)
    function: str = field(kw_only=True)

    @property
    def waits_for_lanes(self) -> bool:
        return False  # tiles do not wait for each other

    @property
    def trip_by_trip(self) -> Machine:
        machine = Machine(**{each.name: getattr(self, each.name) for each in fields(Machine)})
        return replace(machine, emitter=emit.pick("auto"))


@dataclass(frozen=True)
class KernelMachine(TiledMachine):
    """A machine that makes its trips inside one kernel; its state is that of any other machine."""

    def drained(self, q: Queue, inputs: Values, grows: bool, most: Any, halted: Any) -> Queue:
        """Run a queue to its end in one kernel, as `refill.run` does in a loop."""
        _check_platform(self.function)
        budget = jnp.asarray(FOREVER if most is None else most, jnp.int32)
        return drained(self.plan, q, inputs, budget, ~jnp.asarray(halted), grows)

    def advance(self, state: State, max_trips: int | jax.Array | None = None, go: Any = None) -> State:
        if is_symbolic(state.carry["pc"].shape[0]):  # a grid has a known size
            return self.trip_by_trip.advance(state, max_trips, go)
        _check_platform(self.function)
        budget = jnp.asarray(FOREVER if max_trips is None else max_trips, jnp.int32)
        budget = budget if go is None else jnp.where(go, budget, 0)
        carry, trips = launched(self.plan, state.carry, state.shared, budget)
        return replace(state, carry=carry, trips=state.trips + trips)


def _check_platform(function: str) -> None:
    if (platform := lowering_platform()) not in PLATFORMS:
        raise UsageError(qualify.platform_refusal(function, platform))


@dataclass(frozen=True)
class SplitMachine(TiledMachine):
    """A machine whose trip is a kernel for most blocks, and then a visit of each of the others for all lanes.

    The kernel ends when every lane waits for one of these, or has ended.
    """

    def groups(self, state: State) -> Groups:
        return Groups()  # kernels have no groups of registers

    def blocks(self, state: State, groups: Groups | None = None) -> Blocks:
        every = super().blocks(state, groups)
        return replace(every, modes=(Dense(),) * len(every), emitter=emit.EMITTERS["guard"])

    def trip(self, blocks: Blocks, carry: Values, trips: jax.Array) -> Values:
        _check_platform(self.function)
        extra = {key: carry[key] for key in carry.keys() - self.plan.keys}
        state = {key: value for key, value in carry.items() if key not in extra}
        stage = blocks.stage
        assert isinstance(stage, StepContext)
        ran, _ = launched(self.plan, state, stage.shared, jnp.int32(PATIENCE_OF_KERNELS))
        return blocks.sweep(sorted(self.plan.outside), {**extra, **ran})


def in_kernel(machine: Machine, function: str, sizes: Kernel) -> Machine:
    """Return a machine as one kernel, or as kernels between which a few blocks are computed for all lanes.

    Args:
        machine: The machine.
        function: The name of the function, for messages.
        sizes: The lanes of a tile and the warps that compute it, or None of each.

    Raises:
        UsageError: PCB428, the program cannot be a kernel.
    """
    outcome = planned(machine, sizes)
    if outcome.plan is None:
        raise UsageError(qualify.refusal(function, list(outcome.obstacles)))
    values = {each.name: getattr(machine, each.name) for each in fields(Machine)}
    make = SplitMachine if outcome.plan.outside else KernelMachine
    emitter = emit.OfMachine("kernel", visits_singly=not outcome.plan.outside)
    return make(**values | {"emitter": emitter}, plan=outcome.plan, function=function)


@dataclass(frozen=True, slots=True)
class Planned:
    """The outcome of an attempt to put a machine into a kernel.

    Attributes:
        plan: The kernel; None if there is none.
        obstacles: What stands in the way, of the whole program or of the blocks that are outside of the kernel.
    """

    plan: KernelPlan | None
    obstacles: tuple[qualify.Obstacle, ...]


def planned(machine: Machine, sizes: Kernel) -> Planned:
    """Return a machine as a kernel would run it, and all that stands in the way of it."""
    found = qualify.of_machine(machine.layout, machine.schedule)
    if found:
        return Planned(None, tuple(found))
    # Scalars: one warp, whose reductions are instructions. Arrays: enough threads for their elements.
    tile, warps = (16, 8) if qualify.uses_arrays(machine.layout) else (32, 1)
    name = machine.schedule.name
    tile, warps = sizes.tile or tile, sizes.warps or warps
    plan = kernel_plan.make(machine.layout, name, machine.expensive, tile, warps, sizes.spins)
    refused = qualify.of_blocks(plan)
    larger = [each for block in plan.blocks if (each := qualify.prefers_all_lanes(plan, block)) is not None]
    found = [*refused, *larger]
    plan = replace(plan, outside=frozenset(plan.layout.index[each.block] for each in found))
    if len(plan.awaited) <= len(plan.outside):  # then it is a machine of loops, with kernels between
        if refused:
            return Planned(None, tuple(refused))
        return Planned(replace(plan, outside=frozenset()), ())
    return Planned(plan, tuple(found))
