"""Static estimates of how often a lane visits each block, by the loops and recursions that enclose it.

Every enclosing loop multiplies the visits by a constant, the usual estimate where there is no profile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pcbatch.ir.analysis.dataflow import block_edges, components, invert, postorder
from pcbatch.ir.analysis.def_use import calls, edges
from pcbatch.ir.analysis.liveness import return_points
from pcbatch.ir.ops import Jump
from pcbatch.ir.stack import PushJump, StackProgram

LOOP = 8.0  # expected visits per nesting level
DEEPEST = 8  # nesting levels; code that calls itself many times in a row would otherwise count as deeper and deeper

Graph = Mapping[str, Sequence[str]]


def visits(program: StackProgram) -> dict[str, float]:
    """Estimate the visits of every block, by label; only their ratios mean something.

    A body runs as often as it is called, a recursive one by a level more; its blocks by the loops around them. Returns
    are no edges here: what follows a call belongs to the body that called.
    """
    local = loop_levels(program)
    bodies = _bodies(program)
    levels = _levels(program, bodies, local)
    out = dict.fromkeys(local, 0)
    for entry, labels in bodies.items():
        for label in labels:
            out[label] = max(out[label], levels[entry] + local[label])
    return {label: LOOP ** min(level, DEEPEST) for label, level in out.items()}


def _bodies(program: StackProgram) -> dict[str, tuple[str, ...]]:
    """By entry, the blocks of a body: of the program itself, and of everything that is called."""
    graph = block_edges(program.blocks)
    entries = [program.entry, *(call.target for block in program.blocks for call in calls(block.terminator))]
    return {entry: tuple(postorder([entry], graph)) for entry in dict.fromkeys(entries)}


def _levels(program: StackProgram, bodies: Mapping[str, Sequence[str]], local: Mapping[str, int]) -> dict[str, int]:
    """The nesting level of each body: the deepest call of it counts its loops, and recursion counts as one more."""
    calls_of = {block.label: calls(block.terminator) for block in program.blocks}
    # In the order of nesting, so that of several calls of one body the deepest stays.
    called = {
        entry: {
            call.target: local[label] for label in sorted(labels, key=local.__getitem__) for call in calls_of[label]
        }
        for entry, labels in bodies.items()
    }
    levels = dict.fromkeys(bodies, 0)
    for group in reversed(components({entry: tuple(callees) for entry, callees in called.items()})):  # callers first
        recursive = len(group) > 1 or group[0] in called[group[0]]
        level = max(levels[entry] for entry in group) + recursive
        levels |= dict.fromkeys(group, level)
        for entry in group:
            for target, loops in called[entry].items():
                if target not in group:
                    levels[target] = max(levels[target], level + loops)
    return levels


def loop_levels(program: StackProgram) -> dict[str, int]:
    """Count the loops of its own function that enclose each block; recursion is not among them."""
    return _nesting([block.label for block in program.blocks], block_edges(program.blocks))


def cycles(program: StackProgram) -> dict[str, int]:
    """Count the cycles of the machine's control flow that enclose each block, those through calls and returns too."""
    return _nesting([block.label for block in program.blocks], flow(program))


def inner_loops(program: StackProgram, without: Collection[str]) -> frozenset[str]:
    """Return the blocks on cycles of jumps, without calls, that do not pass through some blocks."""
    graph = {
        block.label: [edge.target for edge in edges(block.terminator) if isinstance(edge, Jump)]
        for block in program.blocks
        if block.label not in without
    }
    return frozenset(label for cycle in _cycles(list(graph), graph) for label in cycle)


def flow(program: StackProgram) -> dict[str, list[str]]:
    """Return the machine's control flow: for each block, those a lane may visit next, across calls and returns."""
    returns = return_points(program)
    graph = {}
    for block in program.blocks:
        direct = [edge.target for edge in edges(block.terminator) if isinstance(edge, Jump | PushJump)]
        graph[block.label] = list(dict.fromkeys([*direct, *returns.get(block.label, ())]))
    return graph


def has_cycle(graph: Graph) -> bool:
    """Return whether a path through a graph comes back to where it began."""
    return any(len(together) > 1 for together in components(graph)) or any(b in graph[b] for b in graph)


def _nesting(labels: Sequence[str], graph: Graph) -> dict[str, int]:
    """Count the cycles of a graph that enclose each node: the components, then those that remain without headers."""
    depth = dict.fromkeys(labels, 0)
    before = invert(graph)
    work: list[tuple[Sequence[str], int]] = [(labels, 1)]
    while work:
        nodes, level = work.pop()
        for component in _cycles(nodes, graph):
            depth |= dict.fromkeys(component, level)
            if level == DEEPEST:
                continue
            inside = frozenset(component)
            # Headers are where control enters the loop. Without them its back edges are gone; inner loops remain.
            headers = {n for n in component if not inside.issuperset(before[n])} or {component[0]}
            if len(component) > 1:  # a header that jumps to itself is a loop of its own, inside of the others
                depth |= dict.fromkeys((n for n in headers if n in graph[n]), level + 1)
            work.append(([n for n in component if n not in headers], level + 1))
    return depth


def _cycles(nodes: Sequence[str], graph: Graph) -> list[list[str]]:
    """Strongly connected components of a part of the graph that hold a cycle; their nodes are in order."""
    position = {n: k for k, n in enumerate(nodes)}
    edges = {n: [s for s in graph[n] if s in position] for n in nodes}
    cyclic = [c for c in components(edges) if len(c) > 1 or c[0] in edges[c[0]]]
    return [sorted(component, key=position.__getitem__) for component in cyclic]
