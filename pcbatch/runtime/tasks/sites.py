"""The places of the values that a task waits for: slots of results, and cells for what is saved across a `sync`.

A frame has a place for each result that may be missing at one time. Functions whose results have the same types share
the arrays of these places; a place is the number `frame * slots + slot`. Results that become rows of an array have as
many slots side by side as it has rows, and one more for rows that there are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pcbatch.errors import InternalError
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.forks import leaves
from pcbatch.ir.tasks import OpenFrame, Spawn, Sync, TaskBlock, TaskJump, TaskProgram, row_type, starts
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import storage_type

Types = tuple[ArrayType, ...]


class CannotRun(Exception):
    """A task program is valid, but the machine of lists has no places for its results: lanes run the function."""


@dataclass(frozen=True, slots=True)
class Home:
    """The place in a frame of one variable of the block after the `sync`: a result at a slot, or a cell of its own."""

    key: str  # of the state
    slot: int | None  # None: a cell
    rows: int | None = None  # of an array whose rows are results, from that slot on


@dataclass(frozen=True, slots=True)
class Results:
    """The places of results of the same types: an array for each of them, [rows * slots, ...].

    A row is an example or a frame. (XLA may choose a layout for an axis of slots that has it copy the whole array.)
    """

    number: int
    types: Types  # in storage form
    slots: int
    framed: bool  # whether frames wait for such results; else rows are examples alone

    @property
    def keys(self) -> tuple[str, ...]:
        """The state keys of the arrays."""
        return tuple(f"result:{self.number}.{k}" for k in range(len(self.types)))


@dataclass(frozen=True, slots=True)
class Sites:
    """The places of all frames of a program.

    Attributes:
        results: the groups of places, by the types of results.
        slots: the slot of each tuple of destinations, the first one of those whose results are rows.
        rows: how many rows those have.
        homes: by block after a `sync`, where its frame keeps each variable.
        cells: the cells of a frame, by state key.
        most: the most tasks that one frame may wait for, at any time.
        loops: whether a frame may be open around a loop that spawns, so that there is no such bound.
    """

    results: tuple[Results, ...]
    slots: Mapping[tuple[str, ...], int]
    rows: Mapping[tuple[str, ...], int]
    homes: Mapping[str, Mapping[str, Home]]
    cells: Mapping[str, ArrayType]
    most: int
    loops: bool

    @property
    def slots_of(self) -> dict[str, int]:
        """The slots of a row, by state key of an array of places."""
        return {key: one.slots for one in self.results for key in one.keys}

    def of(self, program: TaskProgram, dsts: tuple[str, ...]) -> Results:
        """Return the places of what goes to these destinations."""
        types = place_types(program, dsts, self.rows)
        return next(one for one in self.results if one.types == types)


def storage(program: TaskProgram, names: tuple[str, ...]) -> Types:
    """Return the types of variables, in storage form."""
    found = []
    for name in names:
        type_ = program.types[name]
        if type_ is None:
            raise InternalError(f"{name} has no type")
        found.append(storage_type(type_))
    return tuple(found)


def place_types(program: TaskProgram, dsts: tuple[str, ...], rows: Mapping[tuple[str, ...], int]) -> Types:
    """Return the types of the places of results, in storage form: those of rows, where results become rows."""
    types = storage(program, dsts)
    return tuple(row_type(type_) for type_ in types) if dsts in rows else types


def row_counts(program: TaskProgram) -> dict[tuple[str, ...], int]:
    """Return the destinations whose results become rows of arrays, with the number of rows."""
    found: dict[tuple[str, ...], int] = {}
    for op in (op for op in program.ops if isinstance(op, Spawn) and op.row is not None):
        counts = {type_.shape[0] for type_ in storage(program, op.dsts)}
        if len(counts) > 1:
            raise CannotRun(f"{', '.join(op.dsts)} have different numbers of rows")
        found[op.dsts] = counts.pop()
    return found


def open_parts(program: TaskProgram) -> dict[str, tuple[TaskBlock, ...]]:
    """Return, by block that opens a frame, the blocks in which that frame is open."""
    return {block.label: tuple(_open_from(program, block)) for block in program.blocks if opens(block)}


def opens(block: TaskBlock) -> bool:
    """Whether a block has the operation `frame`."""
    return any(isinstance(op, OpenFrame) for op in block.ops)


def _open_from(program: TaskProgram, first: TaskBlock) -> Iterator[TaskBlock]:
    seen, work = {first.label}, [first]
    while work:
        block = work.pop()
        yield block
        for target in (leaf.target for leaf in leaves(block.terminator) if isinstance(leaf, TaskJump)):
            if target not in seen:
                seen.add(target)
                work.append(program.block(target))


def plan(program: TaskProgram) -> Sites:
    """Assign places to the results of calls, and cells to what is saved across a `sync`."""
    parts = open_parts(program)
    rows = row_counts(program)
    slots = _slots(program, parts, rows)
    wide: dict[Types, int] = defaultdict(lambda: 1)
    for dsts, slot in slots.items():
        types = place_types(program, dsts, rows)
        wide[types] = max(wide[types], slot + _width(dsts, rows))
    wide[storage(program, program.results)] += 0
    waited = {place_types(program, dsts, rows) for dsts in slots}
    results = tuple(Results(k, types, n, types in waited) for k, (types, n) in enumerate(wide.items()))
    places = {one.types: one for one in results}
    homes, cells = _homes(program, parts, slots, rows, places)
    counts = [sum(_starts(op) for block in part for op in block.ops) for part in parts.values()]
    return Sites(
        results, slots, rows, homes, cells, max([1, *counts]), any(_spawns_in_loop(part) for part in parts.values())
    )


def _starts(op: object) -> int:
    """The tasks that an operation may start for the open frame."""
    return int(isinstance(op, Spawn) and bool(starts(op.way)))


def _width(dsts: tuple[str, ...], rows: Mapping[tuple[str, ...], int]) -> int:
    """The slots that a tuple of destinations needs; what has no row goes to one of its own."""
    return rows[dsts] + 1 if dsts in rows else 1


def _slots(
    program: TaskProgram, parts: Mapping[str, tuple[TaskBlock, ...]], rows: Mapping[tuple[str, ...], int]
) -> dict[tuple[str, ...], int]:
    """The slot of each tuple of destinations: other than those that may be waited for at the same time."""
    beside: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for part in parts.values():
        together = dict.fromkeys(op.dsts for block in part for op in block.ops if isinstance(op, Spawn))
        for dsts in together:
            types = place_types(program, dsts, rows)
            beside[dsts] |= {o for o in together if o != dsts and place_types(program, o, rows) == types}
    slots: dict[tuple[str, ...], int] = {}
    for dsts, others in beside.items():
        taken = {slots[o] + k for o in others if o in slots for k in range(_width(o, rows))}
        width = _width(dsts, rows)
        slots[dsts] = next(k for k in range(max(taken, default=-1) + 2) if taken.isdisjoint(range(k, k + width)))
    return slots


def _homes(
    program: TaskProgram,
    parts: Mapping[str, tuple[TaskBlock, ...]],
    slots: Mapping[tuple[str, ...], int],
    rows: Mapping[tuple[str, ...], int],
    places: Mapping[Types, Results],
) -> tuple[dict[str, dict[str, Home]], dict[str, ArrayType]]:
    found: dict[str, dict[str, Home]] = defaultdict(dict)
    for block, spawned in (item for part in parts.values() for item in _spawned(part)):
        for target, saved in ((leaf.target, leaf.args) for leaf in leaves(block.terminator) if isinstance(leaf, Sync)):
            homes = found[target]
            waited = {*program.block(target).params} - {v for v, _ in saved}
            for dsts in spawned:
                for v, key in zip(dsts, places[place_types(program, dsts, rows)].keys, strict=True):
                    home = Home(key, slots[dsts], rows.get(dsts))
                    if v in waited and homes.setdefault(v, home) != home:
                        raise CannotRun(f"{target} finds {v} at two places")
    cells: dict[str, ArrayType] = {}
    for block in (block for block in program.blocks if block.joins):
        used: dict[ArrayType, int] = defaultdict(int)
        for v in block.params:
            if v in found[block.label]:
                continue
            (type_,) = storage(program, (v,))
            key = f"cell:{type_}.{used[type_]}"
            used[type_] += 1
            cells[key] = type_
            found[block.label][v] = Home(key, None)
    return {block.label: dict(found[block.label]) for block in program.blocks if block.joins}, cells


def _spawned(part: tuple[TaskBlock, ...]) -> Iterator[tuple[TaskBlock, tuple[tuple[str, ...], ...]]]:
    """Blocks in which a frame is open, the one that opens it first, with what may be spawned for it by their end."""
    blocks = {block.label: block for block in part}
    spawned: dict[str, dict[tuple[str, ...], None]] = {part[0].label: {}}
    work = [part[0].label]
    while work:
        block = blocks[work.pop()]
        done = spawned[block.label] | {op.dsts: None for op in block.ops if isinstance(op, Spawn)}
        for target in (leaf.target for leaf in leaves(block.terminator) if isinstance(leaf, TaskJump)):
            known = spawned.get(target)
            if known is None or not done.keys() <= known.keys():
                spawned[target] = {**(known or {}), **done}
                work.append(target)
    for block in part:
        own = {op.dsts: None for op in block.ops if isinstance(op, Spawn)}
        yield block, tuple(spawned[block.label] | own)


def _spawns_in_loop(part: tuple[TaskBlock, ...]) -> bool:
    """Whether a block that starts tasks for the open frame may run twice for it."""
    jumps = {b.label: [leaf.target for leaf in leaves(b.terminator) if isinstance(leaf, TaskJump)] for b in part}
    starting = (block.label for block in part if any(map(_starts, block.ops)))
    return any(label in reachable(jumps[label], jumps) for label in starting)
