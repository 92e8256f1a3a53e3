"""Order the blocks for the schedule, the expensive ones last, and number them.

before:  a: ...; gradient: ...; b: ...         after:  bb0 (a), bb1 (b), bb2 (gradient)

With an expensive block E the order is that in which lanes pass the others between two visits of E: the reverse
postorder from E's successors, calls and returns counting as jumps. Smallest-pc-first then gathers lanes: cheap blocks
drain before E runs, so E runs once for all lanes that are on their way to it. Several expensive blocks stand last
together, in the order of the program. Without one, a sweep wants the same order from the entry (a lane then does much
in one trip), and policies that name one block want source order, in which lanes wait for each other at later code, as
in the paper.

A block in which lanes agree in a counter (`analysis/agreement.py`) gathers nobody. Lanes that run ahead come to it with
other numbers, and each number is a visit. There a sweep keeps lanes together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pcbatch.ir.analysis.dataflow import postorder
from pcbatch.ir.analysis.def_use import retarget_stack, targets
from pcbatch.ir.stack import StackBlock, StackProgram, StackTerminator
from pcbatch.lowering.analysis.agreement import keys_of
from pcbatch.lowering.analysis.block_frequency import Graph, flow, visits
from pcbatch.lowering.analysis.cost import visit_cost

EXPENSIVE = 200.0  # per lane; below this no block is worth waiting for
DOMINANT = 0.25  # of the estimated cost of all blocks


def choose_schedule(program: StackProgram) -> str:
    """Choose the policy for a program whose user says "auto": "drain" or "sweep".

    With an expensive block smallest-first lets lanes gather before it, which saves whole executions of it. Among cheap
    blocks a sweep makes the fewest trips.
    """
    return "drain" if _gathering(program) else "sweep"


def ordered(program: StackProgram, schedule: str) -> list[str]:
    """Return the labels of the blocks in the order for a scheduling policy."""
    graph = flow(program)
    last = _gathering(program)
    labels = [block.label for block in program.blocks]
    if not last:
        source = {b.label: list(_in_source(b.terminator)) for b in program.blocks}
        order = _reverse_postorder([program.entry], graph if schedule == "sweep" else source)
    else:
        # Without the expensive blocks, the order is that between two visits of one of them.
        expensive = set(last)
        cut = {label: [s for s in succ if s not in expensive] for label, succ in graph.items()}
        starts = _reverse_postorder([s for label in last for s in cut[label]], cut)
        later = {*starts, *last}
        # Blocks that run once, before the first expensive one, come first.
        first = [label for label in _reverse_postorder([program.entry], cut) if label not in later]
        order = [*first, *starts]
    placed = {*order, *last}
    return [*order, *(label for label in labels if label not in placed), *last]


def run(program: StackProgram, schedule: str) -> StackProgram:
    """Reorder and relabel the blocks for a scheduling policy."""
    order = ordered(program, schedule)
    new = {label: f"bb{k}" for k, label in enumerate(order)}
    by_label = {block.label: block for block in program.blocks}
    blocks = [by_label[label] for label in order]
    relabelled = tuple(
        replace(b, label=new[b.label], terminator=retarget_stack(b.terminator, new.__getitem__)) for b in blocks
    )
    return replace(program, entry=new[program.entry], blocks=relabelled)


def _in_source(terminator: StackTerminator) -> tuple[str, ...]:
    """The successors in source order: the callee, then the return point."""
    return tuple(dict.fromkeys(targets(terminator)))


def expensive_blocks(program: StackProgram) -> tuple[str, ...]:
    """Return the labels of the blocks that decide the run time: one visit is expensive, and all visits of the block are
    a good part of the estimated run."""
    types = {v: var.type for v, var in program.vars.items()}
    often = visits(program)
    costs = {b.label: block_cost(b, types) for b in program.blocks}
    weights = {label: cost * often[label] for label, cost in costs.items()}
    enough = DOMINANT * sum(weights.values())
    return tuple(label for label, cost in costs.items() if cost >= EXPENSIVE and weights[label] >= enough)


def _gathering(program: StackProgram) -> tuple[str, ...]:
    """The expensive blocks that run once for all lanes which are there."""
    expensive = expensive_blocks(program)
    if not expensive:
        return ()
    registers = [v for v, var in program.vars.items() if var.has_register]
    agreeing = {block.label for block, keys in zip(program.blocks, keys_of(program, registers), strict=True) if keys}
    return tuple(label for label in expensive if label not in agreeing)


def block_cost(block: StackBlock, types: Mapping[str, object]) -> float:
    """Estimate one visit of a block per lane, without its pushes and pops; 0 if a part of it has no estimate."""
    total = sum(visit_cost(op, types) for op in block.ops if type(op).__name__ not in ("Push", "Pop"))
    return 0.0 if math.isinf(total) else total


def _reverse_postorder(starts: Sequence[str], graph: Graph) -> list[str]:
    backwards = {label: ends[::-1] for label, ends in graph.items()}
    return postorder(starts[::-1], backwards)[::-1]
