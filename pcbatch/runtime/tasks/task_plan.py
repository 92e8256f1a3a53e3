"""The plan of a task program: the lists of its blocks, what a record holds, and who pushes on which list."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.analysis.dataflow import components, invert, solve
from pcbatch.ir.analysis.union_find import UnionFind
from pcbatch.ir.forks import leaves
from pcbatch.ir.ops import Fail
from pcbatch.ir.roles import reads
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.tasks import (
    Finish,
    OpenFrame,
    Spawn,
    SpawnInto,
    Sync,
    TaskBlock,
    TaskProgram,
    after_jump,
    heirs,
    spawns,
    starts,
)
from pcbatch.lowering.left_out import runs
from pcbatch.runtime.tasks import bodies, sites
from pcbatch.runtime.tasks.sites import CannotRun, Results, Sites, open_parts
from pcbatch.runtime.vm.block_body import BlockCode

# The phases of a task program: what nothing expensive waits for runs when the expensive blocks have nothing to run.
#
#     def grow(w, h, levels):                        phase 0: the cell, for which records gather
#         h = cell(w, h)                             phase 1: the sums, in which all that it has spawned returns
#         ... grow(w, h, levels - 1) ...
#         return h @ w.out + below + after
#
# An expensive block runs at most once a trip, so that records gather for it. A block that may run because it has run,
# but never the other way round, such as one that adds up outputs which no cell reads, gains nothing by running in every
# trip: the cells do not wait for it. It waits until they are through, for all examples, and then runs as few times as
# the deepest call demands. It is the end of a trip all the same where nothing earlier can run, as while no frame is
# free.
#
# Blocks at which tasks only end make no phase of their own: they run until their list is empty before the next trip.

Edges = Mapping[str, frozenset[str]]


def phases(program: TaskProgram, gathering: Collection[str]) -> dict[str, int]:
    """Return the phase of each block, by label: how many blocks of `gathering` stand one after the other before it.

    Args:
        program: A task program.
        gathering: The labels of the blocks that run once a trip, so that records gather.
    """
    edges = follows(program)
    found = dict.fromkeys(edges, 0)
    for component in reversed(components(edges)):  # each before those that it leads to
        here = max(found[label] for label in component)
        behind = here + any(label in gathering for label in component)
        found |= dict.fromkeys(component, here)
        for target in {target for label in component for target in edges[label]} - {*component}:
            found[target] = max(found[target], behind)
    return found


def follows(program: TaskProgram) -> Edges:
    """Return, by label, the blocks that may have a record because a block has run.

    They are those that it jumps to or spawns, and, where it ends a task, those at which a task waits for that.
    """
    waiting = _waiting(program)
    found = {}
    for block in program.blocks:
        targets = {*after_jump(block), *(label for op in spawns(block) for label in starts(op.way))}
        if any(isinstance(leaf, Finish) for leaf in leaves(block.terminator)):
            targets |= waiting[block.label]
        found[block.label] = frozenset(targets)
    return found


def _waiting(program: TaskProgram) -> Mapping[str, frozenset[str]]:
    """By block, the blocks after a `sync` that wait for the tasks which run it."""
    own: dict[str, frozenset[str]] = {block.label: frozenset() for block in program.blocks}
    for part in open_parts(program).values():
        targets = {leaf.target for block in part for leaf in leaves(block.terminator) if isinstance(leaf, Sync)}
        spawned = (op for block in part for op in spawns(block) if isinstance(op, Spawn))
        for label in {label for op in spawned for label in starts(op.way)}:
            own[label] |= targets
    return solve(
        invert({block.label: heirs(block) for block in program.blocks}),
        join=lambda label, waiting: own[label].union(*waiting),
        transfer=lambda label, waiting: waiting,
        start=frozenset[str](),
    ).entering


# Columns besides those of variables; no variable has such a name.
DEST, ROOT, FRAME, SERIAL, FROM = "@dest", "@root", "@frame", "@serial", "@from"


LARGE = 2e5  # cost of a block per record, in about one arithmetic operation each


@dataclass(frozen=True, slots=True, eq=False)
class ListBlock:
    """One block of a program of tasks, with the list of records that wait for it.

    Attributes:
        number: that of the block in the program.
        block: the block.
        code: its body.
        columns: the columns of its list, by name: variables, and the columns besides those.
        takes: whether a visit takes frames from the pool.
        results: the places of results of the tasks that run it.
        adds: whether such results are added to what is there.
        expensive: whether records should gather for it.
        large: whether a record is so much work that a place without one in a visit is too much.
        pushes: by label, how many records a visit may push on a list for each that it pops.
    """

    number: int
    block: TaskBlock
    code: BlockCode
    columns: tuple[str, ...]
    takes: bool
    results: Results
    adds: bool
    expensive: bool
    large: bool
    pushes: Mapping[str, int]

    @property
    def label(self) -> str:
        """The label of the block in the program of tasks."""
        return self.block.label

    @property
    def finishes_only(self) -> bool:
        """Whether tasks that have waited for nothing always end here, as in the leaves of a tree."""
        return not self.pushes and not self.block.joins


@dataclass(frozen=True, eq=False)
class TaskPlan:
    """A task program prepared for emission.

    Attributes:
        program: the program.
        stack: its blocks as blocks of the stack IR.
        blocks: the blocks with their lists, in order.
        sites: the places of frames.
        single: whether there is one example.
        roots: whether records hold the number of their example.
        fails: whether an example may fail.
        max_steps: the blocks of lanes after which one does; None: as many as it takes.
        one_phase: whether the blocks of all phases run in each trip.
    """

    program: TaskProgram
    stack: StackProgram
    blocks: tuple[ListBlock, ...]
    sites: Sites
    single: bool
    roots: bool
    fails: bool
    max_steps: int | None = None
    one_phase: bool = False

    @property
    def framed(self) -> bool:
        """Whether tasks have frames; if not, results go to examples alone."""
        return framed(self.program)

    @property
    def joins(self) -> tuple[str, ...]:
        """The labels of the blocks after a `sync`."""
        return tuple(block.label for block in self.blocks if block.block.joins)

    @property
    def several(self) -> bool:
        """Whether several lists take frames in trips, so that records need a serial number."""
        return sum(block.takes and block not in self.first for block in self.blocks) > 1

    @property
    def bounded(self) -> bool:
        """Whether the frames bound the number of records that wait: no task starts others but for its frame."""
        return bounded(self.program, self.sites)

    def block(self, label: str) -> ListBlock:
        """Return the plan of the block of this label."""
        return next(block for block in self.blocks if block.label == label)

    @cached_property
    def first(self) -> tuple[ListBlock, ...]:
        """The blocks that run before all trips, in this order: those that tasks of examples reach by jumps alone.

        They need no more frames than there are examples, and no more room on lists than trips do.
        """
        return tuple(map(self.block, self._before_trips))

    @cached_property
    def last(self) -> tuple[ListBlock, ...]:
        """The blocks that run after all trips: those that end the tasks of examples, for which no other task waits."""
        return tuple(block for block in self.blocks if block.label in _last(self.program, self._before_trips))

    @cached_property
    def phases(self) -> Mapping[str, int]:
        """The phase of each block, by label; see the function `phases`."""
        outermost = (*self.first, *self.last)
        gathering = {b.label for b in self.blocks if b.expensive and not (b.finishes_only or b in outermost)}
        return phases(self.program, () if self.one_phase else gathering)

    @cached_property
    def _before_trips(self) -> tuple[str, ...]:
        return _first(self.program, self.bounded)

    @property
    def entry(self) -> ListBlock:
        """The block at which the tasks of examples begin."""
        return self.block(self.program.entry)


def framed(program: TaskProgram) -> bool:
    """Whether some task opens a frame."""
    return any(isinstance(op, OpenFrame) for op in program.ops)


def bounded(program: TaskProgram, places: Sites) -> bool:
    """Whether no task starts others but for its frame, of which one waits for so many at most."""
    if places.loops or not framed(program):
        return False
    into = (op for op in program.ops if isinstance(op, SpawnInto))
    return not any(starts(op.way) for op in into)


def _first(program: TaskProgram, is_bounded: bool) -> tuple[str, ...]:
    """The labels of the blocks that only tasks of examples run, before their first `sync`; see `TaskPlan.first`."""
    begun = {label for b in program.blocks for op in spawns(b) for label in starts(op.way)}
    before: dict[str, set[str]] = {block.label: set() for block in program.blocks}
    for block in program.blocks:
        for label in after_jump(block):
            before[label].add(block.label)
    calm = [b for b in program.blocks if not b.joins and b.label not in begun]
    if not is_bounded:
        calm = [b for b in calm if not (b.open or sites.opens(b) or spawns(b))]
    found: dict[str, None] = {}
    while more := [b.label for b in calm if b.label not in found and before[b.label] <= found.keys()]:
        found |= dict.fromkeys(more)
    return tuple(found)


def _last(program: TaskProgram, first: Collection[str]) -> frozenset[str]:
    """The labels of the blocks after a `sync` of tasks of examples alone, at which these end; see `TaskPlan.last`."""
    owners: dict[str, set[str]] = {block.label: set() for block in program.blocks}
    for opener, part in sites.open_parts(program).items():
        for leaf in (leaf for block in part for leaf in leaves(block.terminator) if isinstance(leaf, Sync)):
            owners[leaf.target].add(opener)
    ends = (b for b in program.blocks if b.joins and not (after_jump(b) or spawns(b) or sites.opens(b)))
    return frozenset(b.label for b in ends if owners[b.label] <= set(first))


def make(program: TaskProgram, single: bool, max_steps: int | None = None) -> TaskPlan:
    """Prepare a typed task program.

    Args:
        program: The program.
        single: Whether it is for one example; else for any number of them.
        max_steps: See `TaskPlan`.

    Raises:
        CannotRun: The machine of lists cannot run it.
    """
    _refuse(program)
    places = sites.plan(program)
    stack = bodies.stack_program(program, {b.label: sent(b) for b in program.blocks}, single)
    costs = bodies.costs(stack)
    expensive = bodies.expensive(costs)
    families = _families(program, places)
    has_frames = framed(program)
    has_failures = any(isinstance(leaf, Fail) for block in program.blocks for leaf in leaves(block.terminator))
    fails = has_failures or program.exact or max_steps is not None
    roots = not single and (bool(program.constants) or not has_frames or fails)
    before_trips = _first(program, bounded(program, places))
    several = sum(sites.opens(b) and not b.joins and b.label not in before_trips for b in program.blocks) > 1
    blocks = tuple(
        ListBlock(
            number=k,
            block=block,
            code=code,
            columns=_columns(block, has_frames, roots, several and block.label not in before_trips),
            takes=sites.opens(block) and not block.joins,  # else a visit goes on with the frames that it has
            results=families[block.label],
            adds=block.function in program.sums,
            expensive=block.label in expensive,
            large=costs[block.label] >= LARGE,
            pushes=pushes(block),
        )
        for k, (block, code) in enumerate(zip(program.blocks, bodies.compile_bodies(stack), strict=True))
    )
    one_phase = not runs("phases")
    return TaskPlan(program, stack, blocks, places, single, roots, fails, max_steps, one_phase)


def _refuse(program: TaskProgram) -> None:
    """Raise `CannotRun` for what the machine cannot run."""
    for block in program.blocks:
        for op in spawns(block):
            adds = isinstance(op, SpawnInto) or op.adds
            if adds and any(program.block(label).function not in program.sums for label in starts(op.way)):
                raise CannotRun(f"{block.label} adds the results of a function that is not in `sums`")


def _columns(block: TaskBlock, has_frames: bool, roots: bool, several: bool) -> tuple[str, ...]:
    """The columns of the list of a block."""
    if block.joins:
        return (FRAME,)
    extra = ((ROOT,) if roots else ()) + ((SERIAL,) if several else ())
    if block.open:
        return (*block.params, FRAME, *extra)
    return (*block.params, *((DEST,) if has_frames else ()), *extra)


def sent(block: TaskBlock) -> tuple[str, ...]:
    """Return the variables that the end of a block uses, each once."""
    ends = () if isinstance(block.terminator, Fail) else reads(block.terminator)
    return tuple(dict.fromkeys((*(v for op in spawns(block) for v in reads(op)), *ends)))


def pushes(block: TaskBlock) -> dict[str, int]:
    """Return, by label, how many records a visit may push on a list for each that it pops."""
    found: dict[str, int] = dict.fromkeys(after_jump(block), 1)
    for op in spawns(block):
        for label in {*starts(op.way)}:
            found[label] = found.get(label, 0) + 1
    return found


def _families(program: TaskProgram, places: Sites) -> dict[str, Results]:
    """The places to which the results of a block's task go: blocks that go on at one another have the same."""
    families = UnionFind[str]()
    for block in program.blocks:
        families.union((block.label, *heirs(block)))
    found: dict[str, sites.Types] = {}

    def note(label: str, names: tuple[str, ...], rows: Mapping[tuple[str, ...], int]) -> None:
        types = sites.place_types(program, names, rows)
        if found.setdefault(families.find(label), types) != types:
            raise CannotRun(f"{label}: results of different types")

    note(program.entry, program.results, {})
    for block in program.blocks:
        for op in spawns(block):
            if isinstance(op, Spawn):
                for label in starts(op.way):
                    note(label, op.dsts, places.rows)
        for leaf in leaves(block.terminator):
            if isinstance(leaf, Finish):
                note(block.label, leaf.values, {})
    in_sums: dict[str, bool] = {}
    for block in program.blocks:
        adds = block.function in program.sums
        if in_sums.setdefault(families.find(block.label), adds) != adds:
            raise CannotRun(f"{block.label}: a task of `sums` goes on in another function")
    by_types = {one.types: one for one in places.results}
    roots = {block.label: families.find(block.label) for block in program.blocks}
    return {label: by_types[found[root]] for label, root in roots.items() if root in found}
