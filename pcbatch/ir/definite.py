"""What has certainly happened on every path to a block: the "must" analyses behind the verifier.

`written` and `stack_written` say which variables have a value for certain, `slots` which frame slots have. All are
intersections over paths, so they start from "no path known" and shrink; a block that no path leads to is left out
of the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pcbatch.ir import walk
from pcbatch.ir.cfg import Function
from pcbatch.ir.dataflow import solve
from pcbatch.ir.ops import Jump
from pcbatch.ir.stack import PushJump, StackProgram
from pcbatch.ir.walk import AnyBlock, block_writes, may_return, pushes, successors, writes

Names = frozenset[str]
NOTHING: Names = frozenset()
Edge = tuple[str, str, Names]
"""From a block, to a block, with names that the way between them adds."""


def written(function: Function) -> dict[str, Names]:
    """The variables of a CFG function that are written on all paths to the top of each block."""
    return on_all_paths(
        {function.blocks[0].label: frozenset(function.params)}, _jumps(function.blocks), _writes(function)
    )


def stack_written(program: StackProgram) -> tuple[dict[str, Names], dict[str, Names]]:
    """Like `written`, for a stack program: over all activations, and over the outermost one alone.

    A call adds what its callee writes on all of the paths through it.
    """
    adds = _writes(program)
    inside = _edges_inside(program, _written_by_calls(program, adds))
    into = [(label, jump.target, NOTHING) for label, jump in calls(program)]
    shared = frozenset(name for op in program.prologue for name in writes(op))
    start = {program.entry: shared.union(program.params)}
    return on_all_paths(start, [*inside, *into], adds), on_all_paths(start, inside, adds)


def slots(program: StackProgram, entry: str) -> dict[str, Names]:
    """The slots that one activation, entered at `entry`, has filled on all paths to the top of each block."""
    filled = {block.label: frozenset(op.dst for op in pushes(block)) for block in program.blocks}
    return on_all_paths({entry: NOTHING}, _jumps(program.blocks), filled)


def calls(program: StackProgram) -> list[tuple[str, PushJump]]:
    """The calls, with the blocks that they end; a block may end in several."""
    return [(block.label, call) for block in program.blocks for call in walk.calls(block.terminator)]


def on_all_paths(starts: Mapping[str, Names], edges: Iterable[Edge], adds: Mapping[str, Names]) -> dict[str, Names]:
    """For every node that a path from `starts` leads to: the names added on all such paths, before its own."""
    incoming: dict[str, list[tuple[str, Names]]] = {label: [] for label in adds}
    for source, target, extra in edges:
        incoming[target].append((source, extra))

    def join(label: str, values: list[Names | None]) -> Names | None:
        extras = (extra for _, extra in incoming[label])
        paths = [value | extra for value, extra in zip(values, extras, strict=True) if value is not None]
        paths += [starts[label]] if label in starts else []
        return frozenset.intersection(*paths) if paths else None

    def transfer(label: str, known: Names | None) -> Names | None:
        return None if known is None else known | adds[label]

    start: Names | None = None
    sources = {label: tuple(source for source, _ in items) for label, items in incoming.items()}
    solution = solve(sources, join=join, transfer=transfer, start=start)
    return {label: known for label, known in solution.entering.items() if known is not None}


def _writes(code: Function | StackProgram) -> dict[str, Names]:
    return {block.label: frozenset(block_writes(block)) for block in code.blocks}


def _jumps(blocks: Iterable[AnyBlock]) -> list[Edge]:
    return [(block.label, to, NOTHING) for block in blocks for to in successors(block.terminator)]


def _edges_inside(program: StackProgram, by_calls: Mapping[str, Names]) -> list[Edge]:
    """The edges of activations; a call that never returns has none."""
    out = []
    for block in program.blocks:
        for edge in walk.edges(block.terminator):
            if isinstance(edge, Jump):
                out.append((block.label, edge.target, NOTHING))
            elif isinstance(edge, PushJump) and edge.target in by_calls:
                out.append((block.label, edge.ret, by_calls[edge.target]))
    return out


def _written_by_calls(program: StackProgram, adds: Mapping[str, Names]) -> dict[str, Names]:
    """For every call target that returns: what a call of it writes on all paths.

    At first no call is known to return, then base cases are, then what calls only those, and so on.
    """
    targets = dict.fromkeys(jump.target for _, jump in calls(program))
    ends = [block.label for block in program.blocks if may_return(block.terminator)]
    known: dict[str, Names] = {}
    while True:
        edges = _edges_inside(program, known)
        new: dict[str, Names] = {}
        for target in targets:
            tops = on_all_paths({target: NOTHING}, edges, adds)
            if paths := [tops[end] | adds[end] for end in ends if end in tops]:
                new[target] = frozenset.intersection(*paths)
        if new == known:
            return known
        known = new
