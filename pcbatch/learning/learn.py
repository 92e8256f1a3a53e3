"""From a compiled function and sample inputs to a learned schedule."""

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
from pcbatch.learning import fixed
from pcbatch.learning.q_learning import Learner, State, Training
from pcbatch.learning.task_graph import Choose, Ints, Simulation, TaskGraph, simulate
from pcbatch.learning.task_trace import TooLong, Tracer, trace_of_lanes
from pcbatch.lowering.typing.jax_types import from_storage, to_storage
from pcbatch.runtime.learned import fingerprint
from pcbatch.runtime.learned.policy import LANES, TASKS, Learned, StateTable
from pcbatch.runtime.learned.summary import BlockVisits, Summary
from pcbatch.runtime.tasks import bodies
from pcbatch.runtime.tasks.executable import TaskExecutable
from pcbatch.runtime.tasks.reading import TaskMachine
from pcbatch.runtime.tasks.trip import Trips, chosen_among
from pcbatch.runtime.vm.raw_result import is_tracing

MOST = 200_000  # executions of blocks in a graph
LEAST_WEIGHT = 0.1  # of a visit, besides what its block costs
WEIGHTS = ("visits", "cost")


@dataclass(frozen=True, slots=True)
class Task:
    """A machine whose schedule is to be learned, with the graph of the samples.

    Attributes:
        default: the policy without a table.
        graph: the graph, of the blocks that a schedule chooses among.
        functions: the function of each block.
        costs: the estimated cost of each block, for one execution.
        samples: the number of examples.
        policies: those of the machine itself, by name.
    """

    default: Learned
    graph: TaskGraph
    functions: tuple[str, ...]
    costs: tuple[float, ...]
    samples: int
    policies: Mapping[str, Callable[[], Choose]]


def learn(fn: FunctionType, program: Program, given: Arguments, training: Training, weights: str) -> Learned:
    """Learn the schedule of a program from sample inputs.

    Args:
        fn: The function.
        program: The program.
        given: The samples.
        training: How it is learned.
        weights: "visits", or "cost" to weigh visits by what their block costs.

    Raises:
        UsageError: There is nothing to learn from, or nothing to choose. (PCB426)
    """
    return learn_task(fn.__name__, task_of(fn, program, given), training, weights)


def task_of(fn: FunctionType, program: Program, given: Arguments) -> Task:
    """Return what there is to learn about a program, by running the samples."""
    name, source = fn.__name__, source_of(fn)
    program.with_pc("learn_schedule")
    if is_tracing(given.arrays):
        raise usage("PCB426", "a schedule cannot be learned inside of a transformation of JAX", help=_CALL_OUTSIDE)
    if given.lanes == 0:
        raise usage("PCB426", f"no samples to learn a schedule of `{name}` from", help=_GIVE_SAMPLES)
    try:
        if program.tasks is not None and program.tasks.options.most is None:
            return of_tasks(program.tasks, examples_of(program, program.tasks, given), source)
        return of_lanes(program, given, source)
    except TooLong:
        title = f"these samples of `{name}` run more than {MOST:,} blocks"
        raise usage("PCB426", title, help="give fewer or smaller samples: 32 are enough as a rule") from None


_CALL_OUTSIDE = "call `pcbatch.learn_schedule` outside of `jit`, `vmap` and `grad`, with arrays that have values"
_GIVE_SAMPLES = "give a batch of typical inputs, as in a call; 32 are enough as a rule"


def learn_task(name: str, task: Task, training: Training, weights: str = "visits") -> Learned:
    """Learn the schedule of a machine from the graph of its samples."""
    graph, default = task.graph, task.default
    if not _has_choices(graph, default):
        what = "no more than one block" if len(graph.labels) < 2 else "never more than one block at a time"
        title = f"`{name}` leaves a schedule nothing to choose: on these samples {what} can run"
        raise usage("PCB426", title, help="leave `schedule` out: every schedule makes the same visits")
    learner = Learner(graph, _weights(task, weights), default.choose, training)
    learner.learn()
    tables = [_table(training.encoding, learner.table())]
    if training.encoding != "base":  # for states that the samples do not meet
        coarse = Learner(graph, learner.weights, default.choose, replace(training, encoding="base"))
        coarse.learn()
        tables.append(_table("base", coarse.table()))
        if coarse.best_cost < learner.best_cost:  # the coarse states have had more experience each
            tables = tables[1:]
    policy = replace(default, tables=tuple(tables))
    return replace(policy, summary=summary(name, task, policy, training.encoding))


