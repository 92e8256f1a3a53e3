"""The results that are pending at each point of a task program, over all paths since the frame was opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pcbatch.ir.analysis.dataflow import solve
from pcbatch.ir.forks import conditions, leaves
from pcbatch.ir.ops import Fail
from pcbatch.ir.roles import reads
from pcbatch.ir.tasks import Give, OpenFrame, Spawn, TaskBlock, TaskJump, TaskOp, TaskProgram, TaskTerminator

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True, slots=True)
class Point:
    """The state of the results that a task waits for, before an operation.

    Attributes:
        open: whether a frame is open.
        must: the results that are pending on all paths.
        may: those that are on some path.
        given: those that have a value on all paths, by a `give`.
    """

    open: bool = False
    must: Names = NONE
    may: Names = NONE
    given: Names = NONE


def entering(program: TaskProgram) -> dict[str, Point | None]:
    """The point at the top of each block; None for a block in a frame that no jump leads to."""
    blocks = {block.label: block for block in program.blocks}
    sources: dict[str, list[str]] = {label: [] for label in blocks}
    for label, block in blocks.items():
        for leaf in leaves(block.terminator):
            if isinstance(leaf, TaskJump) and blocks[leaf.target].open:
                sources[leaf.target].append(label)

    def join(label: str, values: list[Point | None]) -> Point | None:
        if not blocks[label].open:
            return Point()
        known = [value for value in values if value is not None]
        if not known:
            return None
        return Point(
            True,
            frozenset.intersection(*(point.must for point in known)),
            frozenset.union(*(point.may for point in known)),
            frozenset.intersection(*(point.given for point in known)),
        )

    def transfer(label: str, point: Point | None) -> Point | None:
        return None if point is None else list(walk(blocks[label], point))[-1][1]

    start: Point | None = None
    return dict(solve(sources, join=join, transfer=transfer, start=start).entering)


def walk(block: TaskBlock, point: Point) -> Iterator[tuple[TaskOp | None, Point]]:
    """The operations of a block, each with the point before it; at last None, with the point at the terminator."""
    for op in block.ops:
        yield op, point
        match op:
            case OpenFrame():
                point = Point(True)
            case Spawn(dsts=dsts, adds=adds, row=row):
                given = frozenset(dsts) if all(isinstance(way, Give) for way in leaves(op.way)) else NONE
                given = point.given if adds or row is not None else point.given | given
                point = Point(point.open, point.must.union(dsts), point.may.union(dsts), given)
            case _:
                pass
    yield None, point


def terminator_reads(terminator: TaskTerminator, leaves_too: bool = True) -> tuple[str, ...]:
    """The variables that a terminator reads: conditions, the message of a failure, and what its leaves hand on."""
    return conditions(terminator) if not leaves_too and not isinstance(terminator, Fail) else reads(terminator)
