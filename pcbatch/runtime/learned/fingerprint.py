"""What identifies the program of a learned policy: its blocks, their source and how they follow one another.

Shapes and constants do not count: a policy serves arguments of other sizes as well.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from pcbatch.ir.printer import print_program
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.tasks import TaskProgram


def of_lanes(program: StackProgram) -> str:
    """Return the digest of a program of lanes."""
    return _digest(print_program(replace(program, vars={v: replace(x, type=None) for v, x in program.vars.items()})))


def of_tasks(program: TaskProgram) -> str:
    """Return the digest of a program of tasks."""
    return _digest(print_program(replace(program, types=dict.fromkeys(program.types))))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
