"""The places in the source where a run is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pcbatch.call.results import BlockStats
from pcbatch.compiler.block_infos import block_infos
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.diagnostics.tables import ranges, table
from pcbatch.runtime.execute.run_state import RunState
from pcbatch.runtime.execute.task_run import TaskRun


@dataclass(frozen=True, slots=True)
class Place:
    """A block where lanes still run.

    Attributes:
        label: the label of the block.
        function: the function that it comes from.
        file: the name of the file, without folders.
        lines: the lines of the file.
        lanes: the number of lanes that wait for it, or of tasks, where calls run side by side.
        sample: the number of the input that one of them runs.
    """

    label: str
    function: str
    file: str
    lines: tuple[int, ...]
    lanes: int
    sample: int


class Places(tuple[Place, ...]):
    """The blocks where lanes still run, those with most lanes first; printed as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "no lane runs"
        rows = [(p.label, p.function, f"{p.file}:{ranges(p.lines)}", str(p.lanes), str(p.sample)) for p in self]
        return table(("block", "function", "lines", "lanes", "for example"), rows, ("lanes", "for example"))

    __repr__ = __str__


def places_of(compiled: Program, state: RunState) -> Places:
    """Return the blocks where lanes still run, or those for which records of tasks wait."""
    found = list(_of_lanes(compiled, state))
    if isinstance(state, TaskRun) and (waiting := state.waiting()):
        infos = block_infos(state.tasks.program)
        found += [_place(infos[w.number], w.loc, len(w.examples), int(w.examples[-1])) for w in waiting]
    return Places(sorted(found, key=lambda place: -place.lanes))


def _of_lanes(compiled: Program, state: RunState) -> Iterator[Place]:
    pc, inputs = state.running()
    for block, first, count in zip(*np.unique(pc, return_index=True, return_counts=True), strict=True):
        site = compiled.executable.where(int(block), None)
        yield _place(compiled.infos[block], site.loc, int(count), int(inputs[first]))


def _place(info: BlockStats, loc: Loc | None, lanes: int, sample: int) -> Place:
    lines = info.lines or (() if loc is None else (loc.line,))
    return Place(info.label, info.function, _file(loc), lines, lanes, sample)


def _file(loc: Loc | None) -> str:
    return "" if loc is None else loc.file.replace("\\", "/").rpartition("/")[2]
