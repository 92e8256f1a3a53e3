"""How often a lane passes each block, guessed from the loops that it is inside of (recursion is one)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pcbatch.ir.dataflow import block_edges, reachable
from pcbatch.ir.liveness import return_points
from pcbatch.ir.ops import Jump
from pcbatch.ir.stack import PushJump, StackProgram
from pcbatch.ir.walk import edges

LOOP = 8.0  # expected visits per nesting level

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

    def nest(nodes: frozenset[str], level: int) -> None:
        edges = {n: [s for s in graph[n] if s in nodes] for n in labels if n in nodes}
        for component in _cycles(edges):
            for n in component:
                depth[n] = level
            # Where control enters the loop, from a loop around it too; the loop inside is what lies between.
            headers = {s for n in labels if n not in component for s in graph[n] if s in component}
            nest(component - (headers or {next(n for n in labels if n in component)}), level + 1)

    nest(frozenset(labels), 1)
    return depth


def _cycles(edges: Mapping[str, Sequence[str]]) -> list[frozenset[str]]:
    """Strongly connected components that hold a cycle."""
    below = {n: reachable(edges[n], edges) for n in edges}
    seen: set[str] = set()
    out = []
    for n in edges:
        if n not in seen and n in below[n]:
            component = frozenset(m for m in below[n] if n in below[m])
            seen |= component
            out.append(component)
    return out
