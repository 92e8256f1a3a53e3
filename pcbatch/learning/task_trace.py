"""The graph of a program of tasks on its samples: tasks are run one by one on the host, for control alone.

What blocks compute besides is left out: the hidden states of a tree decide nothing, so that a trace of a TreeLSTM
computes no product. Each block is one jitted function of a single record. Nothing depends on the order in which tasks
are taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.forks import Fork, map_leaves
from pcbatch.ir.ops import Fail, PureOp
from pcbatch.ir.roles import reads
from pcbatch.ir.tasks import (
    Finish,
    Give,
    OpenFrame,
    Spawn,
    SpawnInto,
    Start,
    Sync,
    TaskBlock,
    TaskJump,
    TaskProgram,
    Way,
    heirs,
    spawns,
    starts,
)
from pcbatch.learning.task_graph import TaskGraph, of_chains
from pcbatch.lowering.tasks import dead_parameters
from pcbatch.plan import Dense
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.vm.block_body import Values, evaluate
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.policies import Largest
from pcbatch.runtime.vm.status import Status, status_of

NOTHING = ""  # stands for a variable that decides nothing


class TooLong(Exception):
    """The samples run more blocks than a graph may have."""


@dataclass(eq=False)
class _TaskFrame:
    """A frame of a traced task: places of results, the number of tasks that it waits for, and who has brought them."""

    owner: _TaskFrame | None  # where the results of the task itself go
    dsts: tuple[str, ...] = ()
    places: Values = field(default_factory=dict)
    tasks: int = 0
    needs: list[int] = field(default_factory=list)
    sync: tuple[str, Values] | None = None


@dataclass(slots=True, eq=False)
class _Destination:
    """The destination of a task's results: places of a frame, or a row of arrays there."""

    frame: _TaskFrame
    dsts: tuple[str, ...]
    row: int | None = None
    filled: bool = False


@dataclass(frozen=True, slots=True)
class _Ready:
    """A record that waits for a block."""

    label: str
    record: Values
    place: _Destination
    frame: _TaskFrame | None
    needs: tuple[int, ...]


class Tracer:
    """Traces the examples of a program into one graph."""

    def __init__(self, program: TaskProgram, most: int) -> None:
        self.program, self.most = control(program), most
        self.blocks: Mapping[str, TaskBlock] = {block.label: block for block in self.program.blocks}
        self.number = {label: k for k, label in enumerate(self.blocks)}
        self.read = {
            label: {v for part in (*block.ops, block.terminator) for v in reads(part)}
            for label, block in self.blocks.items()
            if _sent(block)
        }
        self.bodies = {label: jax.jit(partial(_body, block)) for label, block in self.blocks.items()}
        self.types: list[int] = []
        self.examples: list[int] = []
        self.needs: list[tuple[int, ...]] = []
        self.ready: deque[_Ready] = deque()

    def trace(self, example: int, args: Mapping[str, Any]) -> None:
        """Run one example, whose arguments are given by parameter."""
        values = {v: args[v] for v in self.program.params}
        for op in self.program.prologue:
            evaluate(op, values)
        self.example, self.values = example, values
        root = _TaskFrame(None, tasks=1)
        entry = self.blocks[self.program.entry]
        self.ready.append(_Ready(entry.label, {v: values[v] for v in entry.params}, _Destination(root, ()), None, ()))
        while self.ready:
            self._execute(self.ready.pop())

    def graph(self, widths: tuple[int, ...]) -> TaskGraph:
        """Return the graph of all examples so far."""
        return TaskGraph(
            tuple(self.blocks), np.array(self.types, np.int64), np.array(self.examples, np.int64), self.needs, widths
        )

    def _execute(self, task: _Ready) -> None:
        if len(self.types) >= self.most:
            raise TooLong
        me = len(self.types)
        self.types.append(self.number[task.label])
        self.examples.append(self.example)
        self.needs.append(task.needs)
        block, frame = self.blocks[task.label], task.frame
        values = self._values(task)
        for op in block.ops:
            match op:
                case OpenFrame():
                    frame = _TaskFrame(task.place.frame, task.place.dsts)
                case Spawn(dsts=dsts, way=way, row=row):
                    assert frame is not None
                    at = None if row is None else int(values[row])
                    self._begin(_Destination(frame, dsts, at), way, values, me)
                case SpawnInto(way=way):
                    self._begin(task.place, way, values, me)
        self._end(task, block, frame, values, me)

    def _values(self, task: _Ready) -> Values:
        """The variables that the end of a block needs."""
        if task.label not in self.read:
            return {}
        read = self.read[task.label]
        given = {v: value for v, value in (self.values | task.record).items() if v in read}
        values: Values = self.bodies[task.label](given)
        return values

    def _begin(self, place: _Destination, way: Way, values: Values, me: int) -> None:
        while isinstance(way, Fork):
            way = way.on_true if bool(values[way.cond]) else way.on_false
        match way:
            case Give(values=names):
                _give(place, [values.get(name) for name in names])
            case Start(label=label, args=args):
                place.frame.tasks += 1
                record = {param: values[source] for param, source in args}
                self.ready.append(_Ready(label, record, place, None, (me,)))

    def _end(self, task: _Ready, block: TaskBlock, frame: _TaskFrame | None, values: Values, me: int) -> None:
        edge = block.terminator
        while isinstance(edge, Fork):
            edge = edge.on_true if bool(values[edge.cond]) else edge.on_false
        match edge:
            case TaskJump(target=target, args=args):
                record = {param: values[source] for param, source in args}
                self.ready.append(_Ready(target, record, task.place, frame, (me,)))
            case Sync(target=target, args=args):
                assert frame is not None
                frame.sync = target, {param: values[source] for param, source in args}
                frame.needs.append(me)
                self._join(frame)
            case Finish(values=names):
                _give(task.place, [values.get(name) for name in names])
                task.place.frame.tasks -= 1
                task.place.frame.needs.append(me)
                self._join(task.place.frame)
            case Fail():
                pass  # its results come nowhere

    def _join(self, frame: _TaskFrame) -> None:
        """Go on after a `sync`, if all that was spawned has returned."""
        if frame.tasks or frame.sync is None or frame.owner is None:
            return
        target, saved = frame.sync
        frame.sync = None
        needs = tuple(dict.fromkeys(frame.needs))
        self.ready.append(_Ready(target, saved | frame.places, _Destination(frame.owner, frame.dsts), None, needs))


