"""The loop nest of a program, in which a lane goes round an inner loop without a look at the blocks around it.

before:  bb0 -> bb1 <-> bb2, bb2 -> bb1, bb1 -> bb3
after:   0, (1, 2), 3
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pcbatch.ir.analysis.dataflow import components, invert
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.analysis.block_frequency import flow

Nest = tuple["int | Nest", ...]
"""Numbers of blocks in the order of control flow; a tuple inside is a loop."""


def loop_nest(program: StackProgram, outside: Collection[int] = ()) -> Nest:
    """Return the loop nest of a program without the blocks `outside`; calls and returns are edges as jumps are."""
    index = {block.label: k for k, block in enumerate(program.blocks)}
    labels = [label for label, k in index.items() if k not in outside]
    graph = flow(program)
    return _in_order(labels, graph, invert(graph), index)


def blocks_of(nest: Nest) -> tuple[int, ...]:
    """Return the numbers of all blocks of a nest."""
    return tuple(sorted(k for part in nest for k in ((part,) if isinstance(part, int) else blocks_of(part))))


def _in_order(
    labels: Sequence[str],
    graph: Mapping[str, Sequence[str]],
    before: Mapping[str, Sequence[str]],
    index: Mapping[str, int],
) -> Nest:
    inside = frozenset(labels)
    parts: list[int | Nest] = []
    for component in reversed(components({n: [s for s in graph[n] if s in inside] for n in labels})):
        if len(component) == 1:
            parts.append(index[component[0]])
            continue
        members = sorted(component, key=index.__getitem__)
        # Without the blocks where control enters the loop its back edges are gone, and inner loops remain.
        entered = [n for n in members if not frozenset(component).issuperset(before[n])] or members[:1]
        rest = [n for n in members if n not in entered]
        parts.append((*(index[n] for n in entered), *_in_order(rest, graph, before, index)))
    return tuple(parts)
