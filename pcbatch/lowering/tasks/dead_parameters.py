"""Drop operations whose results nothing reads, and parameters that a block does not need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pcbatch.ir.forks import map_leaves
from pcbatch.ir.ops import Fail, PureOp
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.tasks import (
    OpenFrame,
    Spawn,
    SpawnInto,
    Start,
    Sync,
    TaskBlock,
    TaskEdge,
    TaskJump,
    TaskOp,
    TaskProgram,
    Way,
)


def run(program: TaskProgram) -> TaskProgram:
    """Return the program with the fewest parameters: the least solution over all blocks."""
    needed: dict[str, frozenset[str]] = {block.label: frozenset() for block in program.blocks}
    again = True
    while again:
        again = False
        for block in program.blocks:
            now = needed[block.label] | (frozenset(block.params) & _used(block, needed)[0])
            if now != needed[block.label]:
                needed[block.label], again = now, True
    return replace(program, blocks=tuple(_without(block, needed) for block in program.blocks))


def _used(block: TaskBlock, needed: Mapping[str, frozenset[str]]) -> tuple[frozenset[str], frozenset[int]]:
    """The variables that a block reads, given what its successors need, and the operations that it needs for them."""
    used = set(reads(_edge(block.terminator, needed)))
    kept = set()
    for k in reversed(range(len(block.ops))):
        op = block.ops[k]
        match op:
            case _ if isinstance(op, PureOp):
                if not used.isdisjoint(writes(op)):
                    kept.add(k)
                    used |= {*reads(op)}
            case Spawn() | SpawnInto():
                kept.add(k)
                used |= {*reads(replace(op, way=_way(op.way, needed)))}
            case OpenFrame():
                kept.add(k)
    return frozenset(used), frozenset(kept)


def _without(block: TaskBlock, needed: Mapping[str, frozenset[str]]) -> TaskBlock:
    kept = _used(block, needed)[1]
    ops: list[TaskOp] = []
    for k, op in enumerate(block.ops):
        if k in kept:
            ops.append(replace(op, way=_way(op.way, needed)) if isinstance(op, Spawn | SpawnInto) else op)
    params = tuple(p for p in block.params if p in needed[block.label])
    return replace(block, params=params, ops=tuple(ops), terminator=_edge(block.terminator, needed))


def _way(way: Way, needed: Mapping[str, frozenset[str]]) -> Way:
    return map_leaves(way, lambda w: replace(w, args=_bound(w.args, needed[w.label])) if isinstance(w, Start) else w)


def _edge(edge: TaskEdge | Fail, needed: Mapping[str, frozenset[str]]) -> TaskEdge | Fail:
    if isinstance(edge, Fail):
        return edge
    return map_leaves(
        edge, lambda e: replace(e, args=_bound(e.args, needed[e.target])) if isinstance(e, TaskJump | Sync) else e
    )


def _bound(args: tuple[tuple[str, str], ...], needed: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple((param, v) for param, v in args if param in needed)
