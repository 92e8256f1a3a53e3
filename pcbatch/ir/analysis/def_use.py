"""The uses and definitions of operations, terminators and blocks, and the successors of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar, assert_never

from pcbatch.ir.cfg import Block, Op, Terminator
from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.ops import RETURN, Branch, Fail, Jump, Prim, Return
from pcbatch.ir.roles import reads, rename_reads, rename_writes, writes
from pcbatch.ir.stack import Edge, Leaf, Pop, Push, PushJump, StackBlock, StackOp, StackTerminator

AnyOp = Op | StackOp
AnyTerminator = Jump | Branch | Fork[Leaf] | Return | PushJump | Fail
AnyBlock = Block | StackBlock
BlockT = TypeVar("BlockT", Block, StackBlock)


def edges(terminator: AnyTerminator) -> tuple[Jump | PushJump | Return | Fail, ...]:
    """The edges of a terminator, left to right."""
    if isinstance(terminator, Branch):
        return jump_to(terminator.on_true), jump_to(terminator.on_false)
    return leaves(terminator)


def map_edges(edge: Edge, new: Callable[[Leaf], Edge]) -> Edge:
    """Replace the leaves of a tree of forks; a fork whose edges become equal is replaced by that edge."""
    if not isinstance(edge, Fork):
        return new(edge)
    on_true, on_false = map_edges(edge.on_true, new), map_edges(edge.on_false, new)
    return on_true if on_true == on_false else replace(edge, on_true=on_true, on_false=on_false)


def conditions(terminator: AnyTerminator) -> tuple[str, ...]:
    """The variables that choose among the edges of a terminator, each once."""
    return () if isinstance(terminator, Fail) else terminator_reads(terminator)


def terminator_reads(terminator: AnyTerminator) -> tuple[str, ...]:
    """The variables that a terminator uses: its conditions, or those that the message of a failure shows."""
    return tuple(dict.fromkeys(reads(terminator)))


def kept(terminator: AnyTerminator) -> tuple[str, ...]:
    """The variables that a failure shows, which must keep their value after the lane has stopped."""
    return terminator_reads(terminator) if isinstance(terminator, Fail) else ()


def successors(terminator: AnyTerminator) -> tuple[str, ...]:
    """The labels that may follow in the same function (for a `PushJump`, its return point)."""
    labels: dict[str, None] = {}
    for edge in edges(terminator):
        match edge:
            case Jump(target=label) | PushJump(ret=label):
                labels[label] = None
            case Return() | Fail():
                pass
            case _:
                assert_never(edge)
    return tuple(labels)


def calls(terminator: AnyTerminator) -> tuple[PushJump, ...]:
    """The edges of a terminator that open a frame."""
    return tuple(edge for edge in edges(terminator) if isinstance(edge, PushJump))


def targets(terminator: AnyTerminator) -> tuple[str, ...]:
    """All labels in a terminator, with repetitions."""
    names: list[str] = []
    for edge in edges(terminator):
        if isinstance(edge, Jump | PushJump):
            names += [edge.target, edge.ret] if isinstance(edge, PushJump) else [edge.target]
    return tuple(names)


def may_return(terminator: AnyTerminator) -> bool:
    """Whether control may leave the function at a terminator."""
    return any(isinstance(edge, Return) for edge in edges(terminator))


def retarget(terminator: Terminator, to: Callable[[str], str]) -> Terminator:
    """Replace every label of a terminator by `to(label)`; a jump to `RETURN` becomes a `Return`."""
    match terminator:
        case Jump(target=target):
            return jump_to(to(target))
        case Branch():
            on_true, on_false = to(terminator.on_true), to(terminator.on_false)
            if on_true == on_false:
                return jump_to(on_true)
            return replace(terminator, on_true=on_true, on_false=on_false)
        case Return() | Fail():
            return terminator
        case _:
            assert_never(terminator)


def retarget_stack(terminator: StackTerminator, to: Callable[[str], str]) -> StackTerminator:
    """Replace every label of a terminator of a stack program by `to(label)`."""

    def leaf(edge: Leaf) -> Leaf:
        match edge:
            case Jump(target=target):
                return Jump(to(target))
            case PushJump():
                return replace(edge, target=to(edge.target), ret=to(edge.ret))
            case Return():
                return edge
            case _:
                assert_never(edge)

    return terminator if isinstance(terminator, Fail) else map_edges(terminator, leaf)


def jump_to(label: str) -> Jump | Return:
    """The jump to a label, which may be `RETURN`."""
    return Return() if label == RETURN else Jump(label)


def rename_block(block: BlockT, new: Callable[[str], str]) -> BlockT:
    """The block with every variable `v` replaced by `new(v)`."""
    ops = tuple(rename_writes(rename_reads(op, new), new) for op in block.ops)
    return replace(block, ops=ops, terminator=rename_reads(block.terminator, new))


def block_uses(block: AnyBlock) -> set[str]:
    """The variables that a block reads before it writes them."""
    used: set[str] = set()
    written: set[str] = set()
    for op in block.ops:
        used.update(v for v in reads(op) if v not in written)
        written.update(writes(op))
    used.update(v for v in terminator_reads(block.terminator) if v not in written)
    return used


def block_writes(block: AnyBlock) -> set[str]:
    """The variables that a block writes."""
    return {v for op in block.ops for v in writes(op)}


def pushes(block: StackBlock) -> tuple[Push, ...]:
    """The pushes of a block, in order."""
    return tuple(op for op in block.ops if isinstance(op, Push))


def pops(block: StackBlock) -> tuple[Pop, ...]:
    """The pops of a block, in order."""
    return tuple(op for op in block.ops if isinstance(op, Pop))


def holds(block: StackBlock, text: str) -> bool:
    """Whether the source of a primitive in the block contains `text`."""
    return any(isinstance(op, Prim) and op.expr.says(text) for op in block.ops)


def predecessors(blocks: Iterable[AnyBlock]) -> dict[str, tuple[str, ...]]:
    """The labels of the predecessors of every block, each once, in block order."""
    blocks = tuple(blocks)
    sources: dict[str, list[str]] = {block.label: [] for block in blocks}
    for block in blocks:
        for label in successors(block.terminator):
            sources[label].append(block.label)
    return {label: tuple(labels) for label, labels in sources.items()}
