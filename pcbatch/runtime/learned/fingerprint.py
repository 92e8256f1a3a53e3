"""The identity of the program of a learned policy: the source, and the blocks with how they follow one another.

A policy of another source is refused. One source may have several sets of blocks: containers that have grown, arguments
that `vmap` maps and other sizes may lead to other blocks. A policy is that of one of them, and others run without it.
Shapes, constants and what blocks compute do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import assert_never

from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.stack import PushJump, StackProgram, StackTerminator
from pcbatch.ir.tasks import Finish, Give, Spawn, Start, Sync, TaskJump, TaskProgram, TaskTerminator, Way, spawns


def of_text(name: str, lines: Iterable[str]) -> str:
    """Return the digest of the source of a function; layout and comments of whole lines do not count."""
    stripped = (line.strip() for line in lines)
    return _digest([name, *(line for line in stripped if line and not line.startswith("#"))])


def of_lanes(program: StackProgram) -> str:
    """Return the digest of the blocks of a program of lanes."""
    lines = [f"{b.label} {b.function} {_text(b.terminator)}" for b in program.blocks]
    return _digest([f"lanes {program.entry}", *lines])


def of_tasks(program: TaskProgram) -> str:
    """Return the digest of the blocks of a program of tasks."""
    lines = []
    for block in program.blocks:
        begun = [f"{'for' if isinstance(op, Spawn) else 'into'} {_text(op.way)}" for op in spawns(block)]
        lines.append(" ".join([block.label, block.function, *begun, _text(block.terminator)]))
    return _digest([f"tasks {program.entry}", *lines])


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def _text(end: StackTerminator | TaskTerminator | Way) -> str:
    match end:
        case Fork():
            return f"({_text(end.on_true)} or {_text(end.on_false)})"
        case Jump(target=target) | TaskJump(target=target) | Start(label=target):
            return target
        case PushJump(target=target, ret=ret):
            return f"call {target} ret {ret}"
        case Sync(target=target):
            return f"sync {target}"
        case Return() | Finish():
            return "return"
        case Fail():
            return "fail"
        case Give():
            return "give"
        case _:
            assert_never(end)
