"""`f.explain_schedule(...)`: the way that a program would run, and the reasons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from pcbatch.call.arguments import Arguments
from pcbatch.call.results import BlockStats
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.tables import number, ranges, shortened, table, time
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackBlock, Storage
from pcbatch.lowering.analysis.cost import op_cost
from pcbatch.lowering.tasks.worth import NO_RECURSION
from pcbatch.options import Options
from pcbatch.plan import Dense, Kernel, Mode, Plan
from pcbatch.runtime import kernel
from pcbatch.runtime.costs import trip_time
from pcbatch.runtime.costs.plan_modes import WIDEST, Costs
from pcbatch.runtime.costs.trip_time import XlaCost
from pcbatch.runtime.learned.policy import TASKS, Learned
from pcbatch.runtime.scalar import ScalarMachine, obstacles
from pcbatch.runtime.sharding.lane_sharding import Devices, LaneSharding
from pcbatch.runtime.vm.machine import Machine
from pcbatch.runtime.vm.policies import FAIR, is_ours

TEXT = 44  # characters of a block's text
SHOWN = 64  # elements of a shared value from which on it is named
OTHER_BLOCKS = "the schedule was learned for other blocks of this function: learn it again with inputs of these types"


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """The plan for one block; times are estimates in nanoseconds.

    Attributes:
        label: its name in the program.
        function: the function that it is of.
        lines: the lines of its source.
        text: the source of its most expensive primitive.
        lane_ns: the time for one lane.
        dense_ns: the time of a visit that computes all lanes.
        visits: expected visits, relative to those of the most visited block.
        expensive: whether lanes wait for each other here.
        width: lanes that a visit computes at a time.
        mode: how a visit computes the block, such as "dense" or "strips of 32".
        rounds: of a loop that is unrolled, how many a visit computes; else 1.
        why: the reason for this mode.
        trip_ns: its part of the time of a trip.
        xla: XLA's own analysis of the block, per lane, if there is one.
    """

    label: str
    function: str
    lines: tuple[int, ...]
    text: str
    lane_ns: float
    dense_ns: float
    visits: float
    expensive: bool
    width: int
    mode: str
    rounds: int
    why: str
    trip_ns: float
    xla: XlaCost | None

    @property
    def is_exit(self) -> bool:
        """Whether the block computes nothing, as those where lanes fail."""
        return not self.text and self.lane_ns == 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of `f.explain_schedule(...)`: the way that a program would run. `str()` of it is a table.

    Attributes:
        function: the name of the function.
        inputs: those of one device.
        lanes: those of the machine of one device.
        policy: the policy that decides which block runs next, such as "drain".
        reason: the reason for this policy.
        emitter: how blocks are dispatched.
        in_the_way: of one lane after the other, the operations for which the program runs by another emitter.
        alone: how many lanes of a plain call run one after the other, such as "fewer than 64"; "": all run together.
        runs_alone: whether those of this call do.
        outside: the labels of the blocks that such a call visits for all lanes at once.
        narrower: the lanes of the machines in which the last lanes of a plain run go on, from wide to narrow.
        map_lanes: the lanes that `f.map` would use for these inputs, or for 1024 if they are fewer.
        rows: the plan of each block, in order of the program.
        along: a line for each function without a decorator that is compiled along, with the reason.
        shared: the large values that all lanes share, of which there is one.
        kernel: whether the program can be one kernel of a GPU (emitter "kernel"), and why not.
        calls: where `fork` of the plan allows it, whether independent calls run side by side, and why not.
        plan: the plan in force: that of the function, and what was decided for this call where it leaves a choice.

    Example:
        >>> import jax, pcbatch
        >>> @pcbatch.batch
        ... def double(x):
        ...     return 2 * x
        >>> plan = double.explain_schedule(jax.ShapeDtypeStruct((8,), "float32"))
        >>> plan.lanes, len(plan.rows), plan.expensive
        (8, 1, ())
    """

    function: str
    inputs: int
    lanes: int
    policy: str
    reason: str
    emitter: str
    map_lanes: int
    rows: tuple[BlockPlan, ...] = field(repr=False)
    along: tuple[str, ...] = ()
    calls: str = ""
    shared: tuple[str, ...] = ()
    kernel: str = ""
    narrower: tuple[int, ...] = ()
    in_the_way: tuple[str, ...] = ()
    alone: str = ""
    runs_alone: bool = False
    outside: tuple[str, ...] = ()
    plan: Plan = Plan()

    @property
    def expensive(self) -> tuple[str, ...]:
        """The labels of the blocks worth waiting for."""
        return tuple(row.label for row in self.rows if row.expensive)

    @property
    def trip_ns(self) -> float:
        """The estimated time of a trip, in nanoseconds."""
        return sum(row.trip_ns for row in self.rows)

    def to_json(self) -> str:
        """Return the explanation as JSON, times in nanoseconds."""
        values = asdict(replace(self, plan=Plan())) | {"plan": repr(self.plan), "trip_ns": self.trip_ns}
        return json.dumps(values, indent=2)

    def __str__(self) -> str:
        streamed = f" for {self.inputs} inputs" if self.lanes < self.inputs else ""
        size = f"{self.lanes} lanes{streamed}, {len(self.rows)} blocks"
        lines = [
            f"plan in force: {self.plan}",
            *([_alone(self.alone, self.runs_alone, self.outside)] if self.alone else []),
            f"{self.function}: {size}, very roughly {time(self.trip_ns)} a trip",
            f"  policy   {self.policy}: {self.reason}",
            f"  emitter  {self.emitter}{_instead(self.in_the_way)}{'' if self.alone else _apart(self.outside)}",
            f"  kernel   {self.kernel}",
            *([f"  end      {_last_lanes(self.narrower)}"] if self.narrower else []),
            f"  map      {self.map_lanes} lanes for many inputs",
            *(f"  along    {line}" for line in self.along),
            *([f"  calls    {self.calls}"] if self.calls else []),
            *([f"  shared   {', '.join(self.shared)}"] if self.shared else []),
            "",
            self._table(),
        ]
        return "\n".join([*lines, "", *_LEGEND])

    def _table(self) -> str:
        numbers = ("ns/lane", "dense", "visits", "trip", "flops", "bytes")
        head = ("block", "function", "lines", "holds", *numbers, "computed", "why")
        return table(head, (_cells(row) for row in self.rows if not row.is_exit), right=numbers)


