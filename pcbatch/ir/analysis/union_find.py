"""Union-find: sets of nodes that only grow together, each with one of them that stands for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from pcbatch.ir.analysis.dataflow import Node


class UnionFind(Generic[Node]):
    """Disjoint sets; a node that is in no union is alone in its own."""

    def __init__(self) -> None:
        self._parent: dict[Node, Node] = {}

    def find(self, node: Node) -> Node:
        """The node that stands for all that are united with `node`."""
        path = []
        while (parent := self._parent.get(node, node)) != node:
            path.append(node)
            node = parent
        self._parent.update(dict.fromkeys(path, node))  # path compression
        return node

    def union(self, nodes: Iterable[Node]) -> None:
        """Unite the sets of some nodes; what stands for the first one stands for all then."""
        first, *others = map(self.find, nodes)
        for other in others:
            if other != first:
                self._parent[other] = first
