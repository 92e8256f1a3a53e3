"""What identifies the program of a learned policy: its blocks, the functions they are of, how they follow one another.

Shapes, constants and what blocks compute do not count: a policy serves arguments of other sizes and other weights, and
the programs that transformations of JAX make of a function.
"""

from __future__ import annotations

import hashlib
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


def of_lanes(program: StackProgram) -> str:
    """Return the digest of a program of lanes."""
    lines = [f"{b.label} {b.function} {_stack_end(b.terminator)}" for b in program.blocks]
    return _digest([f"lanes {program.entry}", *lines])


def of_tasks(program: TaskProgram) -> str:
    """Return the digest of a program of tasks."""
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