def _instead(in_the_way: tuple[str, ...]) -> str:
    return f", and not `scalar`: {'; '.join(in_the_way[:2])}" if in_the_way else ""


def _apart(outside: Sequence[str]) -> str:
    return f", and {', '.join(outside)} for all lanes at once" if outside else ""


def _alone(widths: str, this: bool, outside: Sequence[str]) -> str:
    """The line on plain calls of a program whose lanes may run one after the other."""
    if not this:
        return f"plain calls of {widths} lanes run one after the other (emitter scalar); this one does not"
    return (
        f"a plain call runs one lane after the other (emitter scalar){_apart(outside)}, as {widths} lanes do, "
        "much work in a chunk for each core; below are lanes together, for the rest"
    )


def _last_lanes(narrower: Sequence[int]) -> str:
    machines = "a machine of their own" if len(narrower) == 1 else "machines of their own"
    return f"the last {' and '.join(map(str, narrower))} lanes go on in {machines}"


_LEGEND = (
    "  * waited for: it runs when every live lane waits at such a block",
    "  ns/lane, dense: estimated time per lane and of a visit for all lanes; visits: expected, relative to the most",
    "  visited block; trip: estimated part of a trip's time; flops, bytes: XLA's own analysis of the block, per lane;",
    "  rounds: of a loop that is unrolled, in one visit; blocks where lanes only fail are left out",
)


def _cells(row: BlockPlan) -> tuple[str, ...]:
    return (
        row.label + (" *" if row.expensive else ""),
        row.function,
        ranges(row.lines),
        shortened(row.text, TEXT),
        number(row.lane_ns),
        time(row.dense_ns),
        number(row.visits),
        time(row.trip_ns),
        number(None if row.xla is None else row.xla.flops),
        number(None if row.xla is None else row.xla.bytes),
        row.mode + (f", {row.rounds} rounds" if row.rounds > 1 else ""),
        row.why,
    )