def _give(place: _Destination, values: Sequence[Any]) -> None:
    """Put results at their places; a second one is a term of a sum. None: a value that decides nothing."""
    places = place.frame.places
    for dst, value in zip(place.dsts, values, strict=False):  # those of the example itself have no names
        if value is None:
            continue
        if place.row is not None:
            places[dst] = with_row(places[dst], place.row, value, adds=place.filled)
        else:
            places[dst] = places[dst] + value if dst in places else value
    place.filled = True


def _body(block: TaskBlock, given: Values) -> Values:
    env = dict(given)
    for op in block.ops:
        if isinstance(op, PureOp):
            evaluate(op, env)
    return {v: env[v] for v in _sent(block)}


def _sent(block: TaskBlock) -> tuple[str, ...]:
    """The variables that the end of a block needs: what it spawns, and its terminator."""
    names = (v for part in (*spawns(block), block.terminator) for v in reads(part))
    return tuple(v for v in dict.fromkeys(names) if v != NOTHING)


def with_row(array: Any, row: int, value: Any, adds: bool) -> Any:
    """Return an array with another row, or with one to which a value is added; the array if it has no such row."""
    if not 0 <= row < array.shape[0]:
        return array
    value = array[row] + value if adds else value
    if not isinstance(array, np.ndarray):
        return array.at[row].set(value)
    new = array.copy()
    new[row] = value
    return new


def control(program: TaskProgram) -> TaskProgram:
    """Return the program with only the parameters and operations that decide where some task goes.

    It is a fixed point: what a task returns is needed if a block after a `sync` needs it. `NOTHING` is in place of all
    other results.
    """
    results: dict[str, frozenset[int]] = {block.label: frozenset() for block in program.blocks}  # needed ones of tasks
    awaited: frozenset[str] = frozenset()
    while True:
        blocks = tuple(_without_results(block, results[block.label], awaited) for block in program.blocks)
        found = dead_parameters.run(replace(program, blocks=blocks))
        before = dict(results), awaited
        awaited = frozenset(param for block in found.blocks if block.joins for param in block.params)
        for block in program.blocks:
            for op in (op for op in spawns(block) if isinstance(op, Spawn)):
                for label in starts(op.way):
                    results[label] |= _needed(op, awaited)
            for label in heirs(block):
                results[label] |= results[block.label]
        if before == (results, awaited):
            return found


def _needed(op: Spawn, awaited: frozenset[str]) -> frozenset[int]:
    return frozenset(k for k, dst in enumerate(op.dsts) if dst in awaited)


