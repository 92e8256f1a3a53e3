"""Natural loops of a function: which blocks are repeated, and where control enters them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pcbatch.ir.cfg import Block, Function
from pcbatch.ir.walk import predecessors, successors


@dataclass(frozen=True, slots=True)
class Loop:
    """`head` is the only way in; `body` are the labels of all blocks of the loop, the head among them."""

    head: str
    body: frozenset[str]


def loops(function: Function) -> tuple[Loop, ...]:
    """All loops, those with fewer blocks first, so that a loop comes before the ones around it."""
    dominators = _dominators(function.blocks)
    preds = predecessors(function.blocks)
    ends: dict[str, list[str]] = {}
    for block in function.blocks:
        for target in successors(block.terminator):
            if target in dominators.get(block.label, ()):
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


def _dominators(blocks: tuple[Block, ...]) -> dict[str, frozenset[str]]:
    """For each block the blocks that every path to it passes, itself among them."""
    labels = frozenset(block.label for block in blocks)
    preds = predecessors(blocks)
    entry = blocks[0].label
    found = dict.fromkeys(labels, labels) | {entry: frozenset({entry})}
    changed = True
    while changed:
        changed = False
        for block in blocks[1:]:
            above = [found[p] for p in preds[block.label]]
            new = (frozenset.intersection(*above) if above else frozenset()) | {block.label}
            if new != found[block.label]:
                found[block.label], changed = new, True
    return found
