"""The graph of a program of tasks on its samples: tasks are run one by one on the host, for control alone.

What blocks compute besides is left out: the hidden states of a tree decide nothing, so that a trace of a TreeLSTM
computes no product. Each block is one jitted function of a single record. Nothing depends on the order in which tasks
are taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.forks import Fork, conditions, leaves
from pcbatch.ir.ops import Fail, Move, Prim, PureOp, Select
from pcbatch.ir.roles import reads, writes
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
from pcbatch.options import Dense
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.vm.block_body import Values, evaluate
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.policies import Largest
from pcbatch.runtime.vm.status import Status, status_of


class TooLong(Exception):
    """The samples run more blocks than a graph may have."""


@dataclass(eq=False)
class _Frame:
    """A frame of a traced task: places of results, the number of tasks that it waits for, and who has brought them."""

    owner: _Frame | None  # where the results of the task itself go
    dsts: tuple[str, ...] = ()
    places: Values = field(default_factory=dict)
    tasks: int = 0
    needs: list[int] = field(default_factory=list)
    sync: tuple[str, Values] | None = None


@dataclass(slots=True, eq=False)
class _Place:
    """The destination of a task's results: places of a frame, or a row of arrays there."""

    frame: _Frame
    dsts: tuple[str, ...]
    row: int | None = None
    filled: bool = False


@dataclass(frozen=True, slots=True)
class _Ready:
    """A record that waits for a block."""

    label: str
    record: Values
    place: _Place
    frame: _Frame | None
    needs: tuple[int, ...]


class Tracer:
    """Traces the examples of a program into one graph."""

    def __init__(self, program: TaskProgram, most: int) -> None:
        self.program, self.most = program, most
        self.blocks: Mapping[str, TaskBlock] = {block.label: block for block in program.blocks}
        self.control: Mapping[str, Control] = control(program)
        self.number = {block.label: k for k, block in enumerate(program.blocks)}
        self.bodies = {label: jax.jit(partial(_body, part)) for label, part in self.control.items() if part.sent}
        self.known = {label: _free(part) for label, part in self.control.items()}
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
        root = _Frame(None, tasks=1)
        entry = self.blocks[self.program.entry]
        self.ready.append(_Ready(entry.label, {v: values[v] for v in entry.params}, _Place(root, ()), None, ()))
        while self.ready:
            self._execute(self.ready.pop())

    def graph(self, widths: tuple[int, ...]) -> TaskGraph:
        """Return the graph of all examples so far."""
        labels = tuple(block.label for block in self.program.blocks)
        return TaskGraph(labels, np.array(self.types, np.int64), np.array(self.examples, np.int64), self.needs, widths)

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
                    frame = _Frame(task.place.frame, task.place.dsts)
                case Spawn(dsts=dsts, way=way, row=row):
                    assert frame is not None
                    at = int(values[row]) if row in values else None
                    self._begin(_Place(frame, dsts, at), way, values, me)
                case SpawnInto(way=way):
                    self._begin(task.place, way, values, me)
        self._end(task, block, frame, values, me)

    def _values(self, task: _Ready) -> Values:
        """The variables that the end of a block needs."""
        if task.label not in self.bodies:
            return {}
        part = self.control[task.label]
        record = {v: task.record[v] for v in part.params}
        known = {v: self.values[v] for v in self.known[task.label] if v in self.values}
        return dict(zip(part.sent, self.bodies[task.label](record, known), strict=True))

    def _begin(self, place: _Place, way: Way, values: Values, me: int) -> None:
        while isinstance(way, Fork):
            way = way.on_true if bool(values[way.cond]) else way.on_false
        match way:
            case Give(values=names):
                _give(place, [values.get(name) for name in names])
            case Start(label=label, args=args):
                place.frame.tasks += 1
                record = {param: values[source] for param, source in args if source in values}
                self.ready.append(_Ready(label, record, place, None, (me,)))

    def _end(self, task: _Ready, block: TaskBlock, frame: _Frame | None, values: Values, me: int) -> None:
        edge = block.terminator
        while isinstance(edge, Fork):
            edge = edge.on_true if bool(values[edge.cond]) else edge.on_false
        match edge:
            case TaskJump(target=target, args=args):
                record = {param: values[source] for param, source in args if source in values}
                self.ready.append(_Ready(target, record, task.place, frame, (me,)))
            case Sync(target=target, args=args):
                assert frame is not None
                frame.sync = target, {param: values[source] for param, source in args if source in values}
                frame.needs.append(me)
                self._join(frame)
            case Finish(values=names):
                _give(task.place, [values.get(name) for name in names])
                task.place.frame.tasks -= 1
                task.place.frame.needs.append(me)
                self._join(task.place.frame)
            case Fail():
                pass  # its results come nowhere

    def _join(self, frame: _Frame) -> None:
        """Go on after a `sync`, if all that was spawned has returned."""
        if frame.tasks or frame.sync is None or frame.owner is None:
            return
        target, saved = frame.sync
        frame.sync = None
        needs = tuple(dict.fromkeys(frame.needs))
        self.ready.append(_Ready(target, saved | frame.places, _Place(frame.owner, frame.dsts), None, needs))


