"""The visits of a run, beside how many any schedule makes at least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.api.learn_schedule import sampled
from pcbatch.learning.learn import task_of


@dataclass(frozen=True)
class Visits:
    """The visits of the blocks that a schedule chooses among: those made, and the lower bound.

    The bound of a block is the longest chain of its executions of which each needs the one before, or its executions
    by the width of a visit, if that is more.
    """

    made: int
    bound: int

    @property
    def ratio(self) -> float:
        """Visits for each of the lower bound."""
        return self.made / max(self.bound, 1)

    def __str__(self) -> str:
        return f"{self.made:,} visits of blocks, at least {self.bound:,} with any schedule: ratio {self.ratio:.2f}"


def made(batched: Any, *args: Any) -> int:
    """All visits of a call."""
    return sum(block.visits for block in batched.profile(*args).blocks)


def visits(batched: Any, *args: Any) -> Visits:
    """The visits of a call, and the lower bound for it."""
    graph = task_of(batched.fn, *sampled(batched, args, {})).graph
    blocks = {block.label: block for block in batched.profile(*args).blocks}
    total = least = 0
    for kind, (label, chain, width) in enumerate(zip(graph.labels, graph.bounds(), graph.widths, strict=True)):
        block = blocks[label]
        if block.plan.mode.endswith("lanes at a time"):  # a visit of lanes may be narrower than their number
            width = min(width, block.plan.width)
        total += block.visits
        least += max(chain, -(-int(np.sum(graph.types == kind)) // width))
    return Visits(total, least)