def _table(encoding: str, table: dict[State, int]) -> StateTable:
    states = tuple(sorted(table))
    return StateTable(encoding, states, tuple(table[state] for state in states))


def _has_choices(graph: TaskGraph, policy: Learned) -> bool:
    run = Simulation(graph)
    while run.live:
        if len(run.choices()) > 1:
            return True
        run.visit(policy.choose(run.waiting))
    return False


def _weights(task: Task, weights: str) -> Ints:
    if weights == "visits":
        return np.ones(len(task.costs))
    costs = np.array(task.costs)
    return LEAST_WEIGHT + costs / max(float(costs.max()), 1.0)


def summary(name: str, task: Task, policy: Learned, encoding: str) -> Summary:
    """Count the visits of a policy, of fixed policies, and those that every policy makes."""
    graph, unknown = task.graph, [0]

    def choose(run: Simulation) -> int:
        unknown[0] += not policy.knows(run.waiting)
        return policy.choose(run.waiting)

    made = simulate(graph, choose)
    others = {"agenda": fixed.agenda, "largest": fixed.largest} | {key: begin() for key, begin in task.policies.items()}
    counts = {"learned": made.total, "by depth": fixed.depth_based(graph)}
    counts |= {key: simulate(graph, choose).total for key, choose in others.items()}
    bounds = graph.bounds()
    blocks = tuple(
        BlockVisits(label, function, int(n), bound)
        for label, function, n, bound in zip(graph.labels, task.functions, made.visits, bounds, strict=True)
    )
    share = unknown[0] / max(1, made.total)
    return Summary(name, encoding, task.samples, len(graph), counts, sum(bounds), made.sufficient, share, blocks)


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
    graph = without(whole, [block.number for block in chosen])
    costs = bodies.costs(plan.stack)
    expensive = [k for k, block in enumerate(chosen) if block.expensive]
    cheap = [k for k, block in enumerate(chosen) if not block.expensive]
    cheap.sort(key=lambda k: not chosen[k].block.joins)
    ends = frozenset(k for k in expensive if chosen[k].finishes_only)
    expensive.sort(key=lambda k: k not in ends)
    policies = {"sweep": lambda: fixed.sweep((*cheap, *expensive))}
    if expensive:
        policies["drain"] = lambda: fixed.drain(cheap, partial(fixed.each, expensive, ends))
    functions = tuple(block.block.function for block in chosen)
    times = tuple(costs[block.label] for block in chosen)
    default = Learned(TASKS, graph.labels, tuple(sorted(expensive)), source, fingerprint.of_tasks(tasks.program), ())
    return Task(default, graph, functions, times, len(examples), policies)


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
    costs, expensive = bodies.costs(executable.program), executable.machine.expensive
    order = range(len(graph.labels))
    cheap = [k for k in order if k not in expensive]
    policies = {"earliest": lambda: lambda run: int(run.choices()[0]), "sweep": lambda: fixed.sweep(order)}
    if expensive:
        policies["drain"] = lambda: fixed.drain(cheap, partial(fixed.fullest, expensive))
    functions = tuple(block.function for block in executable.program.blocks)
    times = tuple(costs[label] for label in graph.labels)
    default = Learned(LANES, graph.labels, tuple(expensive), source, fingerprint.of_lanes(executable.program), ())
    return Task(default, graph, functions, times, given.lanes, policies)


def without(graph: TaskGraph, kept: Sequence[int]) -> TaskGraph:
    """Return the graph of some blocks; the others run before all of them, or after."""
    new = {kind: k for k, kind in enumerate(kept)}
    places: dict[int, int] = {}
    for v, kind in enumerate(graph.types.tolist()):
        if kind in new:
            places[v] = len(places)
    rows = list(places)
    return TaskGraph(
        labels=tuple(graph.labels[k] for k in kept),
        types=np.array([new[int(graph.types[v])] for v in rows], np.int64),
        examples=graph.examples[rows],
        needs=[tuple(places[p] for p in graph.needs[v] if p in places) for v in rows],
        widths=tuple(graph.widths[k] for k in kept),
    )