def _give(place: _Place, values: Sequence[Any]) -> None:
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


def _body(part: Control, record: Values, known: Values) -> tuple[Any, ...]:
    env = {**known, **record}
    for op in part.ops:
        evaluate(op, env)
    return tuple(env[v] for v in part.sent)


def _free(part: Control) -> tuple[str, ...]:
    """The variables that the control of a block reads without computing them."""
    made: set[str] = set(part.params)
    free: dict[str, None] = {}
    for op in part.ops:
        free |= dict.fromkeys(v for v in reads(op) if v not in made)
        made |= set(writes(op))
    return tuple(free | dict.fromkeys(v for v in part.sent if v not in made))


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


@dataclass(frozen=True, slots=True)
class Control:
    """The part of a block that decides where its records go next.

    Attributes:
        params: the parameters that it reads for that.
        ops: the operations, in order.
        sent: the variables that its end needs.
    """

    params: tuple[str, ...]
    ops: tuple[PureOp, ...]
    sent: tuple[str, ...]


def control(program: TaskProgram) -> Mapping[str, Control]:
    """Return the control of each block, by label."""
    return _Slice(program).run()


class _Slice:
    """A fixed point: which parameters and which results of the tasks of a block decide where some task goes."""

    def __init__(self, program: TaskProgram) -> None:
        self.program = program
        self.params: dict[str, frozenset[str]] = {block.label: frozenset() for block in program.blocks}
        self.results: dict[str, frozenset[int]] = {block.label: frozenset() for block in program.blocks}

    def run(self) -> Mapping[str, Control]:
        found: dict[str, Control] = {}
        before: object = None
        while before != (before := (dict(self.params), dict(self.results))):
            awaited = frozenset().union(*(self.params[b.label] for b in self.program.blocks if b.joins))
            for block in self.program.blocks:
                self._spread(block, awaited)
                found[block.label] = self._of(block, awaited)
                self.params[block.label] |= frozenset(found[block.label].params)
        return found

    def _spread(self, block: TaskBlock, awaited: frozenset[str]) -> None:
        """Hand on which results are needed: to what goes on for the task, and to what is started for its frame."""
        mine = self.results[block.label]
        for op in (op for op in spawns(block) if isinstance(op, Spawn)):
            needed = frozenset(k for k, dst in enumerate(op.dsts) if dst in awaited)
            for label in starts(op.way):
                self.results[label] |= needed
        for label in heirs(block):
            self.results[label] |= mine

    def _of(self, block: TaskBlock, awaited: frozenset[str]) -> Control:
        sent = dict.fromkeys(self._sent(block, awaited))
        wanted, ops = set(sent), []
        for op in reversed([op for op in block.ops if isinstance(op, Prim | Move | Select)]):
            if wanted & set(writes(op)):
                ops.append(op)
                wanted = wanted - set(writes(op)) | set(reads(op))
        params = tuple(param for param in block.params if param in wanted)
        return Control(params, tuple(reversed(ops)), tuple(sent))

    def _sent(self, block: TaskBlock, awaited: frozenset[str]) -> Iterable[str]:
        results = self.results[block.label]
        for op in spawns(block):
            yield from conditions(op.way)
            needed = [k for k, dst in enumerate(op.dsts) if dst in awaited] if isinstance(op, Spawn) else results
            if isinstance(op, Spawn) and op.row is not None and needed:
                yield op.row
            for way in leaves(op.way):
                if isinstance(way, Give):
                    yield from (way.values[k] for k in sorted(needed))
                elif isinstance(way, Start):
                    yield from (source for param, source in way.args if param in self.params[way.label])
        yield from conditions(block.terminator)
        for leaf in leaves(block.terminator):
            match leaf:
                case TaskJump(target=target, args=args) | Sync(target=target, args=args):
                    yield from (source for param, source in args if param in self.params[target])
                case Finish(values=values):
                    yield from (values[k] for k in sorted(results))


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
