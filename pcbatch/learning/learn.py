"""From a compiled function and sample inputs to the schedule that is the best on samples held out.

Every second sample is learned from; the others are held out, and judge the very policies that may be deployed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType

import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.call.usage import usage
from pcbatch.compiler.program import Program
from pcbatch.compiler.schedules import source_of
from pcbatch.learning import fixed, lemma
from pcbatch.learning.q_learning import Learner, Training
from pcbatch.learning.task_graph import Choose, Outcome, Simulation, TaskGraph, Visits, simulate
from pcbatch.learning.task_trace import TooLong, Tracer, trace_of_lanes
from pcbatch.lowering.stack_passes.block_layout import ordered
from pcbatch.lowering.typing.jax_types import from_storage, to_storage
from pcbatch.plan import SCHEDULES, Dense
from pcbatch.runtime.costs import plan_modes
from pcbatch.runtime.costs.trip_time import visit_time
from pcbatch.runtime.learned import fingerprint
from pcbatch.runtime.learned.policy import LANES, LEMMA, TABLE, TASKS, Learned, StateTable
from pcbatch.runtime.learned.summary import BlockVisits, Summary
from pcbatch.runtime.tasks import bodies
from pcbatch.runtime.tasks.executable import TaskExecutable
from pcbatch.runtime.tasks.reading import TaskMachine
from pcbatch.runtime.tasks.trip import Trips, chosen_among
from pcbatch.runtime.vm.raw_result import is_tracing

MOST = 200_000  # executions of blocks in a graph
LEAST = 0.1  # of the time of a visit of the dearest block of tasks, for each visit besides what its block costs
AUTO = SCHEDULES[0]
# A more complicated policy has to gain such a share: of estimated time, which is rough, and of measured time.
GAIN, MEASURED_GAIN = 0.05, 0.02
# Nanoseconds to choose a block in a running machine of lanes: to test each, to see what waits, per digit of a table.
TEST, LOOK_UP, COMPARE = 50.0, 300.0, 1.0


@dataclass(frozen=True, slots=True)
class Task:
    """A machine whose schedule is to be learned, with the graph of the samples.

    Attributes:
        default: the policy without what it is to learn.
        graph: the graph, of the blocks that a schedule chooses among.
        functions: the function of each block.
        times: the estimated time of a visit of each for which many wait, in any unit.
        policies: those of the machine itself, by name.
        own: the name of that without a schedule.
        alone: whether lanes are estimated to be faster one after the other, which no schedule is for.
        visits: how the machine makes them, under a policy of a name, for so many lanes; their times in that unit.
    """

    default: Learned
    graph: TaskGraph
    functions: tuple[str, ...]
    times: tuple[float, ...]
    policies: Mapping[str, Callable[[], Choose]]
    own: str
    alone: bool = False
    visits: Callable[[str, int], Visits] = lambda name, lanes: Visits()

    def part(self, rest: int) -> Task:
        """Return the same with those of the samples whose numbers have this rest by two."""
        return replace(self, graph=self.graph.part(self.graph.examples % 2 == rest, range(len(self.times))))

    def outcome(self, policy: Learned) -> Outcome:
        """Return the visits of a policy, as the machine would make them."""
        name = self.own if policy.deployed == AUTO else policy.deployed
        begin = self.policies.get(name)
        choose = (lambda run: policy.choose(run.waiting)) if begin is None else begin()
        return simulate(self.graph, choose, self.visits(name, len(np.unique(self.graph.examples))))

    def time(self, policy: Learned, made: Outcome) -> float:
        """Return the estimated time of the visits that a policy makes."""
        choice, blocks = 0.0, len(self.times)
        if policy.machine == LANES and policy.deployed not in (AUTO, "sweep", "drain"):
            looks_up = LOOK_UP + COMPARE * blocks * policy.states
            choice = TEST * blocks + looks_up * (policy.deployed in (TABLE, LEMMA))
        return made.time + choice * made.total


Measure = Callable[[Sequence[Learned]], Mapping[str, float]]


def task_of(fn: FunctionType, program: Program, given: Arguments) -> Task:
    """Return what there is to learn about a program, by running the samples."""
    name, source = fn.__name__, source_of(fn)
    program.with_pc("learn_schedule")
    if is_tracing(given.arrays):
        raise usage("PCB426", "a schedule cannot be learned inside of a transformation of JAX", help=_CALL_OUTSIDE)
    try:
        if program.tasks is not None and program.tasks.options.most is None:
            return of_tasks(program.tasks, examples_of(program, program.tasks, given), source)
        return of_lanes(program, given, source)
    except TooLong:
        title = f"these samples of `{name}` run more than {MOST:,} blocks"
        raise usage("PCB426", title, help="give fewer or smaller samples: 32 are enough as a rule") from None


_CALL_OUTSIDE = "call `pcbatch.learn_schedule` outside of `jit`, `vmap` and `grad`, with arrays that have values"


def learn_task(name: str, task: Task, training: Training, measure: Measure | None = None) -> Learned:
    """Learn the schedule of a machine from the graph of its samples, and return the best of it and others.

    `measure` returns the seconds of policies, by name, on the samples held out; None: their time is estimated.
    """
    if not _has_choices(task.graph):
        what = "no more than one block" if len(task.graph.labels) < 2 else "never more than one block at a time"
        title = f"`{name}` leaves a schedule nothing to choose: on these samples {what} can run"
        raise usage("PCB426", title, help="leave `schedule` out: every schedule makes the same visits")
    policies = candidates(task.part(0), training)
    seconds = None if measure is None else measure(policies)
    return best(name, task.part(1), policies, training.encoding, seconds)


def candidates(task: Task, training: Training) -> list[Learned]:
    """Return the policies that may be deployed, the simplest first; a table decides in what states it has met."""
    rule = replace(task.default, ahead=lemma.ahead(task.graph, training.seed), deployed=LEMMA)
    learner = Learner(task.graph, np.array(task.times) / max(task.times), rule.choose, training)
    learner.learn()
    table = learner.table()
    states = tuple(sorted(table))
    tables = (StateTable(training.encoding, states, tuple(table[state] for state in states)),)
    names = (AUTO, *(name for name in task.policies if name != task.own))
    return [*(replace(rule, deployed=name) for name in names), rule, replace(rule, tables=tables, deployed=TABLE)]


def best(
    name: str, task: Task, policies: Sequence[Learned], encoding: str, seconds: Mapping[str, float] | None = None
) -> Learned:
    """Return the fastest policy on samples, or a simpler one that is about as fast; `seconds` are measured, by name."""
    made = {policy.deployed: task.outcome(policy) for policy in policies}
    times = {p.deployed: task.time(p, made[p.deployed]) for p in policies} if seconds is None else seconds
    chosen, gain = policies[0], GAIN if seconds is None else MEASURED_GAIN
    for policy in () if task.alone and seconds is None else policies[1:]:
        if times.get(policy.deployed, np.inf) < (1 - gain) * times.get(chosen.deployed, 0.0):
            chosen = policy
    mine, bounds = made[chosen.deployed], task.graph.bounds()
    blocks = map(BlockVisits, task.graph.labels, task.functions, mine.visits.tolist(), bounds)
    found = Summary(
        function=name,
        encoding=encoding,
        samples=len(np.unique(task.graph.examples)),
        executions=len(task.graph),
        deployed=chosen.deployed,
        policies={key: outcome.total for key, outcome in made.items()},
        bound=sum(bounds),
        sufficient=mine.sufficient,
        blocks=tuple(blocks),
        times=times,
        measured=seconds is not None,
        alone=task.alone,
    )
    return replace(chosen, summary=found)


def _has_choices(graph: TaskGraph) -> bool:
    run = Simulation(graph)
    while run.live:
        if len(run.choices()) > 1:
            return True
        run.visit(int(run.choices()[0]))
    return False


# The two machines


def of_tasks(tasks: TaskExecutable, examples: Sequence[Mapping[str, object]], source: str = "") -> Task:
    """Return what there is to learn about a program of tasks; its examples are given by parameter."""
    plan, sizes = tasks.plan(single=len(examples) == 1), tasks.chosen(len(examples))
    trips = Trips(TaskMachine(plan, sizes, {}))
    tracer = Tracer(tasks.program, MOST)
    for k, args in enumerate(examples):
        tracer.trace(k, args)
    whole = tracer.graph(tuple(trips.widths(block)[0] for block in plan.blocks))
    chosen = chosen_among(plan)
    graph = whole.part(np.ones(len(whole), bool), [block.number for block in chosen])
    costs = bodies.costs(plan.stack)
    expensive = [k for k, block in enumerate(chosen) if block.expensive]
    cheap = [k for k, block in enumerate(chosen) if not block.expensive]
    cheap.sort(key=lambda k: not chosen[k].block.joins)
    ends = frozenset(k for k in expensive if chosen[k].finishes_only)
    expensive.sort(key=lambda k: k not in ends)
    own = "drain" if expensive else "sweep"

    def begin() -> Choose:
        return fixed.drain(cheap, partial(fixed.each, expensive, ends)) if expensive else fixed.sweep(cheap)

    functions = tuple(block.block.function for block in chosen)
    dearest = max(1.0, *(costs[block.label] for block in chosen))
    times = tuple(LEAST + costs[block.label] / dearest for block in chosen)
    default = Learned(TASKS, graph.labels, source, fingerprint.of_tasks(tasks.program))
    visits = Visits(lambda block, waiting: times[block])
    return Task(default, graph, functions, times, {own: begin}, own, visits=lambda name, lanes: visits)


def examples_of(program: Program, tasks: TaskExecutable, given: Arguments) -> list[dict[str, object]]:
    """Return the arguments of each example, by parameter of the tasks."""
    args, types = program.args(given), tasks.program.types
    named = program.with_pc("learn_schedule").named(tasks)
    mapped = program.mapped(args)

    def one(v: str, k: int) -> object:
        type_ = types[v]
        assert type_ is not None
        value = args[named[v]]
        return from_storage(to_storage(value[k] if named[v] in mapped else value, type_), type_)

    return [{v: one(v, k) for v in named} for k in range(given.lanes)]


def of_lanes(program: Program, given: Arguments, source: str) -> Task:
    """Return what there is to learn about a program of lanes."""
    executable = program.with_pc("learn_schedule")
    graph = trace_of_lanes(executable, program.args(given), given.lanes, MOST)
    costs, expensive = executable.costs, executable.machine.expensive
    number = {label: k for k, label in enumerate(graph.labels)}
    order = {name: [number[label] for label in ordered(executable.program, name)] for name in SCHEDULES[1:]}
    cheap = [k for k in order["drain"] if k not in expensive]
    left, machine, modes = costs.left_behind(given.lanes // 2), executable.machine, executable.options.plan.modes

    def visits(name: str, lanes: int) -> Visits:
        priced = plan_modes.costs(executable.program, modes, name == "drain", name == "sweep")
        planned = priced.modes(lanes)
        repeats = [mode.spins if isinstance(mode, Dense) else 0 for mode in planned]
        repeats = [min(n, 1) if code.may_not_end else n for n, code in zip(repeats, machine.layout.codes, strict=True)]
        return Visits(
            lambda block, waiting: visit_time(priced.blocks[block], planned[block], lanes, waiting),
            repeats if machine.emitter.name == "guard" else (),
        )

    policies: dict[str, Callable[[], Choose]] = {
        "earliest": lambda: fixed.earliest(order["earliest"]),
        "largest": lambda: fixed.largest(order["largest"]),
        "sweep": lambda: fixed.sweep(order["sweep"]),
        "drain": lambda: (
            fixed.drain(cheap, partial(fixed.fullest, expensive), left) if expensive else fixed.sweep(cheap)
        ),
    }
    functions = tuple(block.function for block in executable.program.blocks)
    default = Learned(LANES, graph.labels, source, fingerprint.of_lanes(executable.program))
    return Task(
        default,
        graph,
        functions,
        tuple(block.dense(given.lanes // 2) for block in costs.blocks),
        policies,
        str(executable.schedule),
        visits=visits,
    )