def _without_results(block: TaskBlock, mine: frozenset[int], awaited: frozenset[str]) -> TaskBlock:
    """The block with `NOTHING` in place of results that are not needed; `mine` are those of its task that are."""

    def without(leaf: Any, needed: frozenset[int]) -> Any:
        if not isinstance(leaf, Give | Finish):
            return leaf
        return replace(leaf, values=tuple(v if k in needed else NOTHING for k, v in enumerate(leaf.values)))

    ops = []
    for op in block.ops:
        if isinstance(op, Spawn | SpawnInto):
            needed = _needed(op, awaited) if isinstance(op, Spawn) else mine
            op = replace(op, way=map_leaves(op.way, partial(without, needed=needed)))
            op = replace(op, row=None) if isinstance(op, Spawn) and not needed else op
        ops.append(op)
    end = block.terminator
    end = replace(end, message=()) if isinstance(end, Fail) else map_leaves(end, partial(without, needed=mine))
    return replace(block, ops=tuple(ops), terminator=end)


# The blocks that each lane runs on the samples, in order: the machine of lanes, looked at between trips.

LOG = 1024  # trips between two looks
START_DEPTH, MOST_DEPTH = 64, 1 << 16


def trace_of_lanes(executable: PcExecutable, args: Mapping[str, Any], lanes: int, most: int) -> TaskGraph:
    """Return the graph of a run of all lanes.

    Raises:
        TooLong: They run more than `most` blocks, or need very deep stacks.
    """
    machine = _one_at_a_time(executable.machine)
    depth = executable.static_depth or START_DEPTH
    while True:
        chains, full = _run(machine, executable.arguments.natural(args), lanes, depth, most)
        if not full:
            return of_chains(tuple(block.label for block in machine.program.blocks), chains)
        if depth >= MOST_DEPTH or depth == executable.options.max_depth:
            raise TooLong
        depth = min(4 * depth, executable.options.max_depth or MOST_DEPTH)


def _one_at_a_time(machine: Machine) -> Machine:
    """The machine in which each trip runs one block once, for all that wait, and that prints nothing."""
    silent = tuple(replace(code, prints=()) for code in machine.layout.codes)
    modes = (Dense(),) * len(silent)
    layout = replace(machine.layout, codes=silent)
    return replace(machine, layout=layout, emitter=Guard(), schedule=Largest(), modes=lambda lanes: modes)


def _run(machine: Machine, args: Mapping[str, Any], lanes: int, depth: int, most: int) -> tuple[list[list[int]], bool]:
    """Return the blocks of each lane, and whether a lane had no room for a call."""
    state = jax.jit(lambda args: machine.start(args, lanes, depth))(args)
    advance = jax.jit(lambda state: _logged(machine, state))
    chains: list[list[int]] = [[] for _ in range(lanes)]
    total, more = 0, True
    while more:
        state, log, trips, live = advance(state)
        rows = np.asarray(log)[: int(trips)]
        for lane in range(lanes):
            ran = rows[:, lane]
            chains[lane] += ran[ran >= 0].tolist()
        total += int((rows >= 0).sum())
        if total > most:
            raise TooLong
        more = bool(live)
    status = status_of(state.carry["pc"].astype(jnp.int32), machine.layout.exit)
    return chains, bool(jnp.any(status == int(Status.STACK_FULL)))


def _logged(machine: Machine, state: State) -> tuple[State, jax.Array, jax.Array, jax.Array]:
    """Make trips, and note for each which block every lane has run, or -1."""
    blocks = machine.blocks(state)
    lanes = state.carry["pc"].shape[0]
    log = jnp.full((LOG, lanes), -1, jnp.int16)

    def going(c: tuple[Values, jax.Array, jax.Array]) -> jax.Array:
        return blocks.live(c[0]) & (c[2] < LOG)

    def trip(c: tuple[Values, jax.Array, jax.Array]) -> tuple[Values, jax.Array, jax.Array]:
        carry, log, k = c
        runs = jnp.argmax(blocks.waiting(carry)).astype(jnp.int32)
        pc = carry["pc"].astype(jnp.int32)
        log = log.at[k].set(jnp.where(pc == runs, runs, -1).astype(jnp.int16))
        return machine.trip(blocks, carry, state.trips + k), log, k + 1

    carry, log, trips = jax.lax.while_loop(going, trip, (state.carry, log, jnp.zeros((), jnp.int32)))
    after = State(carry, state.shared, state.trips + trips)
    return after, log, trips, blocks.live(carry)
