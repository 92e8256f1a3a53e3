"""The places where a run by tasks is: the blocks for which records wait, and the examples that these are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.tasks import TaskBlock
from pcbatch.runtime.tasks import lists, pool
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.tasks.task_plan import DEST, FRAME, ROOT, ListBlock, TaskPlan


@dataclass(frozen=True, slots=True)
class Waiting:
    """The records that wait for a block.

    Attributes:
        block: the block.
        number: its number in the program.
        examples: int[records]: which example each is of, the newest last.
    """

    block: TaskBlock
    number: int
    examples: np.ndarray

    @property
    def loc(self) -> Loc | None:
        """The first place of the source in the block."""
        return next(_places(self.block), None)


def waiting(plan: TaskPlan, sizes: Sizes, machine: Mapping[str, Any]) -> tuple[Waiting, ...]:
    """Return what waits on each list that is not empty."""
    found = []
    for block in plan.blocks:
        n = int(machine[lists.count(block.label)])
        if n:
            found.append(Waiting(block.block, block.number, _examples(plan, block, sizes, machine, n)))
    return tuple(found)


def pcs(program: StackProgram, found: tuple[Waiting, ...], entry: int, examples: int) -> np.ndarray:
    """Return a block of the program for lanes at which each example may be said to be, int[examples].

    It is the one that has the source of a block for which a record of the example waits; the entry if there is none.
    """
    out = np.full(examples, entry, np.int32)
    for one in sorted(found, key=lambda one: len(one.examples)):
        out[one.examples] = _same_source(program, one.loc, entry)
    return out


def _same_source(program: StackProgram, loc: Loc | None, entry: int) -> int:
    return next((k for k, block in enumerate(program.blocks) if loc is not None and loc in _places(block)), entry)


def _places(block: Any) -> Iterator[Loc]:
    for op in (*block.ops, block.terminator):
        if (loc := getattr(op, "loc", None)) is not None:
            yield loc


def _examples(plan: TaskPlan, block: ListBlock, sizes: Sizes, machine: Mapping[str, Any], n: int) -> np.ndarray:
    def column(name: str) -> np.ndarray:
        return np.asarray(machine[lists.column(block.label, name)])[:n]

    if plan.single:
        return np.zeros(n, int)
    if ROOT in block.columns:
        return column(ROOT).astype(int)
    rows = column(FRAME) if FRAME in block.columns else column(DEST) // block.results.slots
    if pool.ROOT in machine:
        frames = np.asarray(machine[pool.ROOT])
        return np.where(rows < sizes.lanes, rows, frames[rows]).astype(int)
    return _walked(plan, sizes, machine, rows.astype(int))


def _walked(plan: TaskPlan, sizes: Sizes, machine: Mapping[str, Any], rows: np.ndarray) -> np.ndarray:
    """The examples at the ends of chains of frames; where these cannot be told, the first one that has not ended."""
    dest, need = np.asarray(machine[pool.DEST]), np.asarray(machine[pool.NEED])
    slots = {results.slots for results in plan.sites.results}
    if len(slots) > 1:
        return np.full(len(rows), int(np.argmax(need[: sizes.lanes] != 0)))
    each = slots.pop()
    for _ in range(len(dest)):
        if np.all(rows < sizes.lanes):
            break
        rows = np.where(rows < sizes.lanes, rows, dest[rows] // each)
    return rows
