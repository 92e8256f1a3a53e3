"""How a lane ended, and how the program counter says so while the machine runs.

With N blocks, a program counter below N names the block that the lane waits for. N is EXIT: the lane has returned.
Beyond it, `block + status * (N + 1)` parks a lane that could not run `block`, or that failed at its end: it keeps all
its values, disturbs nobody, and can go on when the cause is gone (a full stack).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import jax
import jax.numpy as jnp

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir import ops
from pcbatch.ir.ops import Fail


class Status(IntEnum):
    """The end of one lane: it returned (`OK`), met a limit, or failed an `assert` (`ASSERTION`) or a `raise` (`ERROR`).

    `RUNNING` is seen only when a machine is stopped between trips, by `timeout` or by hand.
    """

    OK = 0
    STACK_FULL = 1
    STEP_LIMIT = 2
    RUNNING = 3
    ASSERTION = 4
    ERROR = 5


@dataclass(frozen=True, slots=True)
class Site:
    """Where a lane stopped: the source, what was on the stack, and the failure if it reached one."""

    loc: Loc | None = None
    held: str = ""
    fail: Fail | None = None
    label: str = ""  # of the block


def why(fail: Fail) -> Status:
    """How a lane ends that reaches a failure."""
    return Status.ASSERTION if fail.kind == ops.ASSERTION else Status.ERROR


def parked(block: jax.Array | int, blocks: int, why: Status) -> jax.Array | int:
    """The program counter of a lane that stopped before `block`."""
    return block + int(why) * (blocks + 1)


def status_of(pc: jax.Array, blocks: int) -> jax.Array:
    """int32[lanes] of `Status` values."""
    return jnp.where(pc < blocks, int(Status.RUNNING), pc // (blocks + 1)).astype(jnp.int32)


def unpark(pc: jax.Array, blocks: int, why: Status) -> jax.Array:
    """Let the lanes that were parked for one cause try again."""
    return jnp.where(pc // (blocks + 1) == int(why), pc - int(why) * (blocks + 1), pc)
