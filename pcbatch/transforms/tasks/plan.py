"""The plan of a tape of tasks: what the visits of each block record for a gradient, and where cotangents meet.

Each block that cotangents go through has buffers with a row for each record that it has popped, in the order of visits.
A row holds what the pullback of the block reads, and numbers by which cotangents are found when it is undone:

| column | number | where |
|---|---|---|
| `to` | the place of the results: serial number of the frame, times slots, plus slot | blocks at which tasks end |
| `frame` | the serial number of the open frame | blocks that give or save values |
| `leaf`, `way:q` | which leaf of the terminator, or way of the spawn q, was taken | where there are several |
| `from` | where the row that pushed the record looks for it, see `Link` | blocks that records are pushed for |
| `root` | the example | blocks that read floating constants of the example |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from pcbatch.ir.forks import leaves
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.tasks import Finish, Give, Spawn, Start, Sync, TaskJump, TaskProgram, spawns, starts
from pcbatch.runtime.tasks.plan import FROM, BlockPlan, TaskPlan
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.block_ssa import (
    Body,
    Load,
    LoadedPart,
    Node,
    PoppedSlot,
    ReadRegister,
    Recordable,
    SharedValue,
    body_of,
)
from pcbatch.transforms.tape.block_vjp import pull, replay, source_env
from pcbatch.transforms.tape.pullback_reads import ProbeMemory, reads_of
from pcbatch.transforms.tape.record_layout import RecordedBlock, RecordLayout, record_layout, stored_as, struct_of

LOG, VISITS = "tape:log", "tape:log:n"  # the visits that are undone one by one, and how many
SERIALS, JOINS = "tape:serials", "tape:serials:n"  # of the frames of joins, in the order of visits
FRAMES = "tape:frames"  # int32[]: the next serial number of a frame
TODO = "tape:todo"  # bool[examples]: those that tasks have not finished, whose gradient is left to lanes
ROOTS = "tape:roots"  # int32[examples]: their numbers
FULL = "tape:full"  # bool[]: whether there were more rows than room
# Parts whose shapes alone tell something: under a trace a number would not be known.
WIDTH = "tape:width"  # bool[width of a visit]
EXAMPLES = "tape:examples"  # bool[examples that were recorded together]
TRIAL = 2  # records that pullbacks are traced for


@dataclass(frozen=True, eq=False)
class TaskBlockTape(RecordedBlock):
    """The rows that a tape holds of one block of tasks.

    Attributes:
        block: the block.
        body: its body.
        recorded: the values in a row.
        constants: floating constants of the example that are read again when a row is undone.
        sent: the floating variables that the end of the block uses and whose cotangents are wanted.
        fed: the parameters that get cotangents from here.
        moved: the constants of the example whose cotangents are wanted.
        deferred: the shared values whose cotangents come from many rows at once.
        deferred_cts: as in `tape/plan.py`.
        alias_of: likewise.
        numbers: the columns of numbers.
    """

    block: BlockPlan
    body: Body
    recorded: tuple[Recordable, ...]
    constants: tuple[ReadRegister, ...]
    sent: frozenset[str]
    fed: tuple[str, ...]
    moved: frozenset[str]
    deferred: tuple[str, ...]
    deferred_cts: tuple[int, ...]
    alias_of: Mapping[int, int]
    numbers: tuple[str, ...]

    @cached_property
    def index(self) -> int:  # type: ignore[override]
        return self.block.number

    @property
    def late(self) -> bool:
        """Whether no other block needs cotangents from here, so that all rows may be undone at the end."""
        return not self.fed

    @property
    def joins(self) -> bool:
        """Whether a row has the results of a frame."""
        return self.block.block.joins

    @cached_property
    def record_layout(self) -> RecordLayout:
        """The columns of a row of this block, with their types."""
        types: dict[str, tuple[tuple[int, ...], Any]] = {s.key: stored_as(s.type) for s in self.recorded}
        return record_layout(types | dict.fromkeys(self.numbers, ((), np.int32)))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The state keys of the count and of the buffers."""
        return (self.count, *self.buffers.values())


@dataclass(frozen=True, slots=True)
class Link:
    """A kind of push: by the block with this number, of this rank. The rows of the block that look for a record."""

    source: int
    rank: int


