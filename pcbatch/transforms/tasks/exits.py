"""The exits of a block of tasks: the ways in which it ends and in which it begins tasks, and where their values go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pcbatch.ir.forks import leaves
from pcbatch.ir.tasks import Finish, Give, Spawn, Start, Sync, TaskJump, spawns
from pcbatch.runtime.tasks.task_plan import ListBlock, TaskPlan


@dataclass(frozen=True, slots=True)
class PushedRecord:
    """A record for the block `label`; `rank`: which of those that the visit pushes."""

    label: str
    rank: int


@dataclass(frozen=True, slots=True)
class Exit:
    """A leaf of the terminator of a block, or a way of what it spawns.

    Attributes:
        column: the column of the tape that tells which of several leaves, or ways, a row has taken; None: there is one.
        number: that of this one.
        to: where the values go: to a record, to places of the open frame, or to the destination of the task.
        values: a parameter of the record, a state key and slot, or a state key; and the variable.
    """

    column: str | None
    number: int
    to: PushedRecord | Literal["frame", "destination"]
    values: tuple[tuple[Any, str], ...]


def exits(plan: TaskPlan, block: ListBlock) -> Iterator[Exit]:
    """The exits of a block: first those that end it, then those of what it spawns, in order."""
    ends, begun = leaves(block.block.terminator), spawns(block.block)
    for k, leaf in enumerate(ends):
        column = "leaf" if len(ends) > 1 else None
        match leaf:
            case TaskJump(target=target, args=args):
                yield Exit(column, k, PushedRecord(target, 0), args)
            case Sync(target=target, args=args):
                homes = plan.sites.homes[target]
                yield Exit(column, k, "frame", tuple(((homes[p].key, homes[p].slot), v) for p, v in args))
            case Finish(values=values):
                yield Exit(column, k, "destination", tuple(zip(block.results.keys, values, strict=True)))
            case _:
                pass
    for q, op in enumerate(begun):
        ways = leaves(op.way)
        for k, way in enumerate(ways):
            column = f"way:{q}" if len(ways) > 1 else None
            match way:
                case Start(label=label, args=args):
                    yield Exit(column, k, PushedRecord(label, len(begun) - q), args)
                case Give(values=values) if isinstance(op, Spawn):
                    keys, slot = plan.sites.of(plan.program, op.dsts).keys, plan.sites.slots[op.dsts]
                    yield Exit(column, k, "frame", tuple(zip(((key, slot) for key in keys), values, strict=True)))
                case Give(values=values):
                    yield Exit(column, k, "destination", tuple(zip(block.results.keys, values, strict=True)))
