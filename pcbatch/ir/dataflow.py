"""A small worklist solver: the least (or greatest) solution of equations between the nodes of a graph.

For every node `n`, with `sources[n]` the nodes whose values flow into it:

    entering[n] = join(n, [leaving[s] for s in sources[n]])
    leaving[n]  = transfer(n, entering[n])

A forward analysis takes the predecessors as sources, a backward one the successors. Start from bottom (the empty
set, for a union) or from top (everything, for an intersection); transfer and join must be monotone and the values
of finite height, so that the iteration ends. Programs are small: a plain worklist in block order is fast enough,
and no bit vectors are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pcbatch.ir.walk import AnyBlock, successors

Node = TypeVar("Node", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Solution(Generic[Node, Value]):
    """The values that flow into and out of every node, in the direction of the analysis."""

    entering: Mapping[Node, Value]
    leaving: Mapping[Node, Value]


def solve(
    sources: Mapping[Node, Sequence[Node]],
    *,
    join: Callable[[Node, list[Value]], Value],
    transfer: Callable[[Node, Value], Value],
    start: Value,
) -> Solution[Node, Value]:
    """Iterate until nothing changes. Nodes are visited in the order of `sources`."""
    users = invert(sources)
    entering: dict[Node, Value] = {}
    leaving: dict[Node, Value] = dict.fromkeys(sources, start)
    work = dict.fromkeys(sources)
    while work:
        node = next(iter(work))
        del work[node]
        entering[node] = join(node, [leaving[source] for source in sources[node]])
        value = transfer(node, entering[node])
        if value != leaving[node]:
            leaving[node] = value
            work.update(dict.fromkeys(users[node]))
    return Solution(entering, leaving)


def invert(edges: Mapping[Node, Iterable[Node]]) -> dict[Node, tuple[Node, ...]]:
    """The same edges, the other way round; every end must be a node."""
    out: dict[Node, list[Node]] = {node: [] for node in edges}
    for node, ends in edges.items():
        for end in dict.fromkeys(ends):
            out[end].append(node)
    return {node: tuple(starts) for node, starts in out.items()}


def reachable(starts: Iterable[Node], edges: Mapping[Node, Iterable[Node]]) -> frozenset[Node]:
    """The nodes that can be reached from `starts`, which are among them."""
    seen: dict[Node, None] = dict.fromkeys(starts)
    work = list(seen)
    while work:
        for node in edges[work.pop()]:
            if node not in seen:
                seen[node] = None
                work.append(node)
    return frozenset(seen)


def block_edges(blocks: Iterable[AnyBlock]) -> dict[str, tuple[str, ...]]:
    """Label -> labels that may come next in the same activation (the return point for a `PushJump`)."""
    return {block.label: successors(block.terminator) for block in blocks}


def forward(
    blocks: Iterable[AnyBlock],
    *,
    join: Callable[[str, list[Value]], Value],
    transfer: Callable[[str, Value], Value],
    start: Value,
) -> Solution[str, Value]:
    """Solve along the jumps: `entering` is the value at the top of a block."""
    return solve(invert(block_edges(blocks)), join=join, transfer=transfer, start=start)


def backward(
    blocks: Iterable[AnyBlock],
    *,
    join: Callable[[str, list[Value]], Value],
    transfer: Callable[[str, Value], Value],
    start: Value,
) -> Solution[str, Value]:
    """Solve against the jumps: `entering` is the value at the bottom of a block, `leaving` at its top."""
    edges = block_edges(blocks)
    return solve({label: edges[label] for label in reversed(edges)}, join=join, transfer=transfer, start=start)
