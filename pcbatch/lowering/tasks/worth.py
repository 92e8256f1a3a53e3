"""Whether a program can run as tasks, and whether that pays: what tasks move and open, against what lanes waste.

Costs are those of `lowering/analysis/cost.py`, in about one arithmetic operation each. A task moves its record once per
visit, and opens, fills and leaves a frame; lanes wait for each other and compute for those that stand elsewhere. So
sums, which need no frame, always pay. So does a block with much work for each number that it moves, such as a product
with a matrix of weights: its records gather until many are computed together. What else has frames pays where a visit
is short: in few blocks, with few numbers in a record and no arrays of results. Then a long run is some times as fast,
and a short one loses less than a millisecond; programs of more blocks, or with lists of results, were measured to be 3
to 8 times slower than in lanes. A single example whose results are arrays of many thousand numbers only moves them.
Loops that keep results in order to put off what they do with them pay for few examples with small records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pcbatch.ir.analysis.callgraph import recursive
from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.ops import Check, Print
from pcbatch.ir.tasks import OpenFrame, Spawn, TaskBlock, TaskProgram
from pcbatch.lowering.tasks.tail_duplication import cost

LARGE = 100  # numbers in a record
EXPENSIVE = 2000.0  # cost of a block whose records should gather, if it is also
INTENSE = 16.0  # times as large as the number of numbers in a record
FEW_BLOCKS = 6  # of a program whose visits are short
MOVED = 8192  # numbers in a record or a frame up to which frames pay for a single example
ONE_EXAMPLE = 32.0  # cost of all blocks from which on frames pay for a single example
FEW_EXAMPLES = 4  # up to which it pays that loops put off what they do with results, if these are as small
SMALL = 24  # numbers in a record or a frame of these

NO_CALLS, NOT_RECURSIVE = "no function is called that was not inlined", "no function calls itself"
NO_RECURSION = (NO_CALLS, NOT_RECURSIVE)


def reasons_against(program: CfgProgram) -> Iterator[str]:
    """Yield what keeps the calls of a program from running side by side, in a few words each."""
    if not any(isinstance(op, Call) for f in program.functions for op in f.ops):
        yield NO_CALLS
        return
    if not recursive(program):
        yield NOT_RECURSIVE
    for f in program.functions:
        for block in f.blocks:
            if any(isinstance(op, Print) for op in block.ops):
                yield f"`{f.name}` prints, and the order of lines is kept"
            if any(isinstance(op, Check) for op in block.ops):
                yield f"`{f.name}` has checks"


def why_not(program: CfgProgram) -> str | None:
    """The first reason against tasks; None if there is none."""
    return next(reasons_against(program), None)


@dataclass(frozen=True, slots=True)
class Worth:
    """Whether tasks pay for any number of examples, why not, whether they do for one, and up to how many."""

    pays: bool
    reason: str
    for_one: bool
    most: int | None = None  # None: any number


def worth(program: TaskProgram) -> Worth:
    """Estimate whether a program runs faster by tasks than in lanes."""
    frames = any(isinstance(op, OpenFrame) for op in program.ops)
    if not frames:
        return Worth(True, "sums need no frames", True)
    if not any(_gathers(block, program) for block in program.blocks):
        reason = _against(program)
        if reason is None and any(isinstance(op, Spawn) and op.row is not None for op in program.ops):
            reason = "lists of results cost more to fill than is gained"
        if reason is not None:
            return Worth(False, reason, False)
    return _frames(program)


def worth_deferring(program: TaskProgram) -> Worth:
    """Estimate whether a program runs faster by tasks whose loops put off what they do with results of calls."""
    if max(_size(block, program) for block in program.blocks) > SMALL:
        reason = "its calls are independent only if a loop keeps their results, which costs more than is gained"
        return Worth(False, reason, False)
    return Worth(True, "loops keep results", _frames(program).for_one, FEW_EXAMPLES)


def _frames(program: TaskProgram) -> Worth:
    """Return the estimate for a program whose frames pay for several examples."""
    work = sum(cost(block) for block in program.blocks)
    size = max(_size(block, program) for block in program.blocks)
    return Worth(True, "calls have frames", work >= ONE_EXAMPLE and size <= MOVED)


def _gathers(block: TaskBlock, program: TaskProgram) -> bool:
    """Whether a block has so much work for each number that it moves that its records should gather."""
    work, size = cost(block), _size(block, program)
    return work >= max(EXPENSIVE, INTENSE * size) and size <= MOVED


def _against(program: TaskProgram) -> str | None:
    """Return why visits of a program take longer than lanes save, where none of its blocks gathers records."""
    size = max(_size(block, program) for block in program.blocks)
    if size > LARGE:
        return f"a record of {size:,} numbers costs more to move than is gained"
    if len(program.blocks) > FEW_BLOCKS:
        return f"visits of {len(program.blocks)} blocks cost more than is gained"
    return None


def _size(block: TaskBlock, program: TaskProgram) -> int:
    """Count the numbers in one record of a block's list."""
    return sum(math.prod(t.shape) for v in block.params if (t := program.types[v]) is not None)
