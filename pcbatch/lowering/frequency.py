"""How often a lane passes each block, guessed from the loops that it is inside of (recursion is one)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pcbatch.ir.dataflow import block_edges, components, invert
from pcbatch.ir.liveness import return_points
from pcbatch.ir.ops import Jump
from pcbatch.ir.stack import PushJump, StackProgram
from pcbatch.ir.walk import edges

LOOP = 8.0  # expected visits per nesting level
DEEPEST = 8  # a level for each of many calls of itself in a row says nothing about visits any more

Graph = Mapping[str, Sequence[str]]


def visits(program: StackProgram) -> dict[str, float]:
    """Expected visits of every block, by label; only their ratios mean something."""
    nesting = _nesting([block.label for block in program.blocks], flow(program))
    return {label: LOOP**level for label, level in nesting.items()}


def loop_levels(program: StackProgram) -> dict[str, int]:
    """How many loops of its activation every block is inside of; recursion is none of them."""
    return _nesting([block.label for block in program.blocks], block_edges(program.blocks))


def flow(program: StackProgram) -> dict[str, list[str]]:
    """Where a lane may go next, over calls and returns."""
    returns = return_points(program)
    graph = {}
    for block in program.blocks:
        direct = [edge.target for edge in edges(block.terminator) if isinstance(edge, Jump | PushJump)]
        graph[block.label] = list(dict.fromkeys([*direct, *returns.get(block.label, ())]))
    return graph


def _nesting(labels: Sequence[str], graph: Graph) -> dict[str, int]:
    """How many loops (of any kind, recursion included) each block is inside of."""
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
            # Where control enters the loop, from a loop around it too; the loop inside is what lies between.
            headers = {n for n in component if not inside.issuperset(before[n])} or {component[0]}
            work.append(([n for n in component if n not in headers], level + 1))
    return depth


def _cycles(nodes: Sequence[str], graph: Graph) -> list[list[str]]:
    """Strongly connected components of a part of the graph that hold a cycle; their nodes are in order."""
    place = {n: k for k, n in enumerate(nodes)}
    edges = {n: [s for s in graph[n] if s in place] for n in nodes}
    found = [c for c in components(edges) if len(c) > 1 or c[0] in edges[c[0]]]
    return [sorted(component, key=place.__getitem__) for component in found]
