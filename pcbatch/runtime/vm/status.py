"""The status of a lane, which its program counter encodes while the machine runs.

With N blocks, a program counter below N is the number of the block that the lane waits for. N is EXIT: the lane has
returned. Beyond it, `block + status * (N + 1)` parks a lane that could not run `block`, or that failed at its end: it
keeps all its values, no block runs for it, and it can continue when the cause is gone (a full stack).
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

    `LIST_FULL`: a list, dict or set of the lane has no room for its elements, and may not get more (`max_length`).
    `LIMIT`: the lane needed a value that Python has and lanes cannot hold, such as an integer of more bits.
    `RUNNING` is seen only when a machine is stopped between trips, by `timeout` or by hand.
    """

    OK = 0
    STACK_FULL = 1
    STEP_LIMIT = 2
    RUNNING = 3
    ASSERTION = 4
    ERROR = 5
    LIST_FULL = 6
    LIMIT = 7


@dataclass(frozen=True, slots=True)
class Site:
    """The point of the program at which a lane stopped."""

    loc: Loc | None = None
    held: str = ""  # the variables that the block pushes, with their types
    fail: Fail | None = None  # the failure that it reached, if it did
    label: str = ""  # of the block


def why(fail: Fail) -> Status:
    """Return the status of a lane that reaches a failure."""
    match fail.kind:
        case ops.ASSERTION:
            return Status.ASSERTION
        case ops.CAPACITY:
            return Status.LIST_FULL
        case ops.LIMIT:
            return Status.LIMIT
        case _:
            return Status.ERROR


def parked(block: jax.Array | int, blocks: int, why: Status) -> jax.Array | int:
    """Return the program counter of a lane that stopped before `block`, in a program of so many `blocks`."""
    return block + int(why) * (blocks + 1)


def reached(fail: Fail, block: int, blocks: int) -> int:
    """Return the program counter of a lane that has failed at the end of a block."""
    return int(parked(block, blocks, why(fail)))


def status_of(pc: jax.Array, blocks: int) -> jax.Array:
    """Return the statuses of lanes, int32[lanes] of `Status`, from their program counters, int32[lanes]."""
    return jnp.where(pc < blocks, int(Status.RUNNING), pc // (blocks + 1)).astype(jnp.int32)


def unpark(pc: jax.Array, blocks: int, why: Status) -> jax.Array:
    """Return the program counters with lanes that were parked for one cause back at the blocks that they wait for."""
    return jnp.where(pc // (blocks + 1) == int(why), pc - int(why) * (blocks + 1), pc)
