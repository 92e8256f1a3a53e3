"""Program-counter autobatching at run time: one executable for each signature, and the ways to run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jax

from pcbatch.ir.ops import Print
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.options import Options
from pcbatch.runtime.costs import plan_modes, xla_options
from pcbatch.runtime.costs.memory import MachineMemory
from pcbatch.runtime.execute import call_values
from pcbatch.runtime.execute.batch_programs import run_batch, run_whole
from pcbatch.runtime.execute.call_values import ArgumentSharding, ResultReader, gathered, placed
from pcbatch.runtime.execute.direct_run import DirectRuns, direct_run, run_directly
from pcbatch.runtime.execute.host_loop import TripBudget
from pcbatch.runtime.execute.machines import machine_of
from pcbatch.runtime.execute.program_cache import DeviceProgram, ProgramCache
from pcbatch.runtime.execute.queue_run import run_queue_through
from pcbatch.runtime.execute.stack_depths import StackDepth
from pcbatch.runtime.execute.where_stopped import where_stopped
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.scalar import ScalarMachine
from pcbatch.runtime.scalar.worth import Widths, one_by_one
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding, ShardedArguments
from pcbatch.runtime.tasks import TaskExecutable
from pcbatch.runtime.tasks.devices import DeviceTasks
from pcbatch.runtime.tasks.executable import CHUNK, run_chunks
from pcbatch.runtime.tasks.fallback import completed
from pcbatch.runtime.vm import layout
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.policies import Policy
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Site

AT_ONCE = 1 << 26  # bytes of the state of lanes that run one after the other; more of them are dealt out in rounds


@dataclass(eq=False)
class PcExecutable:
    """A stack program with the machine that runs it, and the ways to run it.

    What runs share is in its parts: the jitted programs, the depths of stacks, the arguments, the results.

    Attributes:
        program: the program.
        options: the options of the function.
        schedule: the policy, or its name.
        static_depth: the greatest number of nested calls, where the call graph bounds it.
        donated: parameters whose arrays a run may use.
        tasks: runs the same function by tasks, if independent calls are to run side by side.
        timed: whether it keeps statistics over time.
        forms: the program with computations in both forms, if its lanes may run one after the other inside a trace.
        tapes: rows of buffers that gradients have needed, by what they were gradients of.
    """

    program: StackProgram
    options: Options
    schedule: str | Policy
    static_depth: int | None
    donated: frozenset[str] = frozenset()
    tasks: TaskExecutable | None = None
    machine: Machine = field(init=False)
    costs: plan_modes.Costs = field(init=False)
    memory: MachineMemory = field(init=False)
    stacks: StackDepth = field(init=False)
    programs: ProgramCache = field(init=False)
    arguments: ArgumentSharding = field(init=False)
    results: ResultReader = field(init=False)
    timed: bool = False
    forms: StackProgram | None = None
    tapes: dict[Any, tuple[int, ...]] = field(default_factory=dict)
    _paces: dict[Any, TripBudget] = field(default_factory=dict)
    _task_devices: dict[Devices, DeviceTasks] = field(default_factory=dict)
    direct: DirectRuns = field(default_factory=DirectRuns)

    def __post_init__(self) -> None:
        self.costs = plan_modes.costs(
            self.program, self.options.plan.modes, self.schedule == "drain", self.schedule == "sweep"
        )
        self.machine = machine_of(self.program, self.options, self.schedule, self.costs, self.timed)
        self.costs = self.machine.costs if isinstance(self.machine, ScalarMachine) else self.costs
        prints = any(isinstance(op, Print) for op in self.program.ops)
        self.memory = MachineMemory(self.machine.layout, self.options.memory)
        self.stacks = StackDepth(self.static_depth, self.options.max_depth, self.memory)
        self.programs = ProgramCache(
            xla_options.typical_kernel(self.program),
            not isinstance(self.machine, ScalarMachine) and not xla_options.has_loops(self.program),
        )
        self.arguments = ArgumentSharding(self.program, prints)
        self.results = ResultReader(self.program, self.machine, self.timed)

    # Other machines for the same program

    @property
    def traced_machine(self) -> Machine:
        """The machine for programs whose XLA options the user chooses."""
        return replace(self.machine, isolate_reads=True)

    @cached_property
    def smooth(self) -> Machine:
        """The machine for programs that JAX differentiates: what it saves has tangents. It does not print: the run
        that it differentiates does."""
        differentiable = layout.make(self.program, self.options.max_steps, self.options.stats, floats_apart=True)
        silent = tuple(replace(code, prints=()) for code in differentiable.codes)
        return replace(self.traced_machine.trip_by_trip, layout=replace(differentiable, codes=silent))

    @cached_property
    def one_by_one(self) -> PcExecutable:
        """An executable of the same program whose lanes run one after the other, with stacks of the same depth."""
        assert self.forms is not None
        options = replace(self.options, plan=replace(self.options.plan, emitter="scalar", fork="never"))
        alone = PcExecutable(self.forms, options, self.schedule, self.static_depth)
        alone.stacks = self.stacks
        return alone

    @property
    def alone(self) -> Widths:
        """The numbers of lanes that are faster by this executable, one after the other, than together."""
        return one_by_one(self.costs, str(self.schedule)) if isinstance(self.machine, ScalarMachine) else Widths()

    @cached_property
    def profiling(self) -> PcExecutable:
        """An executable of the same program with statistics over time: its XLA programs are others, so that this one
        pays nothing for them."""
        return PcExecutable(self.program, self.options, self.schedule, self.static_depth, timed=True)

    @cached_property
    def counting(self) -> PcExecutable:
        """An executable of the same program that counts the visits of tasks and lanes, for profiles."""
        assert self.tasks is not None
        tasks = TaskExecutable(self.tasks.program, replace(self.tasks.options, stats=True))
        options = replace(self.options, stats=True)
        return PcExecutable(self.program, options, self.schedule, self.static_depth, tasks=tasks)

    # Ways to run it

    def run(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> RawResult:
        """Run all inputs to their end: by tasks where they are to run so many, else by lanes. Outside traces."""
        tasks = self.tasks_for(lanes)
        if tasks is None or LaneSharding(mesh, 0).far:
            return self.run_lanes(args, lanes, mesh)
        named, mapped = self.named(tasks), frozenset(self.arguments.split(args)[0])
        by_task = frozenset(v for v, name in named.items() if name in mapped)
        runs = tasks if mesh is None else self.tasks_on(tasks, mesh)
        outcome = run_chunks(runs, {v: args[name] for v, name in named.items()}, by_task, lanes)
        return completed(outcome, args, mapped, partial(self.run_lanes, mesh=mesh), self.machine.layout.exit)

    def tasks_for(self, lanes: int) -> TaskExecutable | None:
        """Return the program of tasks, if it is to run so many inputs of a call. Outside traces."""
        return self.tasks if self.tasks is not None and self.tasks.takes(min(lanes, CHUNK)) else None

    def run_lanes(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> RawResult:
        """Run all lanes to their end. Outside traces."""
        sharding = LaneSharding(mesh, lanes)
        if (direct := direct_run(self, sharding, self.arguments.mapped(args))) is not None:
            return run_directly(self, direct, [args[v] for v in self.params], sharding)
        width = self.width(sharding.each)
        if width is not sharding.each and width < sharding.each:
            return self.map(args, lanes, width, mesh)
        return run_batch(self, args, sharding)

    def named(self, tasks: TaskExecutable) -> dict[str, str]:
        """The parameters of a program of tasks, each with its name here."""
        return dict(zip(tasks.program.params, self.params, strict=False))

    def tasks_on(self, tasks: TaskExecutable, over: Devices) -> DeviceTasks:
        """The executable of a program of tasks on several devices."""

        def place(args: Mapping[str, Any], sharding: LaneSharding) -> ShardedArguments:
            given = placed(self, {names[v]: x for v, x in args.items()}, sharding)
            mapped, common = (
                {v: part[names[v]] for v in args if names[v] in part} for part in (given.mapped, given.common)
            )
            return replace(given, mapped=mapped, common=common)

        names = self.named(tasks)
        if over not in self._task_devices:
            self._task_devices[over] = DeviceTasks(tasks, over, place, partial(gathered, self))
        return self._task_devices[over]

    def map(self, args: Mapping[str, Any], inputs: int, lanes: int | None = None, mesh: Devices = None) -> RawResult:
        """Run all inputs through `lanes` lanes on each device (None: the program decides). Outside traces."""
        sharding = LaneSharding(mesh, inputs)
        return run_queue_through(self, args, sharding, self.queue_width(lanes, sharding))

    def width(self, inputs: int) -> int:
        """The lanes of the machine that a plain call makes for this number of inputs on a device."""
        if self.prints or is_symbolic(inputs):
            return inputs
        alone = isinstance(self.machine, ScalarMachine) and self.memory.total(inputs, self.depth) <= AT_ONCE
        return inputs if alone else self.costs.lanes(inputs)

    def narrower(self, lanes: int, always: bool = False) -> tuple[int, ...]:
        """The widths of the machines in which the last of so many lanes go on (`always`: by `narrow=True`)."""
        here = self.machine.waits_for_lanes and not self.prints and lowering_platform() == "cpu"
        return self.costs.narrower(lanes, always or self.options.plan.narrow) if here else ()

    @property
    def narrows(self) -> bool:
        """Whether the last lanes of a queue go on in narrower machines."""
        return self.costs.narrows(self.options.plan.narrow) and self.machine.waits_for_lanes

    def queue_width(self, lanes: int | None, sharding: LaneSharding) -> int:
        """The lanes on each device of a queue that is to have `lanes` of them (None: the program decides)."""
        return min(lanes or self.costs.stream_lanes(sharding.each), sharding.each)

    # What runs share

    @property
    def prints(self) -> bool:
        """Whether a lane may print."""
        return self.arguments.prints

    @property
    def depth(self) -> int:
        """The depth of stacks that runs have needed so far."""
        return self.stacks.needed

    def deeper(self, status: Any, depth: int, sharding: LaneSharding) -> int | None:
        """Return the depth that stacks of this depth are to have, if a lane has ended for want of room and there may
        be more. Waits for the run."""
        growth = self.stacks.growth(sharding, depth)
        return growth.depth if growth.grow_if_full(status) else None

    def pace(self, lanes: int, how: str) -> TripBudget:
        """The measured time per trip for this number of lanes, kept from one run to the next."""
        return self._paces.setdefault((lanes, how), TripBudget())

    def jitted(self, program: DeviceProgram, lanes: int) -> Any:
        """The jitted program of this executable, for this number of lanes. Only outside traces."""
        return self.programs.jitted(program, self, lanes)

    # The compiled program, for those who look at it

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return self.program.params

    def where(self, pc: int, back: int | None = None) -> Site:
        """Return where a lane stopped, by its final program counter and the return address of its last call."""
        return where_stopped(self.program, pc, back)

    def lower(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Any:
        """`jax.stages.Lowered` of the whole run at the depth that a call would start with."""
        sharding = LaneSharding(mesh, lanes)
        mapped, common = self.arguments.split(args)
        return self.jitted(run_whole, sharding.each).lower(
            sharding.described(mapped, common), spread=sharding, depth=self.depth, keep=False
        )

    def outcome(self, result: tuple[RawResult, State | None], depth: int, lanes: int, mesh: Devices) -> RawResult:
        """The raw result of what the compiled form of `lower` returned."""
        return replace(call_values.collected(result[0], LaneSharding(mesh, lanes)), depth=depth)

    def jaxpr(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Any:
        """The jaxpr of the whole run."""
        run = partial(run_whole, self, spread=LaneSharding(mesh, lanes), depth=self.depth, keep=False)
        return jax.make_jaxpr(lambda args: jax.tree.leaves(run(args)))(args)