@dataclass(frozen=True, eq=False)
class TaskTape:
    """The plan of a tape of tasks, for gradients by `moved`.

    Attributes:
        plan: the plan of the program, whose lists have the columns that are recorded.
        blocks: the blocks with rows, in order.
        links: by label of a block that is jumped to or started, the kinds of push whose rows look for its rows.
        moved: the variables that the gradient is taken of: parameters, and what is computed of them before the run.
    """

    plan: TaskPlan
    blocks: tuple[TaskBlockTape, ...]
    links: Mapping[str, tuple[Link, ...]]
    moved: frozenset[str]

    @cached_property
    def by_number(self) -> Mapping[int, TaskBlockTape]:
        """The blocks with rows, by their number in the program."""
        return {block.block.number: block for block in self.blocks}

    def of(self, block: BlockPlan) -> TaskBlockTape | None:
        """The rows of a block, or None if it has none."""
        return self.by_number.get(block.number)

    def linked(self, label: str) -> TaskBlockTape | None:
        """The block of this label, if cotangents of its records are looked for."""
        return next((b for b in self.blocks if b.block.label == label and label in self.links), None)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The state keys of the parts of the tape, in order."""
        fixed = (LOG, VISITS, SERIALS, JOINS, FRAMES, TODO, ROOTS, FULL, WIDTH, EXAMPLES)
        return (*(key for block in self.blocks for key in block.keys), *fixed)

    @property
    def deferred(self) -> tuple[str, ...]:
        """The shared values that get cotangents."""
        return tuple(dict.fromkeys(v for block in self.blocks for v in block.deferred))


def plan_task_tape(plan: TaskPlan, params: frozenset[str]) -> TaskTape:
    """Plan the tape for gradients by these parameters of the program."""
    moved = moved_variables(plan.program, params)
    bodies = {block.label: body_of(block.code, _shared(block, moved)) for block in plan.blocks}
    active = active_parameters(plan, bodies, moved)
    blocks = tuple(
        tape for b in plan.blocks if (tape := _plan_block(plan, b, bodies[b.label], active[b.label], moved)) is not None
    )
    numbers = {tape.block.number for tape in blocks}
    links = {b.block.label: links for b in blocks if b.fed and (links := tuple(_links(plan, b.block, numbers)))}
    blocks = tuple(replace(b, numbers=(*b.numbers, FROM)) if b.block.label in links else b for b in blocks)
    codes = tuple(
        replace(
            block,
            code=replace(block.code, keeps_loads=block.number in numbers),
            columns=(*block.columns, FROM) if block.label in links else block.columns,
        )
        for block in plan.blocks
    )
    return TaskTape(replace(plan, blocks=codes), blocks, links, moved)


def tapeable(plan: TaskPlan) -> bool:
    """Whether tasks can be undone: results come to frames, none is a row, and none writes a part of a constant."""
    return plan.framed and not plan.sites.rows and not any(block.code.stores for block in plan.blocks)


def moved_variables(program: TaskProgram, params: frozenset[str]) -> frozenset[str]:
    """Return the floating variables that change with these parameters, before any task runs."""
    moved = set(params)
    for op in program.prologue:
        if moved & set(reads(op)):
            moved |= set(writes(op))
    return frozenset(v for v in moved if (t := program.types[v]) is not None and is_float(t))


def _shared(block: BlockPlan, moved: frozenset[str]) -> frozenset[str]:
    return frozenset(v for v in block.code.shared if v in moved)


def _plan_block(
    plan: TaskPlan, block: BlockPlan, body: Body, active: frozenset[str], moved: frozenset[str]
) -> TaskBlockTape | None:
    sent = depending(body, active, moved)
    constants = frozenset(v for v in block.code.reads if v in moved)
    if not sent:
        return None
    pushes = {v: n for v, n in body.pushes.items() if v in sent}
    body = replace(body, pushes=pushes, outputs={n: t for n, t in body.outputs.items() if n in set(pushes.values())})
    found, sources = reads_of(body, ())
    registers = tuple(s for s in sources if isinstance(s, ReadRegister))
    deferred = tuple(s.name for s in body.sources if isinstance(s, SharedValue) and s.name in moved)
    loads = any(isinstance(s, LoadedPart) for s in body.sources) and constants
    return TaskBlockTape(
        block=block,
        body=body,
        recorded=tuple(s for s in sources if s not in registers),
        constants=registers,
        sent=sent,
        fed=tuple(v for v in _pulled(body) if v in active),
        moved=constants,
        deferred=deferred if found.deferred_cts else (),
        deferred_cts=found.deferred_cts,
        alias_of=found.alias_of,
        numbers=tuple(_numbers(plan, block, sent, bool(registers or constants or loads))),
    )


def _pulled(body: Body) -> list[str]:
    """The floating parameters to which a pullback gives cotangents."""
    found: list[str] = []

    def pullback(values: Mapping[str, Any], shared: Mapping[str, Any], cts: Mapping[int, Any]) -> int:
        env = replay(body, source_env(body, values, shared, TRIAL), TRIAL)
        pulled = pull(body, env, cts, TRIAL, ProbeMemory())
        found.extend(s.name for s in body.sources if isinstance(s, PoppedSlot) and s.number in pulled)
        return 0

    records = {s.key: struct_of(s.type, (TRIAL,)) for s in body.sources if not isinstance(s, SharedValue)}
    shared = {s.name: struct_of(s.type, ()) for s in body.sources if isinstance(s, SharedValue)}
    jax.eval_shape(pullback, records, shared, {n: struct_of(t, (TRIAL,)) for n, t in body.outputs.items()})
    return [v for v in dict.fromkeys(found) if any(s.name == v and is_float(s.type) for s in body.sources)]


def _numbers(plan: TaskPlan, block: BlockPlan, sent: frozenset[str], root: bool) -> Iterator[str]:
    """The columns of numbers, but `from`, which is in the record."""
    ends = leaves(block.block.terminator)
    given = [way for op in spawns(block.block) for way in leaves(op.way) if isinstance(way, Give)]
    saved = [v for leaf in ends if isinstance(leaf, Sync) for _, v in leaf.args]
    if any(v in sent for leaf in ends if isinstance(leaf, Finish) for v in leaf.values):
        yield "to"
    if any(v in sent for v in (*saved, *(v for way in given for v in way.values))):
        yield "frame"
    if len(ends) > 1:
        yield "leaf"
    for q, op in enumerate(spawns(block.block)):
        if len(leaves(op.way)) > 1:
            yield f"way:{q}"
    if root:
        yield "root"


def _links(plan: TaskPlan, target: BlockPlan, taped: set[int]) -> Iterator[Link]:
    """The kinds of push of a block's records, the first of which are those of the examples."""
    if target.block.joins:
        return
    if target is plan.entry:
        yield Link(-1, 0)
    for block in plan.blocks:
        if block.number not in taped:
            continue
        if any(isinstance(leaf, TaskJump) and leaf.target == target.label for leaf in leaves(block.block.terminator)):
            yield Link(block.number, 0)
        begun = spawns(block.block)
        for k, op in enumerate(begun):
            if target.label in starts(op.way):
                yield Link(block.number, len(begun) - k)


