"""A worklist solver: the least (or greatest) solution of equations between the nodes of a graph.

For every node `n`, with `sources[n]` the nodes whose values flow into it:

    entering[n] = join(n, [leaving[s] for s in sources[n]])
    leaving[n]  = transfer(n, entering[n])

A forward analysis takes the predecessors as sources, a backward one the successors. Start from bottom (the empty
set, for a union) or from top (everything, for an intersection); transfer and join must be monotone and the values
of finite height, so that the iteration ends. Nodes are visited in postorder of their sources, so that a value flows
through a program in one pass, and once more for each loop around it; sets of names are small enough to need no bit
vectors.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pcbatch.ir.analysis.def_use import AnyBlock, edges, successors
from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.stack import PushJump

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
    """Iterate until no value changes.

    Args:
        sources: For every node, the nodes whose values flow into it.
        join: The value that enters a node, from the values that leave its sources, in their order.
        transfer: The value that leaves a node, from the one that enters it.
        start: The value that leaves every node at first.

    Returns:
        The values of all nodes, in the order of `sources`.
    """
    order = postorder(sources, sources)
    position = {node: k for k, node in enumerate(order)}
    users = {node: [position[user] for user in users] for node, users in invert(sources).items()}
    entering: dict[Node, Value] = {}
    leaving: dict[Node, Value] = dict.fromkeys(sources, start)
    worklist = Worklist(range(len(order)))
    for at in worklist:
        node = order[at]
        entering[node] = join(node, [leaving[source] for source in sources[node]])
        value = transfer(node, entering[node])
        if value != leaving[node]:
            leaving[node] = value
            for user in users[node]:
                worklist.add(user)
    return Solution({node: entering[node] for node in sources}, leaving)


class Worklist:
    """Positions that wait to be visited, the smallest first. Iteration ends when none waits; a visit may add more."""

    def __init__(self, positions: Iterable[int]) -> None:
        self._heap = sorted(positions)
        self._waiting = set(self._heap)

    def add(self, position: int) -> None:
        """Add a position, unless it waits already."""
        if position not in self._waiting:
            self._waiting.add(position)
            heapq.heappush(self._heap, position)

    def __iter__(self) -> Iterator[int]:
        while self._heap:
            position = heapq.heappop(self._heap)
            self._waiting.remove(position)
            yield position


def invert(edges: Mapping[Node, Iterable[Node]]) -> dict[Node, tuple[Node, ...]]:
    """Reverse all edges; every end of an edge must be a node."""
    out: dict[Node, list[Node]] = {node: [] for node in edges}
    for node, ends in edges.items():
        for end in dict.fromkeys(ends):
            out[end].append(node)
    return {node: tuple(starts) for node, starts in out.items()}


def postorder(starts: Iterable[Node], edges: Mapping[Node, Iterable[Node]]) -> list[Node]:
    """The nodes that can be reached from `starts`, each after its successors, but for cycles."""
    seen: set[Node] = set()
    out: list[Node] = []
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(edges[start]))]
        while path:
            node, rest = path[-1]
            following = next((end for end in rest if end not in seen), None)
            if following is None:
                out.append(node)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(edges[following])))
    return out


def components(edges: Mapping[Node, Iterable[Node]]) -> list[list[Node]]:
    """The strongly connected components, each after those that it leads to; every end of an edge must be a node.

    By Kosaraju's algorithm: in reverse postorder, a node that is in no component yet starts a new one, of all nodes
    that lead to it and are in none.
    """
    predecessors = invert(edges)
    taken: set[Node] = set()
    out: list[list[Node]] = []
    for first in reversed(postorder(edges, edges)):
        if first not in taken:
            taken.add(first)
            component = [first]
            for node in component:  # which grows in the loop
                more = [start for start in predecessors[node] if start not in taken]
                taken.update(more)
                component += more
            out.append(component)
    return out[::-1]


def reachable(starts: Iterable[Node], edges: Mapping[Node, Iterable[Node]]) -> frozenset[Node]:
    """The nodes that can be reached from `starts`, with `starts` themselves."""
    seen: dict[Node, None] = dict.fromkeys(starts)
    work = list(seen)
    while work:
        for node in edges[work.pop()]:
            if node not in seen:
                seen[node] = None
                work.append(node)
    return frozenset(seen)


def agreed(maps: Iterable[Mapping[Node, Value] | None]) -> dict[Node, Value] | None:
    """The pairs that all maps have; None stands for all pairs, where no path has been looked at yet."""
    known = [one for one in maps if one is not None]
    if not known:
        return None
    first, *others = known
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def failing(blocks: Sequence[AnyBlock]) -> frozenset[str]:
    """The blocks at which it is sure that the lane fails: those that do, and those that lead to such alone."""
    found = frozenset(block.label for block in blocks if isinstance(block.terminator, Fail))

    def leads_there(edge: Jump | PushJump | Return | Fail) -> bool:
        return isinstance(edge, Fail) or (isinstance(edge, Jump) and edge.target in found)

    while more := {b.label for b in blocks if b.label not in found and all(map(leads_there, edges(b.terminator)))}:
        found |= more
    return found


def block_edges(blocks: Iterable[AnyBlock]) -> dict[str, tuple[str, ...]]:
    """The successors of every block in the same activation (for a `PushJump`, its return point)."""
    return {block.label: successors(block.terminator) for block in blocks}


def forward(
    blocks: Iterable[AnyBlock],
    *,
    join: Callable[[str, list[Value]], Value],
    transfer: Callable[[str, Value], Value],
    start: Value,
) -> Solution[str, Value]:
    """Solve a forward analysis of blocks: `entering` is the value at the top of a block, `leaving` at its bottom."""
    return solve(invert(block_edges(blocks)), join=join, transfer=transfer, start=start)


def backward(
    blocks: Iterable[AnyBlock],
    *,
    join: Callable[[str, list[Value]], Value],
    transfer: Callable[[str, Value], Value],
    start: Value,
) -> Solution[str, Value]:
    """Solve a backward analysis of blocks: `entering` is the value at the bottom of a block, `leaving` at its top."""
    edges = block_edges(blocks)
    return solve({label: edges[label] for label in reversed(edges)}, join=join, transfer=transfer, start=start)