def explain_call(
    name: str,
    compiled: Program,
    given: Arguments,
    lanes: int | None,
    mesh: Devices = None,
    alone: Program | None = None,
) -> Explanation:
    """Explain how the inputs of a call would run through `lanes` lanes of each device (None: as in a plain call).

    `alone`: the program of a plain call, whose lanes may run one after the other.
    """
    executable = compiled.with_pc("explain_schedule")
    each = LaneSharding(compiled.placed(given, mesh), given.lanes).each
    width = max(1, executable.width(each) if lanes is None else min(lanes, each))
    chosen = compiled.options.plan.schedule != "auto" and not isinstance(compiled.options.plan.schedule, Learned)
    explained = _explain(name, executable.machine, executable.costs, compiled.infos, each, width, chosen)
    if isinstance(compiled.options.plan.schedule, Learned) and not _learned_for_tasks(compiled):
        if not isinstance(executable.machine.schedule, Learned):
            explained = replace(explained, reason=OTHER_BLOCKS)
    along = tuple(map(str, compiled.stages.helpers))
    narrower = executable.narrower(width) if width == each else ()  # a queue narrows when no input is left
    calls, shared, as_kernel = _calls(compiled), _shared(compiled), _kernel(executable.machine, compiled.options)
    if compiled.options.plan.emitter == "scalar":
        in_the_way = tuple(map(str, obstacles(executable.machine.layout)))
        explained = replace(explained, in_the_way=in_the_way, outside=_outside(compiled, width))
    if alone is not None and alone.alone:
        widths, outside = alone.alone, _outside(alone, given.lanes)
        explained = replace(explained, alone=str(widths), runs_alone=given.lanes in widths, outside=outside)
    explained = replace(explained, along=along, calls=calls, shared=shared, kernel=as_kernel, narrower=narrower)
    return replace(explained, plan=_in_force(explained, compiled, lanes is None and compiled.runs_tasks(given, mesh)))


def _in_force(explained: Explanation, compiled: Program, by_tasks: bool) -> Plan:
    """The plan of a function, with what was decided for a call in place of "auto"."""
    plan = compiled.options.plan
    if by_tasks:
        return replace(plan, fork="always")
    if explained.runs_alone or explained.emitter == "scalar":  # the policy is for what is outside alone
        return replace(plan, emitter="scalar")
    schedule = explained.policy if plan.schedule == "auto" else plan.schedule
    return replace(plan, schedule=schedule, emitter=explained.emitter if plan.emitter == "auto" else plan.emitter)


def _outside(compiled: Program, lanes: int) -> tuple[str, ...]:
    """The labels of the blocks that are visited for all lanes while the rest runs one lane after the other."""
    machine = compiled.with_pc("explain_schedule").machine
    if not isinstance(machine, ScalarMachine):
        return ()
    return tuple(machine.program.blocks[k].label for k in sorted(machine.outside(lanes)))


def _kernel(machine: Machine, options: Options) -> str:
    """Whether a machine can be one kernel of a GPU; the first reasons if not."""
    outcome = kernel.planned(machine, options.plan.kernel or Kernel())
    more = len(outcome.obstacles) - 2
    reasons = "; ".join(map(str, outcome.obstacles[:2])) + (f"; and {more} more" if more > 0 else "")
    if outcome.plan is None:
        return f"no: {reasons}"
    how = "it is" if options.plan.kernel is not None else 'it can be, with `Plan(emitter="kernel")`,'
    text = f"{how} one kernel of a GPU, in tiles of {outcome.plan.tile} lanes"
    repeated = [f"{machine.layout.codes[k].block.label} {n} times" for k, n in outcome.plan.repeats.items()]
    text += f", loops repeated ({', '.join(repeated)})" if repeated else ""
    labels = [machine.layout.codes[k].block.label for k in sorted(outcome.plan.outside)]
    return f"{text}, and {', '.join(labels)} outside of it, for all lanes: {reasons}" if labels else text


def _shared(compiled: Program) -> tuple[str, ...]:
    """The values of some size that all lanes share, those that passes have put together included."""
    variables = compiled.stages.opt.vars.items()
    shared = [(v, var.type) for v, var in variables if var.storage is Storage.SHARED]
    return tuple(f"{v}: {type_}" for v, type_ in shared if type_ is not None and type_.size >= SHOWN)


