"""The machine of a program: that of lanes, of one lane after the other, or of one kernel, as the options say."""

from __future__ import annotations

from pcbatch.ir.stack import StackProgram
from pcbatch.options import Options
from pcbatch.runtime import emit, kernel
from pcbatch.runtime.costs import xla_options
from pcbatch.runtime.costs.plan_modes import Costs
from pcbatch.runtime.scalar import for_one_lane, left_in, scalar
from pcbatch.runtime.vm import layout
from pcbatch.runtime.vm.machine import Machine
from pcbatch.runtime.vm.policies import POLICIES, Policy


def machine_of(program: StackProgram, options: Options, schedule: str | Policy, costs: Costs, timed: bool) -> Machine:
    """Return the machine of a program.

    Args:
        program: The program.
        options: The options of the function.
        schedule: The policy, or its name.
        costs: The estimates for the program.
        timed: Whether statistics are kept over time.

    Raises:
        UsageError: PCB428, the program cannot be the kernel that the options ask for.
    """
    one_by_one = options.plan.emitter == "scalar"
    machine = Machine(
        layout.make(program, options.max_steps, options.stats or timed, timed, rows=one_by_one),
        emit.pick(options.plan.emitter),
        POLICIES[schedule] if isinstance(schedule, str) else schedule,
        costs.expensive,
        costs.modes,
        left_behind=costs.left_behind,
        isolate_reads=not xla_options.keeps_in_place(program),
    )
    if one_by_one and not left_in(rows := for_one_lane(machine.layout)):
        return scalar(machine, rows, costs)
    if (sizes := options.plan.kernel) is None:
        return machine
    return kernel.in_kernel(machine, program.blocks[machine.layout.index[program.entry]].function, sizes)