def active_parameters(plan: TaskPlan, bodies: Mapping[str, Body], moved: Collection[str]) -> dict[str, frozenset[str]]:
    """Return, by label, the floating parameters of blocks that depend on the variables `moved`."""
    found: dict[str, frozenset[str]] = {block.label: frozenset() for block in plan.blocks}
    floats = {v for v, t in plan.program.types.items() if t is not None and is_float(t)}
    entry = plan.entry
    found[entry.label] = frozenset(v for v in entry.block.params if v in moved and v in floats)
    homes: set[tuple[str, int | None]] = set()  # places of frames that hold such values
    while True:
        before = (dict(found), set(homes))
        for block in plan.blocks:
            sent = depending(bodies[block.label], found[block.label], moved)
            for label, param, source in _bindings(block):
                if source in sent and param in floats:
                    found[label] |= {param}
            homes |= set(_filled(plan, block, sent))
        for label, places in plan.sites.homes.items():
            params = plan.program.block(label).params
            found[label] |= {v for v, h in places.items() if (h.key, h.slot) in homes and v in floats and v in params}
        if before == (found, homes):
            return found


def depending(body: Body, params: Collection[str], moved: Collection[str]) -> frozenset[str]:
    """Return the floating variables that a block sends on and that depend on these parameters and variables."""
    numbers: set[int] = set()
    for source in body.sources:
        match source:
            case PoppedSlot(name=v):
                numbers |= {source.number} if v in params else set()
            case SharedValue(name=v) | ReadRegister(name=v):
                numbers |= {source.number} if v in moved else set()
            case LoadedPart():
                pass  # by the step that loads it
    for step in body.steps:
        match step:
            case Node():
                numbers |= set(step.outs) if numbers & set(step.ins) else set()
            case Load(register=v):
                numbers |= {step.out} if v in moved else set()
            case _:
                pass
    return frozenset(v for v, number in body.pushes.items() if number in numbers)


def _bindings(block: BlockPlan) -> Iterator[tuple[str, str, str]]:
    """The label, the parameter and the variable of each binding of a record that a block pushes."""
    for leaf in leaves(block.block.terminator):
        if isinstance(leaf, TaskJump):
            yield from ((leaf.target, p, v) for p, v in leaf.args)
    for op in spawns(block.block):
        for way in leaves(op.way):
            if isinstance(way, Start):
                yield from ((way.label, p, v) for p, v in way.args)


def _filled(plan: TaskPlan, block: BlockPlan, sent: Collection[str]) -> Iterator[tuple[str, int | None]]:
    """The places of frames that a block puts values of `sent` into."""
    for leaf in leaves(block.block.terminator):
        match leaf:
            case Sync(target=target, args=args):
                for p, v in args:
                    home = plan.sites.homes[target][p]
                    if v in sent:
                        yield home.key, home.slot
            case Finish(values=values):
                for key, v in zip(block.results.keys, values, strict=True):
                    if v in sent:
                        yield from ((key, slot) for slot in range(block.results.slots))
            case _:
                pass
    for op in spawns(block.block):
        for way in leaves(op.way):
            if isinstance(op, Spawn) and isinstance(way, Give):
                keys = plan.sites.of(plan.program, op.dsts).keys
                for key, v in zip(keys, way.values, strict=True):
                    if v in sent:
                        yield key, plan.sites.slots[op.dsts]