def _calls(compiled: Program) -> str:
    """Whether independent calls run side by side; nothing where that was not asked for, or where there are none."""
    fork = compiled.forked
    if compiled.options.plan.fork == "never" or (fork.tasks is None and fork.reason in NO_RECURSION):
        return ""
    if fork.tasks is None:
        return f"in lanes: {fork.reason}"
    tasks = fork.tasks.program
    joins = sum(block.joins for block in tasks.blocks)
    how = f"{len(tasks.blocks)} lists of tasks, {joins} of them behind a wait"
    phases = len(set(fork.tasks.plan(single=False).phases.values()))
    how += f", in {phases} phases" if phases > 1 else ""
    if _learned_for_tasks(compiled):
        follows = fork.tasks.options.policy is not None
        how += f", {compiled.options.plan.schedule.brief()}" if follows else f", {OTHER_BLOCKS}"
    how += "" if fork.tasks.options.for_one else ", but for a single example"
    how += "" if fork.tasks.options.most is None else f", up to {fork.tasks.options.most} examples"
    below = "the blocks below are those of lanes, for derivatives and examples that fail"
    return f"side by side, {how}, which `f.profile` and `Result.stats` show; {below}"


def _learned_for_tasks(compiled: Program) -> bool:
    """Whether the schedule is a learned one that tasks follow."""
    schedule = compiled.options.plan.schedule
    return isinstance(schedule, Learned) and schedule.machine == TASKS


def _explain(
    name: str, machine: Machine, costs: Costs, infos: Sequence[BlockStats], inputs: int, lanes: int, chosen: bool
) -> Explanation:
    """Explain a machine of `lanes` lanes for `inputs` inputs. `chosen`: whether the user has named the policy."""
    choices = _choices(machine, costs, lanes)
    modes = tuple(mode for mode, _ in choices)
    policy = machine.schedule.name
    times = trip_time.trip_times(costs, modes, lanes, policy)
    rows = tuple(
        BlockPlan(
            label=info.label,
            function=info.function,
            lines=info.lines,
            text=most_expensive_text(code.block),
            lane_ns=block.lane,
            dense_ns=block.dense(lanes),
            visits=block.often,
            expensive=block.expensive,
            width=trip_time.width_of(mode, lanes),
            mode=str(mode),
            rounds=code.block.rounds,
            why=why,
            trip_ns=trip,
            xla=trip_time.xla_cost(code, trip_time.width_of(mode, lanes)),
        )
        for info, code, block, (mode, why), trip in zip(
            infos, machine.layout.codes, costs.blocks, choices, times, strict=True
        )
    )
    reason, map_lanes = _reason(machine, rows, chosen), costs.stream_lanes(max(WIDEST, inputs))
    return Explanation(name, inputs, lanes, policy, reason, machine.emitter.name, map_lanes, rows)


def _choices(machine: Machine, costs: Costs, lanes: int) -> tuple[tuple[Mode, str], ...]:
    if machine.emitter.name == "guard":
        return costs.choices(lanes)
    which = {"kernel": "the lanes of a tile", "scalar": "one lane after the other"}
    why = f"`{machine.emitter.name}` computes {which.get(machine.emitter.name, 'all lanes')}"
    return ((Dense(), why),) * len(costs.blocks)


def most_expensive_text(block: StackBlock) -> str:
    """The source of the most expensive primitive; the shortest of several."""
    texts = [(op_cost(op), -len(op.expr.text), op.expr.text) for op in block.ops if isinstance(op, Prim)]
    return max(texts, default=(0.0, 0, ""))[2]


def _reason(machine: Machine, rows: Sequence[BlockPlan], chosen: bool) -> str:
    """The reason for the policy of a machine."""
    if not is_ours(machine.schedule):
        return f"a policy of yours; every {FAIR}th trip is followed by a sweep"
    if isinstance(machine.schedule, Learned):
        return machine.schedule.brief()
    if chosen:
        return "as `schedule` says"
    expensive = [row.label for row in rows if row.expensive]
    if machine.schedule.name == "drain":
        blocks, verb = " and ".join(expensive) or "a block", "decides" if len(expensive) < 2 else "decide"
        return f"{blocks} {verb} the time, so lanes gather there"
    return "no block is so dear that lanes should wait for each other there"
