"""The identity of the program of a learned policy: the source, and the blocks with how they follow one another.

A policy of another source is refused. One source may have several sets of blocks: containers that have grown, arguments
that `vmap` maps and other sizes may lead to other blocks. A policy is that of one of them, and others run without it.
Shapes, constants and what blocks compute do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import assert_never

from pcbatch.ir.ops import Fail, Jump, Return
from pcbatch.ir.stack import Fork, PushJump, StackProgram, StackTerminator
from pcbatch.ir.tasks import (
    Finish,
    Give,
    Spawn,
    Start,
    Sync,
    TaskFork,
    TaskJump,
    TaskProgram,
    TaskTerminator,
    Way,
    WayFork,
    spawns,
)


def of_text(name: str, lines: Iterable[str]) -> str:
    """Return the digest of the source of a function; layout and comments of whole lines do not count."""
    stripped = (line.strip() for line in lines)
    return _digest([name, *(line for line in stripped if line and not line.startswith("#"))])


def of_lanes(program: StackProgram) -> str:
    """Return the digest of the blocks of a program of lanes."""
    lines = [f"{b.label} {b.function} {_stack_end(b.terminator)}" for b in program.blocks]
    return _digest([f"lanes {program.entry}", *lines])


def of_tasks(program: TaskProgram) -> str:
    """Return the digest of the blocks of a program of tasks."""
    lines = []
    for block in program.blocks:
        begun = [f"{'for' if isinstance(op, Spawn) else 'into'} {_way(op.way)}" for op in spawns(block)]
        lines.append(" ".join([block.label, block.function, *begun, _task_end(block.terminator)]))
    return _digest([f"tasks {program.entry}", *lines])


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def _stack_end(end: StackTerminator) -> str:
    match end:
        case Fork():
            return f"({_stack_end(end.on_true)} or {_stack_end(end.on_false)})"
        case Jump(target=target):
            return target
        case PushJump(target=target, ret=ret):
            return f"call {target} ret {ret}"
        case Return():
            return "return"
        case Fail():
            return "fail"
        case _:
            assert_never(end)


def _task_end(end: TaskTerminator) -> str:
    match end:
        case TaskFork():
            return f"({_task_end(end.on_true)} or {_task_end(end.on_false)})"
        case TaskJump(target=target):
            return target
        case Sync(target=target):
            return f"sync {target}"
        case Finish():
            return "return"
        case Fail():
            return "fail"
        case _:
            assert_never(end)


def _way(way: Way) -> str:
    match way:
        case WayFork():
            return f"({_way(way.on_true)} or {_way(way.on_false)})"
        case Start(label=label):
            return label
        case Give():
            return "give"
        case _:
            assert_never(way)
