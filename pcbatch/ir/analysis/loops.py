"""The natural loops of a function, and the dominators of its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pcbatch.ir.analysis.dataflow import block_edges, postorder, reachable
from pcbatch.ir.analysis.def_use import predecessors, successors
from pcbatch.ir.cfg import Block, Function


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: control enters only at `head`; `body` are the labels of all its blocks, with the head."""

    head: str
    body: frozenset[str]


def loops(function: Function) -> tuple[Loop, ...]:
    """All natural loops, those with fewer blocks first, so that a loop comes before those around it."""
    dominators = Dominators(function.blocks)
    preds = predecessors(function.blocks)
    ends: dict[str, list[str]] = {}
    for block in function.blocks:
        for target in successors(block.terminator):
            if dominators.over(target, block.label):  # a back edge
                ends.setdefault(target, []).append(block.label)
    # The body of a loop: all blocks that reach a back edge without passing the head.
    all_loops = [Loop(head, reachable([head, *tails], {**preds, head: ()})) for head, tails in ends.items()]
    return tuple(sorted(all_loops, key=lambda loop: len(loop.body)))


class Dominators:
    """The dominator tree of a function: the parent of a block is the last block that every path to it passes before.

    After Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm" (2001).
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        entry = blocks[0].label
        order = postorder([entry], block_edges(blocks))[::-1]
        preds = predecessors(blocks)
        self._place = {label: k for k, label in enumerate(order)}
        self._above = {entry: entry}
        again = True
        while again:  # twice: only loops with two entries, which Python cannot express, need more
            again = False
            for label in order[1:]:
                known = sorted((p for p in preds[label] if p in self._above), key=self._place.__getitem__, reverse=True)
                above = known[0]
                for other in known[1:]:
                    above = self._meet(above, other)
                if self._above.get(label) != above:
                    self._above[label], again = above, True
        self._spans = _spans(order, self._above)

    def over(self, label: str, other: str) -> bool:
        """Whether `label` dominates `other`; a block dominates itself, and an unreachable one dominates none."""
        if label not in self._spans or other not in self._spans:
            return False
        first, last = self._spans[label]
        return first <= self._spans[other][0] < last

    def _meet(self, a: str, b: str) -> str:
        while a != b:
            if self._place[a] < self._place[b]:
                a, b = b, a
            a = self._above[a]
        return a


def _spans(order: Sequence[str], above: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """The position of each block in a preorder of the tree, and the end of the positions of its subtree."""
    size = dict.fromkeys(order, 1)
    for label in order[:0:-1]:
        size[above[label]] += size[label]
    first = {order[0]: 0}
    free = {order[0]: 1}  # the position of the next child
    for label in order[1:]:
        first[label] = free[above[label]]
        free[above[label]] += size[label]
        free[label] = first[label] + 1
    return {label: (first[label], first[label] + size[label]) for label in order}
