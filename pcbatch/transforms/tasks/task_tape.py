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

from pcbatch.ir.tasks import TaskBlock, TaskProgram
from pcbatch.runtime.tasks.task_plan import FROM, ListBlock, TaskPlan
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.block_ssa import (
    Body,
    Load,
    LoadedPart,
    Node,
    PoppedSlot,
    ReadRegister,
    SharedValue,
    body_of,
)
from pcbatch.transforms.tape.pullback_reads import reads_of
from pcbatch.transforms.tape.recorded_block import RecordedBlock
from pcbatch.transforms.tape.tape_plan import computed_of
from pcbatch.transforms.tasks.exits import PushedRecord, exits

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
        sent: the floating variables that the end of the block uses and whose cotangents are wanted.
        fed: the parameters that get cotangents from here.
        moved: the constants of the example whose cotangents are wanted.
    """

    block: ListBlock
    sent: frozenset[str]
    fed: tuple[str, ...]
    moved: frozenset[str]

    @property
    def source(self) -> TaskBlock:
        return self.block.block

    @property
    def late(self) -> bool:
        """Whether no other block needs cotangents from here, so that all rows may be undone at the end."""
        return not self.fed

    @property
    def joins(self) -> bool:
        """Whether a row has the results of a frame."""
        return self.block.block.joins


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

    def of(self, block: ListBlock) -> TaskBlockTape | None:
        """The rows of a block, or None if it has none."""
        return next((tape for tape in self.blocks if tape.index == block.number), None)

    def linked(self, label: str) -> TaskBlockTape | None:
        """The block of this label, if cotangents of its records are looked for."""
        return next((b for b in self.blocks if b.block.label == label and label in self.links), None)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The state keys of the parts of the tape, in order."""
        fixed = (LOG, VISITS, SERIALS, JOINS, FRAMES, TODO, ROOTS, FULL, WIDTH, EXAMPLES)
        return (*(key for block in self.blocks for key in block.state_keys), *fixed)

    @property
    def deferred(self) -> tuple[str, ...]:
        """The shared values that get cotangents."""
        return tuple(dict.fromkeys(v for block in self.blocks for v in block.deferred))


def plan_task_tape(plan: TaskPlan, params: frozenset[str]) -> TaskTape:
    """Plan the tape for gradients by these parameters of the program."""
    moved = moved_variables(plan.program, params)
    bodies = {block.label: body_of(block.code, moved.intersection(block.code.shared)) for block in plan.blocks}
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
    return frozenset(
        v for v in computed_of(params, program.prologue) if (t := program.types[v]) is not None and is_float(t)
    )


def _plan_block(
    plan: TaskPlan, block: ListBlock, body: Body, active: frozenset[str], moved: frozenset[str]
) -> TaskBlockTape | None:
    sent = depending(body, active, moved)
    constants = frozenset(v for v in block.code.reads if v in moved)
    if not sent:
        return None
    pushes = {v: n for v, n in body.pushes.items() if v in sent}
    body = replace(body, pushes=pushes, outputs={n: t for n, t in body.outputs.items() if n in set(pushes.values())})
    found = reads_of(body)
    pops = [s for s in body.sources if isinstance(s, PoppedSlot) and is_float(s.type) and s.number in found.pulled]
    deferred = tuple(s.name for s in body.sources if isinstance(s, SharedValue) and s.name in moved)
    tape = TaskBlockTape(
        block.number,
        body,
        found,
        unchanging=frozenset(block.code.reads),
        deferred=deferred if found.deferred_cts else (),
        numbers=(),
        block=block,
        sent=sent,
        fed=tuple(dict.fromkeys(s.name for s in pops if s.name in active)),
        moved=constants,
    )
    root = bool(tape.constants or constants)
    return replace(tape, numbers=tuple(dict.fromkeys(_numbers(plan, block, sent, root))))


def _numbers(plan: TaskPlan, block: ListBlock, sent: frozenset[str], root: bool) -> Iterator[str]:
    """The columns of numbers, but `from`, which is in the record."""
    found = list(exits(plan, block))
    reached = {exit.to for exit in found if any(v in sent for _, v in exit.values)}
    yield from (column for column, to in (("to", "destination"), ("frame", "frame")) if to in reached)
    yield from (exit.column for exit in found if exit.column is not None)
    if root:
        yield "root"


def _links(plan: TaskPlan, target: ListBlock, taped: set[int]) -> Iterator[Link]:
    """The kinds of push of a block's records, the first of which are those of the examples."""
    if target.block.joins:
        return
    if target is plan.entry:
        yield Link(-1, 0)
    for block in (block for block in plan.blocks if block.number in taped):
        pushed = [exit.to for exit in exits(plan, block) if isinstance(exit.to, PushedRecord)]
        yield from dict.fromkeys(Link(block.number, to.rank) for to in pushed if to.label == target.label)


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
            for exit in exits(plan, block):
                filled = [where for where, v in exit.values if v in sent]
                match exit.to:
                    case PushedRecord(label=label):
                        found[label] |= {p for p in filled if p in floats}
                    case "frame":
                        homes |= {*filled}
                    case "destination":
                        homes |= {(key, slot) for key in filled for slot in range(block.results.slots)}
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
