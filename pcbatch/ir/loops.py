"""Natural loops of a function: which blocks are repeated, and where control enters them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pcbatch.ir.cfg import Block, Function
from pcbatch.ir.dataflow import block_edges, postorder
from pcbatch.ir.def_use import predecessors, successors


@dataclass(frozen=True, slots=True)
class Loop:
    """`head` is the only way in; `body` are the labels of all blocks of the loop, the head among them."""

    head: str
    body: frozenset[str]


def loops(function: Function) -> tuple[Loop, ...]:
    """All loops, those with fewer blocks first, so that a loop comes before the ones around it."""
    dominators = Dominators(function.blocks)
    preds = predecessors(function.blocks)
    ends: dict[str, list[str]] = {}
    for block in function.blocks:
        for target in successors(block.terminator):
            if dominators.over(target, block.label):
                ends.setdefault(target, []).append(block.label)
    found = [Loop(head, _body(head, tails, preds)) for head, tails in ends.items()]
    return tuple(sorted(found, key=lambda loop: len(loop.body)))


def _body(head: str, tails: list[str], preds: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """What reaches a jump back to the head without passing the head."""
    body = {head}
    work = list(tails)
    while work:
        label = work.pop()
        if label not in body:
            body.add(label)
            work += preds[label]
    return frozenset(body)


class Dominators:
    """Which blocks every path to a block passes, as a tree: the parent is the last of them before the block itself.

    After Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm".
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        entry = blocks[0].label
        order = postorder([entry], block_edges(blocks))[::-1]
        preds = predecessors(blocks)
        self._place = {label: k for k, label in enumerate(order)}
        self._above = {entry: entry}
        changed = True
        while changed:  # once more than loops are entered in the middle, which none is that Python can write
            changed = False
            for label in order[1:]:
                known = sorted((p for p in preds[label] if p in self._above), key=self._place.__getitem__, reverse=True)
                above = known[0]
                for other in known[1:]:
                    above = self._meet(above, other)
                if self._above.get(label) != above:
                    self._above[label], changed = above, True
        self._spans = _spans(order, self._above)

    def over(self, label: str, other: str) -> bool:
        """Does every path to `other` pass `label`? A block is over itself; what cannot be reached is over nothing."""
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
    """Where in a walk through the tree a block stands, and where what is below it ends."""
    size = dict.fromkeys(order, 1)
    for label in order[:0:-1]:
        size[above[label]] += size[label]
    first = {order[0]: 0}
    free = {order[0]: 1}  # where the next block below goes
    for label in order[1:]:
        first[label] = free[above[label]]
        free[above[label]] += size[label]
        free[label] = first[label] + 1
    return {label: (first[label], first[label] + size[label]) for label in order}
