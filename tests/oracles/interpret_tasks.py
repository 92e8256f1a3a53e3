"""The reference interpreter of task programs, which defines their meaning for ONE example.

At once, a `spawn` runs its task to the end and `sync` goes on: that is the meaning. With a seed, tasks that could go on
lie in a bag and are taken from it at random, one block at a time; results and failures must be those of the meaning,
whatever the seed. A task fails with the failure that the meaning would meet first: that of the first task it has
spawned that has not returned, if that one has failed, and its own only if all that it has spawned has returned.

Values live in dicts: the record of a block, and the frame of a task. Reading a variable without a value, giving a
result twice and going on with a record that does not fit are errors of the program.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from pcbatch.errors import InternalError
from pcbatch.ir.forks import Fork
from pcbatch.ir.interpret import LaneFailed, get_value, message_text, run_op
from pcbatch.ir.ops import Fail
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
    TaskOp,
    TaskProgram,
    TaskTerminator,
    Way,
)
from pcbatch.learning.task_trace import with_row
from tests.oracles.interpret_cfg import Counts

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskTrace:
    """The counters of a run: visits of each block, evaluations of each text, tasks, and the most frames at once."""

    blocks: Mapping[str, int]
    texts: Mapping[str, int]
    tasks: int
    frames: int


def interpret_tasks(
    program: TaskProgram,
    args: Sequence[Any],
    namespace: Mapping[str, Any] | None = None,
    max_steps: int = 10_000_000,
    *,
    seed: int | None = None,
) -> tuple[tuple[Any, ...], TaskTrace]:
    """Run a task program on one example.

    Args:
        program: The program.
        args: The values of its parameters.
        namespace: The values of names in texts that have no function (see `ops.Expr`).
        max_steps: The number of blocks after which `StepLimit` is raised.
        seed: The order in which tasks go on; None for that of the meaning.

    Returns:
        The results, and the counters of the run.

    Raises:
        LaneError: If a task fails, or the limit is reached.
        InternalError: If the program breaks a rule of the IR.
    """
    return _Run(program, args, Counts(max_steps, namespace=namespace or {}), seed).run()


@dataclass(slots=True, eq=False)
class _Frame:
    """The places of results, those that an operation has begun, and the tasks that have not returned."""

    places: Record = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    rows: set[tuple[tuple[str, ...], int]] = field(default_factory=set)  # the rows of arrays among them
    waiting: int = 0
    sync: tuple[str, Record] | None = None  # the target, and what is saved for it


@dataclass(slots=True, eq=False)
class _Destination:
    """The places that results go to; a second result is one more term of a sum."""

    frame: _Frame
    dsts: tuple[str, ...]
    adds: bool = False
    row: int | None = None
    filled: bool = False

    def give(self, values: Sequence[Any], is_term: bool) -> bool:
        """Put results, or one term, in their places; return whether the sum fits."""
        if len(values) != len(self.dsts):
            raise InternalError(f"{len(values)} values for {len(self.dsts)} places ({', '.join(self.dsts)})")
        if self.filled and not is_term:
            raise InternalError(f"{', '.join(self.dsts)}: returned twice")
        places, fits = self.frame.places, True
        for dst, value in zip(self.dsts, values, strict=True):
            known = dst in places
            if self.row is not None:
                places[dst] = with_row(places[dst], self.row, value, adds=self.filled)
                continue
            if known and not (self.adds or self.filled or is_term):
                raise InternalError(f"{dst}: returned twice")
            if known:
                fits &= not is_term or int(places[dst]) + int(value) == int(places[dst] + value)
                value = places[dst] + value
            places[dst] = value
        self.filled = True
        return fits


@dataclass(slots=True, eq=False)
class _Task:
    """An activation: where it stands, what it has spawned, and how it has ended."""

    destination: _Destination
    parent: _Task | None
    label: str
    record: Record  # with the constants of the example and the shared variables
    into: bool = False  # its destination is that of the parent, which does not wait for it
    position: int = 0  # of the next operation in the block
    frame: _Frame | None = None
    spawned: deque[_Task] = field(default_factory=deque)  # in order; those in front that have returned are gone
    ended: bool = False
    returned: bool = False  # it has ended, and so has all that it has spawned
    own_failure: LaneFailed | None = None
    failure: LaneFailed | None = None
    dropped: bool = False  # a task that it belongs to has failed

    def drop(self) -> None:
        """End all that this task has spawned."""
        work = [self]
        while work:
            task = work.pop()
            task.dropped = True
            work += [other for other in task.spawned if not other.dropped]
            task.spawned.clear()


class _Run:
    def __init__(self, program: TaskProgram, args: Sequence[Any], count: Counts, seed: int | None) -> None:
        self.program, self.count = program, count
        self.at_once = seed is None
        self.random = random.Random(seed)
        self.blocks: dict[str, TaskBlock] = {block.label: block for block in program.blocks}
        self.tasks, self.open, self.most_open = 1, 0, 0
        given = dict(zip(program.params, args, strict=True))
        shared = {name: given[name] for name in program.shared if name in given}
        for op in program.prologue:
            run_op(op, shared, count)
        self.known = {name: get_value(shared, name) for name in program.shared}
        self.known |= {name: given[name] for name in program.constants}
        self.results = tuple(str(k) for k in range(len(program.results)))  # a variable may be there twice
        entry = self.blocks[program.entry]
        record = {param: get_value(given, param) for param in entry.params}
        self.root = _Task(_Destination(_Frame(), self.results), None, entry.label, {**self.known, **record})
        self.ready = [self.root]

    def run(self) -> tuple[tuple[Any, ...], TaskTrace]:
        """Take tasks until that of the entry has returned."""
        while not self.root.returned:
            if not self.ready:
                raise InternalError("no task can go on")
            if not self.at_once:
                k = self.random.randrange(len(self.ready))
                self.ready[k], self.ready[-1] = self.ready[-1], self.ready[k]
            task = self.ready.pop()
            if not task.dropped:
                self.visit(task)
            if self.root.failure is not None:
                raise self.root.failure
        results = tuple(get_value(self.root.destination.frame.places, name) for name in self.results)
        trace = TaskTrace(dict(self.count.blocks), dict(self.count.texts), self.tasks, self.most_open)
        return results, trace

    def visit(self, task: _Task) -> None:
        """Run a task to the end of its block; at once, to the next task that it spawns."""
        block = self.blocks[task.label]
        values = task.record
        if task.position == 0:
            self.count.block(task.label)
        while task.position < len(block.ops):
            op = block.ops[task.position]
            task.position += 1
            spawned = self.operation(task, op, values, block)
            if spawned is not None:
                self.tasks += 1
                task.spawned.append(spawned)
                self.ready += [task, spawned] if self.at_once else [spawned]
                if self.at_once:
                    return
        self.terminate(task, block.terminator, values, block)

    def operation(self, task: _Task, op: TaskOp, values: Record, block: TaskBlock) -> _Task | None:
        """Run an operation; return the task that it spawns, if any."""
        match op:
            case OpenFrame():
                if task.frame is not None:
                    raise InternalError(f"{task.label}: a frame is open already")
                task.frame = _Frame()
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                return None
            case Spawn(dsts=dsts, way=way, adds=adds, row=row):
                if task.frame is None:
                    raise InternalError(f"{task.label}: spawn without a frame")
                at = None if row is None else int(get_value(values, row))
                if at is not None and (dsts, at) in task.frame.rows:
                    raise InternalError(f"row {at} of {', '.join(dsts)} is spawned twice")
                if at is not None:
                    task.frame.rows.add((dsts, at))
                spawned = self.begin(task, way, values, _Destination(task.frame, dsts, adds, at), False)
                for dst in dsts:
                    if (dst in task.frame.begun) != (adds or row is not None):
                        raise InternalError(f"{dst}: {'spawned twice' if dst in task.frame.begun else 'not there yet'}")
                    values.pop(dst, None)  # nobody may read it until the sync
                task.frame.begun.update(dsts)
                task.frame.waiting += spawned is not None
                return spawned
            case SpawnInto(way=way):
                self.must_add(block)
                return self.begin(task, way, values, task.destination, True)
            case _:
                run_op(op, values, self.count)
                if task.frame is not None and (both := task.frame.begun & values.keys()):
                    raise InternalError(f"{', '.join(sorted(both))}: written, but to be returned")
                return None

    def begin(self, task: _Task, way: Way, values: Record, destination: _Destination, into: bool) -> _Task | None:
        """Go a way; return the task, if there is one."""
        match way:
            case Fork():
                taken = way.on_true if bool(get_value(values, way.cond)) else way.on_false
                return self.begin(task, taken, values, destination, into)
            case Give(values=names):
                self.give(task, destination, [get_value(values, name) for name in names], into)
                return None
            case Start(label=label, args=args):
                return _Task(destination, task, label, self.record(label, args, values), into)
            case _:
                assert_never(way)

    def terminate(self, task: _Task, terminator: TaskTerminator, values: Record, block: TaskBlock) -> None:
        while isinstance(terminator, Fork):
            taken = bool(get_value(values, terminator.cond))
            terminator = terminator.on_true if taken else terminator.on_false
        match terminator:
            case TaskJump(target=target, args=args):
                self.go_on(task, target, self.record(target, args, values))
            case Sync(target=target, args=args):
                if task.frame is None:
                    raise InternalError(f"{task.label}: sync without a frame")
                task.frame.sync = target, self.bound(args, values)
                self.join(task)
            case Finish(values=names):
                is_term = block.function in self.program.sums
                self.give(task, task.destination, [get_value(values, name) for name in names], is_term)
                self.end(task)
            case Fail(kind=kind, name=name, message=message):
                task.own_failure = LaneFailed(kind, name, message_text(message, values))
                self.end(task)
            case _:
                assert_never(terminator)

    def give(self, task: _Task, destination: _Destination, values: Sequence[Any], is_term: bool) -> None:
        if not destination.give(values, is_term) and self.program.exact:
            task.own_failure = LaneFailed("limit", "limit", "")

    def bound(self, args: Iterable[tuple[str, str]], values: Record) -> Record:
        out: Record = {}
        for param, source in args:
            if param in out:
                raise InternalError(f"{param} is bound twice")
            out[param] = get_value(values, source)
        return out

    def record(self, label: str, args: Iterable[tuple[str, str]], values: Record) -> Record:
        record = self.bound(args, values)
        if record.keys() != set(self.blocks[label].params):
            raise InternalError(f"{label} takes {self.blocks[label].params}, not {tuple(record)}")
        return {**self.known, **record}

    def go_on(self, task: _Task, label: str, record: Record) -> None:
        if self.blocks[label].open != (task.frame is not None):
            raise InternalError(f"{label}: {'no frame is' if task.frame is None else 'a frame is'} open")
        task.label, task.record, task.position = label, record, 0
        self.ready.append(task)

    def join(self, task: _Task) -> None:
        """Go on after a sync, if all that was spawned has returned."""
        frame = task.frame
        if frame is None or frame.sync is None or frame.waiting:
            return
        target, saved = frame.sync
        if both := saved.keys() & frame.begun:
            raise InternalError(f"{', '.join(sorted(both))}: saved, but returned as well")
        known = {**saved, **{name: value for name, value in frame.places.items() if name in frame.begun}}
        task.frame = None
        self.open -= 1
        record = {param: get_value(known, param) for param in self.blocks[target].params}
        self.go_on(task, target, {**self.known, **record})

    def must_add(self, block: TaskBlock) -> None:
        if block.function not in self.program.sums:
            raise InternalError(f"{block.label}: `spawn return +=` in a function that is no sum")

    def end(self, task: _Task) -> None:
        if task.frame is not None and task.own_failure is None:
            raise InternalError(f"{task.label}: return with an open frame")
        task.ended = True
        self.settle(task)

    def settle(self, task: _Task) -> None:
        """Find out whether a task has returned or failed, and then about those that wait for it."""
        while True:
            while task.spawned and task.spawned[0].returned:
                task.spawned.popleft()
            if task.spawned:
                task.failure = task.spawned[0].failure
            elif task.ended:
                task.failure, task.returned = task.own_failure, task.own_failure is None
            if not (task.failure or task.returned):
                return
            if task.failure is not None:
                task.drop()
            parent = task.parent
            if parent is None:
                return
            if task.returned and not task.into:
                task.destination.frame.waiting -= 1
                self.join(parent)
            task = parent
