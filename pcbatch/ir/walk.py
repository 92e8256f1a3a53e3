"""What an operation, a jump or a block reads and writes; renaming. The base of every analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

from pcbatch.ir.cfg import Block, Call
from pcbatch.ir.message import variables
from pcbatch.ir.ops import RETURN, Branch, Fail, Jump, Move, Prim, Print, Return, Select
from pcbatch.ir.stack import Pop, Push, PushJump, StackBlock

AnyOp = Prim | Move | Select | Call | Push | Pop | Print
AnyTerminator = Jump | Branch | Return | PushJump | Fail
AnyBlock = Block | StackBlock


def reads(op: AnyOp) -> tuple[str, ...]:
    """Variables whose current value `op` uses (a pop reads a frame slot, not the variable)."""
    match op:
        case Prim(expr=expr):
            return expr.ins
        case Move(src=src) | Push(src=src):
            return (src,)
        case Select():
            return (op.cond, op.on_true, op.on_false)
        case Call(args=args):
            return args
        case Print(message=message):
            return variables(message)
        case Pop():
            return ()
        case _:
            assert_never(op)


def writes(op: AnyOp) -> tuple[str, ...]:
    """Variables whose current value `op` replaces (a push writes a frame slot, not the variable)."""
    match op:
        case Prim(dsts=dsts) | Call(dsts=dsts):
            return dsts
        case Move(dst=dst) | Select(dst=dst) | Pop(dst=dst):
            return (dst,)
        case Push() | Print():
            return ()
        case _:
            assert_never(op)


def terminator_reads(terminator: AnyTerminator) -> tuple[str, ...]:
    """Variables that a jump uses: a condition, or what a failure shows."""
    match terminator:
        case Branch(cond=cond):
            return (cond,)
        case Fail(message=message):
            return variables(message)
        case _:
            return ()


def kept(terminator: AnyTerminator) -> tuple[str, ...]:
    """Variables that must keep their value when the lane stops at this jump: those that a failure shows."""
    return terminator_reads(terminator) if isinstance(terminator, Fail) else ()


def successors(terminator: AnyTerminator) -> tuple[str, ...]:
    """Labels inside the same function that may come next (the return point for a `PushJump`)."""
    match terminator:
        case Jump(target=target):
            labels: tuple[str, ...] = (target,)
        case Branch():
            labels = (terminator.on_true, terminator.on_false)
        case PushJump(ret=ret):
            labels = (ret,)
        case Return() | Fail():
            labels = ()
        case _:
            assert_never(terminator)
    return tuple(dict.fromkeys(label for label in labels if label != RETURN))


def may_return(terminator: AnyTerminator) -> bool:
    """Can control leave the function here?"""
    match terminator:
        case Return():
            return True
        case Branch():
            return RETURN in (terminator.on_true, terminator.on_false)
        case _:
            return False


def retarget(terminator: AnyTerminator, to: Callable[[str], str]) -> AnyTerminator:
    """The jump with every label passed through `to`; a jump to `RETURN` becomes a `Return`."""
    match terminator:
        case Jump(target=target):
            new = to(target)
            return Return() if new == RETURN else Jump(new)
        case Branch():
            on_true, on_false = to(terminator.on_true), to(terminator.on_false)
            if on_true == on_false:
                return Return() if on_true == RETURN else Jump(on_true)
            return replace(terminator, on_true=on_true, on_false=on_false)
        case PushJump():
            target, ret = to(terminator.target), to(terminator.ret)
            if ret == RETURN or target == RETURN:  # a tail call; a callee that only returns
                return retarget(Jump(ret if target == RETURN else target), lambda label: label)
            return replace(terminator, target=target, ret=ret)
        case Return() | Fail():
            return terminator
        case _:
            assert_never(terminator)


def block_uses(block: AnyBlock) -> set[str]:
    """Variables read before the block writes them."""
    used: set[str] = set()
    written: set[str] = set()
    for op in block.ops:
        used.update(v for v in reads(op) if v not in written)
        written.update(writes(op))
    used.update(v for v in terminator_reads(block.terminator) if v not in written)
    return used


def block_writes(block: AnyBlock) -> set[str]:
    """Variables written anywhere in the block."""
    return {v for op in block.ops for v in writes(op)}


def pushes(block: StackBlock) -> tuple[Push, ...]:
    """The pushes of a block, in order."""
    return tuple(op for op in block.ops if isinstance(op, Push))


def pops(block: StackBlock) -> tuple[Pop, ...]:
    """The pops of a block, in order."""
    return tuple(op for op in block.ops if isinstance(op, Pop))


def predecessors(blocks: Iterable[AnyBlock]) -> dict[str, tuple[str, ...]]:
    """For every label, the labels of the blocks that may jump to it (each once, in block order)."""
    blocks = tuple(blocks)
    out: dict[str, list[str]] = {block.label: [] for block in blocks}
    for block in blocks:
        for label in successors(block.terminator):
            out[label].append(block.label)
    return {label: tuple(sources) for label, sources in out.items()}
