"""The phases of a task program: what nothing expensive waits for runs when the expensive blocks have nothing to run.

    def grow(w, h, levels):                        phase 0: the cell, for which records gather
        h = cell(w, h)                             phase 1: the sums, in which all that it has spawned returns
        ... grow(w, h, levels - 1) ...
        return h @ w.out + below + after

An expensive block runs at most once a trip, so that records gather for it. A block that may run because it has run, but
never the other way round, such as one that adds up outputs which no cell reads, gains nothing by running in every trip:
the cells do not wait for it. It waits until they are through, for all examples, and then runs as few times as the
deepest call demands. It is the end of a trip all the same where nothing earlier can run, as while no frame is free.

Blocks at which tasks only end make no phase of their own: they run until their list is empty before the next trip.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pcbatch.ir.dataflow import components
from pcbatch.ir.forks import leaves
from pcbatch.ir.tasks import Finish, SpawnInto, Start, Sync, TaskBlock, TaskProgram, after_jump, spawns
from pcbatch.runtime.tasks.sites import open_parts

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
        targets = {*after_jump(block), *_begun(block)}
        if any(isinstance(leaf, Finish) for leaf in leaves(block.terminator)):
            targets |= waiting[block.label]
        found[block.label] = frozenset(targets)
    return found


def _begun(block: TaskBlock, inherits: bool | None = None) -> set[str]:
    """The blocks at which tasks begin that a block spawns; of these, those that have its destination, or a frame."""
    chosen = (op for op in spawns(block) if inherits is None or isinstance(op, SpawnInto) is inherits)
    return {way.label for op in chosen for way in leaves(op.way) if isinstance(way, Start)}


def _waiting(program: TaskProgram) -> dict[str, set[str]]:
    """By block, the blocks after a `sync` that wait for the tasks which run it."""
    waiting: dict[str, set[str]] = {block.label: set() for block in program.blocks}
    for part in open_parts(program).values():
        targets = {leaf.target for block in part for leaf in leaves(block.terminator) if isinstance(leaf, Sync)}
        for label in {label for block in part for label in _begun(block, inherits=False)}:
            waiting[label] |= targets
    onward = {block.label: {*after_jump(block), *_begun(block, inherits=True)} for block in program.blocks}
    changed = True
    while changed:
        changed = False
        for label, targets in onward.items():
            for target in targets:
                changed |= not waiting[label] <= waiting[target]
                waiting[target] |= waiting[label]
    return waiting
