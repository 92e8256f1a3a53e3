"""The "must" analyses behind the verifier: assignments that every path to a block has made.

`written` and `stack_written` say which variables have a value for certain, `slots` which frame slots have. All are
intersections over paths, so they start from "no path known" and shrink; a block that no path leads to is left out
of the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pcbatch.ir.analysis import def_use
from pcbatch.ir.analysis.dataflow import block_edges, postorder, solve
from pcbatch.ir.analysis.def_use import AnyBlock, block_writes, may_return, pushes, successors
from pcbatch.ir.cfg import Function
from pcbatch.ir.ops import Jump
from pcbatch.ir.roles import writes
from pcbatch.ir.stack import PushJump, StackBlock, StackProgram

Names = frozenset[str]
NOTHING: Names = frozenset()
Edge = tuple[str, str, Names]
"""The start and the end of an edge, with the names that the edge itself adds."""


def written(function: Function) -> dict[str, Names]:
    """The variables of a CFG function that are written on all paths to the top of each block."""
    return on_all_paths(
        {function.blocks[0].label: frozenset(function.params)}, _jumps(function.blocks), _writes(function)
    )


def stack_written(program: StackProgram, names: Names | None = None) -> tuple[dict[str, Names], dict[str, Names]]:
    """The variables of a stack program that are written on all paths to the top of each block.

    A call adds the variables that its callee writes on all paths through it. `names` restricts the analysis to these
    variables. Returns two results: over all activations, and over the outermost one alone.
    """
    adds = _writes(program)
    if names is not None:
        adds = {label: written & names for label, written in adds.items()}
    inside = _edges_inside(program.blocks, _written_by_calls(program, adds))
    into = [(label, jump.target, NOTHING) for label, jump in calls(program)]
    shared = frozenset(name for op in program.prologue for name in writes(op))
    start = {program.entry: shared.union(program.params)}
    return on_all_paths(start, [*inside, *into], adds), on_all_paths(start, inside, adds)


def slots(program: StackProgram) -> dict[str, dict[str, Names]]:
    """The slots filled on all paths to the top of each block, for each activation by its entry.

    Activations are separate because a tail jump into the entry of another function keeps slots, and a call does not.
    """
    filled = {block.label: frozenset(op.dst for op in pushes(block)) for block in program.blocks}
    edges = block_edges(program.blocks)
    out = {}
    for entry in dict.fromkeys([program.entry, *(jump.target for _, jump in calls(program))]):
        body = postorder([entry], edges)
        inside = [(label, to, NOTHING) for label in body for to in edges[label]]
        out[entry] = on_all_paths({entry: NOTHING}, inside, {label: filled[label] for label in body})
    return out


def calls(program: StackProgram) -> list[tuple[str, PushJump]]:
    """All calls with the labels of their blocks; a block may end in several calls."""
    return [(block.label, call) for block in program.blocks for call in def_use.calls(block.terminator)]


def on_all_paths(starts: Mapping[str, Names], edges: Iterable[Edge], adds: Mapping[str, Names]) -> dict[str, Names]:
    """The names added on all paths from `starts` to each node, before its own; unreachable nodes are left out."""
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


def _edges_inside(blocks: Iterable[StackBlock], by_calls: Mapping[str, Names]) -> list[Edge]:
    """The edges inside activations; a call that never returns has none."""
    out = []
    for block in blocks:
        for edge in def_use.edges(block.terminator):
            if isinstance(edge, Jump):
                out.append((block.label, edge.target, NOTHING))
            elif isinstance(edge, PushJump) and edge.target in by_calls:
                out.append((block.label, edge.ret, by_calls[edge.target]))
    return out


def _written_by_calls(program: StackProgram, adds: Mapping[str, Names]) -> dict[str, Names]:
    """The variables that a call of each target writes on all paths; a target that never returns is left out.

    At first no call is known to return, then base cases are, then targets that call only those, and so on.
    """
    steps = block_edges(program.blocks)
    blocks = {block.label: block for block in program.blocks}
    called = {label: [jump.target for jump in def_use.calls(block.terminator)] for label, block in blocks.items()}
    bodies = {t: postorder([t], steps) for t in dict.fromkeys(t for targets in called.values() for t in targets)}
    callees = {t: tuple(dict.fromkeys(c for b in body for c in called[b])) for t, body in bodies.items()}
    known: dict[str, Names] = {}

    def through(target: str, _: Names | None) -> Names | None:
        body = bodies[target]
        edges = _edges_inside([blocks[label] for label in body], known)
        tops = on_all_paths({target: NOTHING}, edges, {label: adds[label] for label in body})
        paths = [tops[label] | adds[label] for label in tops if may_return(blocks[label].terminator)]
        if paths:
            known[target] = frozenset.intersection(*paths)
        return known.get(target)

    # The solver visits callees first; the result is collected in `known`, which `_edges_inside` reads meanwhile.
    start: Names | None = None
    solve(callees, join=lambda target, values: None, transfer=through, start=start)
    return known
